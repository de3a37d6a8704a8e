--- Unsaved text: before each request, buffers changed since the last one are sent to the daemon.
---
--- The daemon keeps them only for this connection. Nothing is sent between requests.

local config = require("flashgrep.config")
local uv = vim.uv or vim.loop

local M = {}

--- The daemon refuses larger texts; such buffers are searched as saved.
local LARGEST = 4 * 1024 * 1024

local sent = setmetatable({}, { __mode = "k" }) ---@type table<flashgrep.Client, table>

--- Return a buffer's text as it would be saved, or nil if it is too large, binary or not UTF-8.
local function text_of(buffer)
  local bytes = vim.api.nvim_buf_get_offset(buffer, vim.api.nvim_buf_line_count(buffer))
  local encoding = vim.bo[buffer].fileencoding
  if bytes > LARGEST or vim.bo[buffer].binary or not (encoding == "" or encoding == "utf-8") then
    return nil
  end
  local line_end = ({ unix = "\n", dos = "\r\n", mac = "\r" })[vim.bo[buffer].fileformat]
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), line_end)
  return vim.bo[buffer].endofline and text .. line_end or text
end

--- Return the path of a buffer relative to a root, or nil if it is not a file below it.
---@param root string
---@param buffer integer
---@return string?
function M.path_below(root, buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if vim.bo[buffer].buftype ~= "" or name == "" then
    return nil
  end
  local folder, base = name:match("^(.*)/([^/]+)$")
  folder = folder and uv.fs_realpath(folder)
  local full = folder and (folder .. "/" .. base)
  if full and full:sub(1, #root + 1) == root .. "/" then
    return full:sub(#root + 2)
  end
end

--- Send the changes of a project's unsaved buffers to the daemon.
---@param client flashgrep.Client
function M.send(client)
  if not config.unsaved then
    return
  end
  local known = sent[client]
  if not known or known.epoch ~= client.epoch then
    known = { epoch = client.epoch, ticks = {} }
    sent[client] = known
  end
  local seen = {}
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].modified then
      local path = M.path_below(client.root, buffer)
      local text = path and text_of(buffer)
      if text then
        seen[path] = true
        local tick = vim.api.nvim_buf_get_changedtick(buffer)
        if known.ticks[path] ~= tick then
          client:notify("buffers", { action = "open", path = path, text = text, version = tick })
          known.ticks[path] = tick
        end
      end
    end
  end
  for path in pairs(known.ticks) do
    if not seen[path] then
      client:notify("buffers", { action = "close", path = path })
      known.ticks[path] = nil
    end
  end
end

return M
