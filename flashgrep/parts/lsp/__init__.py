"""``fgrep lsp``: the Language Server Protocol over stdin and stdout, answered by the daemon."""
