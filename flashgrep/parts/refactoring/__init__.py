"""Edits by symbol: a name changed wherever it is used, a definition replaced, removed, or something put beside it."""
