"""The Language Server Protocol, for editors."""

from flashgrep.api.part import Part

PART = Part(
    name="lsp",
    summary="The Language Server Protocol, for editors.",
    commands={"lsp": "flashgrep.cli.commands:lsp"},
)
