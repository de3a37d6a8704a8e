"""The Language Server Protocol, for editors."""

from flashgrep.api.part import Part, StdioProtocol

PART = Part(
    name="lsp",
    summary="The Language Server Protocol, for editors.",
    protocols={
        "lsp": StdioProtocol(
            module="flashgrep.parts.lsp.stdio",
            summary="Speak the Language Server Protocol over stdin and stdout, for an editor.",
        )
    },
)
