"""The documents open in the editor: changes are sent to the daemon, and kept here for the next connection.

Columns are in units of the negotiated encoding; a position outside the text is moved to the nearest one inside, as the
protocol says. As in the protocol, a lone carriage return ends a line.
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

from flashgrep.parts.lsp.convert import path_of

if TYPE_CHECKING:
    from flashgrep.parts.lsp.server import Server

LINE_END: Final = re.compile(r"\r\n|\n|\r")
MOST_EDITS: Final = 1_000
"""Edits that the daemon accepts in one call."""
BARE_RETURN: Final = re.compile(r"\r(?!\n)")


@dataclass(slots=True)
class Document:
    """An open document, as it is in the editor."""

    path: str
    uri: str
    """As the editor spells it."""
    version: int
    """The editor's version number."""
    text: str
    revision: int = 1
    """Our version number: the editor's may skip numbers, although no change is missing."""

    @property
    def has_our_lines(self) -> bool:
        """Whether the daemon counts the same lines: it does not end a line at a lone carriage return."""
        return BARE_RETURN.search(self.text) is None

    def change(
        self, changes: Sequence[TextDocumentContentChangeEvent], encoding: str
    ) -> list[dict[str, Any]]:
        """Apply changes in order, and return them as edits for the daemon, with columns in characters.

        Positions outside the text are moved inside first, so that both texts stay equal.
        """
        self.revision += 1
        edits: list[dict[str, Any]] = []
        for change in changes:
            if isinstance(change, TextDocumentContentChangeWholeDocument):
                self.text = change.text
                edits.append({"text": change.text})
                continue
            # Computed for each change, since its positions refer to the text after the
            # previous one.
            starts = [0, *(match.end() for match in LINE_END.finditer(self.text))]
            start, end = sorted(
                find_offset(self.text, starts, place, encoding)
                for place in (change.range.start, change.range.end)
            )
            edit: dict[str, Any] = {"text": change.text}
            for name, offset in (("start", start), ("end", end)):
                line = bisect_right(starts, offset)
                edit |= {
                    f"{name}_line": line,
                    f"{name}_column": offset - starts[line - 1] + 1,
                }
            edits.append(edit)
            before = self.text[:start]
            after = self.text[end:]
            self.text = before + change.text + after
        # If the daemon would count other lines, it gets the whole text.
        if len(edits) <= MOST_EDITS and self.has_our_lines:
            return edits
        return [{"text": self.text}]


def find_offset(
    text: str, starts: Sequence[int], place: Position, encoding: str
) -> int:
    """Return the offset of a position in a text whose lines start at ``starts``."""
    if place.line >= len(starts):
        return len(text)
    start = starts[place.line]
    if place.line + 1 < len(starts):
        end = starts[place.line + 1]
    else:
        end = len(text)
    # A column past the end of a line means its end, not the next line.
    line = text[start:end].rstrip("\r\n")
    return start + count_characters(line, place.character, encoding)


def count_characters(line: str, units: int, encoding: str) -> int:
    """Return how many whole characters of a line fit into this many code units."""
    if encoding == PositionEncodingKind.Utf32 or line.isascii():
        return min(units, len(line))
    codec, width = (
        ("utf-8", 1) if encoding == PositionEncodingKind.Utf8 else ("utf-16-le", 2)
    )
    head = line.encode(codec, "surrogatepass")[: units * width]
    while True:
        try:
            text = head.decode(codec, "surrogatepass")
        except UnicodeDecodeError:
            head = head[:-1]
        else:
            is_half = (
                bool(text) and text[-1] != line[len(text) - 1]
            )  # cut inside a surrogate pair
            return len(text) - is_half


class Texts:
    """The documents open in the editor, by path."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(self._open.values())

    def find(self, path: str) -> Document | None:
        """Return the open document of a file."""
        return self._open.get(path)

    def open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Open a document; one with the same path is replaced."""
        item = params.text_document
        path = path_of(item.uri)
        if path is None:  # not a file
            return
        document = Document(path, item.uri, item.version, item.text)
        self._open[path] = document
        if folder := self._server.find_folder(path):
            folder.send_open(document)

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Apply changes to a document; those of a document that is not open are dropped."""
        path = path_of(params.text_document.uri)
        if path:
            document = self._open.get(path)
        else:
            document = None
        if document is None:
            return
        document.version = params.text_document.version
        edits = document.change(params.content_changes, self._server.encoding)
        if folder := self._server.find_folder(document.path):
            folder.send_change(document, edits)

    def close(self, uri: str) -> None:
        """Close a document."""
        document = self._open.pop(path_of(uri) or "", None)
        if document and (folder := self._server.find_folder(document.path)):
            folder.send_close(document)
