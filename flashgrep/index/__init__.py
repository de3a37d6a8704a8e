"""The index: what SQLite keeps so that most files need not be read. A cache; it never decides an answer."""
