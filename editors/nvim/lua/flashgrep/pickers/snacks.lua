--- Sources in snacks.picker.

local client = require("flashgrep.client")
local live = require("flashgrep.live")

local M = {}

local function make_item(item, at)
  local bare = item.text == "" and not item.detail
  return {
    idx = at,
    score = 1000000 - at,
    text = item.path .. " " .. item.text,
    file = item.path,
    cwd = item.root,
    pos = not bare and { item.line, item.column - 1 } or nil,
    line = not bare and ((item.detail and item.detail .. ": " or "") .. item.text) or nil,
  }
end

---@param source flashgrep.Source
---@param options {root: string?, query: string?}
function M.open(source, options)
  local root = options.root or client.find_root()
  local session = live.new(source, root)
  require("snacks").picker.pick({
    title = source.title,
    cwd = root,
    live = source.live,
    search = source.live and options.query or nil,
    format = "file",
    finder = function(_, context)
      return function(add)
        local waiting = require("snacks.picker.util.async").running()
        local done = false
        vim.schedule(function()
          session:ask(source.live and context.filter.search or "", function(items, problem)
            if problem then
              vim.notify("flashgrep: " .. problem, vim.log.levels.WARN)
            end
            for at, item in ipairs(items or {}) do
              add(make_item(item, at))
            end
            done = true
            waiting:resume()
          end)
        end)
        while not done do
          waiting:suspend()
        end
      end
    end,
    on_close = function()
      session:stop()
    end,
  })
end

return M
