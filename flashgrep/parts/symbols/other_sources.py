"""Other sources of what names in a file mean, for one lookup: compilers know what flashgrep can only infer.

The part ``navigation`` has them: indexes that the user imported, and language servers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from flashgrep.parts.symbols.parse.lookup import FileSymbols, Role

Open = Callable[[bytes], FileSymbols | None]


@dataclass(frozen=True, slots=True)
class SourceOccurrence:
    """An occurrence of a symbol, in bytes."""

    path: bytes
    symbols: FileSymbols
    start: int
    end: int
    role: Role


class OtherSources(Protocol):
    """Sources that know what names mean."""

    @property
    def problem(self) -> str:
        """Return why one of them did not answer, if the reader of the answer should know."""

    def find_meaning(
        self, path: bytes, span: tuple[int, int], open_file: Open, *, uses: bool
    ) -> "Meaning | None":
        """Return what the name at a span of a file refers to, with the files that use it if ``uses``; None: unknown."""


class OtherSource(OtherSources, Protocol):
    """One source, which can also find the uses of a name."""

    @property
    def how(self) -> str:
        """Return the evidence given in answers for its results."""

    def find_known(self, path: bytes, open_file: Open) -> list[int]:
        """Return the offsets of the names in a file whose meaning the source knows."""

    def find_occurrences(
        self, numbers: frozenset[int], path: bytes, open_file: Open
    ) -> list[SourceOccurrence] | None:
        """Return the occurrences of symbols in a file, in order; None: unknown."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The symbols that a name refers to, by number, with their definitions and the files that use them."""

    source: OtherSource
    numbers: frozenset[int]
    definitions: list[SourceOccurrence]
    files: list[bytes]
    """As indexed, by path; empty for a symbol that is local to one file."""


@dataclass(frozen=True, slots=True)
class SourceChain:
    """Several sources; the first that knows a name answers."""

    sources: tuple[OtherSources, ...]

    @property
    def problem(self) -> str:
        """Return why some did not answer."""
        return "; ".join(filter(None, (source.problem for source in self.sources)))

    def find_meaning(
        self, path: bytes, span: tuple[int, int], open_file: Open, *, uses: bool
    ) -> Meaning | None:
        """Return the first source's result that is known; ``Meaning.source`` answers further questions."""
        answers = (
            source.find_meaning(path, span, open_file, uses=uses)
            for source in self.sources
        )
        return next((answer for answer in answers if answer is not None), None)
