"""The wire: bytes to JSON-RPC messages, messages to calls; it knows the registry, never an index."""
