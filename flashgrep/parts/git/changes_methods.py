"""The `changes` method: what differs between the work tree and a revision, or two revisions, and who is affected."""

import os
import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Final, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage, milliseconds_since
from flashgrep.api.host import Host
from flashgrep.api.view import Project
from flashgrep.base.checkpoint import Expired, expiring
from flashgrep.base.model import path_to_json, path_to_text
from flashgrep.base.registry import (
    RARE,
    Call,
    Handler,
    Params,
    RevisionText,
    Usage,
    handler,
)
from flashgrep.index.table import tier_of
from flashgrep.methods.common import (
    CHARS_PER_TOKEN,
    Cursor,
    Deadline,
    Exclude,
    FileChoice,
    FilePlace,
    Fresh,
    Include,
    InLanguages,
    MaxTokens,
    Owners,
    ProjectName,
    ProjectNames,
    decode_cursor,
    encode_cursor,
    make_path_filter,
    read_owners,
)
from flashgrep.methods.projects import (
    Page,
    ProjectAnswer,
    ProjectSelection,
    ask_projects,
)
from flashgrep.methods.text import Style, span
from flashgrep.parts.git.changes import (
    ChangedFile,
    FileChange,
    State,
    compare_states,
    describe_change,
    show_hunk,
)
from flashgrep.parts.git.history_methods import (
    CommitEntry,
    format_commit,
    render_commit,
)
from flashgrep.parts.git.repository import (
    INDEX,
    Commit,
    Range,
    Repository,
    list_commits,
    parse_revision,
)
from flashgrep.parts.git.revisions import AnyRevisions, find_revisions
from flashgrep.parts.navigation.research.research_walk import find_callers
from flashgrep.parts.symbols.symbol_source import SnapshotSource

FILE_OVERHEAD, HUNK_OVERHEAD, SYMBOL_OVERHEAD, CALLER_OVERHEAD = 90, 70, 100, 60
"""Characters of JSON around the texts of a file, a hunk, a symbol and a caller."""
CALLERS = 5
"""Most callers shown for one symbol."""
MOST_COMMITS = 5
"""Commits of a range that are told, the newest."""
NAMED_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")
ONE_PATH: Final = re.compile(r"(?!.*\.\.)[^/*?{}\[\]!]+(?:/[^/*?{}\[\]]+)+/?")
"""A path below a folder. A name alone is a glob of ours: it is that of files in any folder."""
LEAST_CALL = 0.5
"""Least confidence of a call that is shown: a call of another definition of the name misleads."""
CALLABLE = frozenset(
    {
        "function",
        "method",
        "constructor",
        "class",
        "struct",
        "macro",
        "type",
        "interface",
        "trait",
    }
)


class ChangesParams(Params):
    """What to compare, and how much to show."""

    rev: RevisionText = Field(
        "HEAD",
        description="Compare the work tree with this revision (:index: what is not staged), or two: main..HEAD, "
        "main...HEAD (since they diverged), HEAD..:index (what is staged).",
    )
    lines: bool = Field(
        default=False,
        description="Include the changed lines, as a diff without context.",
    )
    callers: bool = Field(
        default=False, description="List the callers of changed functions and types."
    )
    include: Include = []
    exclude: Annotated[Exclude, RARE] = []
    language: InLanguages = []
    owner: Owners = []
    limit: Annotated[int, Usage(short="-l")] = Field(
        50, ge=1, le=10_000, description="Most files to return."
    )
    cursor: Cursor = None
    max_tokens: MaxTokens = 4_000
    deadline_ms: Deadline = 20_000
    fresh: Fresh = True
    project: ProjectName = None
    projects: ProjectNames = None


class HunkEntry(TypedDict):
    """Lines that differ: `start_line` and `lines` now, `old_start_line` and `old_lines` before; 0 lines: none there."""

    start_line: int
    lines: int
    old_start_line: int
    old_lines: int
    diff: NotRequired[str]


class CallerEntry(FilePlace):
    """A call: its line, and the definition it is in."""

    line_number: int
    container: str


class ChangedSymbolEntry(TypedDict):
    """A touched definition: `change` is added, modified or deleted; a deleted one has its former lines.

    `callers_unsure`: calls of its name on receivers of unknown type, which may call it.
    """

    symbol_name: str
    kind: str
    change: str
    start_line: int
    end_line: int
    callers: NotRequired[list[CallerEntry]]
    callers_total: NotRequired[int | None]
    callers_unsure: NotRequired[int]


class ChangedFileEntry(FilePlace):
    """A file that differs: `status` is added, deleted, modified, renamed or untracked.

    `note`: why no lines are given; `left_out`: hunks and symbols that did not fit. `owners`: whose it is, if the project
    has a CODEOWNERS.
    """

    status: str
    old_path: NotRequired[str]
    added: int
    removed: int
    hunks: list[HunkEntry]
    symbols: list[ChangedSymbolEntry]
    owners: NotRequired[list[str]]
    note: NotRequired[str]
    left_out: NotRequired[int]


class ChangesResult(TypedDict):
    """Files that differ, by path, and their total; `commits`: the newest between two revisions, on the first page."""

    rev: str
    commits: NotRequired[list[CommitEntry]]
    results: list[ChangedFileEntry]
    total: int
    next: str | None
    coverage: Coverage


def _describe_callers(symbol: ChangedSymbolEntry, style: Style) -> str:
    if "callers" not in symbol:
        return ""
    callers = [
        f"{style.path(caller)}:{caller['line_number']} {caller['container']}"
        for caller in symbol["callers"]
    ]
    described = ""
    if callers:
        described = f" called by {', '.join(callers)}"
        total = symbol.get("callers_total", 0)
        if total is None:
            described += " and many more"
        elif total > len(callers):
            described += f" and {total - len(callers)} more"
    unsure = symbol.get("callers_unsure", 0)
    if unsure:
        described += f" perhaps called in {unsure} lines"
    return described or " called by nobody"


def render_changes(result: ChangesResult, style: Style) -> Iterator[str]:
    """Yield each file with its lines added and removed; indented below it the definitions touched, then the hunks."""
    for commit in result.get("commits", ()):
        yield render_commit(commit, style)
    for file in result["results"]:
        if file["hunks"]:
            counts = f" +{file['added']} -{file['removed']}"
        else:
            counts = ""
        if "old_path" in file:
            moved = f" from {style.text(file['old_path'])}"
        else:
            moved = ""
        if "note" in file:
            note = f" ({file['note']})"
        else:
            note = ""
        owners = style.text(" ".join(["", *file.get("owners", ())]))
        state = f"{file['status']}{moved}{counts}{note}"
        yield f"{style.path(file)} {state}{owners}"
        for symbol in file["symbols"]:
            what = f"{symbol['change']} {symbol['kind']} {symbol['symbol_name']}"
            what += _describe_callers(symbol, style)
            yield f"  {span(symbol)} {style.text(what)}"
        ranges = [
            f"@@ -{_range(hunk['old_start_line'], hunk['old_lines'])} +{_range(hunk['start_line'], hunk['lines'])}"
            for hunk in file["hunks"]
        ]
        if any("diff" in hunk for hunk in file["hunks"]):
            for text, hunk in zip(ranges, file["hunks"], strict=True):
                yield f"{text}\n{style.text(hunk.get('diff', ''))}"
        elif ranges:
            yield f"  {' '.join(ranges)}"
        if "left_out" in file:
            yield f"  {file['left_out']} more hunks and definitions left out"


def _range(start: int, lines: int) -> str:
    if lines == 1:
        return f"{start}"
    return f"{start},{lines}"


@handler(
    "changes",
    title="Show changes",
    listing="by_default",
    command="changes rev",
    toolset="research",
    render=render_changes,
)
async def changes(call: Call[Host], params: ChangesParams) -> ChangesResult:
    """Show what changed: files, hunks and the definitions they touch, and on request their callers.

    Compares the work tree, untracked files included, with HEAD or any revision, or two revisions. Nothing is written.
    """
    return await ask_projects(call, params, _compare_in_project, _leave_out_commits)


def _leave_out_commits(
    result: ChangesResult, answers: Sequence[ProjectAnswer[ChangesResult]]
) -> None:
    """Take the commits out of an answer about several projects: they would be those of one."""
    if len(answers) > 1:
        result.pop("commits", None)


async def _compare_in_project(
    call: Call[Host],
    params: ChangesParams,
    workspace: Project,
    among: ProjectSelection,
) -> Page[ChangesResult]:
    """Answer for one project."""
    started = time.perf_counter()
    view = workspace.current()
    if params.fresh:
        fresh = await view.refresh()
    else:
        fresh = False
    keep = await make_path_filter(
        view,
        FileChoice(
            include=params.include,
            exclude=params.exclude,
            languages=params.language,
            owners=params.owner,
        ),
    )
    if params.cursor is None:
        after = ""
    else:
        after = decode_cursor(params, params.cursor, str)
    deadline = time.monotonic() + params.deadline_ms / 1000
    code_owners = await read_owners(view)
    # Other projects below the root have their own answers.
    nested = tuple(b"%s/" % path for path in among.nested)

    def look(old: State, new: State) -> ChangesResult:
        files: list[ChangedFile] = []
        for file in compare_states(old, new):
            # An empty tuple is the beginning of nothing.
            if file.path.startswith(nested):
                continue
            if keep is None or keep(file.path):
                files.append(file)
        start = bisect_right(files, after.encode("latin-1"), key=lambda file: file.path)
        entries: list[ChangedFileEntry] = []
        room = params.max_tokens * CHARS_PER_TOKEN
        complete = True
        with suppress(Expired), expiring(deadline):
            complete = False
            for file in files[start : start + params.limit]:
                change = describe_change(old, new, file)
                # The first file is always shown, cut to the budget: an empty page would
                # never end.
                item = _format_change(change, params, room=None if entries else room)
                room -= measure_file(item)
                if room < 0 and entries:
                    break
                if code_owners is not None:
                    item["owners"] = sorted(code_owners.find_owners(file.path))
                if params.callers:
                    room -= _add_callers(item, change, new, deadline)
                entries.append(item)
            complete = True
        end = start + len(entries)
        coverage: Coverage = {
            "complete": complete,
            "fresh": fresh,
            "files_searched": len(old.blobs.keys() | new.blobs.keys()),
            "files_skipped": {},
            "stage": workspace.progress.stage,
            "generation": workspace.generation,
            "took_ms": milliseconds_since(started),
        }
        if not files:
            coverage["detail"] = _tell_no_change(params.rev)
        following = None
        if entries and end < len(files):
            last = files[end - 1].path.decode("latin-1")
            following = encode_cursor(params, last)
        return {
            "rev": params.rev,
            "results": entries,
            "total": len(files),
            "next": following,
            "coverage": coverage,
        }

    revisions = find_revisions(workspace, call.session)
    result = await revisions.compare(params.rev, look)
    if not after:
        await _add_commits(result, params, revisions, deadline)
    return Page(result)


def _tell_no_change(rev: str) -> str:
    detail = f"no file differs from {rev}"
    # Whoever names a commit often means what it changed.
    if NAMED_COMMIT.fullmatch(rev):
        detail += f"; {rev}~1..{rev} is what it changed"
    return detail


def _find_path(include: Sequence[str]) -> bytes:
    """Return the file or folder that globs name; empty if they name more, since git has globs of other kinds."""
    if not include or not ONE_PATH.fullmatch(include[0]):
        return b""
    path = include[0].rstrip("/")
    # As ``path`` is read.
    if include[1:] not in ([], [f"{path}/**"]):
        return b""
    return os.fsencode(path)


async def _add_commits(
    result: ChangesResult,
    params: ChangesParams,
    revisions: AnyRevisions,
    deadline: float,
) -> None:
    """Add the newest commits between two revisions; none for a single one, with git's index, or if time runs out.

    Where one file or folder is asked about, those that changed it.
    """
    between = parse_revision(result["rev"])
    if not isinstance(between, Range) or INDEX in between:
        return
    path = _find_path(params.include)

    def ask(repository: Repository) -> list[Commit]:
        commits = list[Commit]()
        # Between revisions that are far apart git reads a hundred thousand commits.
        with suppress(Expired), expiring(deadline):
            commits = list_commits(
                repository, between.new, path, 0, MOST_COMMITS, since=between.old
            )
        return commits

    commits = await revisions.ask_repository(ask)
    if commits:
        result["commits"] = [*map(format_commit, commits)]


HANDLERS: tuple[Handler, ...] = (changes,)


def _format_change(
    change: FileChange, params: ChangesParams, room: int | None
) -> ChangedFileEntry:
    """Return a file in the form of an answer; ``room``: characters for its hunks and symbols before they are cut."""
    file = change.file
    hunks = list[HunkEntry]()
    symbols = list[ChangedSymbolEntry]()
    for symbol in change.symbols:
        symbols.append({
            "symbol_name": symbol.qualified, "kind": symbol.kind, "change": symbol.change,
            "start_line": symbol.start_line, "end_line": symbol.end_line,
        })  # fmt: skip
        if (
            room is not None
            and (room := room - SYMBOL_OVERHEAD - len(symbol.qualified)) < 0
        ):
            break
    for hunk in change.hunks:
        if room is not None and room < 0:
            break
        hunk_entry: HunkEntry = {
            "start_line": hunk.start, "lines": hunk.lines,
            "old_start_line": hunk.old_start, "old_lines": hunk.old_lines,
        }  # fmt: skip
        if params.lines:
            hunk_entry["diff"] = show_hunk(change, hunk, most=room)
        hunks.append(hunk_entry)
        if room is not None:
            room -= HUNK_OVERHEAD + len(hunk_entry.get("diff", ""))
    item: ChangedFileEntry = {
        **path_to_json(file.path),  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "status": file.status,
        "added": sum(hunk.lines for hunk in change.hunks),
        "removed": sum(hunk.old_lines for hunk in change.hunks),
        "hunks": hunks,
        "symbols": symbols,
    }
    if file.old_path:
        item["old_path"] = path_to_text(file.old_path)
    if change.note:
        item["note"] = change.note
    left_out = len(change.hunks) - len(hunks)
    left_out += len(change.symbols) - len(symbols)
    if left_out:
        item["left_out"] = left_out
    return item


def measure_file(item: ChangedFileEntry) -> int:
    """Return about how many characters of JSON a file takes."""
    size = FILE_OVERHEAD + len(item["file_path"])
    for hunk in item["hunks"]:
        size += HUNK_OVERHEAD + len(hunk.get("diff", ""))
    for symbol in item["symbols"]:
        size += SYMBOL_OVERHEAD + len(symbol["symbol_name"])
    return size


def _add_callers(
    item: ChangedFileEntry, change: FileChange, new: State, deadline: float
) -> int:
    """Add to each symbol its callers, production before tests; return how many characters that takes."""
    size = 0
    source = SnapshotSource(new.snapshot)
    for changed_symbol_entry, symbol in zip(
        item["symbols"], change.symbols, strict=False
    ):
        if symbol.kind not in CALLABLE:
            continue
        research = find_callers(source, change.file.path, symbol.qualified, deadline)
        if not research.roots:
            continue  # it is gone: its name now means other definitions, or none
        graph = research.graph
        calls = [
            edge for edge in graph.edges if edge.resolution.confidence >= LEAST_CALL
        ]
        calls.sort(key=lambda edge: (tier_of(edge.path), edge.path, edge.line))
        if research.complete:
            changed_symbol_entry["callers_total"] = len(calls)
        else:
            changed_symbol_entry["callers_total"] = None
        unsure = research.unsure.total() + len(graph.edges) - len(calls)
        if unsure:
            changed_symbol_entry["callers_unsure"] = unsure
        changed_symbol_entry["callers"] = [
            {
                **path_to_json(edge.path),  # type: ignore[typeddict-item]  # as above
                "line_number": edge.line,
                "container": graph.nodes[edge.source].definition.qualified,
            }
            for edge in calls[:CALLERS]
        ]
        size += sum(
            CALLER_OVERHEAD + len(caller["file_path"])
            for caller in changed_symbol_entry["callers"]
        )
    return size
