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
    if looks_like_regex(text) and _compiles(text):
        modes.append("regex")
    if len(text.split()) > 1:
        modes.append("words")
    return modes


def looks_like_regex(text: str) -> bool:
    """Whether a text has what only a regular expression is likely to have."""
    return _LOOKS_LIKE_REGEX.search(text) is not None


def _compiles(text: str) -> bool:
    try:
        Pattern(texts=(text,), mode="regex").matcher()
    except BadPattern:
        return False
    return True
