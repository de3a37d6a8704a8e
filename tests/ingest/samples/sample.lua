local json = require("json")
local M = {}
LIMIT = 10
local count = 0

--- Reads one.
function M.read(key)
  local value = json.decode(key)
  return M.helper(value)
end

function M:write(key, value) self:flush("x") end

local function helper(x) return x end

M.helper = function(x) return helper(x) end
local arrow = function() end
function global() print [[text]] end

local T = { open = function() end, size = 1 }
return M
