"""The team's repositories as the registry's methods ask them: in the place of ``catalogue.Catalogue``."""

import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, NamedTuple, TypeVar

from rapidfuzz import fuzz, process

from flashgrep.config import Settings
from flashgrep.edit.editor import Editor, Limits
from flashgrep.edit.root import Root
from flashgrep.embed.models import Models
from flashgrep.errors import Forbidden, InvalidParams, NotFound, Unavailable
from flashgrep.git.program import Git
from flashgrep.git.repository import INDEX, NEAREST, Range, Repository, Revision, parse_revision
from flashgrep.index.table import FileTable
from flashgrep.indexer.progress import Progress
from flashgrep.ingest.openat import RootFolder
from flashgrep.own_folders import PrivateFolders
from flashgrep.registry import Call, Session
from flashgrep.scheduler import Scheduler
from flashgrep.search.snapshot import Snapshot
from flashgrep.team.clones import TAGS, find_clone
from flashgrep.team.store_connection import Shown, Store
from flashgrep.team.text_reader import IndexState, TeamMeaning
from flashgrep.team.tree_listing import Listing, unpack
from flashgrep.team.view import Asking, Contents, TeamFiles
from flashgrep.workspace import RevisionView

ACCESS: Final = "team"
"""What a session's notes have of who asks."""
KEPT_LISTINGS: Final = 32
KEPT_STATES: Final = 256
BROWSER_SECONDS: Final = 12 * 3600
MOST_BROWSERS: Final = 32
"""Signed in at a time for one subject; the oldest makes room."""
LEAST_COMMIT: Final = 4
"""Digits by which a commit may be named."""
ResultT = TypeVar("ResultT")


class RepositoryRow(NamedTuple):
    """A repository as one call found it."""

    id: int
    name: str
    head: str
    generation: int
    parsed_to: int
    problem: str
    source: str


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks, and the repositories that are to be seen."""

    shown: Shown
    subject: str
    repositories: dict[str, RepositoryRow]


class Kept:
    """What has been read of generations and trees, which never change; safe from any thread."""

    def __init__(self) -> None:
        self.contents = Contents()
        self._lock = threading.Lock()
        # By repository: of each only the newest generation is asked again.
        self._states: OrderedDict[int, IndexState] = OrderedDict()
        self._listings: OrderedDict[tuple[int, bytes], Listing] = OrderedDict()

    def state(self, row: RepositoryRow, asking: Asking, again: bool) -> IndexState:  # noqa: FBT001 - handed through
        """Return the index of a repository's generation; ``again``: its segments have changed since it was read."""
        with self._lock:
            found = self._states.get(row.id)
        # Loaded without the lock, so that one repository's questions do not wait for another's; two that load the same
        # state do the work twice, and either result is right.
        if again or found is None or found.generation != row.generation:
            found = IndexState.load(asking.read, row.id, row.generation, row.parsed_to)
            with self._lock:
                self._states[row.id] = found
                while len(self._states) > KEPT_STATES:
                    self._states.popitem(last=False)
        return found

    def listing(self, row: RepositoryRow, tree: bytes, asking: Asking) -> Listing:
        """Return the files of a tree."""
        key = (row.id, tree)
        with self._lock:
            found = self._listings.get(key)
        if found is None:
            with asking.read() as reading:
                query = "SELECT files FROM flashgrep.listing WHERE repository = %s AND tree = %s"
                rows = reading.fetch(query, [row.id, tree])
            if not rows:
                raise NotFound("the revision is not stored any more; ask again", reason="revision_not_found")
            found = unpack(rows[0][0])
            with self._lock:
                self._listings[key] = found
                while len(self._listings) > KEPT_LISTINGS:
                    self._listings.popitem(last=False)
        return found


class TeamCatalogue:
    """What the registry's methods ask for projects: the repositories that a session's token may see."""

    def __init__(
        self, store: Store, settings: Settings, folder: Path, environ: Mapping[str, str], cache: Path | None = None
    ) -> None:
        """Ask a store; ``folder``: an empty one, which stands for the root of every repository: none has files here.

        ``cache``: where workers of this machine keep clones, of which the past is asked; None: nobody asks for it.
        """
        self.settings = settings
        self._environ = environ
        self._cache = cache
        self._store = store
        self._kept = Kept()
        self.meaning = TeamMeaning(settings.embedding.model_dump_json(), environ)
        self.models = Models(settings, environ)
        self.scheduler = Scheduler()
        self.folder = RootFolder(os.fsencode(folder))
        limits = Limits(read_bytes=settings.read.max_bytes)
        self.editor = Editor(Root(os.fsencode(folder), os.fsencode(folder), PrivateFolders()), limits)

    def close(self) -> None:
        """Let go of the folder and the connections."""
        self.editor.close()
        self._store.close()

    def find_access(self, token: str, person: str = "", groups: tuple[str, ...] = ()) -> Access:
        """Return what a token's hash may see, or whom a proxy's token speaks for; call it in a thread.

        Raises:
            Forbidden: auth_required, nobody has such a token, or not any more.
            Unavailable: database_away.

        """
        shown = Shown(token, person, groups)
        with self._store.read(shown) as reading:
            # Row security decides who sees what: this statement and the next run under the token that was shown.
            subject = reading.fetch("SELECT flashgrep.subject()")[0][0]
            if subject is None:
                raise Forbidden("nobody has such a token", reason="auth_required")
            rows = reading.fetch(
                "SELECT id, name, head, generation, parsed_to, problem, source FROM flashgrep.repository ORDER BY name"
            )
        return Access(shown, subject, {row[1]: RepositoryRow(*row) for row in rows})

    @property
    def has_clones(self) -> bool:
        """Whether the past of any repository can be asked here."""
        if self._cache is None:
            return False
        return any(self._cache.glob("*.git")) or any(
            find_clone(self._cache, number, source) is not None for number, source in self._store.sources
        )

    def open_clone(self, row: RepositoryRow) -> Repository:
        """Return the clone of a repository, to be closed; call it in a thread.

        Raises:
            Unavailable: clone_missing, it is not on this machine.

        """
        folder = None if self._cache is None else find_clone(self._cache, row.id, row.source)
        if folder is None:
            message = f"the past of {row.name} is asked of its clone, which is not on the machine of this server"
            raise Unavailable(message, reason="clone_missing", suggestion="run a worker there: fgrep team sync")
        return Repository.open(Git.find(RootFolder(os.fsencode(folder)), self._environ))

    def note(self, access: Access, method: str, asked: str, outcome: str, took_ms: float) -> None:
        """Write a line of the audit log; call it in a thread."""
        # Notes, sign-ins and requests are functions of the database: the server's role may call them, and writes no
        # table itself.
        with self._store.read(access.shown) as reading:
            reading.fetch(
                "SELECT flashgrep.note(%s::text, %s::text, %s::text, %s::real)", [method, asked, outcome, took_ms]
            )

    def sign_in(self, token: str, browser: str) -> str:
        """Make a token for a browser of whoever shows one of his own, and return who it is; call it in a thread.

        Both are hashes in hexadecimal digits.

        Raises:
            Forbidden: auth_required, nobody has such a token of his own.
            Unavailable: database_away.

        """
        with self._store.read(Shown(token)) as reading:
            query = "SELECT flashgrep.sign_in(decode(%s, 'hex'), %s::integer, %s::integer)"
            subject: str | None = reading.fetch(query, [browser, BROWSER_SECONDS, MOST_BROWSERS])[0][0]
        if subject is None:
            raise Forbidden("nobody has such a token", reason="auth_required")
        return subject

    def sign_out(self, access: Access) -> None:
        """Delete the token of a browser; call it in a thread."""
        with self._store.read(access.shown) as reading:
            reading.fetch("SELECT flashgrep.sign_out()::text")

    def request(self, access: Access, name: str) -> bool:
        """Have a repository brought up to date, and return whether the token may see one of the name."""
        with self._store.read(access.shown) as reading:
            return reading.fetch("SELECT flashgrep.request(%s::text)", [name])[0][0] is not None

    # As ``Catalogue``

    def list_projects(self) -> list[Any]:
        """Return nothing: a repository's root is its name."""
        return []

    def is_listed(self, _root: str) -> bool:
        """Return that a question need not wait for a listing."""
        return True

    def list_bound(self, session: Session) -> list[str]:
        """Return the repositories that an address has named."""
        return list(session.projects)

    def list_reachable(self, session: Session) -> list[str]:
        """Return the names of the repositories that are to be seen."""
        access: Access = session.notes[ACCESS]
        return list(access.repositories)

    def find_roots(self, session: Session, projects: Sequence[str] | Literal["*"]) -> list[str]:
        """Return the names of the repositories that a call means, once each; ``*``: all that are to be seen."""
        # A name that is not to be seen is refused later, as one that does not exist: the answer must not tell them
        # apart.
        return self.list_reachable(session) if projects == "*" else list(dict.fromkeys(projects))

    async def workspace(self, call: Call[Any], project: str | None) -> "TeamProject":
        """Return the repository that a call is about.

        Raises:
            NotFound: project_not_found, none of the name is to be seen.
            InvalidParams: project_required, there are several.

        """
        access: Access = call.session.notes[ACCESS]
        known = access.repositories
        # An address that names one repository binds the session to it; one that names several leaves the choice to the
        # call.
        named = project or (call.session.projects[0] if len(call.session.projects) == 1 else None)
        if named is None and len(known) != 1:
            message = "name a repository by `project`, or several by `projects`"
            raise InvalidParams(message, reason="project_required", field="project", allowed=list(known)[:NEAREST])
        row = known.get(named or next(iter(known)))
        if row is None:
            near = [name for name, _, _ in process.extract(str(named), list(known), scorer=fuzz.WRatio, limit=NEAREST)]
            raise NotFound(f"no such repository: {named}", reason="project_not_found", near=near)
        return TeamProject(self, row, Asking(self._store, access.shown), self._kept)


@dataclass(frozen=True, slots=True)
class TeamOptions:
    """What methods ask of a project's options."""

    private: PrivateFolders = field(default_factory=PrivateFolders)


@dataclass(slots=True)
class TeamProject:
    """One repository for one call; answers what methods ask of a ``Workspace``, about its revisions."""

    catalogue: TeamCatalogue
    row: RepositoryRow
    asking: Asking
    kept: Kept
    is_bare: bool = True
    """Questions without a revision are about HEAD."""
    progress: Progress = field(default_factory=lambda: Progress("ready"))
    options: TeamOptions = field(default_factory=TeamOptions)

    @property
    def name(self) -> str:
        """The repository's name."""
        return self.row.name

    @property
    def generation(self) -> int:
        """The generation that the call found."""
        return self.row.generation

    @property
    def path(self) -> PurePosixPath:
        """What stands for its root in answers about several: its name."""
        return PurePosixPath(self.row.name)

    @property
    def root(self) -> bytes:
        """As ``path``."""
        return self.row.name.encode()

    @property
    def revisions(self) -> "TeamProject":
        """What finds revisions: itself."""
        return self

    @property
    def editor(self) -> Editor:
        """The limits of reading."""
        return self.catalogue.editor

    @property
    def meaning(self) -> TeamMeaning:
        """The index of the chunks of all repositories."""
        return self.catalogue.meaning

    def snapshot(self) -> Snapshot:
        """Return the project without any file: its revisions have them."""
        return Snapshot(self.catalogue.folder, FileTable(), None, {}, self.catalogue.settings.index.max_file_size)

    async def in_thread(self, ask: Callable[[Snapshot], ResultT]) -> ResultT:
        """Run a lookup in a thread."""
        return await self.catalogue.scheduler.run(lambda: partial(ask, self.snapshot()))

    async def ask_repository(self, ask: Callable[[Repository], ResultT]) -> ResultT:
        """Ask the past of the repository's clone in a thread; raises as ``ask`` does, and as ``open_clone``."""

        def run() -> ResultT:
            with closing(self.catalogue.open_clone(self.row)) as repository:
                return ask(repository)

        return await self.in_turn(run)

    def in_turn(self, work: Callable[[], ResultT]) -> Awaitable[ResultT]:
        """Run what needs no snapshot in a thread."""
        return self.catalogue.scheduler.run(lambda: work)

    def keep_texts(self, contents: Collection[tuple[bytes, bytes]], *, parse: bool) -> None:
        """Do nothing: all texts are stored."""

    async def at(self, rev: str) -> RevisionView:
        """Return the repository as it is in a revision, or in the newer of two the files that differ.

        Raises:
            InvalidParams: invalid_revision.
            NotFound: revision_not_found; of history the store has the heads of branches, and tags.

        """
        asked = parse_revision(rev)
        # A bare clone has no index, and without history there is no merge base.
        if asked == INDEX or (isinstance(asked, Range) and asked.merge_base):
            message = f"rev: not available for a team's repository: {rev}"
            raise InvalidParams(message, reason="invalid_revision", field="rev", allowed="a branch or commit, or a..b")

        def find() -> RevisionView:
            try:
                return look()
            except NotFound:  # a sync may have put another state in the place of this one between two statements
                return look()

        def look() -> RevisionView:
            with self.asking.read() as reading:
                branches = dict(
                    reading.fetch("SELECT name, commit FROM flashgrep.branch WHERE repository = %s", [self.row.id])
                )
                rows = reading.fetch(
                    "SELECT commit, tree, seconds FROM flashgrep.revision WHERE repository = %s", [self.row.id]
                )
                commits = {commit: (tree, seconds) for commit, tree, seconds in rows}
                if isinstance(asked, Range):
                    old, new = (self._find(name, branches, commits) for name in (asked.old, asked.new))
                    before = self.kept.listing(self.row, old[1], self.asking).files
                    return self._view(new, without={(path, file.blob) for path, file in before.items()})
                return self._view(self._find(asked, branches, commits))

        return await self.in_turn(find)

    def _find(
        self, name: str, branches: dict[str, bytes], commits: dict[bytes, tuple[bytes, int]]
    ) -> tuple[bytes, bytes, int]:
        """Return the commit, the tree and the time of a revision."""
        given = name.removesuffix("^{commit}")
        called = given.removeprefix("refs/heads/").removeprefix("heads/")
        if called == "HEAD":
            heads = [one for one in branches if not one.startswith(TAGS)]
            called = self.row.head if self.row.head in branches or not heads else heads[0]
        # As git does, a tag before a branch of its name, unless it is called a head.
        tag = None if called != given else branches.get(TAGS + given.removeprefix(TAGS).removeprefix("tags/"))
        commit = tag or branches.get(called)
        if commit is None and len(called) >= LEAST_COMMIT:
            # As with git, an abbreviation counts only if it is one commit's.
            named = [one for one in commits if one.hex().startswith(called.lower())]
            commit = named[0] if len(named) == 1 else None
        if commit is None or commit not in commits:
            names = [one.removeprefix(TAGS) for one in branches]
            near = [one for one, _, _ in process.extract(called, names, scorer=fuzz.WRatio, limit=NEAREST)]
            problem = f"; {self.row.problem}" if self.row.problem else ""
            message = f"no such revision: {name}; the store has branches and tags: {', '.join(near)}{problem}"
            raise NotFound(message, reason="revision_not_found", rev=name, near=near)
        return commit, *commits[commit]

    def _view(self, found: tuple[bytes, bytes, int], without: Collection[tuple[bytes, bytes]] = ()) -> RevisionView:
        """Return a revision's files, except for those ``without`` by path and content."""
        commit, tree, seconds = found
        listing = self.kept.listing(self.row, tree, self.asking)
        if without:
            gone = [path for path, file in listing.files.items() if (path, file.blob) in without]
            left = {path: file for path, file in listing.files.items() if (path, file.blob) not in without}
            listing = Listing(left, listing.table.with_changes((), gone))
        files = TeamFiles(listing, partial(self.kept.state, self.row, self.asking), self.asking, self.kept.contents)
        return RevisionView(self, Revision(commit.hex().encode(), tree.hex().encode(), seconds), files)
