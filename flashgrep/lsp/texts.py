"""The texts that the editor has open: what it tells of them goes to the daemon, and stays here for the next one.

Columns come in units of the encoding that was agreed upon; a place outside the text means its nearest one, as the
protocol has it. Line ends are those of the protocol: a carriage return alone is one.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from lsprotocol.types import (
    Position,
    PositionEncodingKind,
    TextDocumentContentChangeEvent,
    TextDocumentContentChangeWholeDocument,
)

from flashgrep.lsp.convert import path_of

if TYPE_CHECKING:
    from flashgrep.lsp.server import Server

LINE_END: Final = re.compile(r"\r\n|\n|\r")
MOST_EDITS: Final = 1_000
"""Edits the daemon takes at once."""
BARE_RETURN: Final = re.compile(r"\r(?!\n)")


@dataclass(slots=True)
class Document:
    """A text as it is in the editor."""

    path: str
    uri: str
    """As the editor writes it."""
    version: int
    """The editor's own."""
    text: str
    revision: int = 1
    """Counted here: the editor's numbers may skip, and all that came is in the text."""

    @property
    def has_our_lines(self) -> bool:
        """Whether the daemon counts the lines alike: it takes a carriage return alone for none's end."""
        return BARE_RETURN.search(self.text) is None

    def change(self, changes: Sequence[TextDocumentContentChangeEvent], encoding: str) -> list[dict[str, Any]]:
        """Apply changes, each to what the one before it has left; return them as the daemon takes them, in characters.

        A place outside the text means its nearest one, so that both texts stay alike.
        """
        self.revision += 1
        edits: list[dict[str, Any]] = []
        for change in changes:
            if isinstance(change, TextDocumentContentChangeWholeDocument):
                self.text = change.text
                edits.append({"text": change.text})
                continue
            # Anew for each change, since each counts in the text that the one before it left.
            starts = [0, *(found.end() for found in LINE_END.finditer(self.text))]
            start, end = sorted(
                find_offset(self.text, starts, place, encoding) for place in (change.range.start, change.range.end)
            )
            edit: dict[str, Any] = {"text": change.text}
            for name, offset in (("start", start), ("end", end)):
                line = bisect_right(starts, offset)
                edit |= {f"{name}_line": line, f"{name}_column": offset - starts[line - 1] + 1}
            edits.append(edit)
            self.text = self.text[:start] + change.text + self.text[end:]
        # Where the daemon counts lines otherwise, it is sent the whole text.
        return edits if len(edits) <= MOST_EDITS and self.has_our_lines else [{"text": self.text}]


def find_offset(text: str, starts: Sequence[int], place: Position, encoding: str) -> int:
    """Return the index of a place in a text whose lines start at ``starts``."""
    if place.line >= len(starts):
        return len(text)
    start = starts[place.line]
    end = starts[place.line + 1] if place.line + 1 < len(starts) else len(text)
    # A column after the line's end means its end, not the next line.
    line = text[start:end].rstrip("\r\n")
    return start + count_characters(line, place.character, encoding)


def count_characters(line: str, units: int, encoding: str) -> int:
    """Return how many characters of a line fit into this many units; half of one does not."""
    if encoding == PositionEncodingKind.Utf32 or line.isascii():
        return min(units, len(line))
    codec, width = ("utf-8", 1) if encoding == PositionEncodingKind.Utf8 else ("utf-16-le", 2)
    head = line.encode(codec, "surrogatepass")[: units * width]
    while True:
        try:
            found = head.decode(codec, "surrogatepass")
        except UnicodeDecodeError:
            head = head[:-1]
        else:
            is_half = bool(found) and found[-1] != line[len(found) - 1]  # of a surrogate pair
            return len(found) - is_half


class Texts:
    """What the editor has open, by path."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(self._open.values())

    def find(self, path: str) -> Document | None:
        """Return the open text of a file."""
        return self._open.get(path)

    def open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Take a text in; one that is open already is replaced."""
        told = params.text_document
        path = path_of(told.uri)
        if path is None:  # a text that is not a file
            return
        document = self._open[path] = Document(path, told.uri, told.version, told.text)
        if folder := self._server.find_folder(path):
            folder.tell_open(document)

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Take changes in; of a text that was never opened nothing is known, so they are dropped."""
        path = path_of(params.text_document.uri)
        document = self._open.get(path) if path else None
        if document is None:
            return
        document.version = params.text_document.version
        edits = document.change(params.content_changes, self._server.encoding)
        if folder := self._server.find_folder(document.path):
            folder.tell_change(document, edits)

    def close(self, uri: str) -> None:
        """Forget a text."""
        document = self._open.pop(path_of(uri) or "", None)
        if document and (folder := self._server.find_folder(document.path)):
            folder.tell_close(document)
