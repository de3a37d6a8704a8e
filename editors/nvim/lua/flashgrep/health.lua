--- `:checkhealth flashgrep`

local client = require("flashgrep.client")
local config = require("flashgrep.config")

local M = {}

-- These functions had other names before Neovim 0.10, and another module before 0.8.
local health = vim.health or require("health")
local report = {
  start = health.start or health.report_start,
  ok = health.ok or health.report_ok,
  error = health.error or health.report_error,
}

function M.check()
  report.start("flashgrep")
  local program = vim.fn.exepath(config.command[1])
  if program == "" then
    report.error(config.command[1] .. " is not on PATH", { "install flashgrep", "or set `command` in setup()" })
    return
  end
  report.ok(program .. ": " .. vim.trim(vim.fn.system({ program, "version" })))
  local root = client.find_root()
  local error, stats = client.get(root):call("stats", {}, 10000)
  if error then
    report.error(root .. ": " .. error.message)
  else
    report.ok(("%s: %d files, %s"):format(root, stats.total_files or 0, stats.stage or "indexed"))
  end
  report.ok("picker: " .. require("flashgrep").find_picker())
end

return M
