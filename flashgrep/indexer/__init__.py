"""Indexing: the daemon's scheduler, the child process that writes the index, the stages, and how texts are chunked."""
