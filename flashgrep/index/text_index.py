"""What a question asks of an index, wherever it is kept: the one interface that every store has.

Nothing that an index says is believed in an answer. ``candidates`` may name texts that do not match, never leave one
out that does; each proposed text is read and matched by ``search``, so all stores give the same hits.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Protocol

from flashgrep.index.chunks import StoredChunk
from flashgrep.index.table import TextIds
from flashgrep.pattern import GramExpr


class TextIndex(Protocol):
    """The texts of a project by number, as one state of an index knows them; safe from any thread."""

    @property
    def identity(self) -> object:
        """What tells this index from another one, whose numbers mean something else."""

    def candidates(self, expression: GramExpr) -> TextIds | None:
        """Return the numbers of the texts that may match, ascending; None: no text is excluded."""

    def with_words(self, text_ids: TextIds, text: bytes) -> TextIds:
        """Return those of some texts, ascending, that may have each identifier of ``text``, whole, ASCII case aside."""

    def defining(self, name: str, *, prefix: bool = False) -> list[int]:
        """Return the texts that define a name or one that begins with it, ASCII case aside, ascending."""

    def defined_names(self, among: Container[int], start: str, limit: int) -> list[str]:
        """Return names that begin so and are defined in texts ``among`` these, in lower case and order."""

    def packed_symbols(self, text_ids: Collection[int]) -> Mapping[int, bytes]:
        """Return texts' rows of symbols, to be read by ``symbols.read_row``; texts without one are left out."""

    def chunks_of_texts(self, text_ids: Collection[int]) -> Mapping[int, Sequence[StoredChunk]]:
        """Return the chunks of texts; those whose chunks are not stored are left out."""

    def find_cut(self) -> Collection[bytes]:
        """Return the project's files whose text may end before they do, at a NUL byte."""
