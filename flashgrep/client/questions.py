"""Questions without input or output: the requests they need, and what becomes of the answers.

A question is a generator of requests that is sent their answers and returns a value (``Steps``), so that the
synchronous and the asynchronous client share everything but the waiting.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar

from flashgrep.base.errors import Conflict, InvalidParams, NotFound
from flashgrep.base.places import find_places
from flashgrep.client.errors import Ambiguous, Incomplete
from flashgrep.client.values import (
    ChangedFile,
    Chunk,
    Count,
    Entry,
    File,
    Hit,
    Symbol,
    Text,
    name_path,
    read_change,
    read_chunk,
    read_count,
    read_entries,
    read_file,
    read_file_path,
    read_hit,
    read_named_place,
    read_path,
    read_symbol,
    read_text,
)
from flashgrep.client.wire_types import FIELDS, StrPath

ItemT = TypeVar("ItemT")
FIRST_PAGE: Final = 1_000
"""Items of the first page: it is there at once, and often it is all."""
PAGE: Final = 10_000
"""Items of the others, the most that methods allow."""
MOST_TOKENS: Final = 1_000_000
"""Of one page, the most that methods allow: 4 MB."""
GRACE_SECONDS: Final = 10.0
"""Between the deadline of a method and ours: at its own it answers with what it has."""
SCOPE: Final = frozenset({"project", "rev"})
"""Parameters that say which files are meant."""
READINGS: Final = 3
"""Attempts to read a file in parts while it is being changed."""
Fields: TypeAlias = Mapping[str, Any]
"""Parameters, options or an answer, by name."""
Params: TypeAlias = dict[str, Any]
"""Parameters that are being put together."""
Place: TypeAlias = Hit | Symbol | str | tuple[str | os.PathLike[str], int, int]
"""What a name is asked at: a value with a line and a column, ``FILE:L:C``, (file, line, column), or a unique name."""
Target: TypeAlias = Hit | Symbol | Chunk | Count | File | str | os.PathLike[str]
"""What can be read: a file, or the lines of a value."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call of one method. ``repeats``: whether it may be sent again if the daemon ends before it answers."""

    method: str
    params: Fields
    repeats: bool = True

    def seconds(self, timeout: float) -> float:
        """Return how long to wait for the answer: longer than the call itself was allowed to take."""
        if "deadline_ms" not in self.params:
            return timeout
        deadline: float = self.params["deadline_ms"] / 1000
        return max(timeout, deadline + GRACE_SECONDS)


Steps: TypeAlias = Generator[Request, Any, ItemT]


@dataclass(frozen=True, slots=True)
class Page(Generic[ItemT]):
    """Some items of an answer, where the next ones begin, and the answer's other fields."""

    items: list[ItemT]
    cursor: str | None
    answer: Fields


@dataclass(frozen=True, slots=True)
class Question(Generic[ItemT]):
    """A question whose answer is a list: the method, its parameters, and what reads an item."""

    method: str
    params: Fields
    read: Callable[[Any], list[ItemT]]
    """Returns the items that one result of the answer stands for."""
    limit: int | None = None
    """Most items over all pages."""
    at: Place | None = None
    """The place it is about, to be resolved first."""

    def ask_page(self, cursor: str | None, taken: int) -> Steps[Page[ItemT]]:
        """Ask for the page that begins at a cursor, after so many items."""
        params = dict(self.params)
        if self.at is not None:
            names = SCOPE & params.keys()
            scope = {name: params[name] for name in names}
            params |= yield from find_position(self.at, scope)
        fields = FIELDS[self.method]
        if "max_tokens" in fields:
            params["max_tokens"] = MOST_TOKENS
        if "cursor" in fields:
            size = PAGE
            if cursor is None:
                size = FIRST_PAGE
            if self.limit is not None:
                size = min(size, self.limit - taken)
            params["limit"] = size
        if cursor is not None:
            params["cursor"] = cursor
        answer = yield Request(self.method, params)
        items: list[ItemT] = []
        for place in answer["results"]:
            items += self.read(place)
        rest = dict(answer)
        del rest["results"]
        return Page(items, answer.get("next"), rest)


@dataclass(slots=True)
class Progress(Generic[ItemT]):
    """How far an answer has been read, and what its pages said."""

    strict: bool
    cursor: str | None = None
    taken: int = 0
    is_complete: bool = True
    answer: Fields = field(default_factory=dict)
    """The latest page's fields."""
    total: int | None = None
    has_begun: bool = False

    def note(self, page: Page[ItemT], limit: int | None) -> None:
        """Note what a page says.

        Raises:
            Incomplete: it does not cover everything, and the caller is strict.

        """
        self.has_begun = True
        self.answer = page.answer
        self.cursor = page.cursor
        self.taken += len(page.items)
        coverage = page.answer.get("coverage", {})
        self.is_complete &= coverage.get("complete", True)
        self.is_complete &= not page.answer.get("left_out", 0)
        if page.answer.get("total") is not None:
            self.total = page.answer["total"]
        elif page.cursor is None and limit is None:
            self.total = self.taken
        if self.strict and not self.is_complete:
            reason = coverage.get("detail") or "time ran out, or the index is not ready"
            raise Incomplete(f"incomplete: {reason}", coverage=coverage)

    def has_more(self, limit: int | None) -> bool:
        """Return whether another page is wanted."""
        if self.cursor is None:
            return False
        return limit is None or self.taken < limit

    @property
    def skipped(self) -> dict[str, int]:
        """How many files were not searched, by reason."""
        coverage = self.answer.get("coverage", self.answer)
        skipped: dict[str, int] = coverage.get("files_skipped", {})
        return skipped


class Answer(Generic[ItemT]):
    """What the pages read so far say of an answer as a whole; what the results of both clients have."""

    def __init__(self, question: Question[ItemT], *, strict: bool) -> None:
        self._question = question
        self._strict = strict
        self._progress: Progress[ItemT] = Progress(strict)
        self._first: Page[ItemT] | None = None

    def __repr__(self) -> str:
        """Return what is asked, and asks nothing."""
        about = self._question.at
        asked = dict(self._question.params)
        if about is not None:
            asked = {"at": about, **asked}
        fields = [f"{name}={value!r}" for name, value in asked.items()]
        call = f"{self._question.method}({', '.join(fields)})"
        return f"<{type(self).__name__} of {call}>"

    @property
    def total(self) -> int | None:
        """The number of items there are; None: not known before they have been read."""
        return self._look().total

    @property
    def complete(self) -> bool:
        """Whether the pages read so far cover everything; if not, `details` says why."""
        return self._look().is_complete

    @property
    def skipped(self) -> dict[str, int]:
        """How many files were not searched, by reason."""
        return self._look().skipped

    @property
    def fallback(self) -> str | None:
        """``regex``, ``grep`` or ``words`` if no line has the text itself and these hits come from reading it so."""
        return self.details.get("fallback")

    @property
    def details(self) -> Params:
        """The other fields of the latest page as they are on the wire: `coverage`, `suggestions`, `reason` …."""
        return dict(self._look().answer)

    def _look(self) -> Progress[ItemT]:
        return self._progress


def read_all(
    target: Target | None,
    start_line: int | None,
    end_line: int | None,
    options: Fields,
) -> Steps[Text]:
    """Read a file, some of its lines or a symbol, in as many parts as it takes.

    Raises:
        Conflict: the file changed again and again while it was read.

    """
    params = {**options, "max_tokens": MOST_TOKENS}
    if target is not None:
        if isinstance(target, str | os.PathLike):
            params |= name_path(target)
        else:
            params |= name_path(target.path)
        if start_line is None:
            if isinstance(target, Hit):
                start_line = target.line
                end_line = target.end_line
            elif isinstance(target, Symbol | Chunk):
                start_line = target.start_line
                end_line = target.end_line
    if start_line is not None:
        params["start_line"] = start_line
    if end_line is not None:
        params["end_line"] = end_line
    for _ in range(READINGS):
        parts = yield from _read_parts(params)
        if parts is not None:
            last = parts[-1]
            whole = dict(parts[0])
            whole["content"] = "".join(part["content"] for part in parts)
            whole["end_line"] = last["end_line"]
            return read_text(whole)  # type: ignore[arg-type]  # the first part, with the text of all
    raise Conflict(f"it changes while it is read: {params.get('path')}")


def _read_parts(params: Fields) -> Steps[list[Params] | None]:
    """Read the parts of a text; None: the file changed between two of them."""
    part = yield Request("read_code", params)
    parts = [part]
    while (cursor := part["continuation"]["cursor"]) is not None:
        rest = dict(params)
        rest.pop("tail", None)
        rest |= name_path(read_path(cursor))
        rest["continuation_start_line"] = cursor["continuation_start_line"]
        if "continuation_start_byte" in cursor:
            rest["continuation_start_byte"] = cursor["continuation_start_byte"]
        if "end_line" in cursor:
            rest["end_line"] = cursor["end_line"]
        part = yield Request("read_code", rest)
        same = ("file_size", "file_hash")
        for name in same:
            if part[name] != parts[0][name]:
                return None
        parts.append(part)
    return parts


def find_position(place: Place, scope: Fields) -> Steps[Params]:
    """Return the parameters that name a position in a project and revision (``scope``).

    Raises:
        NotFound: nothing is defined by that name.
        Ambiguous: several definitions have it.

    """
    if isinstance(place, Hit | Symbol):
        return _name_position(place.path, place.line, place.column)
    if not isinstance(place, str):
        return _name_position(*place)
    for position in find_places(place):
        if position.column is not None:
            return _name_position(position.path, position.first, position.column)
    definitions = yield from find_definitions(place, scope)
    if len(definitions) > 1:
        raise Ambiguous(place, definitions)
    only = definitions[0]
    return _name_position(only.path, only.line, only.column)


def _name_position(path: StrPath, line: int, column: int) -> Params:
    params: Params = dict(name_path(path))
    params["line"] = line
    params["column"] = column
    return params


def find_definitions(name: str, scope: Fields) -> Steps[list[Symbol]]:
    """Return the definitions of a name in a project and revision (``scope``); raise NotFound if there is none."""
    params = {**scope, "symbol_name": name, "role": ["definition"]}
    question = Question("get_symbol", params, single(read_symbol))
    page = yield from question.ask_page(None, 0)
    if not page.items:
        message = f"symbol not found: {name}"
        near = page.answer.get("suggestions", [])
        if near:
            message += f"; near: {', '.join(near)}"
        raise NotFound(message, reason="symbol_not_found", near=near)
    return page.items


def single(read: Callable[[Any], ItemT]) -> Callable[[Any], list[ItemT]]:
    """Return a reader of lists from one whose results stand for one item each."""
    return lambda place: [read(place)]


class Questions:
    """The questions one can ask about a project; what a client of either kind asks."""

    def __init__(self, root: str, *, rev: str | None, strict: bool) -> None:
        self.root = root
        self.rev = rev
        self.strict = strict

    def query(self, text: str, options: Fields) -> Question[Hit]:
        """Ask for lines that match."""
        return self._ask("query", options, single(read_hit), query=text)

    def count(self, text: str, options: Fields) -> Question[Count]:
        """Ask how many lines of each file match."""
        reader = single(read_count)
        return self._ask("query", options, reader, query=text, output="count")

    def files(self, words: str | None, options: Fields) -> Question[Path]:
        """Ask for files by parts of their paths."""
        return self._ask("list_files", options, single(read_file_path), query=words)

    def glob(self, pattern: str, options: Fields) -> Question[File]:
        """Ask for files by wildcards."""
        return self._ask("glob", options, single(read_file), query=pattern)

    def symbol(self, name: str, options: Fields) -> Question[Symbol]:
        """Ask for the occurrences of a symbol."""
        reader = single(read_symbol)
        return self._ask("get_symbol", options, reader, symbol_name=name)

    def search_code(self, text: str, options: Fields) -> Question[Chunk]:
        """Ask for code by meaning."""
        return self._ask("search_code", options, single(read_chunk), query=text)

    def outline(self, path: StrPath, options: Fields) -> Question[Entry]:
        """Ask what a file or a folder defines."""
        text = os.fspath(path)
        return self._ask("outline", options, read_entries, path=text, structured=True)

    def changes(self, rev: str, options: Fields) -> Question[ChangedFile]:
        """Ask what differs from a revision, or between two."""
        return self._ask("changes", options, single(read_change), rev=rev)

    def ask_at(self, method: str, place: Place, options: Fields) -> Question[Symbol]:
        """Ask a method about the name at a place."""
        return self._ask(method, options, single(read_named_place), at=place)

    def read(
        self,
        target: Target | None,
        start_line: int | None,
        end_line: int | None,
        options: Fields,
    ) -> Steps[Text]:
        """Read a file, some of its lines or a symbol."""
        params = self._complete("read_code", options)
        return read_all(target, start_line, end_line, params)

    def definitions(self, name: str) -> Steps[list[Symbol]]:
        """Ask for the definitions of a name."""
        return find_definitions(name, self._complete("get_symbol", {}))

    def at_revision(self, rev: str) -> "Questions":
        """Return the same questions about a revision."""
        return Questions(self.root, rev=rev, strict=self.strict)

    def call(self, method: str, params: Fields) -> Steps[Any]:
        """Call any method once; it may write."""
        return (yield Request(method, self._complete(method, params), repeats=False))

    def _ask(
        self,
        method: str,
        options: Fields,
        read: Callable[[Any], list[ItemT]],
        at: Place | None = None,
        **own: Any,
    ) -> Question[ItemT]:
        params = self._complete(method, {**own, **options})
        limit = None
        if "cursor" in FIELDS[method]:
            limit = params.pop("limit", None)
        return Question(method, params, read, limit, at)

    def _complete(self, method: str, options: Fields) -> Params:
        """Return parameters as JSON has them, about this project and revision.

        Raises:
            InvalidParams: the method cannot be asked about a revision.

        """
        params: Params = {}
        for name, value in options.items():
            if value is not None:
                params[name] = _to_json(value)
        # A method that is not listed is of another package's part.
        fields = FIELDS.get(method, SCOPE)
        if "project" in fields and "projects" not in params:
            params.setdefault("project", self.root)
        if self.rev is not None and "rev" not in params:
            if "rev" not in fields:
                raise InvalidParams(f"{method} knows no revisions", field="rev")
            params["rev"] = self.rev
        return params


def _to_json(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {name: _to_json(member) for name, member in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_to_json(member) for member in value]
    return value
