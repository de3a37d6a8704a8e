"""The libraries that a project uses, found in its own environment and lock files; read, never run or written."""
