"""The orders of an exact search, by the names that the method `query` has for them."""

from flashgrep.parts.symbols.relevance import search_by_relevance
from flashgrep.search.exact import Ranking

RANKINGS: dict[str, Ranking | None] = {"path": None, "relevance": search_by_relevance}
