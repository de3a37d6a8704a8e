"""The index, in SQLite: it saves reading most files. It is a cache and never decides an answer."""
