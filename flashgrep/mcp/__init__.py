"""The Model Context Protocol: one thin adapter from the registry, on every wire. It adds framing, never behaviour."""
