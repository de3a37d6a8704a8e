"""The place in a pattern's text that the parser has reached, and the flags that hold there."""

from dataclasses import dataclass, field
from typing import NoReturn

from flashgrep.errors import BadPattern

_BLANK = " \t\n\v\f\r\x85\u200e\u200f\u2028\u2029"  # Pattern_White_Space: what `(?x)` skips


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The inline flags: `i m s U x u R`, and whether a match must stay on one line."""

    insensitive: bool = False
    multi_line: bool = True
    dot_newline: bool = False
    swap_greed: bool = False
    verbose: bool = False
    unicode: bool = True
    crlf: bool = False


@dataclass(slots=True)
class Cursor:
    """A reader of one pattern text; offsets count characters from 0."""

    text: str
    flags: Flags
    pos: int = 0
    groups: int = 0
    names: set[str] = field(default_factory=set)
    any_literal: bool = False
    any_uppercase: bool = False

    def peek(self, ahead: int = 0) -> str:
        """Return the character `ahead` of here, or an empty string past the end."""
        return self.text[self.pos + ahead : self.pos + ahead + 1]

    def take(self, token: str) -> bool:
        """Step over `token` if it stands here."""
        if not self.text.startswith(token, self.pos):
            return False
        self.pos += len(token)
        return True

    def next(self) -> str:
        """Step over one character and return it; an empty string at the end."""
        char = self.peek()
        self.pos += 1
        return char

    def skip_blank(self) -> None:
        """Under `(?x)`, step over white space and comments."""
        while self.flags.verbose and self.peek():
            if self.peek() == "#":
                end = self.text.find("\n", self.pos)
                self.pos = len(self.text) if end < 0 else end
            elif self.peek() in _BLANK:
                self.pos += 1
            else:
                return

    def fail(self, message: str, at: int, end: int | None = None) -> NoReturn:
        """Refuse the pattern because of what stands from `at` up to `end` (default: here)."""
        construct = self.text[at : self.pos if end is None else end]
        raise BadPattern(f"{message}: {construct!r} at {at}", at=at, construct=construct)

    def saw(self, char: str) -> None:
        """Note a literal character: smart case asks for an upper-case one."""
        self.any_literal = True
        self.any_uppercase = self.any_uppercase or char.isupper()
