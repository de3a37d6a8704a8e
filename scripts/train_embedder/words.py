"""Sub-words, by the very rules of the shipped embedder: what is trained is what is counted later."""

from flashgrep.embed.static import WORD, identifiers


def words(text: str) -> list[str]:
    """Return a text's sub-words in order, lower case: ``getHTTPResponse_v2`` gives get, http, response, v, 2."""
    return [word.lower() for identifier in identifiers(text) for word in WORD.findall(identifier)]
