--- The built-in picker: an input line, the results, and a preview of the selected one.

local client = require("flashgrep.client")
local live = require("flashgrep.live")
local places = require("flashgrep.places")

local api = vim.api
local M = {}

local Picker = {}
Picker.__index = Picker

local space = api.nvim_create_namespace("flashgrep")
--- Most lines of a file that a preview shows.
local MOST_PREVIEWED = 20000

local function make_window(layout, title, enter)
  local buffer = api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = "wipe"
  local options = vim.tbl_extend("force", { relative = "editor", style = "minimal", border = "rounded" }, layout)
  if vim.fn.has("nvim-0.9") == 1 then
    options.title = (" %s "):format(title)
  end
  local window = api.nvim_open_win(buffer, enter, options)
  vim.wo[window].wrap = false
  return buffer, window
end

---@param source flashgrep.Source
---@param options {root: string?, query: string?}?
function M.open(source, options)
  options = options or {}
  local self = setmetatable({ source = source, items = {}, shown = {}, at = 1, query = nil }, Picker)
  self.live = live.new(source, options.root or client.find_root())
  self.origin = api.nvim_get_current_win()
  local width, height = vim.o.columns, vim.o.lines - 3
  local wide = width >= 100
  local list_width = wide and math.floor(width / 2) - 3 or width - 4
  local list_height = wide and height - 6 or math.floor(height / 2) - 4
  local side = { row = 0, col = list_width + 3, width = width - list_width - 6, height = height - 3 }
  local below = { row = list_height + 5, col = 0, width = list_width, height = height - list_height - 8 }
  self.list, self.list_window =
    make_window({ row = 3, col = 0, width = list_width, height = list_height }, "results", false)
  self.preview, self.preview_window = make_window(wide and side or below, "preview", false)
  self.input, self.input_window = make_window({ row = 0, col = 0, width = list_width, height = 1 }, source.title, true)
  vim.wo[self.list_window].cursorline = true
  vim.wo[self.preview_window].number = true
  vim.wo[self.preview_window].cursorline = true
  self:map_keys()
  api.nvim_create_autocmd({ "TextChangedI", "TextChanged" }, {
    buffer = self.input,
    callback = function()
      self:update()
    end,
  })
  api.nvim_create_autocmd({ "BufLeave", "BufWipeout" }, {
    buffer = self.input,
    once = true,
    callback = function()
      self:close()
    end,
  })
  api.nvim_buf_set_lines(self.input, 0, -1, false, { options.query or "" })
  self:update()
  vim.cmd("startinsert!")
  return self
end

function Picker:map_keys()
  local function map(keys, run)
    for _, key in ipairs(keys) do
      for _, mode in ipairs({ "i", "n" }) do
        api.nvim_buf_set_keymap(self.input, mode, key, "", { callback = run, noremap = true, nowait = true })
      end
    end
  end
  local function choosing(how)
    return function()
      self:choose(how)
    end
  end
  local function moving(by)
    return function()
      self:move(by)
    end
  end
  map({ "<CR>" }, choosing())
  map({ "<C-x>" }, choosing("split"))
  map({ "<C-v>" }, choosing("vsplit"))
  map({ "<C-t>" }, choosing("tabedit"))
  map({ "<C-n>", "<Down>" }, moving(1))
  map({ "<C-p>", "<Up>" }, moving(-1))
  map({ "<C-d>", "<PageDown>" }, moving(10))
  map({ "<C-u>", "<PageUp>" }, moving(-10))
  map({ "<Esc>", "<C-c>" }, function()
    self:close()
  end)
  map({ "<C-q>" }, function()
    local items, title = self.items, self.source.title
    self:close()
    places.quickfix(items, title)
  end)
end

--- Search for the typed text, or filter the results by it.
function Picker:update()
  local query = api.nvim_buf_get_lines(self.input, 0, 1, false)[1] or ""
  if query == self.query then
    return
  end
  self.query = query
  if not self.source.live and self.all then
    self:show(query == "" and self.all or vim.tbl_filter(function(item)
      return (item.path .. " " .. item.text):lower():find(query:lower(), 1, true) ~= nil
    end, self.all))
    return
  end
  self.live:ask(query, function(items, problem)
    if not self.closed then
      self.all = items
      self:show(items or {}, problem)
    end
  end)
end

function Picker:show(items, problem)
  self.items, self.at = items, 1
  local lines = {}
  local marks = {}
  for at, item in ipairs(items) do
    local where = item.text == "" and not item.detail and item.path or ("%s:%d: "):format(item.path, item.line)
    local detail = item.detail and (item.detail .. "  ") or ""
    local text = item.text:gsub("^%s+", "")
    local dropped = #item.text - #text
    lines[at] = where .. detail .. text
    marks[at] = { where = #where, detail = #detail, dropped = dropped }
  end
  if problem then
    lines = { problem:gsub("\n.*", "") .. "" }
  end
  api.nvim_buf_set_lines(self.list, 0, -1, false, lines)
  api.nvim_buf_clear_namespace(self.list, space, 0, -1)
  local function highlight(group, row, first, last)
    api.nvim_buf_set_extmark(self.list, space, row, first, { end_col = math.min(last, #lines[row + 1]), hl_group = group })
  end
  if problem then
    highlight("WarningMsg", 0, 0, #lines[1])
    return
  end
  for at, mark in ipairs(marks) do
    highlight("Directory", at - 1, 0, mark.where)
    highlight("Type", at - 1, mark.where, mark.where + mark.detail)
    for _, span in ipairs(items[at].spans or {}) do
      local from = mark.where + mark.detail - mark.dropped
      local first = math.max(from + span[1], mark.where + mark.detail)
      if first < #lines[at] and from + span[2] > first then
        highlight("Search", at - 1, first, from + span[2])
      end
    end
  end
  self:move(0)
end

function Picker:move(by)
  if #self.items == 0 then
    api.nvim_buf_set_lines(self.preview, 0, -1, false, {})
    return
  end
  self.at = math.max(1, math.min(#self.items, self.at + by))
  api.nvim_win_set_cursor(self.list_window, { self.at, 0 })
  self:show_preview(self.items[self.at])
end

--- Preview the selected result: from its buffer if loaded, else from the disk.
function Picker:show_preview(item)
  local path = places.full_path(item)
  if self.previewed ~= path then
    local lines = {}
    for _, buffer in ipairs(api.nvim_list_bufs()) do
      if api.nvim_buf_is_loaded(buffer) and api.nvim_buf_get_name(buffer) == path then
        lines = api.nvim_buf_get_lines(buffer, 0, MOST_PREVIEWED, false)
      end
    end
    if #lines == 0 and vim.fn.filereadable(path) == 1 then
      lines = vim.fn.readfile(path, "", math.max(MOST_PREVIEWED, item.line + 100))
      for at, line in ipairs(lines) do
        lines[at] = line:gsub("\n", " ") -- how readfile tells a NUL
      end
    end
    api.nvim_buf_set_lines(self.preview, 0, -1, false, lines)
    if vim.fn.has("nvim-0.8") == 1 then
      vim.bo[self.preview].syntax = vim.filetype.match({ buf = self.preview, filename = path }) or ""
    end
    self.previewed = path
  end
  api.nvim_buf_clear_namespace(self.preview, space, 0, -1)
  if item.line > api.nvim_buf_line_count(self.preview) then
    return
  end
  local line = api.nvim_buf_get_lines(self.preview, item.line - 1, item.line, false)[1]
  for _, span in ipairs(item.spans or {}) do
    local shift = item.column - 1 - item.spans[1][1]
    local last = math.min(shift + span[2], #line)
    if shift + span[1] < last then
      local options = { end_col = last, hl_group = "Search" }
      api.nvim_buf_set_extmark(self.preview, space, item.line - 1, shift + span[1], options)
    end
  end
  api.nvim_win_set_cursor(self.preview_window, { item.line, 0 })
  api.nvim_win_call(self.preview_window, function()
    vim.cmd("normal! zz")
  end)
end

function Picker:choose(how)
  local item = self.items[self.at]
  if item then
    self:close()
    places.open(item, how)
  end
end

function Picker:close()
  if self.closed then
    return
  end
  self.closed = true
  self.live:stop()
  vim.cmd("stopinsert")
  for _, window in ipairs({ self.input_window, self.list_window, self.preview_window }) do
    if api.nvim_win_is_valid(window) then
      api.nvim_win_close(window, true)
    end
  end
  if api.nvim_win_is_valid(self.origin) then
    api.nvim_set_current_win(self.origin)
  end
end

return M
