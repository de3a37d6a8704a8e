"""Whether a zero-width condition holds at a byte position: the definitions of Rust's regex-automata, on bytes."""

from collections.abc import Callable
from functools import lru_cache

from flashgrep.pattern import unicode
from flashgrep.pattern.charset import ASCII_WORD
from flashgrep.pattern.nodes import Look, LookKind

_LF, _CR = 10, 13
_ASCII_LIMIT = 128
_WORD_BYTES = frozenset(ASCII_WORD)

Side = bool | None
"""Is the neighbour a word character? None: it is no valid UTF-8."""


def holds(look: Look, text: bytes, at: int) -> bool:
    """Tell whether `look` holds in `text` before the byte `at`."""
    anchor = _ANCHORS.get(look.kind)
    if anchor is not None:
        return anchor(text, at)
    if look.ascii:
        return _WORDS[look.kind](at > 0 and text[at - 1] in _WORD_BYTES, at < len(text) and text[at] in _WORD_BYTES)
    return _WORDS[look.kind](word_before(text, at), word_after(text, at))


def word_before(text: bytes, at: int) -> Side:
    """Judge the code point that ends at `at`."""
    if at == 0:
        return False
    if text[at - 1] < _ASCII_LIMIT:
        return text[at - 1] in _WORD_BYTES
    start = at - 1
    while start > max(at - 4, 0) and text[start] & 0xC0 == 0x80:  # noqa: PLR2004 # a continuation byte
        start -= 1
    # As the engine does, judge what is decoded from there, even if stray continuation bytes follow it.
    return word_after(text[start:at], 0)


def word_after(text: bytes, at: int) -> Side:
    """Judge the code point that starts at `at`."""
    if at == len(text):
        return False
    lead = text[at]
    if lead < _ASCII_LIMIT:
        return lead in _WORD_BYTES
    return _wordness(text[at : at + (2 if lead < 0xE0 else 3 if lead < 0xF0 else 4)])  # noqa: PLR2004 # UTF-8's leads


@lru_cache(maxsize=4096)  # The characters of one script, in the main.
def _wordness(encoded: bytes) -> Side:
    try:
        char = encoded.decode()
    except UnicodeDecodeError:
        return None
    return ord(char) in unicode.word() if len(char) == 1 else None


_WORDS: dict[LookKind, Callable[[Side, Side], bool]] = {
    "word": lambda before, after: bool(before) != bool(after),
    "not_word": lambda before, after: before is not None and before == after,
    "word_start": lambda before, after: not before and bool(after),
    "word_end": lambda before, after: bool(before) and not after,
    "half_start": lambda before, _: before is False,
    "half_end": lambda _, after: after is False,
}
_ANCHORS: dict[LookKind, Callable[[bytes, int], bool]] = {
    "text_start": lambda _, at: at == 0,
    "text_end": lambda text, at: at == len(text),
    "line_start": lambda text, at: at == 0 or text[at - 1] == _LF,
    "line_end": lambda text, at: at == len(text) or text[at] == _LF,
    "line_start_crlf": lambda text, at: (
        at == 0 or text[at - 1] == _LF or (text[at - 1] == _CR and (at == len(text) or text[at] != _LF))
    ),
    "line_end_crlf": lambda text, at: (
        at == len(text) or text[at] == _CR or (text[at] == _LF and (at == 0 or text[at - 1] != _CR))
    ),
}
