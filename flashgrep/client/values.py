"""What the client returns: small values with the names of the field, made from the daemon's answers."""

import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flashgrep.client.wire_types import (
    ChangedFileEntry,
    CodeMatch,
    GlobFile,
    ListedFile,
    NamedPlace,
    OutlineEntry,
    OutlineFile,
    QueryHit,
    SliceResult,
    StepPlace,
    SymbolHit,
)
from flashgrep.client.wire_types import Range as WireRange


@dataclass(frozen=True, slots=True)
class Range:
    """A range of text: lines and columns from 1, columns in characters; the end is exclusive."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches; it prints as ``path:line: text``."""

    path: Path
    """Relative to the project's root."""
    line: int
    column: int
    """Of the first match, in characters from 1."""
    text: str
    """The line without its end; if `is_cut`, the part around the match."""
    end_line: int
    """The last line of a match that spans lines."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    spans: tuple[Range, ...] = ()
    """All matches, with ``spans=True``."""
    is_cut: bool = False
    """Whether the line is longer than 1,000 bytes."""
    score: float | None = None
    project: str | None = None
    """The project's name, if several were asked."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Count:
    """A file and how many of its lines match."""

    path: Path
    count: int
    project: str | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.count}"


@dataclass(frozen=True, slots=True)
class File:
    """A file with its size in bytes and its time of modification in seconds since 1970."""

    path: Path
    size: int
    modified: int
    project: str | None = None

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition or a use of a name; it prints as ``path:line: signature``."""

    name: str
    path: Path
    """Relative to the project's root."""
    line: int
    """The line of the name."""
    column: int
    """The column of the name, in characters from 1."""
    start_line: int
    """The first line of the whole definition or use."""
    end_line: int
    role: str
    """definition, declaration, implementation, import, call or reference."""
    kind: str = ""
    """function, class, method and so on, if known."""
    container: str = ""
    """The name of the definition around it."""
    signature: str = ""
    text: str = ""
    """The line of a use; with ``body=True``, the whole text of a definition."""
    doc: str = ""
    language: str = ""
    confidence: float | None = None
    """How certain it is that this is meant, 0 to 1, where names are resolved."""
    uses: tuple[Range, ...] = ()
    """Of a caller, the places of its calls."""
    project: str | None = None

    def __str__(self) -> str:
        content = self.signature or self.text or self.name
        return f"{self.path}:{self.line}: {content}"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A function, class or section found by meaning, with its score from 0 to 1."""

    path: Path
    start_line: int
    end_line: int
    kind: str
    name: str
    text: str
    """The code; of a long function its head and the part that answers."""
    score: float
    language: str
    project: str | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.start_line}: {self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of a file, exactly as they are; it prints as its text."""

    path: Path
    start_line: int
    end_line: int
    text: str
    """With its line ends."""
    encoding: str
    hash: str | None
    """SHA-256 of the whole file; None for a file over 1 MiB."""
    total_lines: int | None
    symbol_name: str | None = None

    @property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        lines = self.text.split("\n")
        if not lines[-1]:
            del lines[-1]
        return [line.removesuffix("\r") for line in lines]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Entry:
    """A symbol of an outline, with the symbols inside it."""

    name: str
    kind: str
    signature: str
    range: Range
    name_range: Range
    depth: int
    path: Path

    def __str__(self) -> str:
        return f"{self.path}:{self.name_range.start_line}: {self.signature}"


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs: `status` is added, deleted, modified, renamed or untracked."""

    path: Path
    status: str
    added: int
    """Lines."""
    removed: int
    old_path: Path | None
    hunks: tuple[Mapping[str, Any], ...] = field(repr=False)
    symbols: tuple[Mapping[str, Any], ...] = field(repr=False)
    """The definitions that the change touches; with ``callers=True`` each with its callers."""
    project: str | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.status}, +{self.added} -{self.removed}"


def read_path(place: Mapping[str, Any]) -> Path:
    """Return the path of an answer's item: its bytes, if its name is not UTF-8."""
    if "file_path_bytes" in place:
        return Path(os.fsdecode(b64decode(place["file_path_bytes"])))
    return Path(place["file_path"])


def name_path(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return a path as parameters of a method that reads a file."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"path_bytes": b64encode(os.fsencode(text)).decode()}
    return {"path": text}


def read_range(place: WireRange) -> Range:
    """Return a range of an answer."""
    return Range(**place)


def read_hit(place: QueryHit) -> Hit:
    """Return a matching line."""
    return Hit(
        path=read_path(place),
        line=place["start_line"],
        column=place["column"],
        text=place["text"],
        end_line=place["end_line"],
        before=tuple(place.get("before", ())),
        after=tuple(place.get("after", ())),
        spans=tuple(map(read_range, place.get("spans", ()))),
        is_cut=place.get("cut", False),
        score=place.get("score"),
        project=place.get("project"),
    )


def read_count(place: QueryHit) -> Count:
    """Return a file with its number of matching lines."""
    return Count(read_path(place), place["count"], place.get("project"))


def read_file_path(place: ListedFile) -> Path:
    """Return a listed file; of several projects with the project's name before it."""
    path = read_path(place)
    if "project" in place:
        return Path(place["project"]) / path
    return path


def read_file(place: GlobFile) -> File:
    """Return a file with its size and time."""
    return File(
        path=read_path(place),
        size=place["size"],
        modified=place["modified_unix"],
        project=place.get("project"),
    )


def read_symbol(place: SymbolHit) -> Symbol:
    """Return an occurrence of a symbol."""
    return Symbol(
        name=place["symbol_name"],
        path=read_path(place),
        line=place["line_number"],
        column=place["column"],
        start_line=place["start_line"],
        end_line=place["end_line"],
        role=place["role"],
        kind=place.get("kind", ""),
        container=place.get("container", ""),
        signature=place.get("signature", ""),
        text=place.get("body", ""),
        doc=place.get("doc", ""),
        language=place["language"],
        project=place.get("project"),
    )


def read_named_place(place: NamedPlace | StepPlace) -> Symbol:
    """Return a definition or a use that a name was resolved to."""
    name = place["selection_range"]
    uses: list[WireRange] = place.get("uses", [])  # type: ignore[assignment]  # only a step has them
    return Symbol(
        name=place["symbol_name"],
        path=read_path(place),
        line=name["start_line"],
        column=name["start_column"],
        start_line=place["range"]["start_line"],
        end_line=place["range"]["end_line"],
        role=place["role"],
        kind=place.get("kind", ""),
        container=place.get("container", ""),
        signature=place.get("signature", ""),
        text=place.get("text", ""),
        language=place["language"],
        confidence=place["confidence"],
        uses=tuple(map(read_range, uses)),
        project=place.get("project"),
    )


def read_chunk(place: CodeMatch) -> Chunk:
    """Return a chunk of code."""
    return Chunk(
        path=read_path(place),
        start_line=place["start_line"],
        end_line=place["end_line"],
        kind=place["kind"],
        name=place["name"],
        text=place["content"],
        score=place["score"],
        language=place["language"],
        project=place.get("project"),
    )


def read_text(answer: SliceResult) -> Text:
    """Return lines that were read."""
    return Text(
        path=read_path(answer),
        start_line=answer["start_line"],
        end_line=answer["end_line"],
        text=answer["content"],
        encoding=answer["encoding"],
        hash=answer["file_hash"],
        total_lines=answer.get("total_lines_available"),
        symbol_name=answer.get("symbol_name"),
    )


def read_entries(file: OutlineFile) -> list[Entry]:
    """Return the symbols of one file of an outline, in the order of their places."""
    path = read_path(file)
    return [_read_entry(path, entry) for entry in file.get("entries", [])]


def _read_entry(path: Path, entry: OutlineEntry) -> Entry:
    return Entry(
        name=entry["name"],
        kind=entry["kind"],
        signature=entry["signature"],
        range=read_range(entry["range"]),
        name_range=read_range(entry["selection_range"]),
        depth=entry["depth"],
        path=path,
    )


def read_change(place: ChangedFileEntry) -> ChangedFile:
    """Return a file that differs."""
    old_path = None
    if "old_path" in place:
        old_path = Path(place["old_path"])
    return ChangedFile(
        path=read_path(place),
        status=place["status"],
        added=place["added"],
        removed=place["removed"],
        old_path=old_path,
        hunks=tuple(place["hunks"]),
        symbols=tuple(place["symbols"]),
        project=place.get("project"),
    )


def to_dict(value: Any) -> dict[str, Any]:
    """Return a value's fields; a path is one field."""
    if isinstance(value, Path):
        return {"path": value}
    return asdict(value)
