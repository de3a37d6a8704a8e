-- The command; everything else is loaded at first use.
if vim.g.loaded_flashgrep then
  return
end
vim.g.loaded_flashgrep = true

vim.api.nvim_create_user_command("Flashgrep", function(call)
  require("flashgrep").run(call.fargs, { bang = call.bang, range = call.range > 0 })
end, {
  nargs = "*",
  bang = true,
  range = true,
  desc = "Ask flashgrep",
  complete = function(lead, line)
    return require("flashgrep").complete(lead, line)
  end,
})
