"""Text a caller read with U+FFFD in it and gives back: the bytes that were shown so are put there again."""

import re
from collections import defaultdict
from collections.abc import Iterable

from flashgrep.edit.text import Text, encoded
from flashgrep.errors import InvalidParams
from flashgrep.ingest.decoding import REPLACEMENT

_WORD = 20
"""Characters on either side of a U+FFFD that tell it from others, as far as no space is among them."""
_SPACE = re.compile(r"\s")


def restore(text: Text, start: int, end: int, new: str) -> str:
    """Return ``new``, which replaces characters ``start`` to ``end`` of a text, with each U+FFFD as the text keeps it.

    Raises:
        InvalidParams: "encoding": which bytes a U+FFFD stands for cannot be told, or the encoding lacks a character.

    """
    encoded(new, text.encoding)
    wanted = _places(new, 0, len(new)) if text.kept is not text.text else []
    if not wanted:
        return new
    replaced = _places(text.text, start, end)
    values = {text.kept[at] for at in replaced}
    if len(values) == 1:
        return new.replace(REPLACEMENT, values.pop())
    known = _by_word(text, replaced, new, wanted)
    left = [at for at in wanted if at not in known]
    used = set(known.values())
    unused = [at for at in replaced if at not in used]
    if len(left) == len(unused):  # words were changed, but not their order
        known |= dict(zip(left, unused, strict=True))
    elif left:
        everywhere = _places(text.text, 0, len(text.text))
        known |= _by_word(text, everywhere, new, left, moved=True)
    if len(known) < len(wanted):
        raise InvalidParams(
            "U+FFFD in the new text: the file has bytes there that are no text, and which of them are meant cannot be "
            "told; leave them out of what is replaced, or change fewer of them at once",
            reason="encoding",
            encoding=text.encoding,
            character="U+FFFD",
        )
    parts, past = [], 0
    for at in wanted:
        parts += [new[past:at], text.kept[known[at]]]
        past = at + 1
    return "".join([*parts, new[past:]])


def _places(text: str, start: int, end: int) -> list[int]:
    return [match.start() for match in re.compile(REPLACEMENT).finditer(text, start, end)]


def _by_word(
    text: Text, places: Iterable[int], new: str, wanted: Iterable[int], *, moved: bool = False
) -> dict[int, int]:
    """Return, for places of ``new``, the places of the text that stand in the same word, where those all mean one byte.

    Each place of the text is given once; ``moved``: as often as it is asked for.
    """
    alike: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for at in places:
        alike[_word(text.text, at)].append(at)
    found = {}
    for at in wanted:
        same = alike.get(_word(new, at), [])
        if same and len({text.kept[each] for each in same}) == 1:
            found[at] = same[0] if moved or len(same) == 1 else same.pop(0)
    return found


def _word(text: str, at: int) -> tuple[str, str]:
    before, after = text[max(0, at - _WORD) : at], text[at + 1 : at + 1 + _WORD]
    return _SPACE.split(before)[-1], _SPACE.split(after)[0]
