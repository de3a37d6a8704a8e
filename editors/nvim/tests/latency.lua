-- How long a keystroke of live grep waits for its answer, in the project that is the current folder, beside `rg --vimgrep`
-- on the same texts. Words are typed at 12 keys a second; a key whose answer the next one overtook is counted apart.

local uv = vim.uv or vim.loop
local live = require("flashgrep.live")
local sources = require("flashgrep.sources")

local KEY_MS = 1000 / 12
local WORDS = {
  "spin_lock_irqsave", "kmalloc_array", "mutex_unlock", "container_of", "netdev_priv", "dev_err_probe", "list_for_each",
  "platform_driver", "copy_from_user", "schedule_work", "EXPORT_SYMBOL_GPL", "of_match_table", "readl_poll_timeout",
  "rcu_read_lock", "pm_runtime_get_sync", "usb_submit_urb", "skb_reserve", "devm_clk_get", "bitmap_zero", "wake_up_process",
}
--- Texts of fewer letters are typed, but ripgrep would print most of the tree for them.
local LEAST_RG = 3

local session = live.new(sources.grep(), uv.fs_realpath(uv.cwd()))

local function milliseconds(since)
  return (uv.hrtime() - since) / 1e6
end

local function ask(text)
  local began, took = uv.hrtime(), nil
  session:ask(text, function(_, problem)
    assert(not problem, problem)
    took = milliseconds(began)
  end)
  return function()
    return took
  end, began
end

local function run_rg(text)
  local began, ended = uv.hrtime(), nil
  local out = uv.new_pipe(false)
  local options = { args = { "--vimgrep", "-F", "-S", "-e", text, "." }, stdio = { nil, out, nil } }
  local process
  process = uv.spawn("rg", options, function()
    process:close()
  end)
  out:read_start(function(_, piece)
    if not piece then
      ended = milliseconds(began)
      out:close()
    end
  end)
  vim.wait(60000, function()
    return ended
  end, 1)
  return ended
end

local function show(name, times)
  table.sort(times)
  local function at(share)
    return times[math.max(1, math.ceil(#times * share))] or 0 / 0
  end
  local line = "%-44s %4d  p50 %7.1f ms  p99 %7.1f ms  most %7.1f ms\n"
  io.stdout:write(line:format(name, #times, at(0.5), at(0.99), times[#times] or 0 / 0))
end

vim.wait(60000, ask("warm_up_of_the_table"), 1)
local every, last, overtaken = {}, {}, 0
for _, word in ipairs(WORDS) do
  local took
  for length = 1, #word do
    local began
    took, began = ask(word:sub(1, length))
    vim.wait(math.ceil(KEY_MS), took, 1)
    if length < #word then
      local rest = math.floor(KEY_MS - milliseconds(began))
      if rest > 0 then
        vim.wait(rest)
      end
      table.insert(every, took() or nil)
      overtaken = overtaken + (took() and 0 or 1)
    end
  end
  vim.wait(60000, took, 1)
  table.insert(last, took())
  table.insert(every, took())
end
show("flashgrep, keys answered before the next", every)
io.stdout:write(("%d keys were overtaken by the next\n"):format(overtaken))
show("flashgrep, last key of a word", last)

local alone, ripgrep = {}, {}
for at, word in ipairs(WORDS) do
  local text = word:sub(1, LEAST_RG + at % (#word - LEAST_RG))
  local took = ask(text)
  vim.wait(60000, took, 1)
  table.insert(alone, took())
  if vim.fn.executable("rg") == 1 then
    table.insert(ripgrep, run_rg(text))
  end
end
show("flashgrep, one text at a time", alone)
show("rg --vimgrep, the same texts", ripgrep)
vim.cmd("qall!")
