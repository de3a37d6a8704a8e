"""The asynchronous client, for asyncio: ``await flashgrep.aio.open(path)`` returns a project to ask."""

import asyncio
import os
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from flashgrep.base.errors import DeadlineExceeded
from flashgrep.client.connections import (
    MOST,
    decode_answer,
    describe_end,
    find_project,
    open_connection,
)
from flashgrep.client.edit import Edits
from flashgrep.client.errors import DaemonEnded, Unreachable
from flashgrep.client.questions import (
    Answer,
    Page,
    Place,
    Progress,
    Question,
    Questions,
    Request,
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
from flashgrep.rpc.connect import encode_request

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")
MOST_ANSWER: Final = 2**30
"""Bytes of a line that are taken for an answer; the daemon's are a few MB."""


class AsyncConnections:
    """Connections of one event loop; each carries one call at a time.

    A cancelled call closes its connection, which tells the daemon to give the call up.
    """

    def __init__(self, timeout: float) -> None:
        """``timeout``: seconds to wait for an answer, or longer if the call itself allows more."""
        self.timeout = timeout
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._room = asyncio.Semaphore(MOST)
        self._is_closed = False

    async def run(self, steps: Generator[Request, Any, ValueT]) -> ValueT:
        """Send the requests of a question, and return its value."""
        try:
            request = next(steps)
            while True:
                request = steps.send(await self.ask(request))
        except StopIteration as end:
            value: ValueT = end.value
            return value

    async def ask(self, request: Request) -> Any:
        """Return the result of a request.

        Raises:
            FlashgrepError: as the daemon answered.
            Unreachable: it ended; a question that only reads has been asked twice.
            DeadlineExceeded: it did not answer in time.

        """
        async with self._room:
            try:
                return await self._ask_once(request)
            except DaemonEnded:
                if not request.repeats:
                    raise
            # The next daemon has the same answer.
            return await self._ask_once(request)

    def close(self) -> None:
        """Close all that are idle; those in use are closed when they are."""
        self._is_closed = True
        while self._idle:
            self._idle.pop()[1].close()

    async def _ask_once(self, request: Request) -> Any:
        if self._is_closed:
            raise Unreachable("this project is closed; open it again", reason="closed")
        reader, writer = await self._connect()
        is_whole = False
        try:
            async with asyncio.timeout(request.seconds(self.timeout)):
                writer.write(encode_request(request.method, request.params))
                await writer.drain()
                line = await reader.readuntil(b"\n")
            is_whole = True
        except TimeoutError:
            raise DeadlineExceeded(
                f"no answer to {request.method} within {request.seconds(self.timeout):g} s"
            ) from None
        except (OSError, asyncio.IncompleteReadError) as error:
            raise describe_end(request, error) from error
        finally:
            if is_whole and not self._is_closed:
                self._idle.append((reader, writer))
            else:
                writer.close()
        return decode_answer(line)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return an idle connection that is still open, or a new one."""
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        # In a thread: it may have to start the daemon.
        connected = await asyncio.to_thread(open_connection)
        return await asyncio.open_unix_connection(sock=connected, limit=MOST_ANSWER)


class AsyncResults(Answer[ItemT]):
    """An answer, read page by page as it is iterated over with ``async for``; nothing is asked before it is needed.

    Every loop asks anew, so it is as fresh as its beginning. What is said of the answer as a whole (`total`,
    `complete` …) is about the pages read so far; ``await results.begin()`` reads the first one.
    """

    def __init__(
        self, connections: AsyncConnections, question: Question[ItemT], *, strict: bool
    ) -> None:
        super().__init__(question, strict=strict)
        self._connections = connections

    async def __aiter__(self) -> AsyncIterator[ItemT]:
        limit = self._question.limit
        page = self._first
        self._first = None
        progress = self._progress
        if page is None:
            progress = Progress(self._strict)
            page = await self._ask(progress)
            self._progress = progress
        while True:
            has_more = progress.has_more(limit)
            for item in page.items:
                yield item
            if not has_more:
                return
            page = await self._ask(progress)

    async def begin(self) -> Self:
        """Ask for the first page, unless that has been done."""
        if not self._progress.has_begun:
            progress: Progress[ItemT] = Progress(self._strict)
            self._first = await self._ask(progress)
            # Only now: an answer that was refused as incomplete is asked for anew.
            self._progress = progress
        return self

    async def all(self) -> list[ItemT]:
        """Return all items."""
        return [item async for item in self]

    async def first(self) -> ItemT | None:
        """Return the first item, or None."""
        await self.begin()
        if self._first is not None:
            return next(iter(self._first.items), None)
        async for item in self:
            return item
        return None

    async def to_dicts(self) -> list[dict[str, Any]]:
        """Return all items as dictionaries."""
        return [to_dict(item) async for item in self]

    async def _ask(self, progress: Progress[ItemT]) -> Page[ItemT]:
        steps = self._question.ask_page(progress.cursor, progress.taken)
        page = await self._connections.run(steps)
        progress.note(page, self._question.limit)
        return page


class AsyncProject:
    """A project to ask; made by ``flashgrep.aio.open``. Tasks of one event loop may share it."""

    def __init__(
        self, connections: AsyncConnections, questions: Questions, name: str
    ) -> None:
        self._connections = connections
        self._questions = questions
        self.name = name

    @property
    def root(self) -> Path:
        """The project's folder, which paths of answers are relative to."""
        return Path(self._questions.root)

    def __repr__(self) -> str:
        return f"<flashgrep project {self.name} at {self.root}>"

    def close(self) -> None:
        """Close the connections; the daemon goes on."""
        self._connections.close()

    def rev(self, name: str) -> "AsyncProject":
        """Return the project as it is in a revision: a branch, tag or commit, or ``:index``. Shares the connections."""
        questions = self._questions.at_revision(name)
        return AsyncProject(self._connections, questions, self.name)

    def edit(self) -> "AsyncEditing":
        """Return edits that are applied together when the ``async with`` block ends without an exception."""
        return AsyncEditing(self._connections, self._questions.root)

    def query(self, text: str, **options: Unpack[QueryOptions]) -> AsyncResults[Hit]:
        """Find lines that have a text; with ``regex=True``, that match a regular expression.

        Without ``regex`` or ``mode`` a text that no line has is tried as a regular expression and as words; then
        `fallback` of the answer says so.
        """
        return self._answer(self._questions.query(text, options))

    def count(self, text: str, **options: Unpack[QueryOptions]) -> AsyncResults[Count]:
        """Count the matching lines of each file that has one."""
        return self._answer(self._questions.count(text, options))

    def files(
        self, words: str | None = None, **options: Unpack[ListFilesOptions]
    ) -> AsyncResults[Path]:
        """List the files: all, or those whose path has some words, best first."""
        return self._answer(self._questions.files(words, options))

    def glob(self, pattern: str, **options: Unpack[GlobOptions]) -> AsyncResults[File]:
        """Find files by wildcards, with their sizes and times."""
        return self._answer(self._questions.glob(pattern, options))

    def symbol(
        self, name: str, **options: Unpack[GetSymbolOptions]
    ) -> AsyncResults[Symbol]:
        """Find the occurrences of a name in code, definitions first."""
        return self._answer(self._questions.symbol(name, options))

    def search_code(
        self, question: str, **options: Unpack[SearchCodeOptions]
    ) -> AsyncResults[Chunk]:
        """Find code by what it does; the best 10 results unless ``limit`` says how many (up to 100)."""
        return self._answer(self._questions.search_code(question, options))

    def outline(
        self, path: StrPath, **options: Unpack[OutlineOptions]
    ) -> AsyncResults[Entry]:
        """List what a file, or each file of a folder, defines."""
        return self._answer(self._questions.outline(path, options))

    def changes(
        self, rev: str = "HEAD", **options: Unpack[ChangesOptions]
    ) -> AsyncResults[ChangedFile]:
        """List the files that differ from a revision, or between two (``main...HEAD``), with the symbols touched."""
        return self._answer(self._questions.changes(rev, options))

    def definition(
        self, place: Place, **options: Unpack[DefinitionOptions]
    ) -> AsyncResults[Symbol]:
        """Find what the name at a place means; of a name alone, if it is unique."""
        return self._answer(self._questions.ask_at("definition", place, options))

    def references(
        self, place: Place, **options: Unpack[ReferencesOptions]
    ) -> AsyncResults[Symbol]:
        """Find the uses of what is at a place, each with its confidence."""
        return self._answer(self._questions.ask_at("references", place, options))

    def callers(
        self, place: Place, **options: Unpack[CallersOptions]
    ) -> AsyncResults[Symbol]:
        """Find the functions that call the one at a place; `uses` has the places of the calls."""
        return self._answer(self._questions.ask_at("callers", place, options))

    def calls(
        self, place: Place, **options: Unpack[CallsOptions]
    ) -> AsyncResults[Symbol]:
        """Find what the function at a place calls."""
        return self._answer(self._questions.ask_at("calls", place, options))

    async def read(
        self,
        target: Target | None = None,
        start_line: int | None = None,
        end_line: int | None = None,
        **options: Unpack[ReadCodeOptions],
    ) -> Text:
        """Read a file (``"a.py"``, ``"a.py:10-20"``), the lines of a value, or the definition ``symbol_name``."""
        steps = self._questions.read(target, start_line, end_line, options)
        return await self._connections.run(steps)

    async def definitions(self, name: str) -> list[Symbol]:
        """Return the definitions of a name; raise NotFound if there is none."""
        return await self._connections.run(self._questions.definitions(name))

    async def index(
        self, **options: Unpack[IndexCodebaseOptions]
    ) -> IndexCodebaseResult:
        """Wait until everything is indexed, for 100 s at most unless ``deadline_ms`` says more."""
        result: IndexCodebaseResult = await self.call(
            "index_codebase", path=self.root, **options
        )
        return result

    async def stats(self) -> StatsResult:
        """Return the figures of the project and its index."""
        result: StatsResult = await self.call("stats")
        return result

    async def call(self, method: str, **params: Any) -> Any:
        """Call any method of the reference, once, and return its result as it is on the wire."""
        return await self._connections.run(self._questions.call(method, params))

    def _answer(self, question: Question[ItemT]) -> AsyncResults[ItemT]:
        return AsyncResults(self._connections, question, strict=self._questions.strict)


class AsyncEditing(Edits):
    """Edits of one ``async with`` block; all are applied at its end, or none."""

    def __init__(self, connections: AsyncConnections, root: str) -> None:
        super().__init__(root)
        self._connections = connections
        self.result: BatchResult | None = None
        """What was written, after the block."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self.operations:
            self.result = await self._connections.run(self.apply())

    async def preview(self) -> str:
        """Return what would change, as a unified diff."""
        if not self.operations:
            return ""
        result = await self._connections.run(self.apply(dry_run=True))
        return result.get("diff", "")


class Opening:
    """A project about to be opened: ``await`` it, or enter it with ``async with``, which closes it at the end."""

    def __init__(
        self, path: str | os.PathLike[str] | None, *, strict: bool, timeout: float
    ) -> None:
        self._path = path
        self._strict = strict
        self._timeout = timeout
        self._project: AsyncProject | None = None

    def __await__(self) -> Generator[Any, None, AsyncProject]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncProject:
        self._project = await self._open()
        return self._project

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._project is not None:
            self._project.close()

    async def _open(self) -> AsyncProject:
        root, name = await asyncio.to_thread(find_project, self._path)
        questions = Questions(root, rev=None, strict=self._strict)
        return AsyncProject(AsyncConnections(self._timeout), questions, name)


def open_project(
    path: StrPath | None = None, *, strict: bool = False, timeout: float = 120.0
) -> Opening:
    """Open the project around a folder, as ``flashgrep.open`` does; ``await`` the result, or use ``async with``."""
    return Opening(path, strict=strict, timeout=timeout)
