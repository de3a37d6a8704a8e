"""A project's revisions, which answer the same questions as the project; their files are read from git's objects."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np

from flashgrep.api.coverage import COUNT_UP_TO, Coverage, milliseconds_since
from flashgrep.api.service import ProjectService, ServiceKey
from flashgrep.api.view import Project
from flashgrep.base.checkpoint import Expired
from flashgrep.base.errors import (
    DeadlineExceeded,
    InvalidParams,
    NotFound,
    TooLarge,
    Unavailable,
)
from flashgrep.base.model import path_from_json, path_to_text
from flashgrep.base.registry import Session
from flashgrep.files.finder import GlobPage, Window, find_among
from flashgrep.files.git_place import GitPlace, find_place, state_of
from flashgrep.files.globs import GlobOptions, PathFilter
from flashgrep.files.openat import RootFolder
from flashgrep.files.read import SliceQuery, SliceResult, slice_content
from flashgrep.index.table import FileTable
from flashgrep.parts.git.changes import State, read_work_tree
from flashgrep.parts.git.program import Git, Object
from flashgrep.parts.git.repository import (
    INDEX,
    KEPT_LISTINGS,
    File,
    Files,
    Range,
    Repository,
    Revision,
    parse_revision,
)
from flashgrep.parts.git.revision import Blobs, RevisionTable
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.search.exact import Answer, Question, search
from flashgrep.search.snapshot import SearchStats, Snapshot

SLOW_SECONDS = 1.0
BROKEN_SECONDS = 60.0
"""For so long a broken repository that git took more than ``SLOW_SECONDS`` to reject is not asked again."""
ResultT = TypeVar("ResultT")


class RevisionFiles(Protocol):
    """The files of a revision, wherever their texts are."""

    files: Files
    table: FileTable
    is_stored: bool
    """Whether all of its texts will be in the index."""

    @property
    def unreached(self) -> Sequence[str]:
        """Parts of the store that did not answer."""

    def ask(
        self,
        project: Snapshot,
        ask: Callable[[Snapshot], ResultT],
        *,
        symbols: bool = True,
    ) -> ResultT:
        """Run a lookup in the revision; ``symbols``: about these."""

    def take_foreign(
        self, project: Snapshot, *, symbols: bool
    ) -> list[tuple[bytes, bytes]]:
        """Return contents to be kept after such a question."""

    def read(self, path: bytes, blob: bytes, most: int) -> Object:
        """Return the content of a file, without its data if that is longer than ``most``."""


class BrokenRepository(NamedTuple):
    """A repository that git could not read, and took long to say so."""

    state: tuple[tuple[int, ...], ...]
    """As ``state_of``: once it changes, git is asked again."""
    until: float
    message: str


class Revisions(ProjectService):
    """The revisions of one project; its repository is opened by the first question about one."""

    def __init__(
        self,
        project: Project,
        folder: RootFolder,
        environ: Mapping[str, str],
        *,
        is_confined: bool = False,
    ) -> None:
        """``is_confined``: for connections bound to the project, which read only its own repository."""
        self._project = project
        self._folder = folder
        self._environ = environ
        self._is_confined = is_confined
        self._place: GitPlace | None = None
        """Where the repository was at the last question."""
        self._broken: BrokenRepository | None = None
        self._blobs: Blobs | None = None
        self._tables: list[RevisionTable] = []
        self._asked_at = 0.0
        self.problem = ""
        """Why git could not read the repository the last time; empty if it could."""

    async def at(self, rev: str) -> "RevisionView":
        """Return the project as it is in a revision, or in the newer of two the files that differ.

        Raises:
            InvalidParams: invalid_revision, not a possible name of a revision.
            NotFound: revision_not_found, with near names; repository_not_found.
            Forbidden, Unavailable: the repository is not trusted, or cannot be read; an object is missing.

        """
        revision = parse_revision(rev)

        def find() -> RevisionView:
            if not isinstance(revision, Range):
                return self._find(revision)
            old, new = self._find_both(revision)
            before = {path: file.blob for path, file in old.files.items()}
            files = {
                path: file
                for path, file in new.files.items()
                if before.get(path) != file.blob
            }
            return RevisionView(self._project, new.revision, self._know(files))

        return await self._in_turn(find)

    def rest(self, seconds: float) -> bool:
        """Close git and drop what was read if nobody has asked for this long; return whether there was anything."""
        if self._blobs is None or time.monotonic() - self._asked_at < seconds:
            return False
        self.close()
        return True

    def close(self) -> None:
        """End git."""
        if self._blobs is not None:
            self._blobs.repository.close()
        self._blobs = None
        self._tables = []

    async def compare(
        self, rev: str, look: Callable[[State, State], ResultT]
    ) -> ResultT:
        """Compare two states in a thread: a revision and the work tree, or two revisions; raises as ``at``."""
        revision = parse_revision(rev)

        def find() -> tuple[RevisionView, RevisionView | None]:
            if isinstance(revision, Range):
                return self._find_both(revision)
            if self._repository().repository.is_bare:
                raise InvalidParams(
                    "a bare repository has no work tree: give two revisions, as main..HEAD",
                    field="rev",
                )
            return self._find(revision), None

        old, new = await self._in_turn(find)

        def ask(now: Snapshot) -> ResultT:
            def ask_both(before: Snapshot) -> ResultT:
                first = State(
                    {path: file.blob for path, file in old.files.items()}, before
                )
                if new is not None:
                    blobs = {path: file.blob for path, file in new.files.items()}
                    return new.known.ask(
                        now, lambda after: look(first, State(blobs, after))
                    )
                repository = self._repository().repository
                # Read its time before git's index, so that a change between the two is
                # noticed.
                since = repository.index_time()
                paths = SnapshotSource(now).paths()
                return look(
                    first,
                    read_work_tree(now, repository.list_staged_files(), since, paths),
                )

            return old.known.ask(now, ask_both)

        return await self._project.in_thread(ask)

    async def ask_repository(self, ask: Callable[[Repository], ResultT]) -> ResultT:
        """Read git's history in a thread; raises as ``ask`` does, and as ``at``."""
        return await self._in_turn(lambda: ask(self._repository().repository))

    async def _in_turn(self, find: Callable[[], ResultT]) -> ResultT:
        try:
            answer = await self._project.in_turn(lambda: self._run(find))
        except Unavailable as error:
            self.problem = error.message
            raise
        self.problem = ""
        return answer

    def _run(self, find: Callable[[], ResultT]) -> ResultT:
        """Ask git; if it took long to say that the repository is broken, say so again without asking it."""
        started = time.monotonic()
        place = find_place(self._folder.path)
        if place != self._place:
            self.close()
            self._place = place
        if place is not None:
            state = state_of(place)
        else:
            state = ()
        broken = self._broken
        if broken is not None and broken.state == state and started < broken.until:
            raise Unavailable(broken.message, reason="repository_broken")
        try:
            if self._is_confined and self._blobs is not None:
                # The git that runs was confined when it started; since then ``.git``
                # may lead elsewhere.
                self._blobs.repository.git.check_place()
            return find()
        except Expired:
            raise DeadlineExceeded("git took longer than the call may") from None
        except Unavailable as error:
            if (
                error.reason == "repository_broken"
                and time.monotonic() - started > SLOW_SECONDS
            ):
                self._broken = BrokenRepository(
                    state, time.monotonic() + BROKEN_SECONDS, error.message
                )
            raise

    def _repository(self) -> Blobs:
        self._asked_at = time.monotonic()
        # Without a lock, since opening runs git and may take long; the second one is
        # discarded.
        opened = self._blobs or self._open()
        blobs = self._blobs = (
            self._blobs or opened
        )  # another thread may have been faster
        return blobs

    def _open(self) -> Blobs:
        return Blobs(
            Repository.open(
                Git.find(self._folder, self._environ, is_confined=self._is_confined)
            )
        )

    def _find(self, name: str) -> "RevisionView":
        repository = self._repository().repository
        if name == INDEX:
            files = {
                path: File(staged.blob, -1)
                for path, staged in repository.list_staged_files().items()
            }
            return RevisionView(
                self._project,
                Revision(b"", b"", repository.index_time() // 10**9),
                self._know(files),
            )
        revision = repository.resolve(name)
        return RevisionView(
            self._project, revision, self._know(repository.list_files(revision))
        )

    def _find_both(self, asked: Range) -> "tuple[RevisionView, RevisionView]":
        repository = self._repository().repository
        old = self._find(asked.old)
        new = self._find(asked.new)
        if asked.merge_base:
            base = repository.find_merge_base(old.revision, new.revision)
            old = RevisionView(
                self._project, base, self._know(repository.list_files(base))
            )
        return old, new

    def _know(self, files: Files) -> RevisionTable:
        """Return the table of these files, a recent one if it is the same."""
        tables = self._tables
        # The same listing first: comparing two with 80,000 files takes milliseconds.
        revision_table = next((table for table in tables if table.files is files), None)
        # Then one with the same content, such as a tag and its commit.
        revision_table = revision_table or next(
            (table for table in tables if table.files == files), None
        )
        revision_table = revision_table or RevisionTable(files, self._repository())
        self._tables = [
            revision_table,
            *(table for table in tables if table is not revision_table),
        ][:KEPT_LISTINGS]
        return revision_table


class AnyRevisions(Protocol):
    """Finds the revisions of a project, wherever its repository is."""

    async def at(self, rev: str) -> "RevisionView":
        """Return the project as it is in a revision; raises as ``Revisions.at``."""

    async def ask_repository(self, ask: Callable[[Repository], ResultT]) -> ResultT:
        """Run a function on the repository in a thread."""

    async def compare(
        self, rev: str, look: Callable[[State, State], ResultT]
    ) -> ResultT:
        """Look at two states in a thread; raises as ``Revisions.compare``."""


REVISIONS: Final = ServiceKey[AnyRevisions]("revisions")
BOUND_REVISIONS: Final = ServiceKey[AnyRevisions]("bound revisions")
"""For connections bound to the project: only if the repository is the project's own."""


def find_revisions(project: Project, session: Session) -> AnyRevisions:
    """Return a project's revisions, as far as a connection may read them: a bound one only its own repository's."""
    if session.is_bound:
        return project.service(BOUND_REVISIONS)
    return project.service(REVISIONS)


async def open_revision(project: Project, rev: str, session: Session) -> "RevisionView":
    """Return a project as it is in a revision, as far as the connection may read it; raises as ``Revisions.at``."""
    return await find_revisions(project, session).at(rev)


@dataclass(frozen=True, slots=True)
class RevisionView:
    """A project's files in a revision; answers the same questions as a workspace."""

    project: Project
    revision: Revision
    known: RevisionFiles

    @property
    def revision_id(self) -> str:
        """The commit; empty for git's index."""
        return self.revision.commit.decode("ascii")

    @property
    def is_on_disk(self) -> bool:
        """False: its files are in git's objects."""
        return False

    @property
    def is_stored(self) -> bool:
        """Whether all of its texts will be in the index."""
        return self.known.is_stored

    @property
    def base(self) -> bytes:
        """Empty: its paths have no folder on this machine."""
        return b""

    @property
    def stages(self) -> Collection[str]:
        """None: some of its texts may not be indexed."""
        return ()

    @property
    def files(self) -> Files:
        """The files, by path."""
        return self.known.files

    @property
    def table(self) -> FileTable:
        """The table of the files, without their texts."""
        return self.known.table

    async def refresh(self) -> bool:
        """Return True: the revision's name was resolved for this call."""
        return True

    def paths(self, keep: PathFilter | None = None, part: str = "") -> list[bytes]:
        """Return the files, by path: all, or those that ``keep`` wants, and with ``part`` in any case."""
        paths = self.table.paths
        if part:
            folded = part.encode(errors="surrogateescape").lower()
            paths = [
                paths[at]
                for at in self.table.text().containing(folded, fold=True).tolist()
            ]
            return list(filter(keep, paths))
        if keep is not None:
            paths = [
                paths[at]
                for at in np.flatnonzero(keep.mask(self.table.text())).tolist()
            ]
        return paths

    def find(self, options: GlobOptions, window: Window) -> GlobPage:
        """Return the files that match wildcards; all have the time of the commit. Call it in a thread.

        Raises:
            NotFound: directory_not_found, the revision has no such folder.

        """
        if options.under and not self.table.below(options.under):
            text = path_to_text(options.under)
            raise NotFound(
                f"no such directory in the revision: {text}",
                reason="directory_not_found",
                path=text,
            )

        def stat_file(path: bytes) -> tuple[int, int]:
            file = self.files[path]
            # git's index has no sizes; they are requested one by one, and only for what
            # is shown.
            if file.size >= 0:
                size = file.size
            else:
                size = self.known.read(path, file.blob, 0).size
            return size, self.revision.time

        return find_among(self.table.text(), stat_file, options, window)

    async def search(
        self, question: Question, *, max_file_size: int | None = None
    ) -> Answer:
        """Answer an exact question; ``max_file_size``: other than the setting."""

        def ask(snapshot: Snapshot) -> Answer:
            return search(
                snapshot
                if max_file_size is None
                else replace(snapshot, max_size=max_file_size),
                question,
            )

        return await self.in_thread(ask, symbols=False)

    async def search_fresh(
        self, question: Question, *, max_file_size: int | None = None
    ) -> tuple[Answer, bool]:
        """Answer an exact question; a revision is always as it was asked."""
        return await self.search(question, max_file_size=max_file_size), True

    async def find_files(
        self, options: GlobOptions, window: Window, deadline: float | None
    ) -> GlobPage:
        """Return the files that match wildcards; all have the time of the commit."""
        del deadline  # nothing is read from disk
        return await self.in_turn(lambda: self.find(options, window))

    def list_recent(self, since_ns: int, most: int) -> frozenset[bytes]:
        """Return no file: a commit never changes."""
        del since_ns, most
        return frozenset()

    async def resolve(self, path: str, *, folder: bool = False) -> bytes:
        """Return a file or folder that a caller named, relative to the root; raises NotFound, Forbidden."""
        located = self.project.editor.root.relative(path_from_json(path))
        # A revision stores no folders: a folder exists if a file is below it, which
        # ``find`` checks itself.
        if folder or self.paths(PathFilter((), (), under=located)):
            return located
        raise NotFound(
            f"no such file or folder in the revision: {path}",
            reason="path_not_found",
            path=path,
        )

    def coverage(
        self,
        stats: SearchStats,
        *,
        fresh: bool,
        started: float,
        keep: PathFilter | None = None,
    ) -> Coverage:
        """Return the coverage of an answer; ``started`` on the clock of time.perf_counter()."""
        del fresh  # always
        unreached = self.known.unreached
        is_counted = (
            stats.complete
            and not unreached
            and (keep is None or len(self.files) <= COUNT_UP_TO)
        )
        searched = stats.files_read
        if is_counted:
            searched = len(self.paths(keep)) - sum(stats.skipped.values())
        coverage: Coverage = {
            "complete": stats.complete and not unreached,
            "fresh": True,
            "files_searched": searched,
            "files_skipped": stats.skipped,
            "stage": "ready",
            # A commit never changes, so it has no generation.
            "generation": 0,
            "took_ms": milliseconds_since(started),
            "revision": self.revision_id,
        }
        details = [stats.detail]
        if unreached:
            details.append(f"parts of the store do not answer: {', '.join(unreached)}")
        if any(details):
            coverage["detail"] = "; ".join(filter(None, details))
        return coverage

    async def in_thread(
        self, ask: Callable[[Snapshot], ResultT], *, symbols: bool = True
    ) -> ResultT:
        """Run a lookup in a thread, then store the texts that the work tree lacks; ``symbols``: with symbols."""
        answer = await self.project.in_thread(
            lambda now: self.known.ask(now, ask, symbols=symbols)
        )
        # After the answer: storing helps the next question, and this one must not wait
        # for it.
        foreign = self.known.take_foreign(self.project.snapshot(), symbols=symbols)
        if foreign:
            self.project.keep_texts(foreign, parse=symbols)
        return answer

    async def in_turn(self, work: Callable[[], ResultT]) -> ResultT:
        """Run something that needs no snapshot but may take long, in a thread."""
        return await self.project.in_turn(work)

    async def read_slice(self, path: bytes, query: SliceQuery) -> SliceResult:
        """Return lines of a file; raises as ``files.read.slice_content`` and ``read``."""
        editor = self.project.editor
        return await self.in_turn(
            lambda: slice_content(
                editor, path, self.read_now(path, editor.limits.edit_bytes), query
            )
        )

    async def read(self, path: bytes, most: int) -> bytes:
        """Return a file's bytes; raises as ``read_now``."""
        return await self.in_turn(lambda: self.read_now(path, most))

    def read_now(self, path: bytes, most: int) -> bytes:
        """Return a file's bytes; call it in a thread.

        Raises:
            NotFound: file_not_found.
            TooLarge: it has more than ``most`` bytes.

        """
        path = self.project.editor.root.relative(path)
        file = self.files.get(path)
        text = path_to_text(path)
        if file is None:
            message = f"no such file in the revision: {text}"
            raise NotFound(message, reason="file_not_found", target_path=text)
        object_ = self.known.read(path, file.blob, most)
        if object_.data is None:
            raise TooLarge(
                f"too large to be read: {text}",
                observed_bytes=object_.size,
                limit_bytes=most,
            )
        return object_.data
