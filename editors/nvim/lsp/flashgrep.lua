-- For vim.lsp.enable("flashgrep") of Neovim 0.11 and later.
return {
  cmd = vim.list_extend(vim.list_slice(require("flashgrep.config").command), { "lsp" }),
  root_markers = { ".flashgrep", ".git" },
}
