"""Search in the collections that a connection is bound to."""
