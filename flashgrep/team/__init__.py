"""The team server: repositories in PostgreSQL, filled by workers on any machine, asked by the daemon's own methods."""
