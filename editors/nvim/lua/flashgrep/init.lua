--- flashgrep in Neovim: `:Flashgrep SUBCOMMAND`, and the same as functions.

local config = require("flashgrep.config")

local M = {}

local PICKERS = { { "telescope", "telescope" }, { "fzf-lua", "fzf-lua" }, { "snacks", "snacks" } }

--- Change settings; see `flashgrep.config`.
---@param settings table?
function M.setup(settings)
  for name, setting in pairs(settings or {}) do
    if config[name] == nil and name ~= "picker" then
      error("flashgrep: no such setting: " .. name)
    end
    config[name] = setting
  end
end

--- Return the name of the picker to use.
function M.find_picker()
  if config.picker then
    return config.picker
  end
  for _, picker in ipairs(PICKERS) do
    if pcall(require, picker[2]) then
      return picker[1]
    end
  end
  return "own"
end

--- Show a source's results in the picker.
---@param source flashgrep.Source
---@param options {root: string?, query: string?}?
function M.pick(source, options)
  local module = M.find_picker():gsub("-", "_")
  return require("flashgrep.pickers." .. module).open(source, options or {})
end

local function warn(message)
  vim.notify("flashgrep: " .. message, vim.log.levels.WARN)
end

--- Return the name for a subcommand: its argument, or the name under the cursor.
local function name_of(words)
  local name = words[1] or vim.fn.expand("<cword>")
  if name == "" then
    warn("no name under the cursor")
    return nil
  end
  return name
end

local function picking(make_source)
  return function(words)
    M.pick(make_source(), { query = table.concat(words, " ") })
  end
end

local function about_name(make_source)
  return function(words)
    local name = name_of(words)
    if name then
      M.pick(make_source(name))
    end
  end
end

local sources = require("flashgrep.sources")

--- Search once; the callback gets the results, if there are any.
local function ask(source, callback)
  local client = require("flashgrep.client")
  source.ask(client.get(client.find_root()), "", function(items, problem)
    if problem or #items == 0 then
      warn(problem or "nothing found")
    else
      callback(items)
    end
  end)
end

--- Go to the location if there is only one, else show all.
local function going(method)
  return function()
    local source = sources.at_cursor(method)
    ask(source, function(items)
      if #items == 1 then
        require("flashgrep.places").open(items[1])
      else
        M.pick(source)
      end
    end)
  end
end

M.subcommands = {
  grep = picking(function()
    return sources.grep()
  end),
  regex = picking(function()
    return sources.grep({ mode = "regex" })
  end),
  files = picking(sources.files),
  symbols = picking(sources.symbols),
  meaning = picking(sources.meaning),
  callers = about_name(sources.callers),
  callees = about_name(sources.callees),
  definition = going("definition"),
  declaration = going("declaration"),
  implementations = going("implementations"),
  references = function(words, call)
    local source = words[1] and sources.occurrences(words[1]) or sources.at_cursor("references")
    if call.bang then
      M.pick(source)
    else
      ask(source, function(items)
        require("flashgrep.places").quickfix(items, source.title)
      end)
    end
  end,
  word = function()
    M.pick(sources.grep({ word = true }), { query = name_of({}) })
  end,
  replace = function(words)
    require("flashgrep.replace").start(words)
  end,
}

--- Run `:Flashgrep`.
function M.run(words, call)
  local name = words[1] or "grep"
  local run = M.subcommands[name]
  if run then
    run({ unpack(words, 2) }, call or {})
  else
    warn(("no subcommand %q; there are: %s"):format(name, table.concat(M.complete("", "Flashgrep "), ", ")))
  end
end

--- Complete subcommands.
function M.complete(lead, line)
  if #vim.split(line, "%s+") > 2 then
    return {}
  end
  local names = vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, vim.tbl_keys(M.subcommands))
  table.sort(names)
  return names
end

return M
