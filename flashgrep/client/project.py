"""The synchronous client: ``flashgrep.open(path)`` returns a project to ask."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from flashgrep.client.connections import Connections, find_project
from flashgrep.client.edit import Edits
from flashgrep.client.questions import (
    Answer,
    Page,
    Place,
    Progress,
    Question,
    Questions,
    Target,
)
from flashgrep.client.values import (
    ChangedFile,
    Chunk,
    Count,
    Entry,
    File,
    Hit,
    Symbol,
    Text,
    to_dict,
)
from flashgrep.client.wire_types import (
    BatchResult,
    CallersOptions,
    CallsOptions,
    ChangesOptions,
    DefinitionOptions,
    GetSymbolOptions,
    GlobOptions,
    IndexCodebaseOptions,
    IndexCodebaseResult,
    ListFilesOptions,
    OutlineOptions,
    QueryOptions,
    ReadCodeOptions,
    ReferencesOptions,
    SearchCodeOptions,
    StatsResult,
    StrPath,
)

ItemT = TypeVar("ItemT")


class Results(Answer[ItemT]):
    """An answer, read page by page as it is iterated over; nothing is asked before it is needed.

    Every loop asks anew, so it is as fresh as its beginning; the first loop uses the page that was asked to know
    `total`, `complete`, `skipped`, `fallback` or `details`. ``list(results)`` holds all items.
    """

    def __init__(
        self, connections: Connections, question: Question[ItemT], *, strict: bool
    ) -> None:
        super().__init__(question, strict=strict)
        self._connections = connections

    def __iter__(self) -> Iterator[ItemT]:
        limit = self._question.limit
        page = self._first
        self._first = None
        progress = self._progress
        if page is None:
            progress = Progress(self._strict)
            page = self._ask(progress)
            self._progress = progress
        while True:
            has_more = progress.has_more(limit)
            yield from page.items
            if not has_more:
                return
            page = self._ask(progress)

    def __bool__(self) -> bool:
        """Return whether there is anything; asks."""
        return self.first() is not None

    def first(self) -> ItemT | None:
        """Return the first item, or None; asks."""
        self._begin()
        if self._first is None:
            return next(iter(self), None)
        return next(iter(self._first.items), None)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return all items as dictionaries."""
        return [to_dict(item) for item in self]

    def to_pandas(self) -> Any:
        """Return all items as a DataFrame; pandas must be installed."""
        return import_module("pandas").DataFrame(self.to_dicts())

    def _look(self) -> Progress[ItemT]:
        """Return what the pages say; asks for the first one."""
        self._begin()
        return self._progress

    def _begin(self) -> None:
        if not self._progress.has_begun:
            progress: Progress[ItemT] = Progress(self._strict)
            self._first = self._ask(progress)
            # Only now: an answer that was refused as incomplete is asked for anew.
            self._progress = progress

    def _ask(self, progress: Progress[ItemT]) -> Page[ItemT]:
        steps = self._question.ask_page(progress.cursor, progress.taken)
        page = self._connections.run(steps)
        progress.note(page, self._question.limit)
        return page


class Project:
    """A project to ask; made by ``flashgrep.open``. Threads may share it."""

    def __init__(
        self, connections: Connections, questions: Questions, name: str
    ) -> None:
        self._connections = connections
        self._questions = questions
        self.name = name

    @property
    def root(self) -> Path:
        """The project's folder, which paths of answers are relative to."""
        return Path(self._questions.root)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<flashgrep project {self.name} at {self.root}>"

    def close(self) -> None:
        """Close the connections; the daemon goes on."""
        self._connections.close()

    def rev(self, name: str) -> "Project":
        """Return the project as it is in a revision: a branch, tag or commit, or ``:index``. Shares the connections."""
        return Project(self._connections, self._questions.at_revision(name), self.name)

    def edit(self) -> "Editing":
        """Return edits that are applied together when the ``with`` block ends without an exception."""
        return Editing(self._connections, self._questions.root)

    def query(self, text: str, **options: Unpack[QueryOptions]) -> Results[Hit]:
        """Find lines that have a text; with ``regex=True``, that match a regular expression.

        Without ``regex`` or ``mode`` a text that no line has is tried as a regular expression and as words; then
        `fallback` of the answer says so.
        """
        return self._answer(self._questions.query(text, options))

    def count(self, text: str, **options: Unpack[QueryOptions]) -> Results[Count]:
        """Count the matching lines of each file that has one."""
        return self._answer(self._questions.count(text, options))

    def files(
        self, words: str | None = None, **options: Unpack[ListFilesOptions]
    ) -> Results[Path]:
        """List the files: all, or those whose path has some words, best first."""
        return self._answer(self._questions.files(words, options))

    def glob(self, pattern: str, **options: Unpack[GlobOptions]) -> Results[File]:
        """Find files by wildcards, with their sizes and times."""
        return self._answer(self._questions.glob(pattern, options))

    def symbol(self, name: str, **options: Unpack[GetSymbolOptions]) -> Results[Symbol]:
        """Find the occurrences of a name in code, definitions first."""
        return self._answer(self._questions.symbol(name, options))

    def search_code(
        self, question: str, **options: Unpack[SearchCodeOptions]
    ) -> Results[Chunk]:
        """Find code by what it does; the best 10 results unless ``limit`` says how many (up to 100)."""
        return self._answer(self._questions.search_code(question, options))

    def outline(
        self, path: StrPath, **options: Unpack[OutlineOptions]
    ) -> Results[Entry]:
        """List what a file, or each file of a folder, defines."""
        return self._answer(self._questions.outline(path, options))

    def changes(
        self, rev: str = "HEAD", **options: Unpack[ChangesOptions]
    ) -> Results[ChangedFile]:
        """List the files that differ from a revision, or between two (``main...HEAD``), with the symbols touched."""
        return self._answer(self._questions.changes(rev, options))

    def definition(
        self, place: Place, **options: Unpack[DefinitionOptions]
    ) -> Results[Symbol]:
        """Find what the name at a place means; of a name alone, if it is unique."""
        return self._answer(self._questions.ask_at("definition", place, options))

    def references(
        self, place: Place, **options: Unpack[ReferencesOptions]
    ) -> Results[Symbol]:
        """Find the uses of what is at a place, each with its confidence."""
        return self._answer(self._questions.ask_at("references", place, options))

    def callers(
        self, place: Place, **options: Unpack[CallersOptions]
    ) -> Results[Symbol]:
        """Find the functions that call the one at a place; `uses` has the places of the calls."""
        return self._answer(self._questions.ask_at("callers", place, options))

    def calls(self, place: Place, **options: Unpack[CallsOptions]) -> Results[Symbol]:
        """Find what the function at a place calls."""
        return self._answer(self._questions.ask_at("calls", place, options))

    def read(
        self,
        target: Target | None = None,
        start_line: int | None = None,
        end_line: int | None = None,
        **options: Unpack[ReadCodeOptions],
    ) -> Text:
        """Read a file (``"a.py"``, ``"a.py:10-20"``), the lines of a value, or the definition ``symbol_name``."""
        steps = self._questions.read(target, start_line, end_line, options)
        return self._connections.run(steps)

    def definitions(self, name: str) -> list[Symbol]:
        """Return the definitions of a name; raise NotFound if there is none."""
        return self._connections.run(self._questions.definitions(name))

    def index(self, **options: Unpack[IndexCodebaseOptions]) -> IndexCodebaseResult:
        """Wait until everything is indexed, for 100 s at most unless ``deadline_ms`` says more."""
        result: IndexCodebaseResult = self.call(
            "index_codebase", path=self.root, **options
        )
        return result

    def stats(self) -> StatsResult:
        """Return the figures of the project and its index."""
        result: StatsResult = self.call("stats")
        return result

    def call(self, method: str, **params: Any) -> Any:
        """Call any method of the reference, once, and return its result as it is on the wire."""
        return self._connections.run(self._questions.call(method, params))

    def _answer(self, question: Question[ItemT]) -> Results[ItemT]:
        return Results(self._connections, question, strict=self._questions.strict)


class Editing(Edits):
    """Edits of one ``with`` block; all are applied at its end, or none."""

    def __init__(self, connections: Connections, root: str) -> None:
        super().__init__(root)
        self._connections = connections
        self.result: BatchResult | None = None
        """What was written, after the block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self.operations:
            self.result = self._connections.run(self.apply())

    def preview(self) -> str:
        """Return what would change, as a unified diff."""
        if not self.operations:
            return ""
        return self._connections.run(self.apply(dry_run=True)).get("diff", "")


def open_project(
    path: StrPath | None = None, *, strict: bool = False, timeout: float = 120.0
) -> Project:
    """Open the project around a folder, by default the current one; the daemon is started if need be.

    A folder that is named and in no project becomes one. ``strict``: answers that do not cover everything raise
    Incomplete. ``timeout``: seconds to wait for an answer.

    Raises:
        Unreachable: there is no daemon, and none can be started.
        FlashgrepError: the folder cannot be a project.

    """
    root, name = find_project(path)
    questions = Questions(root, rev=None, strict=strict)
    return Project(Connections(timeout), questions, name)
