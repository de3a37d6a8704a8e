"""What methods share: parameters, paths, filters, cursors, budgets, coverage."""

import base64
import difflib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Protocol,
    TypeAlias,
    TypeVar,
)
from urllib.parse import quote, unquote

import anyio.to_thread
import orjson
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from flashgrep.api.host import Host
from flashgrep.api.libraries import LIBRARIES, LibraryLookup, UsedLibraries
from flashgrep.api.searchers import Holds
from flashgrep.api.view import Project, View
from flashgrep.base.errors import (
    Forbidden,
    InvalidParams,
    NotFound,
    TooLarge,
    Unavailable,
)
from flashgrep.base.model import path_from_json, path_to_json, path_to_text
from flashgrep.base.places import find_places
from flashgrep.base.registry import (
    MOST_PROJECTS,
    RARE,
    Call,
    CursorText,
    Globs,
    Languages,
    NameText,
    Params,
    PathText,
    RevisionText,
    Usage,
)
from flashgrep.files.buffers import Buffers
from flashgrep.files.columns import PositionEncoding
from flashgrep.files.editor import Listing
from flashgrep.files.globs import PathFilter
from flashgrep.files.owners import COMPILED, MOST_BYTES, PLACES, CodeOwners
from flashgrep.search.path_search import search_near

CHARS_PER_TOKEN: Final = 4
MOST_OWNERS: Final = 100
MOST_NEAR: Final = 3
"""Names that are offered in place of one that is not there."""
_PATTERN: Final = re.compile(r"[*?]|\{.*,.*\}")
"""Characters that make a path a pattern; web frameworks name folders ``[id]``."""
PATH: Final = (
    "Path relative to the project's root; an absolute path inside it is accepted."
)
PATH_BYTES: Final = (
    "The path's bytes in base64, for a name that is not UTF-8; instead of the text."
)

ItemT = TypeVar("ItemT")
StateT = TypeVar("StateT")

# Parameters that several methods take. Each method says their defaults.

ProjectName: TypeAlias = Annotated[
    PathText | None,
    Field(description="Project, by name or root; default: the connection's own."),
]
ProjectNames: TypeAlias = Annotated[
    Annotated[list[PathText], Field(max_length=MOST_PROJECTS, min_length=1)]
    | Literal["*"]
    | None,
    Field(
        description="Several projects at once, by name or root, or `*` for all known ones; instead of `project`."
    ),
]
LibraryName: TypeAlias = Annotated[
    NameText | None,
    Usage(rare=True),
    Field(
        description="A library that the project uses, instead of the project: requests, or requests@2.31."
    ),
]
AllLibraries: TypeAlias = Annotated[
    bool,
    RARE,
    Field(
        description="All libraries that the project's environments and lock files name, instead of the project."
    ),
]
Include: TypeAlias = Annotated[
    Globs,
    Usage(short="-g"),
    Field(description="Only files that match one of these globs, e.g. src/**/*.py."),
]
Exclude: TypeAlias = Annotated[
    Globs, Field(description="Exclude files that match one of these globs.")
]
Below: TypeAlias = Annotated[
    PathText | None,
    Field(description="Only this file or folder; globs may start there."),
]
InLanguages: TypeAlias = Annotated[
    Languages,
    Usage(short="-t", rare=True),
    Field(description="Only files of these languages, e.g. py or rust."),
]
Owners: TypeAlias = Annotated[
    Annotated[list[NameText], Field(max_length=MOST_OWNERS)],
    Usage(rare=True),
    Field(
        description="Only files that CODEOWNERS gives to one of these, e.g. @team or me@example.org."
    ),
]
Cursor: TypeAlias = Annotated[
    CursorText | None,
    Usage(short="-c"),
    Field(description="`next` of the previous answer, to continue after it."),
]
_TOKENS: Final = Field(
    ge=50, le=1_000_000, description="Size of the answer, in tokens of 4 characters."
)
MaxTokens: TypeAlias = Annotated[int, RARE, _TOKENS]
MaxTokensIfSet: TypeAlias = Annotated[int | None, RARE, _TOKENS]
"""The settings' budget unless it is given."""
Deadline: TypeAlias = Annotated[
    int,
    RARE,
    Field(
        ge=1, le=600_000, description="After this time, what was found so far is sent."
    ),
]
Fresh: TypeAlias = Annotated[
    bool, RARE, Field(description="Include everything saved before this call.")
]


Rev: TypeAlias = Annotated[
    RevisionText | None,
    Field(
        description="Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."
    ),
]
Encoding: TypeAlias = Annotated[
    PositionEncoding,
    RARE,
    Field(
        description="What a column counts: bytes (utf-8), UTF-16 units, or characters (utf-32)."
    ),
]


class ProjectParams(Params):
    """What every method on files takes."""

    project: ProjectName = None


class FilePlace(TypedDict):
    """A file; its name also in base64 if it is not UTF-8; `project` if several were asked."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]


class FileQuestion(Protocol):
    """Parameters of a question about a project's files."""

    @property
    def project(self) -> str | None:
        """The project's name or root."""

    @property
    def rev(self) -> str | None:
        """The revision's name."""


async def open_view(call: Call[Host], params: FileQuestion) -> View:
    """Return what a question is about: the project as it is, or the named revision.

    Raises:
        NotFound, Forbidden, InvalidParams, Unavailable: as ``Host.workspace`` and ``Revisions.at``.

    """
    project = params.project
    path = getattr(params, "path", None)
    if project is None and isinstance(path, str) and path:
        project = await find_project_with(call, path)
    workspace = await call.host.workspace(call, project)
    workspace = await open_library(call, workspace, params)
    return await view_of(call, workspace, params.rev)


async def open_library(call: Call[Host], project: Project, params: Any) -> Project:
    """Return the library that a question names, else the project.

    Raises:
        InvalidParams: a revision is named too.
        NotFound: the project uses no such library.

    """
    library = getattr(params, "library", None)
    if library is None:
        return project
    # The folder may be inside a repository, whose revisions are not the library's.
    if params.rev is not None:
        raise InvalidParams(
            "a library has no revisions",
            field="library",
            incompatible=["library", "rev"],
        )
    return await project.service(LIBRARIES).open(call, library)


async def open_all_libraries(
    call: Call[Host], project: str | None, params: Any
) -> UsedLibraries:
    """Return the libraries of a project, for a question about all of them.

    Raises:
        InvalidParams: the question also names what has no libraries, or something else in place of them.
        NotFound: there are none.

    """
    for field in ("library", "rev", "projects", "owner", "targets"):
        if getattr(params, field, None):
            raise InvalidParams(
                f"give either `libraries` or `{field}`",
                field=field,
                incompatible=["libraries", field],
            )
    workspace = await call.host.workspace(call, project)
    return await workspace.service(LIBRARIES).open_all(call)


def place_in_library(item: dict[str, Any], root: bytes, lookup: LibraryLookup) -> None:
    """Give a result about a file below a root its absolute path, and the name and version of its library."""
    name = item["file_path"]
    encoded = item.pop("file_path_bytes", None)
    inside = path_from_json(name, encoded)
    path = os.path.join(root, inside)  # noqa: PTH118 - bytes
    place = path_to_json(path)
    item.update(place)
    if "path" in item:
        item["path"] = place["file_path"]
    library = lookup.find_library(path)
    if library is not None:
        item["library"] = library.label


async def find_project_with(call: Call[Host], path: str) -> str | None:
    """Return the only one of a connection's several roots that has a path; None: none or two have it, or it has one."""
    own = call.session.projects or call.session.indexed
    if len(own) > 1:
        return await anyio.to_thread.run_sync(find_root_with, own, path)
    return None


def find_root_with(roots: Sequence[str], path: str) -> str | None:
    """Return the only one of several roots that has a path, as ``src/a.py`` or ``src/a.py:10-20``; None: none or two."""
    named = path
    # The path may name lines as well, which are no part of the file.
    places = list(find_places(path))
    if places:
        named = places[0].path
    # In two of them the path is ambiguous, and the caller has to name one.
    holders: list[str] = []
    for root in roots:
        inside = Path(root, named)
        if inside.is_relative_to(root) and inside.exists():
            holders.append(root)
    if len(holders) != 1:
        return None
    return holders[0]


async def view_of(call: Call[Host], project: Project, rev: str | None) -> View:
    """Return a project as it is, or in a revision, which of a bare repository is HEAD; raises as ``Revisions.at``."""
    if rev is None and project.is_bare:
        rev = "HEAD"
    if rev is None:
        return await current_view(call, project)
    return await call.host.searchers.revision(project, rev, call.session)


async def current_view(call: Call[Host], project: Project) -> View:
    """Return a project as it is now, with the client's unsaved text for files open in its editor."""
    buffers = buffers_of(call)
    # Nearly always there is no editor, and no lock is taken; locked means that an
    # earlier call is just opening a file now.
    if not buffers and not buffers.lock.locked():
        return project.current()
    async with buffers.lock:  # what was asked before this call has been done
        return project.current(buffers)


def buffers_of(call: Call[Host]) -> Buffers:
    """Return the files that a connection's client has open."""
    buffers: Buffers | None = call.session.notes.get("buffers")
    if (
        buffers is None
    ):  # not setdefault: every question comes here, and creating Buffers creates a lock
        buffers = call.session.notes["buffers"] = Buffers(call.host.buffers)
    return buffers


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Which files a caller wants; nothing said: every file."""

    include: Sequence[str] = ()
    """Globs, one of which a file matches."""
    exclude: Sequence[str] = ()
    languages: Sequence[str] = ()
    below: str | None = None
    """A file, a folder, or a glob in place of one."""
    owners: Sequence[str] = ()
    """As CODEOWNERS names them."""
    without: Sequence[bytes] = ()
    """Folders whose files are not wanted, whatever the globs say."""
    holds: Holds | None = None
    """Whether a file is of what is asked, where a folder has more than that; None: all are."""

    @property
    def limits(self) -> bool:
        """Whether anything is said."""
        globs = self.include or self.exclude or self.below
        is_chosen = globs or self.languages or self.owners or self.without
        return bool(is_chosen) or self.holds is not None


async def make_path_filter(workspace: View, choice: FileChoice) -> PathFilter | None:
    """Return which files a caller wants; None: every file. Made off the event loop: 64 KB of globs take 60 ms.

    Raises:
        InvalidParams: a bad glob, or an unknown language.
        NotFound: nothing is at ``below``, or CODEOWNERS does not name an owner.
        Forbidden: it is outside the project.

    """
    if not choice.limits:
        return None
    below = choice.below
    include = make_relative(workspace, choice.include)
    exclude = make_relative(workspace, choice.exclude)
    try:
        if below:
            under = await resolve_path(workspace, below)
        else:
            under = b""
    except NotFound:
        # Together with globs, or without pattern characters, the path was meant as a
        # path.
        if include or below is None or _PATTERN.search(below) is None:
            raise
        under, include = (
            b"",
            make_relative(workspace, [below]),
        )  # a pattern in place of a folder
    owned = choice.holds
    if choice.owners:
        owned = await make_owner_test(workspace, choice.owners)
    make = partial(
        PathFilter,
        include,
        exclude,
        languages=choice.languages,
        without=choice.without,
        under=under,
        owned=owned,
    )
    return await workspace.in_turn(make)


async def make_owner_test(view: View, owners: Sequence[str]) -> Callable[[bytes], bool]:
    """Return whether a file belongs to one of these owners.

    Raises:
        NotFound: there is no CODEOWNERS, or it does not name one of them; that of another project may.

    """
    code_owners = await read_owners(view)
    if code_owners is None:
        raise NotFound("owner: the project has no CODEOWNERS", reason="owner_not_found")
    # Comparing an owner with thousands of names takes a second.
    find = partial(_find_spellings, code_owners.names, owners)
    wanted = await view.in_turn(find)
    return lambda path: not wanted.isdisjoint(code_owners.find_owners(path))


def _find_spellings(names: frozenset[str], owners: Sequence[str]) -> set[str]:
    """Return the names that are meant by these owners, which may lack the first ``@``."""
    wanted = set[str]()
    for owner in owners:
        spellings = {owner.lower(), f"@{owner.lower()}"} & names
        if not spellings:
            near = difflib.get_close_matches(owner.lower(), names, MOST_NEAR)
            raise NotFound(
                f"owner: CODEOWNERS does not name {owner}",
                reason="owner_not_found",
                suggestion=f"did you mean {', '.join(near)}?" if near else "",
            )
        wanted |= spellings
    return wanted


async def read_owners(view: View) -> CodeOwners | None:
    """Return what the view's CODEOWNERS says; None: there is none that can be read."""
    for place in PLACES:
        try:
            text = await view.read(place, MOST_BYTES)
        # Also where something else has the name: a folder, a pipe.
        except (NotFound, Forbidden, TooLarge, InvalidParams):
            continue
        owners = COMPILED.find(text)
        if owners is None:
            decoded = text.decode(errors="replace")
            owners = await view.in_turn(partial(CodeOwners, decoded))
            COMPILED.put(text, len(text), owners)
        return owners
    return None


def make_relative(view: View, globs: Sequence[str], under: bytes = b"") -> list[str]:
    """Return globs; those that begin with the project's own folder, or one below it, are made relative to it."""
    if not view.base:
        return list(globs)
    if under:
        folder = view.base + b"/" + under
    else:
        folder = view.base
    lead = path_to_text(folder) + "/"
    relative: list[str] = []
    for glob in globs:
        if glob.startswith(lead):
            relative.append("/" + glob.removeprefix(lead))
        else:
            relative.append(glob)
    return relative


async def resolve_path(view: View, path: str) -> bytes:
    """Return a file or folder named by a caller, relative to the root; absolute paths inside it are accepted.

    Raises:
        NotFound: it does not exist; the error has ``near`` paths.
        Forbidden: it is outside the project.

    """
    try:
        return await view.resolve(path)
    except NotFound as error:
        raise await tell_near(view, error, path) from None


def look_up_libraries(view: View) -> LibraryLookup | None:
    """Return the libraries of a project as it is now; None in a revision, or if the part is left out."""
    if view.revision_id is not None:
        return None
    try:
        return view.project.service(LIBRARIES).look_up()
    except Unavailable:
        return None


async def locate_in_libraries(
    view: View, libraries: LibraryLookup | None, path: bytes
) -> bytes | None:
    """Return the absolute path of a library's file, given absolute or from the root; None: it is none."""
    if libraries is None or b"\0" in path:
        return None
    return await view.in_turn(partial(libraries.locate, path))


async def tell_near(files: Listing, error: NotFound, path: str) -> NotFound:
    """Return the error with the paths nearest to the missing one."""
    near = await find_near(files, path)
    if near:
        error.data["near"] = near
        error.message += f"; near: {', '.join(near)}"
    return error


async def find_near(files: Listing, path: str) -> list[str]:
    """Return the paths nearest to a missing one."""
    await files.refresh()
    near = await files.in_turn(lambda: search_near(path, files.paths()))
    return [path_to_text(current_path) for current_path in near]


LONGEST_NUMBER: Final = 20
"""Characters of a number of 64 bits."""
DIGEST_BYTES: Final = 6
"""Enough to guard against mistakes; eight characters."""

# A cursor carries its whole state: which question it belongs to, and where its answer
# continues.

PAGE_FIELDS: Final = {
    "cursor", "offset", "limit", "max_tokens", "max_bytes", "deadline_ms", "fresh", "explain", "use_index"
}  # fmt: skip
"""Parameters that set how much of an answer is wanted and how it is made; they may change between pages."""


def encode_cursor(params: Params, *state: Any) -> str:
    """Return a cursor of a question: a digest of it, then the state, as ``Xk3F9a,$literal,0,$src/a.py,12,~``.

    A model has to repeat it, and words take a third of the tokens of base64. A text begins with ``$``, a list (as JSON)
    with ``*``, ``~`` is None; commas are percent-encoded.
    """
    parts = [_digest(params)]
    for value in state:
        if isinstance(value, int):
            parts.append(str(int(value)))
        elif isinstance(value, str):
            parts.append("$" + quote(value))
        elif value is None:
            parts.append("~")
        else:
            parts.append("*" + quote(orjson.dumps(value)))
    return ",".join(parts)


def decode_value(text: str) -> Any:
    """Return a value of a cursor's state, or raise ValueError."""
    if text == "~":
        return None
    if text[:1] in {"$", "*"}:
        inside = unquote(text[1:], errors="strict")
        if text[0] == "$":
            return inside
        return orjson.loads(inside)
    # int() is quadratic in the digits, and a cursor comes from outside.
    if len(text) > LONGEST_NUMBER:
        raise ValueError(text)
    return int(text)


def decode_cursor(params: Params, cursor: str, read: Callable[..., StateT]) -> StateT:
    """Return what ``read`` makes of a cursor's state.

    Raises:
        InvalidParams: it is not ours (``read`` raises ValueError or TypeError), or belongs to another question.

    """
    try:
        digest, *values = cursor.split(",")
        state = read(*map(decode_value, values))
    except (ValueError, TypeError):
        raise InvalidParams("cursor: not one of ours", field="cursor") from None
    # Not a secret: it catches a cursor that is passed with another question, which
    # would skip or repeat hits.
    if digest != _digest(params):
        raise InvalidParams(
            "cursor: it belongs to another question; pass the same parameters",
            field="cursor",
        )
    return state


def _digest(params: Params) -> str:
    # Not model_dump_json: it fails for names that are not UTF-8, which a command line
    # carries as lone surrogates.
    question = json.dumps(
        {name: value for name, value in params if name not in PAGE_FIELDS},
        default=BaseModel.model_dump,
    )
    return base64.urlsafe_b64encode(
        hashlib.blake2b(question.encode(), digest_size=DIGEST_BYTES).digest()
    ).decode()


class Budget:
    """The characters left in an answer's budget."""

    def __init__(self, tokens: int) -> None:
        self.chars = tokens * CHARS_PER_TOKEN

    def fit(
        self, items: Iterable[ItemT], size: Callable[[ItemT], int], *, least: int = 1
    ) -> list[ItemT]:
        """Return the first items that fit, at least ``least``: an empty page would never end."""
        items_within: list[ItemT] = []
        for item in items:
            self.chars -= size(item)
            if self.chars < 0 and len(items_within) >= least:
                break
            items_within.append(item)
        return items_within
