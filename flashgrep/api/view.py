"""A project, and a view of it: what a question is asked of.

The work tree now, the work tree with an editor's unsaved texts, a revision and a team's repository are views. Methods
ask any of them the same questions, and never which one it is.

A handler that reads files goes this way, by the functions of ``methods/common.py``; ``structural`` does, in
``parts/structural/methods.py``:

    view = await open_view(call, params)            # what the call is about
    fresh = await view.refresh()                    # with what was saved before the call
    keep = await make_path_filter(view, FileChoice(below=params.path))
    paths = await view.in_turn(partial(view.paths, keep))
    stats = await view.in_thread(partial(read_files, paths=paths), symbols=False)
    coverage = view.coverage(stats, fresh=fresh, started=started, keep=keep)

    def read_files(snapshot, paths):                # in a thread: the event loop never waits for a disk
        stats = SearchStats()                       # what was read and, by count_skips, what was not
        for path in paths:
            checkpoint()                            # others have their turn; ends what nobody waits for any more
            document = snapshot.read(path)          # a Document, Skipped with its reason, or None: it is gone
        return stats
"""

from collections.abc import Awaitable, Callable, Collection
from pathlib import PurePath
from typing import Protocol, TypeVar

from flashgrep.api.coverage import Coverage
from flashgrep.api.service import ServiceKey
from flashgrep.base.own_folders import PrivateFolders
from flashgrep.files.buffers import Buffers
from flashgrep.files.editor import Project as EditorProject
from flashgrep.files.finder import GlobPage, Window
from flashgrep.files.globs import GlobOptions, PathFilter
from flashgrep.files.read import SliceQuery, SliceResult
from flashgrep.index.reader import IndexSize
from flashgrep.search.exact import Answer, Question
from flashgrep.search.snapshot import SearchStats, Snapshot

ResultT = TypeVar("ResultT")
ServiceT = TypeVar("ServiceT")


class ProjectOptions(Protocol):
    """The settings of a project that methods need."""

    @property
    def private(self) -> PrivateFolders:
        """Folders that are never read, listed or written through the project."""

    @property
    def spec_folders(self) -> tuple[str, ...]:
        """Folders of specifications, relative to the root; `*` in a name stands for any text."""


class ProjectProgress(Protocol):
    """The state of a project's index."""

    @property
    def stage(self) -> str:
        """The stage of indexing, ``ready`` at its end."""

    @property
    def detail(self) -> str:
        """What else there is to say; empty if nothing."""

    def share(self) -> float:
        """Return how much of the run's work is done, 0 to 1, all stages together."""


class Project(EditorProject, Protocol):
    """One project of a host: its identity, and what its views share."""

    @property
    def name(self) -> str:
        """The project's name, also that of its collection."""

    @property
    def root(self) -> bytes:
        """The root's absolute path; a team's repository has its name there."""

    @property
    def path(self) -> PurePath:
        """The root, for people."""

    @property
    def is_bare(self) -> bool:
        """Whether there is no work tree: questions without a revision are then about HEAD."""

    @property
    def options(self) -> ProjectOptions:
        """Its settings."""

    @property
    def progress(self) -> ProjectProgress:
        """The state of its index."""

    @property
    def generation(self) -> int:
        """The index's generation; grows with each stored batch."""

    @property
    def embedding(self) -> str:
        """The settings of its embedder, as JSON."""

    async def size(self) -> IndexSize | None:
        """Return what the index has; None: there is none."""

    def current(self, buffers: Buffers | None = None) -> "View":
        """Return its files as they are now, those open in a client's editor with their unsaved texts.

        Raises:
            Unavailable: it has no work tree.

        """

    def service(self, key: ServiceKey[ServiceT]) -> ServiceT:
        """Return what a part keeps for the project.

        Raises:
            Unavailable: the part is left out.

        """

    def snapshot(self) -> Snapshot:
        """Return the project as it is known now."""

    def in_thread(self, ask: Callable[[Snapshot], ResultT]) -> Awaitable[ResultT]:
        """Run a lookup on a snapshot in a thread, in its turn."""

    def keep_texts(
        self, contents: Collection[tuple[bytes, bytes]], *, parse: bool
    ) -> None:
        """Store contents of a revision, by blob id and a path; ``parse``: with their symbols."""

    def make_vectors_anew(self) -> None:
        """Make the vectors anew: those that are stored cannot be read."""


class View(Protocol):
    """What a question is asked of: the files of a project in one state."""

    @property
    def project(self) -> Project:
        """The project that it is of."""

    @property
    def revision_id(self) -> str | None:
        """The commit, empty for git's index; None: the files as they are now."""

    @property
    def is_on_disk(self) -> bool:
        """Whether its texts are the files on disk, which writing changes."""

    @property
    def is_stored(self) -> bool:
        """Whether it can be asked by meaning though the project has no index of its own."""

    @property
    def base(self) -> bytes:
        """The absolute folder that a caller's globs may begin with; empty in a revision."""

    @property
    def stages(self) -> Collection[str]:
        """The late stages of the index that have all its texts."""

    async def refresh(self) -> bool:
        """Take in all that was saved before this call; return whether answers now equal the disk."""

    def paths(self, keep: PathFilter | None = None, part: str = "") -> list[bytes]:
        """Return the files, by path: all, or those that ``keep`` wants, and with ``part`` in any case."""

    def list_recent(self, since_ns: int, most: int) -> frozenset[bytes]:
        """Return the files changed since a time, at most so many, and those open in the client's editor."""

    async def resolve(self, path: str, *, folder: bool = False) -> bytes:
        """Return a file or folder (``folder``: only a folder) that a caller named, relative to the root.

        Raises:
            NotFound: it does not exist.
            Forbidden: it is outside the project.

        """

    async def read(self, path: bytes, most: int) -> bytes:
        """Return a file's bytes; raises NotFound, Forbidden, and TooLarge beyond ``most`` bytes."""

    async def read_slice(self, path: bytes, query: SliceQuery) -> SliceResult:
        """Return lines of a file; raises as ``files.read.read_slice``."""

    async def find_files(
        self, options: GlobOptions, window: Window, deadline: float | None
    ) -> GlobPage:
        """Return the files that match wildcards; ``deadline`` is on the clock of time.monotonic()."""

    async def search(
        self, question: Question, *, max_file_size: int | None = None
    ) -> Answer:
        """Answer an exact question about the files as known now; ``max_file_size``: overrides the setting."""

    async def search_fresh(
        self, question: Question, *, max_file_size: int | None = None
    ) -> tuple[Answer, bool]:
        """Answer an exact question after a refresh; return also whether the answer equals the disk."""

    async def in_thread(
        self, ask: Callable[[Snapshot], ResultT], *, symbols: bool = True
    ) -> ResultT:
        """Run a lookup on a snapshot in a thread; ``symbols``: it needs those of the texts it reads."""

    async def in_turn(self, work: Callable[[], ResultT]) -> ResultT:
        """Run something long that needs no snapshot in a thread, in its turn."""

    def coverage(
        self,
        stats: SearchStats,
        *,
        fresh: bool,
        started: float,
        keep: PathFilter | None = None,
    ) -> Coverage:
        """Return the coverage of an answer; ``started`` on the clock of time.perf_counter()."""
