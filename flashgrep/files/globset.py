r"""ripgrep's wildcards, translated to RE2, as its ignore files mean them; git's are in ``wildcard``.

The rules are those of its crate globset, as its crate ignore sets it up: no wildcard but "**" matches "/", and a
backslash escapes. They differ from git's in these points:

    [[:alpha:]]     the set of the bytes "[:alph", then a "]": sets have no names
    [a\]            a set of "a" and a backslash, which escapes nothing inside a set
    [!a]  [+-9]     a set may match "/"
    [a-c-e]         the range goes on: the same as [a-e]
    [a              the characters "[a", since nothing ends the set
    [é]             a set of the two bytes of é
    {a,b}           either; an empty alternative is none: {,a} is a
    ***             two stars, then one; none of them matches "/"
"""

from functools import lru_cache
from typing import NamedTuple

from flashgrep.files.wildcard import ANY, ONE, BadGlob, make_byte_set

MAX_DEPTH = 80
"""Braces inside braces. ripgrep allows 80 to 240, by what is in them, and does not use the file if there are more."""
_ALL = frozenset(range(1, 256))
"""What a negated set may match: no path contains NUL."""
_SEPARATOR = b"\\x2f"
_STAR = ONE + b"*"
_FOLDERS_FIRST = b"(?:" + ANY + b"*/)?"
"""Two stars at the beginning of a glob or an alternative, with the slash behind them."""
_FOLDERS_BETWEEN = b"/(?:" + ANY + b"*/)?"
"""Two stars between two slashes, and both of these."""
_FOLDERS_LAST = b"/" + ANY + b"*"
"""Two stars at the end, with the slash before them."""


class TooDeep(ValueError):
    """Too many braces inside one another."""


class Translation(NamedTuple):
    """What a glob matches."""

    source: bytes
    """RE2 source, without anchors."""
    has_separator_set: bool
    """Whether it has a set that matches "/"."""
    has_unclosed_set: bool


def translate(glob: bytes) -> bytes:
    """Return the RE2 source that matches exactly what ``glob`` matches, without anchors.

    Raises:
        BadGlob: an unopened or unclosed brace, a dangling backslash, a range that goes backwards, nothing but ``{}``.
        TooDeep: more than MAX_DEPTH braces inside one another.

    """
    return _translate(glob).source


def translate_flag(glob: bytes, *, fold: bool) -> bytes:
    """Return the RE2 source of a glob from the command line, where a set must be closed.

    ``fold``: ignore the case of ASCII letters.

    Raises:
        BadGlob: as ``translate``, and an unclosed set.
        TooDeep: more than MAX_DEPTH braces inside one another.

    """
    translation = _translate(glob, fold=fold)
    if translation.has_unclosed_set:
        raise BadGlob("unclosed set")
    return translation.source


def has_separator_set(glob: bytes) -> bool:
    """Return whether ``glob`` has a set that matches "/"; False if it cannot be parsed."""
    try:
        return _translate(glob).has_separator_set
    except (BadGlob, TooDeep):
        return False


@lru_cache(maxsize=256)  # about 4 MB, if all are as long as they may be
def _translate(glob: bytes, *, fold: bool = False) -> Translation:
    """Translate a glob; each is asked for up to three times, and the same ones stand in many files."""
    parser = _Parser(glob, fold=fold)
    parser.parse()
    tokens = parser.branches[0]
    source = b"".join(tokens)
    if not source:
        raise BadGlob("it matches nothing")
    if tokens == [_FOLDERS_FIRST]:
        source = ANY + b"*"
    return Translation(source, parser.has_separator_set, parser.has_unclosed_set)


class _Parser:
    """One pass over a glob, with the state that globset keeps, since its answers depend on it.

    A token is the RE2 source of a character, a wildcard, a set or a group of alternatives.
    """

    def __init__(self, glob: bytes, *, fold: bool) -> None:
        self.glob = glob.decode("utf-8", "surrogateescape")
        self.fold = fold
        self.at = 0
        """Index of the next character."""
        self.branches: list[list[bytes]] = [[]]
        """The tokens outside braces, then those of each alternative that is not closed yet."""
        self.starts: list[int] = []
        """For each open brace, the index of its first alternative in ``branches``."""
        self.has_separator_set = False
        self.has_unclosed_set = False

    def parse(self) -> None:
        while self.at < len(self.glob):
            character = self.glob[self.at]
            self.at += 1
            if character == "*":
                self._read_star()
            elif character == "?":
                self._add(ONE)
            elif character == "[" and not self.has_unclosed_set:
                self._read_set()
            elif character == "{":
                self._open_brace()
            elif character == "}":
                self._close_brace()
            elif character == "," and self.starts:
                self.branches.append([])
            elif character == "\\":
                self._read_escape()
            else:
                self._add(self._escape(character))
        if self.starts:
            raise BadGlob("unclosed brace")

    def _add(self, *tokens: bytes) -> None:
        self.branches[-1] += tokens

    def _escape(self, character: str) -> bytes:
        if character == "/":
            return _SEPARATOR
        if self.fold and character.isascii() and character.isalpha():
            return make_byte_set(_encode(character + character.swapcase()))
        return b"".join(b"\\x%02x" % byte for byte in _encode(character))

    def _open_brace(self) -> None:
        if len(self.starts) == MAX_DEPTH:
            raise TooDeep("too many braces inside one another")
        self.starts.append(len(self.branches))
        self.branches.append([])

    def _close_brace(self) -> None:
        if not self.starts:
            raise BadGlob("unopened brace")
        start = self.starts.pop()
        alternatives = [b"".join(tokens) for tokens in self.branches[start:]]
        del self.branches[start:]
        listed = b"|".join(filter(None, alternatives))
        # A group without alternatives is nothing, but it is a token.
        if listed:
            self._add(b"(?:" + listed + b")")
        else:
            self._add(b"")

    def _read_escape(self) -> None:
        if self.at == len(self.glob):
            raise BadGlob("dangling backslash")
        self._add(self._escape(self.glob[self.at]))
        self.at += 1

    def _read_star(self) -> None:
        if self.at > 1:
            before = self.glob[self.at - 2 : self.at - 1]
        else:
            before = ""
        if not self.glob.startswith("*", self.at):
            self._add(_STAR)
            return
        self.at += 1
        after = self.glob[self.at : self.at + 1]
        tokens = self.branches[-1]
        if not tokens:
            if after in {"", "/"}:
                self._add(_FOLDERS_FIRST)
                self.at += 1
            else:
                self._add(_STAR, _STAR)
            return
        is_inside = bool(self.starts)
        starts_step = before == "/" or (is_inside and before in {",", "{"})
        is_last = after == "" or (is_inside and after in {",", "}"})
        if not starts_step or not (is_last or after == "/"):
            self._add(_STAR, _STAR)
            return
        if after == "/":
            self.at += 1
        # Like globset, take the token before for the slash, which it may not be: it may
        # be an escaped comma.
        replaced = tokens.pop()
        if replaced in {_FOLDERS_FIRST, _FOLDERS_LAST}:
            self._add(replaced)
        else:
            self._add(_FOLDERS_LAST if is_last else _FOLDERS_BETWEEN)

    def _read_set(self) -> None:
        negated = self.glob[self.at : self.at + 1] in {"!", "^"}
        first = self.at + negated
        ranges: list[tuple[str, str]] = []
        in_range = False
        end = first
        for end in range(first, len(self.glob)):
            character = self.glob[end]
            if character == "]" and end > first:
                break
            if in_range:
                low = ranges[-1][0]
                if character < low:
                    raise BadGlob("a range that goes backwards")
                ranges[-1] = (low, character)
                in_range = False
            elif character == "-" and end > first:
                in_range = True
            else:
                ranges.append((character, character))
        else:
            # Nothing closes this set, nor any after it.
            self.has_unclosed_set = True
            self._add(self._escape("["))
            return
        if in_range:
            ranges.append(("-", "-"))
        self.at = end + 1
        members = _ALL.intersection(
            byte for low, high in ranges for byte in _list_bytes(low, high)
        )
        if self.fold:
            listed = bytes(members)
            members = frozenset(listed + listed.swapcase())
        if negated:
            members = _ALL - members
        self.has_separator_set |= ord("/") in members
        self._add(make_byte_set(members))


def _list_bytes(low: str, high: str) -> set[int]:
    """Return the bytes that globset's set of a range matches: it writes the bytes of both ends, with a "-" between."""
    lowest = _encode(low)
    highest = _encode(high)
    if low == high:
        return {*lowest}
    between = range(lowest[-1], highest[0] + 1)
    return {*lowest[:-1], *between, *highest[1:]}


def _encode(character: str) -> bytes:
    return character.encode("utf-8", "surrogateescape")
