--- Sources: queries to the daemon, and the conversion of answers to lists of locations.

local config = require("flashgrep.config")

local M = {}

---@class flashgrep.Item
---@field root string
---@field path string relative to the root
---@field line integer from 1
---@field column integer byte, from 1
---@field text string
---@field detail string? kind and score
---@field spans integer[][]? matches in text: first byte and end (exclusive), from 0

---@class flashgrep.Source
---@field title string
---@field live boolean whether typed text is the query; else it filters the list
---@field ask fun(client: flashgrep.Client, query: string, callback: fun(items: flashgrep.Item[]?, problem: string?)): integer?

local function place(client, found, text, line, column)
  local bytes = found.file_path_bytes and vim.base64 and vim.base64.decode(found.file_path_bytes)
  return {
    root = client.root,
    path = bytes or found.file_path,
    line = line or found.line_number or found.start_line or 1,
    column = column or found.column or 1,
    text = (text or ""):gsub("[\r\n].*", ""),
  }
end

--- Return a function that calls a method and converts its answer to items.
local function asking(method, make_params, make_items)
  local function ask(client, query, callback, is_last)
    local params = make_params(query)
    if not params then
      callback({})
      return nil
    end
    require("flashgrep.buffers").send(client)
    local epoch = client.epoch
    return client:request(method, params, function(error, result)
      if error then
        callback(nil, error.message)
      elseif client.epoch ~= epoch and not is_last then
        ask(client, query, callback, true) -- another daemon answered, which did not know the unsaved text
      else
        local items, reason = make_items(client, result)
        callback(items, #items == 0 and reason or nil)
      end
    end)
  end
  return ask
end

--- Return the matches in the text of a hit: first byte and end, from 0.
function M.spans_of(hit)
  local spans = {}
  -- A long line comes as the part around its match.
  local shift = hit.text_column or 1
  for _, range in ipairs(hit.spans or {}) do
    if range.start_line == hit.start_line and range.end_line == hit.start_line then
      table.insert(spans, { range.start_column - shift, range.end_column - shift })
    end
  end
  return spans
end

--- Lines with a text or a regular expression; `options`: parameters of `query`, e.g. mode, include and exclude.
function M.grep(options)
  return {
    title = "Grep",
    live = true,
    ask = asking("query", function(query)
      if query == "" then
        return nil
      end
      local base = { query = query, limit = config.limit, max_tokens = 200000, spans = true, position_encoding = "utf-8" }
      return vim.tbl_extend("force", base, options or {})
    end, function(client, result)
      return vim.tbl_map(function(hit)
        local item = place(client, hit, hit.text, hit.start_line, hit.column)
        item.spans = M.spans_of(hit)
        return item
      end, result.results)
    end),
  }
end

--- Functions, classes and sections that answer a question in words.
function M.meaning()
  return {
    title = "By meaning",
    live = true,
    ask = asking("search_code", function(query)
      return query ~= "" and { query = query, limit = 40 } or nil
    end, function(client, result)
      return vim.tbl_map(function(found)
        local item = place(client, found, found.content)
        item.detail = ("%s %s %.2f"):format(found.kind, found.name, found.score)
        return item
      end, result.results)
    end),
  }
end

--- Files by parts of their paths.
function M.files()
  return {
    title = "Files",
    live = true,
    ask = asking("list_files", function(query)
      return { query = query ~= "" and query or nil, limit = config.limit }
    end, function(client, result)
      return vim.tbl_map(function(found)
        return place(client, found, "", 1, 1)
      end, result.results)
    end),
  }
end

local function symbol_items(client, result)
  return vim.tbl_map(function(hit)
    local item = place(client, hit, hit.signature or hit.symbol_name, hit.line_number, hit.column)
    item.detail = hit.role == "definition" and (hit.kind or hit.role) or hit.role
    return item
  end, result.results)
end

--- Definitions whose name starts with the typed text or resembles it.
function M.symbols()
  return {
    title = "Symbols",
    live = true,
    ask = asking("get_symbol", function(query)
      return query ~= "" and { symbol_name = query, match = "fuzzy", limit = config.limit } or nil
    end, symbol_items),
  }
end

--- Definitions, calls and uses of a name, by name only.
function M.occurrences(name)
  return {
    title = "Occurrences of " .. name,
    live = false,
    ask = asking("get_symbol", function()
      return { symbol_name = name, limit = 1000, max_tokens = 200000 }
    end, symbol_items),
  }
end

--- Results for the name under the cursor; `method`: definition, declaration, implementations or references.
---@param method string
---@param window integer?
function M.at_cursor(method, window)
  local buffer = vim.api.nvim_win_get_buf(window or 0)
  local cursor = vim.api.nvim_win_get_cursor(window or 0)
  return {
    title = method:gsub("^%l", string.upper),
    live = false,
    ask = function(client, query, callback)
      local path = require("flashgrep.buffers").path_below(client.root, buffer)
      if not path then
        callback(nil, "the buffer is not a file of the project")
        return nil
      end
      local place_asked = { path = path, line = cursor[1], column = cursor[2] + 1, position_encoding = "utf-8" }
      return asking(method, function()
        return place_asked
      end, function(_, result)
        local items = vim.tbl_map(function(found)
          local range = found.selection_range
          local item = place(client, found, found.text or found.signature, range.start_line, range.start_column)
          item.detail = found.role == "definition" and (found.kind or found.role) or found.role
          return item
        end, result.results)
        return items, result.detail
      end)(client, query, callback)
    end,
  }
end

local function research(title, question)
  return {
    title = title,
    live = false,
    ask = asking("code_research", function()
      return { query = question, depth = 1 }
    end, function(client, result)
      return vim.tbl_map(function(edge)
        local item = place(client, edge, edge.text, edge.line, 1)
        item.detail = ("%s %.2f"):format(edge.kind, edge.confidence)
        return item
      end, result.edges)
    end),
  }
end

--- Callers of a name.
function M.callers(name)
  return research("Callers of " .. name, "who calls " .. name)
end

--- Callees of a name.
function M.callees(name)
  return research("Callees of " .. name, "what does " .. name .. " call")
end

return M
