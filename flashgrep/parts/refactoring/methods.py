"""rename_symbol and edit_symbol: edits by a symbol's name, each one atomic step."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Final, NotRequired, TypeVar

from pydantic import Field

from flashgrep.base.checkpoint import Expired, expiring
from flashgrep.base.errors import (
    Conflict,
    DeadlineExceeded,
    InvalidParams,
    Unavailable,
)
from flashgrep.base.model import Document, path_to_text
from flashgrep.base.registry import (
    RARE,
    Call,
    FileText,
    Handler,
    NameText,
    SymbolName,
    handler,
)
from flashgrep.files.columns import Columns
from flashgrep.files.system import HASH_SHOWN
from flashgrep.methods.common import Below, Deadline, FilePlace, ProjectParams
from flashgrep.methods.text import Note, Style
from flashgrep.parts.edit.batch import (
    BatchResult,
    Replacement,
    Rewriting,
    hash_text,
    plan_rewriting,
    read_text,
    write_batch,
)
from flashgrep.parts.edit.edits import Precondition
from flashgrep.parts.edit.methods import (
    check_may_write,
    render_write,
    report_new_errors,
    to_the_end,
)
from flashgrep.parts.edit.syntax_check import (
    SyntaxCheck,
    SyntaxReport,
    describe_errors,
    name_file,
)
from flashgrep.parts.edit.write import WriteRequest, WriteResult, write_file
from flashgrep.parts.navigation.navigation import Place
from flashgrep.parts.navigation.resolution.symbol_graph import GUESS
from flashgrep.parts.refactoring.definition_edits import (
    Action,
    find_outer_uses,
    plan_edit,
)
from flashgrep.parts.refactoring.obstacles import (
    Obstacle,
    ObstacleSearch,
    check_name,
)
from flashgrep.parts.refactoring.renaming import (
    RenamedUse,
    RenamePlan,
    Renaming,
    place_text,
)
from flashgrep.parts.refactoring.targets import Target, find_target
from flashgrep.parts.symbols.symbol_source import SnapshotSource
from flashgrep.project import Workspace
from flashgrep.project.catalogue import Catalogue
from flashgrep.search.snapshot import Snapshot

ResultT = TypeVar("ResultT")
MOST_LISTED: Final = 50
"""Most places of one kind that an answer names; all are counted."""
MOST_FILES: Final = 20
"""Most files of mentions that an answer names."""
MOST_LINE: Final = 160
MODEL_CHARS: Final = 24_000
"""Most characters of a diff that a model is shown."""
HUNK: Final = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")
"""The extents of a hunk: first line and number of lines, before and after."""


class SymbolEditParams(ProjectParams):
    """Which symbol."""

    symbol_name: SymbolName = Field(
        description="A name, or a qualified one: Class.method, path:NAME; or a place, FILE:LINE[:COLUMN]."
    )
    path: Below = None
    dry_run: bool = Field(
        False, description="Change nothing; return a unified diff of what would change."
    )
    deadline_ms: Deadline = 60_000


class RenameSymbolParams(SymbolEditParams):
    """Which symbol, its new name, and what is done about uses that are not certain."""

    new_name: SymbolName = Field(description="The new name alone, unqualified.")
    include_possible: bool | None = Field(
        None,
        description="Uses that only may be meant: true renames them, false leaves them. Default: refuse if there are any.",
    )
    edits: Annotated[bool, RARE] = Field(
        False,
        description="With dry_run: return the edits, as batch_write_code takes them; refused as without dry_run.",
    )
    expected_change: Annotated[NameText | None, RARE] = Field(
        None,
        description="`change` of a dry run: nothing is written if the diff would differ now.",
    )


class UsePlace(FilePlace):
    """A use that is not certain: its line, and how certain (0 to 1) by which rule."""

    line: int
    text: str
    confidence: float
    resolved: str


class RenamedFile(FilePlace):
    """A file with renamed places, and its hash after."""

    places: int
    file_hash_after: str | None


class Mentions(FilePlace):
    """How often comments, strings or documents, or a file that cannot be parsed, have the name: they are not changed."""

    count: int


class RenameEdit(FilePlace):
    """One place, in characters, and its file's hash."""

    start_line: int
    end_line: int
    start_column: int
    end_column: int
    replacement: str
    expected_file_hash: str


class RenameResult(SyntaxReport):
    """What was renamed, or would be (`dry_run`: with the `diff`, its `change`, and what stands against it).

    `possible`: uses that only may be meant, renamed if `includes_possible`. `unlikely`: places that have the name, but
    hardly mean it, or pass arguments in a dictionary that may have it as a key (`f(**given)`); never changed. `mentions`:
    by file, in comments, strings and documents; never changed.
    """

    ok: bool
    old_name: str
    new_name: str
    places: int
    files: list[RenamedFile]
    possible: list[UsePlace]
    possible_count: int
    includes_possible: bool
    unlikely: list[UsePlace]
    unlikely_count: int
    mentions: list[Mentions]
    mention_count: int
    dry_run: NotRequired[bool]
    diff: NotRequired[str]
    diff_truncated: NotRequired[bool]
    change: NotRequired[str]
    edits: NotRequired[list[RenameEdit]]
    obstacles: NotRequired[list[str]]


def show_new_lines(diff: str) -> Iterator[str]:
    """Yield the files of a diff, and below each the lines that it adds, with their numbers.

    A name that changes is understood without the lines around it, and what it replaces is known to who asks: these take
    seven eighths of a diff.
    """
    old_left = 0
    new_left = 0
    number = 0
    for line in diff.split("\n"):
        sign = line[:1]
        # The extents of a hunk tell its lines from the names of files.
        if not old_left and not new_left:
            hunk = HUNK.fullmatch(line)
            if hunk is not None:
                _, old_left, number, new_left = map(int, hunk.groups())
            elif sign == "+":
                yield line.removeprefix("+++ b/")
            continue
        if sign == "+":
            yield f"{number}:{line[1:]}"
        if sign in {"+", " "}:
            number += 1
            new_left -= 1
        if sign in {"-", " "}:
            old_left -= 1


def render_rename(result: RenameResult, style: Style) -> Iterator[str]:
    """Yield the diff or the files, then what was left as it is, apart by how certain it is."""
    files = result["files"]
    if "diff" in result:
        diff = result["diff"].removesuffix("\n")
        is_cut = result.get("diff_truncated", False)
        if style.is_person:
            yield style.text(diff)
        else:
            room = MODEL_CHARS
            for line in show_new_lines(diff):
                room -= len(line) + 1
                if room < 0:
                    is_cut = True
                    break
                yield line
        for obstacle in result.get("obstacles", ()):
            yield Note(f"[it would be refused: {obstacle}]")
        cut = "; the difference is cut" if is_cut else ""
        yield Note(
            f"[dry run: {result['places']} places in {len(files)} files, nothing is written{cut}]"
        )
    else:
        change = f"{result['old_name']} is now {result['new_name']}"
        yield f"{change}: {result['places']} places in {len(files)} files"
        for file in files:
            after = (file["file_hash_after"] or "")[:HASH_SHOWN]
            yield f"{style.path(file)} {file['places']} #{after}"
    treatment = "renamed too" if result["includes_possible"] else "not renamed"
    for key, label in (
        ("possible", f"only may be meant, {treatment}"),
        ("unlikely", "hardly meant, not renamed"),
    ):
        if key == "possible":
            uses = result["possible"]
            count = result["possible_count"]
        else:
            uses = result["unlikely"]
            count = result["unlikely_count"]
        if count:
            yield Note(f"[{count} {label}:]")
            for use in uses:
                text = style.text(use["text"])
                yield f"{style.path(use)}:{use['line']} {text}"
    if result["mention_count"]:
        # A note has no colours.
        plain = replace(style, color=False)
        shown = ", ".join(
            f"{plain.path(mention)} {mention['count']}"
            for mention in result["mentions"]
        )
        yield Note(
            f"[mentions left in comments, strings and documents: {result['mention_count']}: {shown}]"
        )
    yield from describe_errors(result)


@dataclass(slots=True)
class _Rename:
    """A rename that was planned: its places, what stands against it, and how its files are written."""

    plan: RenamePlan
    obstacles: list[Obstacle] = field(default_factory=list)
    uses: list[RenamedUse] = field(default_factory=list)
    rewriting: Rewriting = field(default_factory=Rewriting)
    edits: list[RenameEdit] = field(default_factory=list)


@handler(
    "rename_symbol",
    title="Rename a symbol",
    command="rename symbol_name new_name",
    safety="destructive",
    render=render_rename,
)
async def rename_symbol(
    call: Call[Catalogue], params: RenameSymbolParams
) -> RenameResult:
    """Rename a function, type, method, field, variable or parameter wherever it is used: overrides, imports and arguments.

    Refused if the new name is taken there, or a use only may be meant; dry_run shows both, and the diff.
    """
    project = await _open_project(call, params)
    target = await find_target(project, params.symbol_name, params.path)
    rename = await _in_time(
        project, params, partial(_plan_rename, target=target, params=params)
    )
    if not params.dry_run or params.edits:
        _check_rename(rename, params)
    check = SyntaxCheck()
    run = partial(
        write_batch,
        project.editor,
        rename.rewriting.operations,
        "atomic",
        dry_run=params.dry_run,
        check=check,
    )
    # Cancelled or not: what was written is known to the next question.
    written, paths = await to_the_end(run)
    project.note_changes(paths)
    for outcome in written["results"]:
        if outcome["status"] in {"failed", "conflict"}:
            raise Conflict(
                f"{outcome['file_path']}: {outcome['message']}",
                reason=outcome["reason_code"],
                **outcome.get("data", {}),
            )
    result = _format_rename(rename, params, written)
    if params.edits:
        result["edits"] = rename.edits
    await report_new_errors(result, call.host.searchers, check)
    return result


async def _open_project(call: Call[Catalogue], params: SymbolEditParams) -> Workspace:
    project = await call.host.workspace(call, params.project)
    if not params.dry_run:
        check_may_write(call, project)
    if project.is_bare:
        raise Unavailable("the repository has no work tree", reason="bare")
    await project.refresh()
    return project


async def _in_time(
    project: Workspace,
    params: SymbolEditParams,
    plan: Callable[[Snapshot], ResultT],
) -> ResultT:
    """Plan an edit on the files as they are, or raise DeadlineExceeded: half a plan is none."""
    deadline = time.monotonic() + params.deadline_ms / 1000

    def look(snapshot: Snapshot) -> ResultT:
        with expiring(deadline):
            return plan(snapshot)

    try:
        return await project.in_thread(look)
    except Expired:
        raise DeadlineExceeded(
            "not all uses could be found in time; nothing is written"
        ) from None


def _plan_rename(
    snapshot: Snapshot, target: Target, params: RenameSymbolParams
) -> _Rename:
    """Return what a rename changes; runs in a thread."""
    source = SnapshotSource(snapshot, target.path or None)
    name = target.find(source)
    new = params.new_name
    try:
        check_name(new, name.text, name.symbols.language)
    except ValueError as error:
        raise InvalidParams(f"new_name: {new}: {error}", field="new_name") from None
    renaming = Renaming(source, new)
    plan = renaming.run(name)
    if not plan.family:
        raise Conflict(
            f"{name.text} is not defined in the project, perhaps in a library: it cannot be renamed here",
            reason="outside",
        )
    uses = list(plan.sure)
    if params.include_possible:
        uses += plan.possible
    obstacles = list(ObstacleSearch(renaming).run(plan.old, new, plan.family, uses))
    rename = _Rename(plan, obstacles, uses)
    rename.rewriting = plan_rewriting(_read_files(snapshot, uses))
    if params.edits:
        hashes = {
            operation.request.path: operation.request.expected.file_hash or ""
            for operation in rename.rewriting.operations
        }
        rename.edits = [_format_edit(use, hashes[use.place.path]) for use in uses]
    return rename


def _read_files(
    snapshot: Snapshot, uses: Sequence[RenamedUse]
) -> Iterator[tuple[bytes, Document, list[Replacement]]]:
    """Yield the files to change, with the characters that are replaced."""
    by_path: dict[bytes, list[RenamedUse]] = {}
    for use in uses:
        by_path.setdefault(use.place.path, []).append(use)
    for path, file_uses in sorted(by_path.items()):
        document = snapshot.read_with_stat(path)[1]
        data = file_uses[0].place.symbols.data
        # The uses were found in the text that was read before: an edit of another would
        # hit other characters.
        if not isinstance(document, Document) or document.data != data:
            raise Conflict(
                f"{path_to_text(path)} changed meanwhile; nothing is written",
                reason="changed",
            )
        if read_text(document) is None:
            raise Conflict(
                f"{path_to_text(path)} has bytes that are no text; nothing is written",
                reason="encoding",
            )
        encoding = "latin-1" if document.encoding == "latin-1" else "utf-8"
        replacements = []
        at = 0
        characters = 0
        for use in sorted(file_uses, key=lambda use: use.place.start):
            between = data[at : use.place.start].decode(encoding)
            characters += len(between)
            at = use.place.start
            name = data[at : use.place.end].decode(encoding)
            end = characters + len(name)
            replacements.append(Replacement(characters, end, use.text))
        yield path, document, replacements


def _check_rename(rename: _Rename, params: RenameSymbolParams) -> None:
    """Refuse a rename that is not certain, or not the one that was looked at."""
    plan = rename.plan
    obstacles = [
        obstacle
        for obstacle in rename.obstacles
        if obstacle.is_certain or params.include_possible is None
    ]
    if obstacles:
        raise Conflict(
            f"not renamed: {'; '.join(obstacle.message for obstacle in obstacles)}",
            reason=obstacles[0].reason,
            guidance="an override that only may be is accepted with include_possible",
            places=[place for obstacle in obstacles for place in obstacle.places],
        )
    # Without a word about them nothing is written: one that is left, or taken too much,
    # breaks code where nobody looks.
    uncertain = [use.place for use in plan.possible] + plan.unlikely
    if uncertain and params.include_possible is None:
        shown = ", ".join(place_text(place) for place in uncertain[:MOST_LISTED])
        raise Conflict(
            f"not renamed: {len(plan.possible)} uses only may be meant, {len(plan.unlikely)} are hardly: {shown}",
            reason="possible_uses",
            guidance="dry_run shows the diff; include_possible: true renames those that may be meant, false leaves them",
            places=[place_text(place) for place in uncertain[:MOST_LISTED]],
        )
    if params.expected_change not in {None, rename.rewriting.name}:
        raise Conflict(
            "the diff would differ now; nothing is written",
            reason="change_differs",
            guidance="do a dry run again, and look at the new diff",
        )


def _format_rename(
    rename: _Rename, params: RenameSymbolParams, written: BatchResult
) -> RenameResult:
    plan = rename.plan
    after = {
        outcome["file_path"]: outcome["file_hash_after"]
        for outcome in written["results"]
    }
    counts = Counter(use.place.path for use in rename.uses)
    files: list[RenamedFile] = []
    for path, count in sorted(counts.items()):
        place = name_file(path)
        file_hash = after.get(place["file_path"])
        files.append(RenamedFile(**place, places=count, file_hash_after=file_hash))
    mentions = plan.unparsed + Counter(place.path for place in plan.texts)
    result: RenameResult = {
        "ok": True,
        "old_name": plan.old,
        "new_name": plan.new,
        "places": len(rename.uses),
        "files": files,
        "possible": [_format_use(use.place) for use in plan.possible[:MOST_LISTED]],
        "possible_count": len(plan.possible),
        "includes_possible": bool(params.include_possible),
        "unlikely": [_format_use(place) for place in plan.unlikely[:MOST_LISTED]],
        "unlikely_count": len(plan.unlikely),
        "mentions": [
            {**name_file(path), "count": count}
            for path, count in mentions.most_common(MOST_FILES)
        ],
        "mention_count": mentions.total(),
    }
    if params.dry_run:
        result["dry_run"] = True
        result["diff"] = written.get("diff", "")
        result["diff_truncated"] = written.get("diff_truncated", False)
        result["change"] = rename.rewriting.name
        result["obstacles"] = [obstacle.message for obstacle in rename.obstacles]
    return result


def _format_edit(use: RenamedUse, file_hash: str) -> RenameEdit:
    columns = Columns(use.place.symbols.lines, "utf-32")
    line, start = columns.place(use.place.start)
    return {
        **name_file(use.place.path),
        "start_line": line,
        "end_line": line,
        "start_column": start,
        "end_column": columns.place(use.place.end)[1],
        "replacement": use.text,
        "expected_file_hash": file_hash,
    }


def _format_use(place: Place) -> UsePlace:
    line = place.symbols.lines.line(place.start)
    return {
        **name_file(place.path),
        "line": line,
        "text": place.symbols.lines.text(line).strip()[:MOST_LINE],
        "confidence": round(place.resolution.confidence, 2),
        "resolved": place.resolution.how,
    }


class EditSymbolParams(SymbolEditParams):
    """Which definition, and what is done to it."""

    action: Action = Field(
        description="replace the definition, insert text before or after it, or delete it."
    )
    text: FileText | None = Field(
        None,
        description="The new code, unindented or indented like the definition. Comments and decorators above a replaced "
        "definition stay, unless the text begins with some.",
    )
    force: bool = Field(False, description="Delete although there are uses.")
    expected_file_hash: NameText | None = Field(
        None, description="The #hash of a read: nothing is written if the file differs."
    )


class EditSymbolResult(WriteResult):
    """As of `write_code`; `uses`: what still uses a deleted definition, or may."""

    uses: list[UsePlace]


def render_edit(result: EditSymbolResult, style: Style) -> Iterator[str]:
    """Yield what was written, as of write_code, and the uses that are left."""
    yield from render_write(result, style)
    uses = result["uses"]
    if uses:
        yield Note(f"[{len(uses)} uses are left, or may be:]")
    for use in uses:
        text = style.text(use["text"])
        yield f"{style.path(use)}:{use['line']} {text}"


@handler(
    "edit_symbol",
    title="Edit a definition",
    command="edit-symbol symbol_name action",
    safety="destructive",
    render=render_edit,
)
async def edit_symbol(
    call: Call[Catalogue], params: EditSymbolParams
) -> EditSymbolResult:
    """Replace a function, class or other definition by its name, insert code before or after it, or delete it.

    Its indentation is kept; comments and decorators above belong to it. Delete is refused while it is used.
    """
    if (params.text is None) != (params.action == "delete"):
        needed = "not with delete" if params.action == "delete" else "needed"
        raise InvalidParams(f"text: {needed}", field="text")
    project = await _open_project(call, params)
    target = await find_target(project, params.symbol_name, params.path)
    planned = await _in_time(
        project, params, partial(_plan_edit, target=target, params=params)
    )
    check = SyntaxCheck()
    request, uses = planned
    written, path = await to_the_end(
        partial(write_file, project.editor, request, check=check)
    )
    if not params.dry_run:
        project.note_changes([path])
    result: EditSymbolResult = {**written, "uses": uses}
    await report_new_errors(result, call.host.searchers, check)
    return result


def _plan_edit(
    snapshot: Snapshot, target: Target, params: EditSymbolParams
) -> tuple[WriteRequest, list[UsePlace]]:
    """Return how a definition's file changes, and the uses left of a deleted one; runs in a thread."""
    source = SnapshotSource(snapshot, target.path or None)
    place = target.find_definition(source)
    edit = plan_edit(place, params.action, params.text or "")
    uses = list[Place]()
    if params.action == "delete":
        uses = list(find_outer_uses(source, place))
    # Half certain is enough to refuse: what is deleted is gone.
    sure = [use for use in uses if use.resolution.confidence >= GUESS]
    if sure and not params.force and not params.dry_run:
        places = [place_text(use) for use in sure[:MOST_LISTED]]
        raise Conflict(
            f"not deleted: {len(sure)} uses are left: {', '.join(places)}",
            reason="used",
            guidance="change them first, or pass force",
            places=places,
        )
    expected = _expect_text(snapshot, place, params.expected_file_hash)
    request = WriteRequest(place.path, edit, expected, params.dry_run)
    return request, [_format_use(use) for use in uses[:MOST_LISTED]]


def _expect_text(
    snapshot: Snapshot, place: Place, file_hash: str | None
) -> Precondition:
    """Return that a file is still as it was analysed, and as the caller has read it."""
    document = snapshot.read_with_stat(place.path)[1]
    text = None
    if isinstance(document, Document):
        text = read_text(document)
    if not isinstance(document, Document) or text is None:
        raise Conflict(
            f"{path_to_text(place.path)} changed meanwhile; nothing is written",
            reason="changed",
        )
    expected = Precondition(file_hash=hash_text(document, text))
    if file_hash is not None:
        # Both the caller's hash and that of the text that was analysed must hold.
        own = file_hash.lower().removeprefix("#")
        if not (expected.file_hash or "").startswith(own):
            expected = Precondition(file_hash=file_hash)
    return expected


HANDLERS: tuple[Handler, ...] = (rename_symbol, edit_symbol)
