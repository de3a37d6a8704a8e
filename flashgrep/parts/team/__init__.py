"""The team server: repositories in PostgreSQL, indexed by workers on any machine, queried with the daemon's methods."""
