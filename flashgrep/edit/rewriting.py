"""Many places of many files replaced at once: the operations of a batch, each on lines of a file that is known.

Places are characters of the text as it was searched. Each operation holds its file's hash, so nothing is replaced in a
file that is another one by now.
"""

import codecs
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import orjson

from flashgrep.checkpoint import checkpoint
from flashgrep.edit.batch import Operation
from flashgrep.edit.edits import HASH_SHOWN, LineEdit, Precondition
from flashgrep.edit.system import digest
from flashgrep.edit.write import WriteRequest
from flashgrep.model import Document, SkipReason

JOINED: Final = 16_384
"""Characters of a file that two operations on it may become one for: a batch has a most of operations."""
_MARKS: Final = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


class Replacement(NamedTuple):
    """Characters ``start`` to ``end`` of a text become ``new``."""

    start: int
    end: int
    new: str


@dataclass(slots=True)
class Rewriting:
    """The operations that replace all places, and what cannot be rewritten."""

    operations: list[Operation] = field(default_factory=list)
    files: int = 0
    skipped: dict[SkipReason, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Digits that tell this from every other rewriting: of other files, other texts of them, or other places."""
        requests = [operation.request for operation in self.operations]
        said = [(one.path.hex(), one.expected.file_hash, repr(one.edit)) for one in requests]
        return digest(orjson.dumps(said))[:HASH_SHOWN]


def plan_rewriting(files: Iterable[tuple[bytes, Document, Sequence[Replacement]]]) -> Rewriting:
    """Return how to replace places in files; of places that overlap the first one counts, as ast-grep has it.

    Left out: files with bytes that are no text, and those with NUL bytes, of which a part was not searched.
    """
    rewriting = Rewriting()
    for path, document, replacements in files:
        checkpoint()
        try:
            text = document.data.decode("latin-1" if document.encoding == "latin-1" else "utf-8")
        except UnicodeDecodeError:
            text = "\ufffd"
        is_wide = document.encoding.startswith("utf-16")
        if document.binary_at is not None or (is_wide and "\ufffd" in text) or text == "\ufffd":
            reason: SkipReason = "encoding" if document.binary_at is None else "binary"
            rewriting.skipped[reason] = rewriting.skipped.get(reason, 0) + 1
            continue
        raw = text.encode(document.encoding) if is_wide else document.data
        expected = Precondition(file_hash=digest(_MARKS.get(document.encoding, b"") + raw))
        edits = edit_lines(text, replacements)
        rewriting.files += bool(edits)
        for edit in edits:
            name = str(len(rewriting.operations) + 1)
            rewriting.operations.append(Operation(name, WriteRequest(path, edit, expected)))
    return rewriting


def edit_lines(text: str, replacements: Sequence[Replacement]) -> list[LineEdit]:
    """Return edits of whole lines that replace places of a text, which are given by their starts."""
    reach = 0 if "\r" in text else JOINED  # what is joined gets the line ends of its first line
    groups: list[list[Replacement]] = []
    for one in replacements:
        last = groups[-1] if groups else []
        if last and one.start < last[-1].end:
            continue
        if last and (one.end - last[0].start <= reach or "\n" not in text[last[-1].end : one.start]):
            last.append(one)
        else:
            groups.append([one])
    edits: list[LineEdit] = []
    line, at = 1, 0
    for group in groups:
        begin, stop = text.rfind("\n", 0, group[0].start) + 1, text.find("\n", group[-1].end)
        stop = len(text) if stop < 0 else stop
        line += text.count("\n", at, begin)
        parts, at = [], begin
        for one in group:
            parts += [text[at : one.start], one.new]
            at = one.end
        new = "".join([*parts, text[at:stop]]) + "\n"
        edits.append(LineEdit(line, line + text.count("\n", begin, stop), new))
        at = begin
    return edits
