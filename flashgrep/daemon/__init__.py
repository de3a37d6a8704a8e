"""The background process: its lock, its life, its log, and the one place where everything is put together."""
