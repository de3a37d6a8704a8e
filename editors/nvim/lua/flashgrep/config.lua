--- Settings, changed by `require("flashgrep").setup({...})`.
return {
  --- Command that starts the daemon's client.
  command = { "flashgrep" },
  --- "telescope", "fzf-lua", "snacks" or "own"; nil: the first one installed.
  picker = nil,
  --- Most results in a list.
  limit = 200,
  --- Send the text of unsaved buffers before queries, so that answers include it.
  unsaved = true,
}
