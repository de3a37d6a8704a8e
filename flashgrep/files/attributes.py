"""What a repository declares about its files in ``.gitattributes``, for GitHub and for us: not written there by hand.

Of the attributes only ``linguist-generated``, ``linguist-vendored`` and ``linguist-documentation`` are read, from the
file at the top. As everywhere in that file, the last line that matches and names an attribute decides about it.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Literal

import re2

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.model import path_to_text
from flashgrep.files.rule_sets import open_set, read_glob

DeclaredKind = Literal["vendored", "generated", "documentation"]
PLACE: Final = b".gitattributes"
KINDS: Final[tuple[DeclaredKind, ...]] = ("vendored", "generated", "documentation")
"""Of a file that is several, the first counts."""
MOST_CHARACTERS: Final = 64 * 1024
"""Of all patterns; further ones are not read: a repository has a few dozen. More needs more memory than is allowed."""
MOST_GLOB: Final = 1_000
MOST_MEMORY: Final = 16 * 1024 * 1024
ATTRIBUTE: Final = re.compile(
    r"(?P<unset>[-!]?)linguist-(?P<kind>vendored|generated|documentation)(?:=(?P<value>\S*))?"
)
QUOTED: Final = re.compile(r'"(?P<glob>[^"\\]+)"\s+(?P<rest>.*)')
PLAIN: Final = re.compile(r"(?P<glob>[^\s\"#]\S*)\s+(?P<rest>.*)")
BELOW: Final = "(?:/|$)"
"""How the regular expression of an ignore rule ends: what is below a folder is ignored with it, but not declared."""


class DeclaredKinds:
    """What the lines of a ``.gitattributes`` declare."""

    def __init__(self, text: str) -> None:
        """Read a file's text; lines that are malformed declare nothing."""
        self._patterns: Any = open_set(MOST_MEMORY)
        self._rules: list[dict[str, bool]] = []
        room = MOST_CHARACTERS
        for glob, declared in _read_rules(text):
            pattern = _read_pattern(glob)
            if pattern is None:
                continue
            room -= len(pattern)
            if room < 0:
                break
            # RE2 refuses a set such as [z-a], which matches nothing to git.
            with suppress(re2.error, UnicodeEncodeError):
                self._patterns.Add(pattern)
                self._rules.append(declared)
        if self._rules:
            self._patterns.Compile()

    def __bool__(self) -> bool:
        """Return whether anything is declared."""
        return bool(self._rules)

    def find_kind(self, path: bytes) -> DeclaredKind | None:
        """Return what a file is declared to be, by its path relative to the root; None: nothing of these."""
        if not self._rules:
            return None
        declared: dict[str, bool] = {}
        for number in sorted(self._patterns.Match(path_to_text(path)) or ()):
            declared |= self._rules[number]
        for kind in KINDS:
            if declared.get(kind):
                return kind
        return None


PARSED: Final = BoundedCache[bytes, DeclaredKinds](8)
"""By the text of the file; each counts 1. What is matched with them grows, so they are forgotten at rest."""


def parse_attributes(data: bytes) -> DeclaredKinds:
    """Return what a ``.gitattributes`` declares."""
    kinds = PARSED.find(data)
    if kinds is None:
        kinds = DeclaredKinds(data.decode(errors="replace"))
        PARSED.put(data, 1, kinds)
    return kinds


def _read_rules(text: str) -> Iterator[tuple[str, dict[str, bool]]]:
    for written in text.split("\n"):
        line = written.strip()
        rule = QUOTED.match(line) or PLAIN.match(line)
        if rule is None:
            continue
        declared: dict[str, bool] = {}
        for word in rule["rest"].split():
            attribute = ATTRIBUTE.fullmatch(word)
            if attribute is not None:
                is_set = not attribute["unset"] and attribute["value"] != "false"
                declared[attribute["kind"]] = is_set
        if declared:
            yield rule["glob"], declared


def _read_pattern(glob: str) -> str | None:
    # Neither is allowed here: a negation, and a pattern for folders alone.
    if glob.startswith("!") or glob.endswith("/") or len(glob) > MOST_GLOB:
        return None
    # It means no more than one of them, and would make an expression that is slow to read.
    if "***" in glob:
        return None
    regex = read_glob(glob)
    if regex is None or not regex.endswith(BELOW):
        return regex
    return f"{regex.removesuffix(BELOW)}$"


NOTHING_DECLARED: Final = DeclaredKinds("")
