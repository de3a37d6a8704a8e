"""How much of an answer a shell gets: a pipe everything, page after page; a terminal one page, unless asked for all.

Budgets in tokens are for models. A command line has none, whoever reads it, unless it asks for one.
"""

from collections.abc import Mapping
from typing import Any, Final

from flashgrep.base.registry import Handler

RANKED: Final = frozenset(
    {"search_code", "semantic_search", "search_specs", "code_research", "repo_map"}
)
"""Methods that answer with the best of everything there is: how many is part of the question."""
MOST_HITS: Final = 10_000
"""Of one page, as the methods' limits allow."""
MOST_HISTORY: Final = 1_000
MOST_TOKENS: Final = 1_000_000
SIZES: Final = frozenset({"limit", "cursor", "offset", "max_tokens", "max_bytes"})
"""Parameters by which a caller asks for a part of an answer."""
LINES_OF_HIT: Final = 3
"""On a terminal: the file, the line, and a blank."""
FEWEST_HITS: Final = 10


def has_pages(handler: Handler) -> bool:
    """Return whether a method's answer is a list that goes on from a cursor."""
    fields = handler.params.model_fields
    return {"limit", "cursor"} <= fields.keys() and handler.name not in RANKED


def widen(
    handler: Handler, params: Mapping[str, Any], *, is_whole: bool, height: int
) -> dict[str, Any]:
    """Return a call's parameters with the sizes that a shell wants where the call leaves them open.

    ``is_whole``: everything is wanted. ``height``: the lines of the terminal.
    """
    widened = dict(params)
    fields = handler.params.model_fields
    if "max_tokens" in fields and handler.name not in RANKED:
        if not SIZES & params.keys() - {"limit", "cursor", "offset"}:
            widened["max_tokens"] = MOST_TOKENS
    if is_whole:
        widened["limit"] = MOST_HITS if handler.name != "history" else MOST_HISTORY
        if handler.name == "query":
            widened.setdefault("order", "path")
    elif handler.name == "query" and height:
        widened.setdefault("limit", max(FEWEST_HITS, height // LINES_OF_HIT))
    return widened
