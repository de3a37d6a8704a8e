"""``fgrep rg``: ripgrep itself, on the files that the index does not rule out."""

from flashgrep.api.part import Part
from flashgrep.parts.ripgrep.plan import answer_call
from flashgrep.parts.ripgrep.query_call import answer_query

PART = Part(
    name="ripgrep",
    summary="`fgrep rg`: ripgrep itself, on the files that the index does not rule out.",
    commands={"rg": "flashgrep.cli.commands:rg"},
    client_calls={"rg": answer_call, "query": answer_query},
)
