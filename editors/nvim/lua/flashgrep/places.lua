--- Opens locations in windows and as quickfix lists.

local M = {}

---@param item flashgrep.Item
function M.full_path(item)
  return item.root .. "/" .. item.path
end

--- Go to a location; `how`: "split", "vsplit" or "tabedit"; default: this window.
---@param item flashgrep.Item
---@param how string?
function M.open(item, how)
  vim.cmd("normal! m'")
  local path = M.full_path(item)
  if how or vim.api.nvim_buf_get_name(0) ~= path then
    vim.cmd((how or "edit") .. " " .. vim.fn.fnameescape(vim.fn.fnamemodify(path, ":~:.")))
  end
  local last = vim.api.nvim_buf_line_count(0)
  vim.api.nvim_win_set_cursor(0, { math.min(item.line, last), item.column - 1 })
  vim.cmd("normal! zvzz")
end

--- Return items as entries of a quickfix list.
---@param items flashgrep.Item[]
function M.to_quickfix(items)
  return vim.tbl_map(function(item)
    local text = item.detail and (item.detail .. ": " .. item.text) or item.text
    local entry = { filename = M.full_path(item), lnum = item.line, col = item.column, text = text }
    local span = item.spans and item.spans[1]
    if span then
      entry.end_lnum, entry.end_col = item.line, item.column + span[2] - span[1]
    end
    return entry
  end, items)
end

--- Set the quickfix list to these items and show it.
---@param items flashgrep.Item[]
---@param title string
function M.quickfix(items, title)
  vim.fn.setqflist({}, " ", { title = "flashgrep: " .. title, items = M.to_quickfix(items) })
  vim.cmd("botright copen")
end

return M
