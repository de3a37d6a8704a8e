--- Settings, changed by `require("flashgrep").setup({...})`.
return {
  --- How the daemon's client is started.
  command = { "flashgrep" },
  --- "telescope", "fzf-lua", "snacks" or "own"; nil: the first of them that is installed.
  picker = nil,
  --- Most results of a list.
  limit = 200,
  --- Send the text of unsaved buffers with questions, so that answers are as if they were saved.
  unsaved = true,
}
