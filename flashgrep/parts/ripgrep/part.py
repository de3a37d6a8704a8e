"""``fgrep rg``: ripgrep itself, on the files that the index does not rule out."""

from flashgrep.api.part import Part

PART = Part(
    name="ripgrep",
    summary="`fgrep rg`: ripgrep itself, on the files that the index does not rule out.",
    commands={"rg": "flashgrep.cli.commands:rg"},
)
