--- Questions as they are typed: the next one takes the place of the one before, whose work is stopped.

local client = require("flashgrep.client")

local M = {}

---@class flashgrep.Live
local Live = {}
Live.__index = Live

---@param source flashgrep.Source
---@param root string
---@return flashgrep.Live
function M.new(source, root)
  return setmetatable({ source = source, client = client.get(root) }, Live)
end

--- Ask; the callback is called once, and not at all if another question follows first.
---@param query string
---@param callback fun(items: flashgrep.Item[]?, problem: string?)
function Live:ask(query, callback)
  self:stop()
  local turn = {}
  self.turn = turn
  self.id = self.source.ask(self.client, query, function(items, problem)
    if self.turn == turn then
      self.turn, self.id = nil, nil
      callback(items, problem)
    end
  end)
end

--- Give up the question in flight, if any.
function Live:stop()
  if self.id then
    self.client:cancel(self.id)
  end
  self.turn, self.id = nil, nil
end

return M
