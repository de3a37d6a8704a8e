"""From a question to hits: the index proposes files, the bytes on disk decide."""
