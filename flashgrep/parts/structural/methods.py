"""Search by syntax, and rewriting of its matches."""

import shlex
import time
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, NotRequired

from anyio.to_thread import run_sync
from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.api.coverage import Coverage
from flashgrep.api.host import Host
from flashgrep.api.view import Project, View
from flashgrep.base.errors import Conflict, DeadlineExceeded, InvalidParams, TooLarge
from flashgrep.base.languages import SYNTAX
from flashgrep.base.model import path_to_json
from flashgrep.base.registry import (
    RARE,
    Call,
    Handler,
    Languages,
    Params,
    Usage,
    handler,
)
from flashgrep.files.globs import PathFilter
from flashgrep.methods.common import (
    CHARS_PER_TOKEN,
    Below,
    Budget,
    Cursor,
    Deadline,
    Exclude,
    FileChoice,
    FilePlace,
    Fresh,
    Include,
    MaxTokens,
    ProjectName,
    Rev,
    decode_cursor,
    encode_cursor,
    make_path_filter,
    open_view,
)
from flashgrep.methods.text import Note, Style, render_hits
from flashgrep.parts.edit.batch import (
    BatchResult,
    Replacement,
    Rewriting,
    plan_rewriting,
    write_batch,
)
from flashgrep.parts.edit.methods import check_may_write, render_batch, to_the_end
from flashgrep.parts.structural.structural_search import (
    CODE,
    FileMatches,
    Position,
    StructuralAnswer,
    StructuralQuestion,
    choose_languages,
    search_structural,
)

MOST_PATTERN = 8_192
"""Maximum number of characters of a pattern, and of a rewrite."""
MOST_REWRITTEN = 10_000
"""Most matches that one call rewrites."""
HIT_OVERHEAD = 150
"""Characters of JSON around a match."""
ASKED = {"pattern", "rewrite", "path", "include", "exclude", "language"}
"""What a change carries to identify it."""
LINES_SHOWN = 8
"""Of a match, for a model."""


class StructuralParams(Params):
    """The pattern, where to search, and how much to return."""

    pattern: str = Field(
        min_length=1,
        max_length=MOST_PATTERN,
        description="Code with metavariables, e.g. `foo($A, 1)`, `foo($$$ARGS)`: $A is one node, $$$ARGS any number.",
    )
    path: Below = None
    include: Include = []
    exclude: Exclude = []
    language: Annotated[
        Languages,
        Usage(short="-t"),
        Field(
            description="Languages of the pattern, e.g. py or rust; default: every one in which it parses."
        ),
    ] = []
    rewrite: str | None = Field(
        None,
        max_length=MOST_PATTERN,
        description="Replacement of each match: shows the diff, writes nothing.",
    )
    limit: Annotated[int, Usage(short="-l")] = Field(
        50, ge=1, le=10_000, description="Most matches to return."
    )
    cursor: Cursor = None
    max_tokens: MaxTokens = 8_000
    deadline_ms: Deadline = 30_000
    fresh: Fresh = True
    rev: Annotated[Rev, RARE] = None
    project: ProjectName = None


class StructuralHit(FilePlace):
    """A match: `metavariables` by name, `replacement` what it would become, `cut` whether its text continues."""

    start_line: int
    end_line: int
    column: int
    text: str
    metavariables: dict[str, str]
    language: str
    cut: NotRequired[bool]
    replacement: NotRequired[str]


class StructuralResult(TypedDict):
    """Matches by path, their total if known, and what was covered.

    With `rewrite`: the diff of `files` files, and `change`, which structural_rewrite takes to write it.
    """

    results: list[StructuralHit]
    total: int | None
    next: str | None
    coverage: Coverage
    diff: NotRequired[str]
    diff_truncated: NotRequired[bool]
    change: NotRequired[str]
    files: NotRequired[int]


def render_structural(result: StructuralResult, style: Style) -> Iterator[str]:
    """Yield the matches like those of a search, or the diff and how to write it."""
    if "diff" not in result:
        hits = list[StructuralHit]()
        for hit in result["results"]:
            lines = hit["text"].split("\n")
            if (
                not style.is_person and len(lines) > LINES_SHOWN
            ):  # a model sees the first lines of a long one
                text = "\n".join(
                    [*lines[: LINES_SHOWN - 1], f"… to line {hit['end_line']}"]
                )
                hits.append({**hit, "text": text, "cut": False})
            else:
                hits.append(hit)
        yield from render_hits(hits, style)
        return
    yield result["diff"].removesuffix("\n")
    if result["diff_truncated"]:
        yield "[the diff is cut here; raise max_tokens, or narrow it by path]"
    if "change" in result:
        change = result["change"]
        if style.is_person:
            way = f"fgrep structural-rewrite {shlex.quote(change)}"
        else:
            way = f"structural_rewrite change={change}"
        yield Note(
            f"[{result['total']} places in {result['files']} files; nothing is written yet; to write it: {way}]"
        )


@handler(
    "structural",
    title="Search by syntax",
    command="structural pattern",
    toolset="structural",
    render=render_structural,
)
async def structural(call: Call[Host], params: StructuralParams) -> StructuralResult:
    """Find code by its syntax: a pattern is code with metavariables, whatever its layout.

    Use it for calls, statements or definitions of a certain shape; query for plain text.
    """
    started = time.perf_counter()
    view: View
    if params.rewrite is None:
        view = await open_view(call, params)
    elif params.rev or params.cursor:
        raise InvalidParams(
            "rewrite: works on all current files at once: leave out rev and cursor",
            field="rewrite",
        )
    else:  # unsaved text in an editor is not overwritten
        project = await call.host.workspace(call, params.project)
        view = project.current()
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
            below=params.path,
        ),
    )
    if params.cursor is None:
        position = None
    else:
        position = decode_cursor(
            params,
            params.cursor,
            lambda path, taken: Position(str(path).encode("latin-1"), int(taken)),
        )
    answer = await _search(
        view,
        params,
        keep,
        limit=params.limit if params.rewrite is None else MOST_REWRITTEN,
        position=position,
    )
    shown: list[StructuralHit] = []
    budget = Budget(params.max_tokens)
    reached = None
    for file in answer.files:
        hits = [
            _format_hit(file, match)
            for match in file.matches[: params.limit - len(shown)]
        ]
        # At least one match of the first file, so that each page makes progress.
        taken = budget.fit(hits, _measure_hit, least=not shown)
        shown += taken
        if taken:
            reached = Position(file.path, file.before + len(taken))
        if len(taken) < len(file.matches):
            break
    else:
        reached = answer.next
    result: StructuralResult = {
        "results": shown,
        "total": answer.total,
        "next": encode_cursor(params, reached.path.decode("latin-1"), reached.taken)
        if reached
        else None,
        "coverage": view.coverage(
            answer,
            fresh=fresh,
            started=started,
            keep=keep,
        ),
    }
    if view.is_on_disk and params.rewrite is not None:
        await _show_difference(view.project, answer, params, result)
    return result


async def _show_difference(
    project: Project,
    answer: StructuralAnswer,
    params: StructuralParams,
    result: StructuralResult,
) -> None:
    """Put the rewritten matches into a result."""
    rewriting = await _plan(project, answer)
    # Checked by the engine that would write it: a diff that is shown can be written.
    rewritten, _ = await run_sync(
        partial(
            write_batch, project.editor, rewriting.operations, "atomic", dry_run=True
        )
    )
    for operation in rewritten["results"]:
        if operation["status"] in {"failed", "conflict"}:
            raise Conflict(
                f"{operation['file_path']}: {operation['message']}",
                reason=operation["reason_code"],
            )
    diff = rewritten.get("diff", "")
    most = params.max_tokens * CHARS_PER_TOKEN
    result["next"], result["files"] = None, rewriting.files
    result["diff"], result["diff_truncated"] = (
        diff[:most],
        len(diff) > most or rewritten.get("diff_truncated", False),
    )
    # Only a whole change may be written: its name stands for all places, and a part
    # would look like all of them.
    if answer.complete and answer.next is None and rewriting.operations:
        asked = params.model_dump_json(include=ASKED, exclude_defaults=True)
        result["change"] = f"{rewriting.name} {asked}"
    skipped = result["coverage"]["files_skipped"]
    for reason, count in rewriting.skipped.items():
        skipped[reason] = skipped.get(reason, 0) + count


async def _plan(project: Project, answer: StructuralAnswer) -> Rewriting:
    """Return how the matches are rewritten."""

    def plan() -> Rewriting:
        return plan_rewriting(
            (
                file.path,
                file.document,
                [
                    Replacement(
                        match["span"][0], match["span"][1], match["replacement"]
                    )
                    for match in file.matches
                ],
            )
            for file in answer.files
        )

    rewriting = await project.in_turn(plan)
    observed = len(rewriting.operations)
    most = project.editor.limits.batch_operations
    if observed > most or answer.next is not None:
        raise TooLarge(
            f"it would change {rewriting.files} files in more than {most} places",
            observed=observed,
            limit=most,
            guidance="rewrite part of the project at a time, by path or include",
        )
    return rewriting


class StructuralRewriteParams(Params):
    """Parameters of structural_rewrite."""

    change: str = Field(
        min_length=1,
        max_length=8 * MOST_PATTERN,
        description="`change` from an answer of structural, unchanged.",
    )
    deadline_ms: Deadline = 60_000
    project: ProjectName = None


@handler(
    "structural_rewrite",
    title="Rewrite by syntax",
    safety="destructive",
    toolset="structural",
    render=render_batch,
)
async def structural_rewrite(
    call: Call[Host], params: StructuralRewriteParams
) -> BatchResult:
    """Write the diff that structural showed for a rewrite: all of it, or nothing if the diff would differ now."""
    name, _, question_text = params.change.partition(" ")
    try:
        question = StructuralParams.model_validate_json(question_text)
    except ValueError:  # includes pydantic's errors
        raise InvalidParams(
            "change: unknown; pass the value that structural returned", field="change"
        ) from None
    project = await call.host.workspace(call, params.project)
    check_may_write(call, project)
    view = project.current()
    await view.refresh()
    keep = await make_path_filter(
        view,
        FileChoice(
            include=question.include,
            exclude=question.exclude,
            languages=question.language,
            below=question.path,
        ),
    )
    question = question.model_copy(update={"deadline_ms": params.deadline_ms})
    answer = await _search(view, question, keep, limit=MOST_REWRITTEN)
    if not answer.complete:
        raise DeadlineExceeded(
            "not all files could be searched in time; nothing is written"
        )
    rewriting = await _plan(project, answer)
    # Computed again from the pattern instead of kept: no state between the calls, and
    # every change of a file shows.
    if rewriting.name != name:
        raise Conflict(
            "the diff would differ now; nothing is written",
            reason="change_differs",
            guidance="call structural again, and look at the new diff",
        )
    result, paths = await to_the_end(
        partial(write_batch, project.editor, rewriting.operations, "atomic")
    )
    project.note_changes(paths)
    return result


HANDLERS: tuple[Handler, ...] = (structural, structural_rewrite)


async def _search(
    view: View,
    params: StructuralParams,
    keep: PathFilter | None,
    *,
    limit: int,
    position: Position | None = None,
) -> StructuralAnswer:
    """Return the matches in the files as they are known now."""
    if params.language:
        named = choose_languages(params.language)
    else:
        named = CODE
    if not named:
        known = ", ".join(sorted(SYNTAX))
        raise InvalidParams(
            f"language: no grammar to search by syntax; known are {known}",
            field="language",
        )
    question = StructuralQuestion(
        pattern=params.pattern,
        rewrite=params.rewrite,
        languages=named,
        is_chosen=bool(params.language),
        keep=keep,
        limit=limit,
        position=position,
        deadline=time.monotonic() + params.deadline_ms / 1000,
    )
    return await view.in_thread(lambda snapshot: search_structural(snapshot, question))


def _format_hit(found: FileMatches, match: dict[str, Any]) -> StructuralHit:
    hit: StructuralHit = {
        **path_to_json(found.path),  # type: ignore[typeddict-item]  # file_path, and file_path_bytes where needed
        "start_line": match["start_line"],
        "end_line": match["end_line"],
        "column": match["column"],
        "text": match["text"],
        "metavariables": match["metavariables"],
        "language": found.language,
    }
    if match["cut"]:
        hit["cut"] = True
    if "replacement" in match:
        hit["replacement"] = match["replacement"]
    return hit


def _measure_hit(hit: StructuralHit) -> int:
    captured = 0
    for name, text in hit["metavariables"].items():
        captured += len(name) + len(text)
    return (
        HIT_OVERHEAD
        + len(hit["file_path"])
        + len(hit["text"])
        + captured
        + len(hit.get("replacement", ""))
    )
