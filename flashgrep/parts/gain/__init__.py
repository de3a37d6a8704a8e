"""``fgrep gain`` and ``fgrep discover``: what was served, and what could have been."""
