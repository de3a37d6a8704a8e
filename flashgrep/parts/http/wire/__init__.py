"""The HTTP wire: streamable MCP by the official SDK, JSON-RPC, and a route for each method. Imported if enabled."""
