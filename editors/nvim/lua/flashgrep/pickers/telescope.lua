--- Sources in telescope.nvim.

local client = require("flashgrep.client")
local live = require("flashgrep.live")
local places = require("flashgrep.places")

local M = {}

local function make_entry(item)
  local where = ("%s:%d:"):format(item.path, item.line)
  local bare = item.text == "" and not item.detail
  local shown = bare and item.path or table.concat({ where, item.detail or "", item.text }, " ")
  return {
    value = item,
    ordinal = shown,
    filename = places.full_path(item),
    lnum = item.line,
    col = item.column,
    display = function()
      local marks = { { { 0, bare and #shown or #where }, "TelescopeResultsIdentifier" } }
      local from = #shown - #item.text
      for _, span in ipairs(item.spans or {}) do
        table.insert(marks, { { from + span[1], from + span[2] }, "TelescopeMatching" })
      end
      return shown, marks
    end,
  }
end

---@param source flashgrep.Source
---@param options {root: string?, query: string?}
function M.open(source, options)
  local conf = require("telescope.config").values
  local session = live.new(source, options.root or client.find_root())
  local finder = setmetatable({
    close = function()
      session:stop()
    end,
  }, {
    __call = function(_, prompt, process_result, process_complete)
      session:ask(source.live and prompt or "", function(items, problem)
        if problem then
          vim.notify("flashgrep: " .. problem, vim.log.levels.WARN)
        end
        for at, item in ipairs(items or {}) do
          local entry = make_entry(item)
          entry.index = at
          if process_result(entry) then
            return
          end
        end
        process_complete()
      end)
    end,
  })
  require("telescope.pickers")
    .new({}, {
      prompt_title = source.title,
      default_text = options.query,
      finder = finder,
      previewer = conf.grep_previewer({}),
      sorter = source.live and require("telescope.sorters").empty() or conf.generic_sorter({}),
    })
    :find()
end

return M
