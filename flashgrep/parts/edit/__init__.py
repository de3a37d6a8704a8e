"""Reading and writing a project's files: loss-free, atomic, never outside its root."""
