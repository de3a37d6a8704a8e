"""``fgrep pick``: search as you type."""
