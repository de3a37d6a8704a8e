--- One connection to the daemon per project: JSON-RPC 2.0, one message per line.
---
--- The project's own socket is tried first. If nothing listens there, `flashgrep rpc ROOT` starts the daemon and relays.
--- When a connection ends, its requests get an error, and the next request reconnects.

local config = require("flashgrep.config")
local uv = vim.uv or vim.loop

local M = {}

---@class flashgrep.Client
---@field root string
---@field epoch integer counts connections; buffers end with each
local Client = {}
Client.__index = Client

--- Socket paths have at most 107 bytes, and old versions of libuv truncate them silently.
local LONGEST_SOCKET = 100
local MARKERS = { "/.flashgrep", "/.git" }
local clients = {} ---@type table<string, flashgrep.Client>

--- Return the root of the project that contains a file or folder: the nearest folder with `.git` or `.flashgrep`.
---@param path string? default: the current buffer's file, else the current folder
---@return string
function M.find_root(path)
  local start = path or vim.api.nvim_buf_get_name(0)
  start = (start ~= "" and not start:find("^%a[%w+.-]*://")) and uv.fs_realpath(start) or uv.cwd()
  local folder = start
  while folder do
    for _, marker in ipairs(MARKERS) do
      if uv.fs_lstat(folder .. marker) then
        return folder
      end
    end
    local parent = folder:match("^(.*)/[^/]*$")
    folder = (parent == "" and folder ~= "/") and "/" or (parent ~= "" and parent or nil)
  end
  local stat = uv.fs_stat(start)
  return stat and stat.type == "directory" and start or uv.cwd()
end

--- Return the client of a project, created at first use.
---@param root string
---@return flashgrep.Client
function M.get(root)
  if not clients[root] then
    local client = { root = root, pending = {}, handlers = {}, queue = {}, parts = {}, last = 0, epoch = 0 }
    -- The relay continues with another daemon.
    client.handlers["$/buffersLost"] = function()
      client.epoch = client.epoch + 1
    end
    clients[root] = setmetatable(client, Client)
  end
  return clients[root]
end

--- Return whether we own a file and it has this type: a socket that came with somebody's folder must not be used.
local function is_own(path, kind)
  local stat = uv.fs_lstat(path)
  return stat ~= nil and stat.type == kind and stat.uid == uv.getuid()
end

--- Send a request; the callback gets `error, result` in the main loop, unless the request is cancelled.
---@param method string
---@param params table
---@param callback fun(error: table?, result: any)
---@return integer id
function Client:request(method, params, callback)
  self.last = self.last + 1
  local id = self.last
  self.pending[id] = callback
  self:send({ jsonrpc = "2.0", id = id, method = method, params = params })
  return id
end

--- Send a notification to the daemon.
function Client:notify(method, params)
  self:send({ jsonrpc = "2.0", method = method, params = params })
end

--- Cancel a request; its callback is not called any more.
function Client:cancel(id)
  if self.pending[id] then
    self.pending[id] = nil
    self:notify("$/cancelRequest", { id = id })
  end
end

--- Send a request and wait for its result.
---@return table? error, any result
function Client:call(method, params, milliseconds)
  local error, result
  local done = false
  local id = self:request(method, params, function(...)
    error, result = ...
    done = true
  end)
  if not vim.wait(milliseconds or 10000, function()
    return done
  end, 5) then
    self:cancel(id)
    return { message = method .. ": no answer in time" }
  end
  return error, result
end

function Client:send(message)
  if not self.sink and not self.connecting then
    self:connect()
  end
  local line = vim.json.encode(message) .. "\n"
  if self.sink then
    self.sink:write(line)
  else
    table.insert(self.queue, line)
  end
end

function Client:connect()
  self.connecting = true
  local folder = self.root .. "/.flashgrep"
  local path = folder .. "/mcp.sock"
  if #path > LONGEST_SOCKET or not is_own(folder, "directory") or not is_own(path, "socket") then
    self:spawn()
    return
  end
  local pipe = uv.new_pipe(false)
  pipe:connect(path, function(error)
    if error then
      pipe:close()
      self:spawn()
    else
      self:begin(pipe, pipe)
    end
  end)
end

function Client:spawn()
  local command = config.command
  local sink, source, errors = uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false)
  local arguments = { unpack(command, 2) }
  vim.list_extend(arguments, { "rpc", self.root })
  local options = { args = arguments, stdio = { sink, source, errors }, cwd = self.root }
  local process, problem
  process, problem = uv.spawn(command[1], options, function()
    process:close()
  end)
  if not process then
    errors:close()
    sink:close()
    source:close()
    self:finish(("%s cannot be run: %s"):format(command[1], problem))
    return
  end
  errors:read_start(function(_, piece)
    if piece then
      self.complaint = vim.split(piece, "\n")[1]
    else
      errors:close()
    end
  end)
  self:begin(source, sink)
end

function Client:begin(source, sink)
  self.sink, self.source, self.connecting = sink, source, false
  for _, line in ipairs(self.queue) do
    sink:write(line)
  end
  self.queue = {}
  source:read_start(function(error, piece)
    if self.source ~= source then
      return
    end
    if error or not piece then
      self:finish(self.complaint or "the daemon ended")
      return
    end
    local from = 1
    while true do
      local at = piece:find("\n", from, true)
      table.insert(self.parts, piece:sub(from, at and at - 1))
      if not at then
        return
      end
      local line = table.concat(self.parts)
      self.parts = {}
      self:receive(line)
      from = at + 1
    end
  end)
end

function Client:receive(line)
  local fine, message = pcall(vim.json.decode, line, { luanil = { object = true } })
  if not fine or type(message) ~= "table" then
    return
  end
  local callback
  if message.method then
    callback = self.handlers[message.method]
  elseif message.id then
    callback = self.pending[message.id]
    self.pending[message.id] = nil
  end
  if callback then
    vim.schedule(function()
      if message.method then
        callback(message.params)
      else
        callback(message.error, message.result)
      end
    end)
  end
end

--- Close the connection; requests in flight fail with the reason.
function Client:finish(reason)
  for _, pipe in ipairs({ self.source or false, self.sink or false }) do
    if pipe and not pipe:is_closing() then
      pipe:close()
    end
  end
  local waiting = self.pending
  self.source, self.sink, self.complaint, self.connecting = nil, nil, nil, false
  self.pending, self.queue, self.parts = {}, {}, {}
  self.epoch = self.epoch + 1
  vim.schedule(function()
    for _, callback in pairs(waiting) do
      callback({ code = -32000, message = reason })
    end
  end)
end

return M
