"""The team's repositories for the registry's methods: a ``Host``."""

import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeVar
from weakref import WeakSet

from rapidfuzz import fuzz, process

from flashgrep.api.host import ProjectInfo
from flashgrep.api.searchers import Searchers
from flashgrep.api.service import ServedAnswer, ServiceKey, Services
from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.config import Settings
from flashgrep.base.errors import Forbidden, InvalidParams, NotFound, Unavailable
from flashgrep.base.own_folders import PrivateFolders
from flashgrep.base.registry import Call, Registry, Session
from flashgrep.base.scheduler import Scheduler
from flashgrep.files.buffers import Buffers
from flashgrep.files.editor import Editor, Limits
from flashgrep.files.openat import RootFolder
from flashgrep.files.root import Root
from flashgrep.index.table import FileTable
from flashgrep.indexer.progress import Progress
from flashgrep.parts.git.changes import State
from flashgrep.parts.git.program import Git
from flashgrep.parts.git.repository import (
    INDEX,
    NEAREST,
    Range,
    Repository,
    Revision,
    parse_revision,
)
from flashgrep.parts.git.revisions import (
    BOUND_REVISIONS,
    REVISIONS,
    RevisionView,
    open_revision,
)
from flashgrep.parts.meaning.embed.models import MODELS, Models
from flashgrep.parts.meaning.questions import find_best_lines
from flashgrep.parts.meaning.search.chunk_index import CHUNKS
from flashgrep.parts.navigation.qualified_targets import find_targets
from flashgrep.parts.symbols.qualified_names import NAME_RESOLUTION, NameResolution
from flashgrep.parts.symbols.relevance import search_by_relevance
from flashgrep.parts.symbols.symbol_search import find_definition
from flashgrep.parts.team.clones import TAGS, find_clone
from flashgrep.parts.team.past_commits import FULL_ID, PastFiles, find_past_commit
from flashgrep.parts.team.store_connection import Credentials, Store
from flashgrep.parts.team.text_reader import IndexState, TeamMeaning
from flashgrep.parts.team.tree_listing import Listing, unpack
from flashgrep.parts.team.view import KEPT_BYTES, ContentCache, StoreAccess, TeamFiles
from flashgrep.search.snapshot import Snapshot

ACCESS: Final = "team"
"""Key of a session's ``Access`` in its notes."""
KEPT_LISTINGS: Final = 32
KEPT_STATES: Final = 256
BROWSER_SECONDS: Final = 12 * 3600
MOST_BROWSERS: Final = 32
"""Browsers signed in at once for one subject; a further one replaces the oldest."""
LEAST_COMMIT: Final = 4
"""Fewest digits of an abbreviated commit."""
ResultT = TypeVar("ResultT")
ServiceT = TypeVar("ServiceT")


class RepositoryRow(NamedTuple):
    """A repository's row, as read by one call."""

    id: int
    name: str
    head: str
    generation: int
    parsed_to: int
    problem: str
    source: str


@dataclass(frozen=True, slots=True)
class Access:
    """The asker, and the repositories visible to them."""

    credentials: Credentials
    subject: str
    repositories: dict[str, RepositoryRow]


class StoreCache:
    """Caches of index states, listings and contents, which are all immutable; thread-safe."""

    def __init__(self) -> None:
        self.contents = ContentCache(KEPT_BYTES)
        # By repository: only the newest generation is queried again.
        self._states = BoundedCache[int, IndexState](KEPT_STATES)
        self._listings = BoundedCache[tuple[int, bytes], Listing](KEPT_LISTINGS)
        self.past = BoundedCache[tuple[int, int, str], Revision](KEPT_STATES)
        """Commits found behind a repository's heads, by its generation: a branch that is deleted takes them with it."""

    def state(
        self,
        row: RepositoryRow,
        store_access: StoreAccess,
        again: bool,  # noqa: FBT001 - handed through
    ) -> IndexState:
        """Return the index of a repository's generation; ``again``: read it even if cached."""
        index_state = self._states.find(row.id)
        # Two threads may load the same state; either result is right.
        if again or index_state is None or index_state.generation != row.generation:
            index_state = IndexState.load(
                store_access.read, row.id, row.generation, row.parsed_to
            )
            self._states.put(row.id, 1, index_state)
        return index_state

    def listing(
        self, row: RepositoryRow, tree: bytes, store_access: StoreAccess
    ) -> Listing:
        """Return the files of a tree."""
        key = (row.id, tree)
        found_listing = self._listings.find(key)
        if found_listing is None:
            with store_access.read() as reading:
                query = "SELECT files FROM flashgrep.listing WHERE repository = %s AND tree = %s"
                rows = reading.fetch(query, [row.id, tree])
            if not rows:
                raise NotFound(
                    "the revision is no longer stored; try again",
                    reason="revision_not_found",
                )
            found_listing = unpack(rows[0][0])
            self._listings.put(key, 1, found_listing)
        return found_listing


class TeamCatalogue:
    """The ``Host`` of a team's server: the repositories that a session's token may see."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        folder: Path,
        environ: Mapping[str, str],
        cache: Path | None = None,
    ) -> None:
        """``folder``: an empty folder, the root of every repository: none has files here.

        ``cache``: the clones of this machine's workers, for methods about history; None: these are not available.
        """
        self.settings = settings
        self.environ = environ
        self.registry = Registry(())
        """The methods of its server; none before that is made."""
        self.buffers = WeakSet[Buffers]()
        """None: its clients have no files open."""
        self._cache = cache
        self._store = store
        self._kept = StoreCache()
        self.meaning = TeamMeaning(settings.embedding.model_dump_json(), environ)
        self.services = Services({MODELS: Models(settings, environ)})
        self.searchers = Searchers(
            words=find_best_lines,
            definition=find_definition,
            ranking=search_by_relevance,
            revision=open_revision,
        )
        self.scheduler = Scheduler()
        self.folder = RootFolder(os.fsencode(folder))
        limits = Limits(read_bytes=settings.read.max_bytes)
        self.editor = Editor(
            Root(os.fsencode(folder), os.fsencode(folder), PrivateFolders()), limits
        )

    def close(self) -> None:
        """Close the folder and the connections."""
        self.editor.close()
        self._store.close()

    def find_access(
        self, token: str, person: str = "", groups: tuple[str, ...] = ()
    ) -> Access:
        """Return the access of a token, given by its hash, or of the person a proxy acts for; call it in a thread.

        Raises:
            Forbidden: auth_required, the token is unknown or has expired.
            Unavailable: database_away.

        """
        credentials = Credentials(token, person, groups)
        with self._store.read(credentials) as reading:
            # Row security limits the rows: the connection has the token's permissions.
            subject = reading.fetch("SELECT flashgrep.subject()")[0][0]
            if subject is None:
                raise Forbidden(
                    "the token is unknown or has expired", reason="auth_required"
                )
            rows = reading.fetch(
                "SELECT id, name, head, generation, parsed_to, problem, source FROM flashgrep.repository ORDER BY name"
            )
        return Access(
            credentials, subject, {row[1]: RepositoryRow(*row) for row in rows}
        )

    @property
    def has_clones(self) -> bool:
        """Whether this machine has a clone of any repository."""
        if self._cache is None:
            return False
        return any(self._cache.glob("*.git")) or any(
            find_clone(self._cache, number, source) is not None
            for number, source in self._store.sources
        )

    def open_clone(self, row: RepositoryRow) -> Repository:
        """Open the clone of a repository, which the caller closes; call it in a thread.

        Raises:
            Unavailable: clone_missing, it is not on this machine.

        """
        if self._cache is None:
            folder = None
        else:
            folder = find_clone(self._cache, row.id, row.source)
        if folder is None:
            message = f"history needs a clone of {row.name}, and there is none on this server's machine"
            raise Unavailable(
                message,
                reason="clone_missing",
                suggestion="run a worker there: fgrep team sync",
            )
        return Repository.open(Git.find(RootFolder(os.fsencode(folder)), self.environ))

    def note(
        self, access: Access, method: str, asked: str, outcome: str, took_ms: float
    ) -> None:
        """Write a line of the audit log; call it in a thread."""
        # Audit lines, sign-ins and requests are written by functions of the database:
        # the server's role has no right to write to tables.
        with self._store.read(access.credentials) as reading:
            reading.fetch(
                "SELECT flashgrep.note(%s::text, %s::text, %s::text, %s::real)",
                [method, asked, outcome, took_ms],
            )

    def sign_in(self, token: str, browser: str) -> str:
        """Store a browser's token for the owner of ``token``, and return the owner; call it in a thread.

        Both are hashes in hexadecimal digits.

        Raises:
            Forbidden: auth_required, the token is unknown, expired, or not a person's own.
            Unavailable: database_away.

        """
        with self._store.read(Credentials(token)) as reading:
            query = (
                "SELECT flashgrep.sign_in(decode(%s, 'hex'), %s::integer, %s::integer)"
            )
            subject: str | None = reading.fetch(
                query, [browser, BROWSER_SECONDS, MOST_BROWSERS]
            )[0][0]
        if subject is None:
            raise Forbidden(
                "the token is unknown or has expired", reason="auth_required"
            )
        return subject

    def sign_out(self, access: Access) -> None:
        """Delete the token of a browser; call it in a thread."""
        with self._store.read(access.credentials) as reading:
            reading.fetch("SELECT flashgrep.sign_out()::text")

    def request(self, access: Access, name: str) -> bool:
        """Queue a repository for an update, and return whether the token may see a repository of this name."""
        with self._store.read(access.credentials) as reading:
            return (
                reading.fetch("SELECT flashgrep.request(%s::text)", [name])[0][0]
                is not None
            )

    # As any ``Host``

    def list_projects(self) -> list[ProjectInfo]:
        """Return nothing: repositories have no root folders."""
        return []

    def list_open(self) -> "list[TeamProject]":
        """Return nothing: a repository is opened for one call."""
        return []

    def find_file(self, session: Session, project: str | None, path: bytes) -> bytes:
        """Refuse: repositories have no files here.

        Raises:
            Forbidden: always.

        """
        del session, project, path
        raise Forbidden("a team's repositories have no files", reason="outside_root")

    def note_answer(self, answer: ServedAnswer) -> None:
        """Do nothing: no part counts answers here; the audit log has each call."""

    def is_listed(self, _root: str) -> bool:
        """Return True: no question needs to wait for a listing."""
        return True

    def list_bound(self, session: Session) -> list[str]:
        """Return the repositories named in the session's URL."""
        return list(session.projects)

    def list_reachable(self, session: Session) -> list[str]:
        """Return the names of the visible repositories."""
        access: Access = session.notes[ACCESS]
        return list(access.repositories)

    def find_roots(
        self, session: Session, projects: Sequence[str] | Literal["*"]
    ) -> list[str]:
        """Return the names of a call's repositories, without duplicates; ``*``: all visible ones."""
        # Invisible names are refused later, exactly like unknown ones: an answer must
        # not reveal that they exist.
        if projects == "*":
            return self.list_reachable(session)
        return list(dict.fromkeys(projects))

    def service(self, key: ServiceKey[ServiceT]) -> ServiceT:
        """Return what a part keeps for all repositories; raises Unavailable if it keeps nothing here."""
        return self.services.find(key)

    async def open_bound(self, call: Call[Any]) -> "list[TeamProject]":
        """Return the repositories named in the session's URL; raises as ``workspace``."""
        return [await self.workspace(call, name) for name in call.session.projects]

    async def workspace(self, call: Call[Any], project: str | None) -> "TeamProject":
        """Return the repository that a call is about.

        Raises:
            NotFound: project_not_found, no visible repository has the name.
            InvalidParams: project_required, there are several.

        """
        access: Access = call.session.notes[ACCESS]
        repositories = access.repositories
        # A URL with one repository binds the session to it; with several, the call must
        # choose.
        named = project or (
            call.session.projects[0] if len(call.session.projects) == 1 else None
        )
        if named is None and len(repositories) != 1:
            message = "name a repository by `project`, or several by `projects`"
            raise InvalidParams(
                message,
                reason="project_required",
                field="project",
                allowed=list(repositories)[:NEAREST],
            )
        row = repositories.get(named or next(iter(repositories)))
        if row is None:
            near = [
                name
                for name, _, _ in process.extract(
                    str(named), list(repositories), scorer=fuzz.WRatio, limit=NEAREST
                )
            ]
            raise NotFound(
                f"no such repository: {named}", reason="project_not_found", near=near
            )
        return TeamProject(
            self, row, StoreAccess(self._store, access.credentials), self._kept
        )


@dataclass(frozen=True, slots=True)
class TeamOptions:
    """The options of a project that methods need here."""

    private: PrivateFolders = field(default_factory=PrivateFolders)
    spec_folders: tuple[str, ...] = ()


@dataclass(slots=True)
class TeamProject:
    """One repository for one call: a ``Project`` that has revisions alone."""

    catalogue: TeamCatalogue
    row: RepositoryRow
    store_access: StoreAccess
    kept: StoreCache
    is_bare: bool = True
    """As in a bare clone, questions without a revision are about HEAD."""
    read_only: bool = True
    progress: Progress = field(default_factory=lambda: Progress("ready"))
    options: TeamOptions = field(default_factory=TeamOptions)

    @property
    def name(self) -> str:
        """The repository's name."""
        return self.row.name

    @property
    def generation(self) -> int:
        """The repository's generation at the start of the call."""
        return self.row.generation

    @property
    def path(self) -> PurePosixPath:
        """The repository's name, used for the root in answers about several projects."""
        return PurePosixPath(self.row.name)

    @property
    def root(self) -> bytes:
        """As ``path``."""
        return self.row.name.encode()

    def service(self, key: ServiceKey[ServiceT]) -> ServiceT:
        """Return what a part keeps for the repository; raises Unavailable if it keeps nothing here."""
        # The server chooses the repositories, so bound connections read the same.
        services = Services[Any](
            {
                REVISIONS: self,
                BOUND_REVISIONS: self,
                CHUNKS: self.catalogue.meaning,
                # Resolved over the stored symbols, as in a work tree.
                NAME_RESOLUTION: NameResolution(find_targets),
            }
        )
        return services.find(key)

    @property
    def embedding(self) -> str:
        """The settings of the embedder, as JSON."""
        return self.catalogue.settings.embedding.model_dump_json()

    async def size(self) -> None:
        """Return None: the index is a revision's."""

    def current(self, _buffers: Buffers | None = None) -> NoReturn:
        """Refuse: the store has revisions alone.

        Raises:
            Unavailable: always.

        """
        raise Unavailable("a team's repository has no work tree", reason="not_here")

    def note_changes(self, _paths: Sequence[bytes]) -> None:
        """Do nothing: nothing is written."""

    def make_vectors_anew(self) -> None:
        """Do nothing: workers make them, and find out themselves."""

    async def compare(
        self, rev: str, look: Callable[[State, State], ResultT]
    ) -> ResultT:
        """Refuse: the store has no work tree, and no history to find what both have in common.

        Raises:
            Unavailable: always.

        """
        del rev, look
        raise Unavailable("a team's server compares no revisions", reason="not_here")

    @property
    def editor(self) -> Editor:
        """The editor that has the limits for reading."""
        return self.catalogue.editor

    def snapshot(self) -> Snapshot:
        """Return an empty snapshot: only revisions have files."""
        return Snapshot(
            self.catalogue.folder,
            FileTable(),
            None,
            {},
            self.catalogue.settings.index.max_file_size,
        )

    async def in_thread(self, ask: Callable[[Snapshot], ResultT]) -> ResultT:
        """Run a lookup on a snapshot in a thread."""
        return await self.catalogue.scheduler.run(lambda: partial(ask, self.snapshot()))

    async def ask_repository(self, ask: Callable[[Repository], ResultT]) -> ResultT:
        """Run a function on the repository's clone in a thread; raises as ``ask`` and ``open_clone`` do."""

        def run() -> ResultT:
            with closing(self.catalogue.open_clone(self.row)) as repository:
                return ask(repository)

        return await self.in_turn(run)

    def in_turn(self, work: Callable[[], ResultT]) -> Awaitable[ResultT]:
        """Run work that needs no snapshot in a thread, in its turn."""
        return self.catalogue.scheduler.run(lambda: work)

    def keep_texts(
        self, contents: Collection[tuple[bytes, bytes]], *, parse: bool
    ) -> None:
        """Do nothing: the store has all texts."""

    async def at(self, rev: str) -> RevisionView:
        """Return a view of a revision; for a range, of the files in its newer end that differ from the older.

        Raises:
            InvalidParams: invalid_revision.
            NotFound: revision_not_found; the store has only branch heads and tags, a clone what led to them.

        """
        revision = parse_revision(rev)
        # The store has no git index, and no history to find a merge base in.
        if revision == INDEX or (isinstance(revision, Range) and revision.merge_base):
            message = f"rev: not available for a team's repository: {rev}"
            raise InvalidParams(
                message,
                reason="invalid_revision",
                field="rev",
                allowed="a branch or commit, or a..b",
            )

        def find() -> RevisionView:
            with suppress(NotFound):
                return look()
            try:
                # A worker may have published another state between two statements.
                return look()
            except NotFound:
                past = self._find_past(revision)
                if past is None:
                    raise
                return past

        def look() -> RevisionView:
            with self.store_access.read() as reading:
                branches = dict(
                    reading.fetch(
                        "SELECT name, commit FROM flashgrep.branch WHERE repository = %s",
                        [self.row.id],
                    )
                )
                rows = reading.fetch(
                    "SELECT commit, tree, seconds FROM flashgrep.revision WHERE repository = %s",
                    [self.row.id],
                )
                commits = {commit: (tree, seconds) for commit, tree, seconds in rows}
                if isinstance(revision, Range):
                    old, new = (
                        self._find(name, branches, commits)
                        for name in (revision.old, revision.new)
                    )
                    before = self.kept.listing(
                        self.row, old[1], self.store_access
                    ).files
                    return self._view(
                        new,
                        without={(path, file.blob) for path, file in before.items()},
                    )
                return self._view(self._find(revision, branches, commits))

        return await self.in_turn(find)

    def _find(
        self,
        name: str,
        branches: dict[str, bytes],
        commits: dict[bytes, tuple[bytes, int]],
    ) -> tuple[bytes, bytes, int]:
        """Return the commit, the tree and the time of a revision."""
        revision_name = name.removesuffix("^{commit}")
        called = revision_name.removeprefix("refs/heads/").removeprefix("heads/")
        if called == "HEAD":
            called = self._find_head(branches)
        # As in git, a tag takes precedence over a branch of the same name, unless
        # ``heads/`` is given.
        if called != revision_name:
            tag = None
        else:
            tag = branches.get(
                TAGS + revision_name.removeprefix(TAGS).removeprefix("tags/")
            )
        commit = tag or branches.get(called)
        if commit is None and len(called) >= LEAST_COMMIT:
            prefix = called.lower()
            abbreviated = [full for full in commits if full.hex().startswith(prefix)]
            # As in git, an abbreviation must be unambiguous.
            if len(abbreviated) == 1:
                commit = abbreviated[0]
        if commit is None or commit not in commits:
            raise self._unknown_revision(name, called, branches)
        return commit, *commits[commit]

    def _find_past(self, revision: str | Range) -> RevisionView | None:
        """Return the commit of this id if what the store has came after it, and this machine has a clone."""
        if isinstance(revision, Range) or not FULL_ID.fullmatch(revision):
            return None
        with self.store_access.read() as reading:
            query = "SELECT commit FROM flashgrep.revision WHERE repository = %s"
            heads = [commit for (commit,) in reading.fetch(query, [self.row.id])]
        open_clone = partial(self.catalogue.open_clone, self.row)
        try:
            opened = open_clone()
        except Unavailable:
            return None
        with closing(opened) as clone:
            key = (self.row.id, self.row.generation, revision)
            past = self.kept.past.find(key) or find_past_commit(clone, revision, heads)
            if past is None:
                return None
            self.kept.past.put(key, 1, past)
            files = PastFiles(clone.list_files(past), clone, open_clone)
            return RevisionView(self, past, files)

    def _find_head(self, branches: Iterable[str]) -> str:
        heads = [branch for branch in branches if not branch.startswith(TAGS)]
        if self.row.head in heads or not heads:
            return self.row.head
        return heads[0]

    def _unknown_revision(
        self, name: str, called: str, branches: Iterable[str]
    ) -> NotFound:
        names = [branch.removeprefix(TAGS) for branch in branches]
        similar = process.extract(called, names, scorer=fuzz.WRatio, limit=NEAREST)
        near = [choice for choice, _, _ in similar]
        message = f"no such revision: {name}; the store has branches and tags: {', '.join(near)}"
        if self.row.problem:
            message += f"; {self.row.problem}"
        return NotFound(
            message,
            reason="revision_not_found",
            rev=name,
            near=near,
        )

    def _view(
        self,
        found: tuple[bytes, bytes, int],
        without: Collection[tuple[bytes, bytes]] = (),
    ) -> RevisionView:
        """Return a view of a revision without the files in ``without``, given by path and blob."""
        commit, tree, seconds = found
        listing = self.kept.listing(self.row, tree, self.store_access)
        if without:
            gone = [
                path
                for path, file in listing.files.items()
                if (path, file.blob) in without
            ]
            files_left = {
                path: file
                for path, file in listing.files.items()
                if (path, file.blob) not in without
            }
            listing = Listing(files_left, listing.table.with_changes((), gone))
        files = TeamFiles(
            listing,
            partial(self.kept.state, self.row, self.store_access),
            self.store_access,
            self.kept.contents,
        )
        return RevisionView(
            self, Revision(commit.hex().encode(), tree.hex().encode(), seconds), files
        )
