"""Importing a SCIP file: keeping the documents that match the project's current files, with byte offsets.

An edit made after indexing shifts everything that follows. Then some occurrence begins or ends within a word, or a
definition does not have its symbol's name, and the whole document is rejected.
"""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import numpy as np

from flashgrep.base.errors import InvalidParams
from flashgrep.base.model import Skipped
from flashgrep.base.paths import make_private
from flashgrep.files.columns import Lines, PositionEncoding, find_column
from flashgrep.files.extract import read_file
from flashgrep.files.openat import RootFiles, RootFolder
from flashgrep.parts.navigation.scip.decode import (
    Malformed,
    Metadata,
    ScipDocument,
    read_index,
    read_name,
)
from flashgrep.parts.navigation.scip.scip_store import (
    DEFINES,
    Rows,
    Source,
    change,
    list_sources,
)

MOST_FILE: Final = 4 << 30
MOST_TEXT: Final = 64 << 20
"""Bytes of an index, and of a source file."""
_GUESSES: Final[tuple[PositionEncoding, ...]] = ("utf-16", "utf-32", "utf-8")
_PLAIN: Final = re.compile(r"[^\W\d]\w*\Z")
_NAMING: Final = ("#", ".", ")", "]")
"""The descriptor suffixes of types, terms, methods and parameters: in the text, their name is a single word.

Not so for modules, whose names have several words, and members of anonymous types, whose names are generated.
"""
_WORD: Final = np.zeros(256, np.bool_)
_WORD[
    [
        *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_",
        *range(128, 256),
    ]
] = True


def import_index(
    file: Path,
    root: bytes,
    folder: Path,
    below: str | None,
    report: Callable[[int], None] = lambda _count: None,
) -> Source:
    """Import a SCIP file into a project, and return a summary.

    ``folder``: the project's state folder. ``below``: the indexed folder of the project; None: as recorded in the index
    if that is in the project, otherwise the root. ``report`` is called with the number of each document.

    Raises:
        InvalidParams: not a SCIP index, or truncated; nothing is imported.
        OSError: it cannot be read, or the data cannot be written.

    """
    for current_path in (folder.parent.parent, folder.parent, folder):
        make_private(str(current_path))
    name = str(file.resolve())
    stale = 0
    missing = 0
    tool = ""
    if below is None:
        prefix = b""
    else:
        prefix = _prefix(f"{os.fsdecode(root)}/{below}", root)
    with file.open("rb") as opened, change(folder, name) as writer:
        status = os.fstat(opened.fileno())
        if status.st_size > MOST_FILE:
            raise InvalidParams(
                f"{file}: larger than {MOST_FILE:,} bytes", field="file"
            )
        writer.forget()
        files = RootFiles(RootFolder(root))
        try:
            for count, part in enumerate(read_index(opened)):
                if isinstance(part, Metadata):
                    tool = part.tool
                    if below is None:
                        prefix = _prefix(
                            unquote(urlsplit(part.project_root).path), root
                        )
                    continue
                report(count)
                path = prefix + part.path
                data, is_current = (
                    read_current(files, path, status.st_mtime_ns)
                    if part.is_inside
                    else (None, False)
                )
                if data is not None and is_current:
                    rows = place_occurrences(part, data)
                else:
                    rows = None
                if data is None:
                    missing += 1
                elif rows is None:
                    stale += 1
                else:
                    writer.add(path, data, rows)
        except Malformed as error:
            raise InvalidParams(f"{file}: {error}", field="file") from error
        writer.record(tool, stale, missing)
    return next(source for source in list_sources(folder) if source.file == name)


def forget_index(file: str, folder: Path) -> bool:
    """Drop the data imported from a file; return whether there was any."""
    if all(source.file != file for source in list_sources(folder)):
        return False
    with change(folder, file) as writer:
        writer.forget()
    return True


def _prefix(indexed: str, root: bytes) -> bytes:
    """Return the prefix of an index's paths: the path of the indexed folder below the root."""
    if indexed:
        prefix = os.path.relpath(
            os.path.realpath(os.fsencode(indexed)), os.path.realpath(root)
        )
    else:
        prefix = b"."
    if prefix == b"." or prefix.split(b"/")[0] == b"..":
        return b""
    return prefix + b"/"


def read_current(
    files: RootFiles, path: bytes, made_ns: int
) -> tuple[bytes | None, bool]:
    """Return a file's text, None if it has none, and whether the file is unchanged since the index was made."""
    try:
        stat, document = read_file(files, path, MOST_TEXT)
    except OSError:
        return None, False
    if isinstance(document, Skipped):
        return (None, False)
    return (document.data, stat.mtime_ns <= made_ns)


def place_occurrences(document: ScipDocument, data: bytes) -> Rows | None:
    """Return the table of a document's occurrences in a text; None if it was made from another text."""
    if (
        document.text is not None
        and document.text.removeprefix(b"\xef\xbb\xbf") != data
    ):
        return None
    for encoding in (document.encoding,) if document.encoding else _GUESSES:
        spans = measure_spans(document, data, encoding)
        if spans is not None and fit_text(spans, document, data):
            return number_occurrences(spans, document, data)
    return None


def measure_spans(
    document: ScipDocument, data: bytes, encoding: PositionEncoding
) -> Rows | None:
    """Return the byte offsets of occurrences; None if the text does not have such a line or column."""
    places = np.array(document.places, np.int64).reshape(-1, 4)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    starts = np.concatenate(([0], ends + 1))
    lengths = np.concatenate((ends, [len(data)])) - starts
    lines = places[:, [0, 2]]
    columns = places[:, [1, 3]]
    if (lines >= len(starts)).any():
        return None
    spans: Rows
    if encoding == "utf-8" or data.isascii():
        spans = starts[lines] + columns
        return None if (columns > lengths[lines]).any() else spans
    pairs = [
        (line, column)
        for (line, column) in np.stack((lines, columns), -1).reshape(-1, 2).tolist()
    ]
    offsets: dict[tuple[int, int], int] = {}
    for line, column in {*pairs}:
        start = int(starts[line])
        within = find_column(
            data[start : start + int(lengths[line])], column + 1, encoding
        )
        if within is None:
            return None
        offsets[line, column] = start + within
    return np.array([offsets[pair] for pair in pairs], np.int64).reshape(-1, 2)


def fit_text(spans: Rows, document: ScipDocument, data: bytes) -> bool:
    """Return whether no occurrence begins or ends within a word, and each definition has its symbol's name."""
    if (spans[:, 0] > spans[:, 1]).any():
        return False
    is_word = np.concatenate(([False], _WORD[np.frombuffer(data, np.uint8)], [False]))
    filled = spans[spans[:, 0] < spans[:, 1]].ravel()
    if (is_word[filled] & is_word[filled + 1]).any():
        return False
    return not any(
        roles & DEFINES
        and start < end
        and (name := _read_plain_name(symbol))
        and data[start:end] != name
        for (start, end), symbol, roles in zip(
            spans.tolist(), document.symbols, document.roles, strict=True
        )
    )


def _read_plain_name(symbol: str) -> bytes:
    """Return the word that a symbol has in the text, unless it has an alias there; empty if it is not a single word."""
    if symbol.endswith(_NAMING):
        name = read_name(symbol)
    else:
        name = ""
    if _PLAIN.match(name):
        return name.encode("utf-8", "surrogateescape")
    return b""


def number_occurrences(spans: Rows, document: ScipDocument, data: bytes) -> Rows:
    """Return the table of a document's occurrences, each reduced to the name in it: ``A as B``, ``"a"``.

    Those without the name are left out: aliases, which flashgrep resolves itself, and mistakes (scip-python 0.6.6
    confuses what is called on a module with the first name of the module's star imports).
    """
    rows: list[tuple[int, int, int, int]] = []
    lines = Lines(data)
    own = dict[str, int]()
    for (first, last), symbol, roles in zip(
        spans.tolist(), document.symbols, document.roles, strict=True
    ):
        start = first
        end = last
        if start == end and not (
            roles & DEFINES and lines.line(start) == 1
        ):  # the definition of a module is empty
            continue
        is_local = symbol.startswith("local ")
        if is_local:
            number = -1 - own.setdefault(symbol, len(own))
        else:
            number = number_symbol(symbol)
        name = _read_plain_name(symbol)
        if start < end and name and data[start:end] != name:
            match = re.search(rb"(?<!\w)%b(?!\w)" % re.escape(name), data[start:end])
            if match is None:
                continue
            start, end = start + match.start(), start + match.end()
        rows.append((start, end, roles, number))
    return np.array(sorted(set(rows)), np.int64).reshape(-1, 4)


def number_symbol(symbol: str) -> int:
    """Return the number of a global symbol, a hash of its name; local symbols have negative numbers instead."""
    digest: Any = hashlib.blake2b(
        symbol.encode("utf-8", "surrogateescape"), digest_size=8
    ).digest()
    return int.from_bytes(digest, "little") >> 1
