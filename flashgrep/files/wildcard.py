r"""Wildcard patterns of gitignore and of filters, translated to RE2: every match is linear in the path.

    *       any bytes but "/"                   [a-z] [!a-z]   one byte in (not in) a set, never "/"
    ?       one byte but "/"                    [[:alpha:]]    a named set
    a/**    everything below a                  {a,b}          either (not in .gitignore)
    **/a    a at any depth                      \x             x itself
    a/**/b  b anywhere below a

The rules are those of git's wildmatch.c with WM_PATHNAME, and braces where the dialect has them. What ripgrep makes of
the globs in its own ignore files is in ``globset``.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import re2

from flashgrep.base.path_text import Literals

SET = frozenset(range(256)) - {0, ord("/")}
"""What "*" and "?" may match: "/" separates the steps of a path, NUL separates paths."""
MAX_SOURCE = 1 << 16
"""Bytes of source compiled as one expression; more becomes several, each within RE2's memory limit."""
ONE = rb"[^/\x00]"
"""One byte of a step."""
ANY = rb"[^\x00]"
"""One byte of a path."""
_ASCII = 128
_WIDE = rb"[\xc2-\xf4][\x80-\xbf]{1,3}|[\x80-\xc1\xf5-\xff]"
_CHARACTER = rb"(?:[\x01-\x2e\x30-\x7f]|" + _WIDE + b")"
"""One character of a step."""
_ANY_CHARACTER = rb"(?:[\x01-\x7f]|" + _WIDE + b")"
_CHARACTERS = {
    (True, True): _ANY_CHARACTER,
    (True, False): _CHARACTER,
    (False, True): ANY,
    (False, False): ONE,
}
"""What ``?`` matches, by whether a dialect reads characters, and whether its wildcards match a slash."""
_MEMORY = 32 << 20
_REMEMBERED = 4096
MOST_ALTERNATIVES = 64
"""A glob with more alternatives is not expanded."""
_CHOICE = re.compile(
    rb"\[([^][{},*?!^/\x80-\xff-][^][{},*?/\x80-\xff-]*)\]|(?<!\*)\{([^][{}*]*)\}(?!\*)"
)
"""A set that lists ASCII bytes, or braces; not next to a "*", since an empty alternative would join two wildcards."""
_SPECIAL = re.compile(rb"[*?\[\]{},]")
_FOLDER = 3
_COMMON = re.compile(rb"([^*]+)|\*([^*/]+)\*|\*\*/([^*]+)/\*\*")
"""A name; a part of a name; everything in a folder at any depth."""
_CLASSES = {
    b"alnum": string.ascii_letters + string.digits,
    b"alpha": string.ascii_letters,
    b"blank": " \t",
    b"cntrl": "".join(map(chr, [*range(32), 127])),
    b"digit": string.digits,
    b"graph": string.ascii_letters + string.digits + string.punctuation,
    b"lower": string.ascii_lowercase,
    b"print": string.ascii_letters + string.digits + string.punctuation + " ",
    b"punct": string.punctuation,
    b"space": string.whitespace,
    b"upper": string.ascii_uppercase,
    b"xdigit": string.hexdigits,
}


class BadGlob(ValueError):
    """The pattern cannot be parsed; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What differs between dialects of wildcards."""

    braces: bool = False
    fold: bool = False
    """Ignore the case of ASCII letters."""
    free_star: bool = False
    """ "*" and "?" also match "/"."""
    characters: bool = False
    """ "?" and sets match a UTF-8 character, or a byte that is part of none; otherwise one byte, as in git."""


GIT = Dialect()
BRACES = Dialect(braces=True)


def translate(glob: bytes, dialect: Dialect = GIT) -> bytes:
    """Return the RE2 source that matches exactly what ``glob`` matches, without anchors.

    Raises:
        BadGlob: an unclosed set or brace, a dangling backslash, an unknown named set.

    """
    return b"".join(_Translation(glob, dialect).pieces())


def find_plain_name(glob: bytes, dialect: Dialect = GIT) -> bytes | None:
    """Return the one name that ``glob`` matches if it has no wildcard, else None."""
    if dialect.fold or any(mark in glob for mark in (b"*", b"?", b"[", b"\\")):
        return None
    if dialect.braces and (b"{" in glob or b"}" in glob):
        return None
    return glob


def expand_alternatives(glob: bytes) -> list[bytes]:
    """Return globs (with braces) that together match what ``glob`` matches, simple alternatives expanded."""
    pieces = _CHOICE.split(glob)  # text, set, brace, text, set, brace, ..., text
    if any(b"[" in text for text in pieces[::3]):
        return [glob]  # what looks like a set may be part of another one
    choices: list[list[bytes]] = [[pieces[0]]]
    count = 1
    for members, listed, text in zip(
        pieces[1::3], pieces[2::3], pieces[3::3], strict=True
    ):
        if members is not None:
            alternatives = [members[at : at + 1] for at in range(len(members))]
        else:
            alternatives = listed.split(b",")
        choices.append([alternative + text for alternative in alternatives])
        count *= len(alternatives)
    if count <= MOST_ALTERNATIVES:
        return [b"".join(member) for member in product(*choices)]
    return [glob]


def find_literals(
    glob: bytes, dialect: Dialect, *, any_depth: bool = False, below: bool = False
) -> list[Literals]:
    """Return sets of literal parts; a path that matches ``glob`` as a whole has all parts of at least one set.

    ``any_depth``: the glob is a name, matched against the path's last step. ``below``: paths below a match match, too.
    """
    if dialect.fold:
        return [Literals()]
    return [
        literal
        for alternative in expand_alternatives(glob)
        for literal in _literals(alternative, dialect, any_depth=any_depth, below=below)
    ]


def _literals(
    glob: bytes, dialect: Dialect, *, any_depth: bool, below: bool
) -> Iterator[Literals]:
    common = _find_common(glob, dialect, in_any=any_depth and below)
    if common is not None:
        yield common
        return
    start, wild, end = _split_at_wildcards(glob)
    ends_step = end.startswith(b"/")
    if wild.endswith(b"**"):
        end = end.removeprefix(b"/")  # "**/" may match nothing
    inside = _find_longest_text(wild)
    if any_depth:
        inside = max(inside, start, key=len)
        exact = wild == b"*" and not start
        start = b""
    else:
        exact = _is_free(start, wild, end, dialect)
        if wild.endswith(b"**") and ends_step:
            exact = False
    if not below:
        if exact:
            inside = b""
        yield Literals(start, inside, end, exact=exact)
    elif not exact:
        yield Literals(start, max(inside, end, key=len))
    else:
        yield Literals(start, b"", end, exact=True)
        # Without an end everything below the start matches, and so includes what is
        # below a match.
        if end:
            yield Literals(start, end + b"/")


def _find_common(glob: bytes, dialect: Dialect, *, in_any: bool) -> Literals | None:
    """Return the literal of a glob of the most frequent forms; ``in_any``: in any folder, with all that is below."""
    match = _COMMON.fullmatch(glob)
    if match is None:
        return None
    text = match[match.lastindex or 0]
    if find_plain_name(text, dialect) is None:
        return None
    if match.lastindex == _FOLDER and not dialect.free_star:
        return Literals(step=text + b"/", exact=True)
    if not in_any:
        return None
    if match.lastindex == 1:
        return Literals(step=text, exact=True)
    return Literals(inside=text, exact=True)


def _split_at_wildcards(glob: bytes) -> tuple[bytes, bytes, bytes]:
    """Return what is before the first wildcard, what is from there to the last, and what is after it."""
    special = [wildcard.start() for wildcard in _SPECIAL.finditer(glob)]
    if not special:
        return glob, b"", glob
    first = special[0]
    last = special[-1] + 1
    return glob[:first], glob[first:last], glob[last:]


def _find_longest_text(wild: bytes) -> bytes:
    if any(mark in wild for mark in (b"[", b"{", b",")):
        return b""
    parts = (part.removeprefix(b"/") for part in re.split(rb"[*?]+", wild))
    return max(parts, key=len, default=b"")


def _is_free(start: bytes, wild: bytes, end: bytes, dialect: Dialect) -> bool:
    """Return whether any text between the start and the end matches."""
    is_bounded = not start or start.endswith(b"/")
    if wild == b"**/*":
        return is_bounded and (dialect.free_star or b"/" not in end)
    if dialect.free_star:
        return wild in {b"*", b"**"}
    return wild == b"**" and is_bounded and not end


def compile_matcher(sources: Iterable[bytes]) -> Callable[[bytes], bool]:
    """Return the predicate of texts that one of ``sources`` matches as a whole."""
    tests = [regex.fullmatch for regex in _compile(sources)]
    if len(tests) == 1:
        only = tests[0]
        return lambda text: only(text) is not None
    return lambda text: any(test(text) is not None for test in tests)


def compile_finder(sources: Iterable[bytes]) -> Callable[[bytes], list[bytes]]:
    """Return a function that lists the matches of ``sources`` in a text; matches of two batches may overlap."""
    finds = [regex.findall for regex in _compile(sources)]
    if len(finds) == 1:
        only: Callable[[bytes], list[bytes]] = finds[0]
        return only
    return lambda text: [span for find in finds for span in find(text)]


def _compile(sources: Iterable[bytes]) -> list[Any]:
    """Return a few expressions that together match what any of ``sources`` matches."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    options.never_capture = True
    options.log_errors = False
    options.dot_nl = True
    batches: list[list[bytes]] = []
    room = 0
    for source in sources:
        if not batches or len(source) > room:
            batches.append([])
            room = MAX_SOURCE
        batches[-1].append(b"(?:" + source + b")")
        room -= len(source)
    joined = [b"|".join(batch) for batch in batches]
    # The library caches the last 128 expressions whatever their size, so long ones
    # bypass its cache.
    return [
        (re2.compile if len(pattern) <= _REMEMBERED else re2._Regexp)(pattern, options)  # noqa: SLF001
        for pattern in joined
    ]


class _Translation:
    """One pass over a glob; ``at`` is the next byte to read."""

    def __init__(self, glob: bytes, dialect: Dialect) -> None:
        self.glob = glob
        self.dialect = dialect
        self.at = 0
        self.depth = 0

    def pieces(self) -> Iterator[bytes]:
        while self.at < len(self.glob):
            byte = self.glob[self.at : self.at + 1]
            self.at += 1
            if byte == b"*":
                yield self._translate_stars()
            elif byte == b"?":
                yield _CHARACTERS[self.dialect.characters, self.dialect.free_star]
            elif byte == b"[":
                yield self._translate_set()
            elif byte == b"\\":
                yield self._escape(self._read_escape())
            elif not self.dialect.braces or byte not in b"{,}":
                yield self._escape(byte[0])
            elif byte == b",":
                yield b"|" if self.depth else b","
            else:
                self.depth += 1 if byte == b"{" else -1
                if self.depth < 0:
                    raise BadGlob("unopened brace")
                yield b"(?:" if byte == b"{" else b")"
        if self.depth:
            raise BadGlob("unclosed brace")

    def _read_escape(self) -> int:
        if self.at >= len(self.glob):
            raise BadGlob("dangling backslash")
        self.at += 1
        return self.glob[self.at - 1]

    def _escape(self, value: int) -> bytes:
        if self.dialect.fold:
            both = {value, *bytes([value]).swapcase()}
        else:
            both = {value}
        if len(both) == 1:
            return b"\\x%02x" % value
        return make_byte_set(both)

    def _translate_stars(self) -> bytes:
        start = self.at - 1
        while self.glob[self.at : self.at + 1] == b"*":
            self.at += 1
        if start:
            before = self.glob[start - 1 : start]
        else:
            before = b""
        after = self.glob[self.at : self.at + 1]
        in_brace = self.depth > 0 and not self.dialect.free_star
        # Two stars match "/" if they are a whole step of the path; an alternative in
        # braces may be one.
        is_step = self.at - start > 1 and before in (
            (b"", b"/", b"{", b",") if in_brace else (b"", b"/")
        )
        if is_step and after == b"/":
            self.at += 1
            while not self.dialect.free_star and self.glob.startswith(
                b"**/", self.at
            ):  # means the same as one
                self.at += 3
            return b"(?:" + ANY + b"*/)?"
        if self.dialect.free_star:
            return ANY + b"*"
        if is_step and after in ((b"", b"}", b",") if in_brace else (b"",)):
            return ANY + b"+"
        return ONE + b"*"

    def _translate_set(self) -> bytes:
        negated = self.glob[self.at : self.at + 1] in (b"!", b"^")
        self.at += negated
        listed = bytes(self._read_members())
        if self.dialect.fold:
            members = {*listed, *listed.swapcase()}
        else:
            members = {*listed}
        if not self.dialect.characters:
            if negated:
                return make_byte_set(SET - members)
            return make_byte_set(SET & members)
        wide = bytes(value for value in listed if value >= _ASCII).decode(
            "utf-8", "ignore"
        )
        if negated and wide:
            raise BadGlob(
                "a negated set takes ASCII characters only"
            )  # RE2 cannot exclude a sequence of bytes
        narrow = {
            value
            for value in SET
            if value < _ASCII and (value in members) is not negated
        }
        if negated:
            others = [_WIDE]
        else:
            others = [re2.escape(character.encode()) for character in wide]
        return b"(?:" + b"|".join([make_byte_set(narrow), *others]) + b")"

    def _read_members(self) -> Iterator[int]:
        previous: int | None = None
        first = True
        while first or self.glob[self.at : self.at + 1] != b"]":
            first = False  # a "]" in first place is a member
            if (
                self.glob.startswith(b"[:", self.at)
                and (named := self._read_named_set()) is not None
            ):
                yield from named
                previous = None
            elif (
                previous is not None
                and self.glob[self.at : self.at + 1] == b"-"
                and self.glob[self.at + 1 : self.at + 2] not in (b"", b"]")
            ):
                self.at += 1
                yield from range(previous, self._read_member() + 1)
                previous = None
            else:
                previous = self._read_member()
                yield previous
        self.at += 1

    def _read_member(self) -> int:
        if self.at >= len(self.glob):
            raise BadGlob("unclosed set")
        value = self.glob[self.at]
        self.at += 1
        if value == ord("\\"):
            return self._read_escape()
        return value

    def _read_named_set(self) -> bytes | None:
        """Read ``[:alpha:]``; None if it is not a name but ordinary members."""
        end = self.glob.find(b"]", self.at + 2)
        if end < 0:
            raise BadGlob("unclosed set")
        if self.glob[end - 1 : end] != b":" or end - 1 < self.at + 2:
            return None
        name = self.glob[self.at + 2 : end - 1]
        if name not in _CLASSES:
            raise BadGlob("unknown named set")
        self.at = end + 1
        return _CLASSES[name].encode()


def make_byte_set(members: Iterable[int]) -> bytes:
    """Return the RE2 source of a set of bytes."""
    ranges: list[list[int]] = []
    for value in sorted(members):
        if ranges and ranges[-1][1] == value - 1:
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    listed = b"".join(b"\\x%02x-\\x%02x" % (first, last) for first, last in ranges)
    if listed:
        return b"[" + listed + b"]"
    return b"[^\\x00-\\xff]"
