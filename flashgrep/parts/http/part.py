"""HTTP: a page for browsers, MCP, JSON-RPC and plain routes."""

from flashgrep.api.part import Part

PART = Part(
    name="http",
    summary="HTTP: a page for browsers, MCP, JSON-RPC and plain routes.",
    requires=("edit",),
    http_module="flashgrep.parts.http.wire.server",
    commands={
        "web": "flashgrep.parts.http.web_command:web",
        "serve": "flashgrep.cli.daemon_commands:serve",
    },
)
