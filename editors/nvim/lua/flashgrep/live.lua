--- Live search: each search cancels the previous one.

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

--- Search; the callback is called once, or never if another search follows first.
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

--- Cancel the search in flight, if any.
function Live:stop()
  if self.id then
    self.client:cancel(self.id)
  end
  self.turn, self.id = nil, nil
end

return M
