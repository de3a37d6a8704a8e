"""Sub-words, by the same rules as in the shipped embedder."""

from flashgrep.base.identifiers import find_identifiers, split_words


def words(text: str) -> list[str]:
    """Return a text's sub-words in order, lower case: ``getHTTPResponse_v2`` gives get, http, response, v, 2."""
    found = find_identifiers(text.encode("ascii", "replace"))
    return [
        word.decode("ascii") for identifier in found for word in split_words(identifier)
    ]
