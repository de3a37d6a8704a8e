--- Sources in fzf-lua.

local client = require("flashgrep.client")
local live = require("flashgrep.live")

local M = {}

--- Return an item as a line that fzf-lua's own actions and preview can parse.
local function make_line(item)
  if item.text == "" and not item.detail then
    return item.path
  end
  return ("%s:%d:%d:%s%s"):format(item.path, item.line, item.column, item.detail and item.detail .. ": " or "", item.text)
end

---@param source flashgrep.Source
---@param options {root: string?, query: string?}
function M.open(source, options)
  local fzf = require("fzf-lua")
  local root = options.root or client.find_root()
  local session = live.new(source, root)
  local settings = {
    prompt = source.title .. "> ",
    query = options.query,
    cwd = root,
    previewer = "builtin",
    actions = fzf.defaults and fzf.defaults.actions and fzf.defaults.actions.files,
    exec_empty_query = true,
  }
  local function feed(query)
    return function(give)
      session:ask(query, function(items, problem)
        if problem then
          vim.notify("flashgrep: " .. problem, vim.log.levels.WARN)
        end
        for _, item in ipairs(items or {}) do
          give(make_line(item))
        end
        give()
      end)
    end
  end
  if source.live then
    fzf.fzf_live(function(typed)
      return feed(type(typed) == "table" and typed[1] or typed or "")
    end, settings)
  else
    fzf.fzf_exec(feed(""), settings)
  end
end

return M
