"""``fgrep rg``: ripgrep's flags, and byte for byte ripgrep's output, from the index where it has the answer."""
