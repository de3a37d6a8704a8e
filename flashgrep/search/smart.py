"""Smart mode: how a text may be meant, in the order in which it is tried."""

import re
from typing import Literal

from flashgrep.errors import BadPattern
from flashgrep.pattern import Pattern

SmartMode = Literal["literal", "regex", "words"]

_LOOKS_LIKE_REGEX = re.compile(r"[\\^$|*+?\[\](){}]|\.[*+]")


def smart_modes(text: str) -> list[SmartMode]:
    """Return the readings of a text, the plainest first: itself, a regular expression, its words."""
    modes: list[SmartMode] = ["literal"]
    if _LOOKS_LIKE_REGEX.search(text) and _compiles(text):
        modes.append("regex")
    if len(text.split()) > 1:
        modes.append("words")
    return modes


def _compiles(text: str) -> bool:
    try:
        Pattern(texts=(text,), mode="regex").matcher()
    except BadPattern:
        return False
    return True
