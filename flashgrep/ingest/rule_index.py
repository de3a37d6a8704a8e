"""Ignore files of thousands of patterns, as a generator or an attacker writes them: looked up, not tried one by one.

A regular expression of 50,000 alternatives takes RE2 hundreds of megabytes and, once its automaton no longer fits,
20 µs a byte. Here each pattern stands in a table under the fixed text that it begins or ends with, so that a name meets
the few that can match it. What decides is the last pattern that matches: patterns are numbered by their run, a stretch
of the file with the same sign. There are bounds, and what is beyond them is not used; but a bound never hides a file:
where there is no room for a pattern that asks files back, those before it are dropped.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from flashgrep.ingest.wildcard import BadGlob, Dialect, matcher, plain, translate

MAX_SHARING = 1000
"""Patterns under one key, and without any key: each is tried on every name that has the key, 0.1 µs to 0.5 µs each."""
KEY_LENGTHS = (16, 8, 4, 2, 1)
_LITERAL = rb"(?:\\x[0-9a-f]{2})"
_HEAD = re.compile(_LITERAL + b"*")
_LITERAL_BYTES = 4
_SET = re.compile(rb"\[[^\]]*\]")
_RUN = re.compile(_LITERAL + b"+")


class Line(NamedTuple):
    """One line of an ignore file, before its wildcards are looked at."""

    ignores: bool
    folders_only: bool
    by_path: bool
    glob: bytes


class _Glob(NamedTuple):
    """A pattern with wildcards: what a text must begin with, end with and contain, then what it must match."""

    run: int
    folders_only: bool
    head: bytes
    tail: bytes
    needle: bytes
    source: bytes | None
    """None: one star between head and tail."""

    def matches(self, text: bytes) -> bool:
        if not (text.startswith(self.head) and text.endswith(self.tail) and self.needle in text):
            return False
        if self.source is not None:
            return _compiled(self.source)(text)
        fixed = len(self.head) + len(self.tail)
        return len(text) >= fixed and b"/" not in text[len(self.head) : len(text) - len(self.tail)]


@lru_cache(maxsize=1024)
def _compiled(source: bytes) -> Callable[[bytes], bool]:
    return matcher([source])


class _Table:
    """The patterns that are held against names, or those that are held against paths."""

    def __init__(self) -> None:
        self._plain: dict[bytes, int] = {}
        self._plain_folders: dict[bytes, int] = {}
        self._heads: dict[int, dict[bytes, list[_Glob]]] = {}
        self._tails: dict[int, dict[bytes, list[_Glob]]] = {}
        self._others: list[_Glob] = []

    def add_plain(self, text: bytes, run: int, *, folders_only: bool) -> None:
        (self._plain_folders if folders_only else self._plain)[text] = run

    def add(self, glob: _Glob) -> bool:
        """Take a pattern; return whether there was room."""
        by_head = len(glob.head) >= len(glob.tail)
        key = glob.head if by_head else glob.tail
        length = next((length for length in KEY_LENGTHS if length <= len(key)), 0)
        if not length:
            sharing = self._others
        else:
            tables = (self._heads if by_head else self._tails).setdefault(length, {})
            sharing = tables.setdefault(key[:length] if by_head else key[-length:], [])
        if len(sharing) < MAX_SHARING:
            sharing.append(glob)
            return True
        return False

    def last_run(self, text: bytes, best: int, *, is_dir: bool) -> int:
        """Return the run of the last pattern that matches, or ``best`` if none after it does."""
        best = max(best, self._plain.get(text, -1), self._plain_folders.get(text, -1) if is_dir else -1)
        for glob in self._candidates(text):
            if glob.run > best and (is_dir or not glob.folders_only) and glob.matches(text):
                best = glob.run
        return best

    def _candidates(self, text: bytes) -> Iterator[_Glob]:
        for length, heads in self._heads.items():
            yield from heads.get(text[:length], ())
        for length, tails in self._tails.items():
            yield from tails.get(text[-length:], ())
        yield from self._others


class RuleIndex:
    """The rules of one long ignore file; it answers as ``ignore.RuleSet`` does."""

    def __init__(self, lines: Iterable[Line], dialect: Dialect, *, strip: int = 0, prefix: bytes = b"") -> None:
        self._strip = strip
        self._prefix = prefix
        self.cut = ""
        self._clear()
        for line in lines:
            if self._take(line, dialect):
                self.used += 1
            elif not line.ignores:
                self._clear()

    def _clear(self) -> None:
        self._names, self._paths = _Table(), _Table()
        self._signs: list[bool] = []
        self._has_paths = False
        self.used = 0

    def _take(self, line: Line, dialect: Dialect) -> bool:
        """Put a line in its table; return False where there is no room for it."""
        if not self._signs or self._signs[-1] is not line.ignores:
            self._signs.append(line.ignores)
        run = len(self._signs) - 1
        self._has_paths |= line.by_path
        table = self._paths if line.by_path else self._names
        literal = plain(line.glob, dialect)
        if literal is not None:
            table.add_plain(literal, run, folders_only=line.folders_only)
            return True
        try:
            return table.add(_glob(line, run, dialect))
        except BadGlob:  # it matches nothing, as in git
            return True

    def verdict(self, path: bytes, name: bytes, is_dir: bool) -> bool | None:  # noqa: FBT001 - hot, called by position
        """Return True for ignored, False for asked back by a negation, None where no rule speaks."""
        run = self._names.last_run(name, -1, is_dir=is_dir)
        if self._has_paths:
            run = self._paths.last_run(self._prefix + path[self._strip :], run, is_dir=is_dir)
        return None if run < 0 else self._signs[run]

    def touched(self, _folder: bytes, names: Collection[bytes], _joined: bytes) -> Iterator[bytes]:
        """Yield the names some rule may speak of: all, for a look at one costs as much as telling."""
        yield from names

    def __bool__(self) -> bool:
        return bool(self._signs)


def _glob(line: Line, run: int, dialect: Dialect) -> _Glob:
    """Return a pattern with the fixed texts it is found by.

    Raises:
        BadGlob: it cannot be read.

    """
    head, star, tail = line.glob.partition(b"*")
    if star and all(plain(part, dialect) is not None for part in (head, tail)):
        return _Glob(run, line.folders_only, head, tail, b"", None)
    source = translate(line.glob, dialect)
    start = _HEAD.match(source)
    end = len(source)
    while source[end - _LITERAL_BYTES : end - 2] == b"\\x":
        end -= _LITERAL_BYTES
    # What stands in braces is one of several texts: then nothing but head and tail is sure.
    inner = [] if b"|" in source else _RUN.findall(_SET.sub(b" ", source))
    needle = max(map(_bytes, inner), key=len, default=b"")
    return _Glob(run, line.folders_only, _bytes(start.group() if start else b""), _bytes(source[end:]), needle, source)


def _bytes(source: bytes) -> bytes:
    return bytes.fromhex(source.replace(rb"\x", b"").decode("ascii"))
