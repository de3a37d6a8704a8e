"""Patterns as people write them for grep: what looks like a regular expression, and basic ones as extended ones."""

import re
from typing import Final

LOOKS_LIKE_REGEX: Final = re.compile(r"[\\^$|*+?\[\](){}]|\.[*+]")
"""What only a regular expression is likely to contain."""
BASIC_OPERATORS: Final = frozenset("(){}|+?")
"""In a basic regular expression these are operators after a backslash, and else mean themselves."""
BASIC_BAR: Final = "\\|"
"""What separates alternatives in a basic regular expression, and is a bar in an extended one."""


def translate_basic(pattern: str) -> str:
    """Return a basic regular expression, grep's default, as an extended one."""
    extended = ""
    at = 0
    # Where the brackets that are open begin in ``extended``; None: none are.
    brackets: int | None = None
    while at < len(pattern):
        character = pattern[at]
        is_first = not extended or pattern.endswith(("\\(", "\\|"), 0, at)
        at += 1
        is_last = at == len(pattern) or pattern.startswith(("\\)", "\\|"), at)
        if brackets is not None:
            if character == "]" and extended[brackets:] not in {"[", "[^"}:
                brackets = None
            # Between brackets these mean themselves; [: begins the name of a class.
            is_plain = character == "[" and not pattern.startswith(":", at)
            if character == "\\" or is_plain:
                extended += "\\"
            extended += character
        elif character == "\\" and at < len(pattern):
            escaped = pattern[at]
            at += 1
            extended += escaped if escaped in BASIC_OPERATORS else f"\\{escaped}"
        elif character in BASIC_OPERATORS:
            extended += f"\\{character}"
        elif character == "*" and (is_first or extended == "^"):
            extended += "\\*"
        elif character == "^" and not is_first:
            extended += "\\^"
        elif character == "$" and not is_last:
            extended += "\\$"
        else:
            if character == "[":
                brackets = len(extended)
            extended += character
    return extended
