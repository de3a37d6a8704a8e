"""The daemon's side of ``flashgrep hook``: payloads, explanations, and plans for the programs that take their place."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from anyio.to_thread import run_sync

from flashgrep.api.service import ServedAnswer
from flashgrep.base.paths import from_latin1
from flashgrep.files.walk import Walker
from flashgrep.parts.hook import find_plan, git_plan, grep_plan
from flashgrep.parts.hook.costs import SearchedTree
from flashgrep.parts.hook.grep_plan import Plan
from flashgrep.parts.hook.payloads import (
    HOSTS,
    format_answer,
    format_nothing,
    read_payload,
)
from flashgrep.parts.hook.rewriting import Rewriting, is_refused, rewrite
from flashgrep.parts.ripgrep.arguments import Call, Unplannable, parse, read_room
from flashgrep.parts.ripgrep.plan import answer as plan_ripgrep
from flashgrep.parts.ripgrep.plan import find_workspace
from flashgrep.rpc.context import RequestContext
from flashgrep.search.snapshot import Snapshot

MOST_TOLD: Final = 3
"""Of the entries that were left out, by name; the rest is counted."""
_VERSION_SECONDS: Final = 2.0
_NARROWING: Final = (
    "hidden unrestricted no-ignore no-ignore-vcs no-ignore-files quiet files glob iglob"
)
_NOT_TOLD: Final = frozenset(_NARROWING.split())
"""Flags of ripgrep with which it leaves out less, or is asked for less."""
REFUSAL: Final = (
    "not run: unrolled, the repeats of its pattern take gigabytes of memory; "
    "write + or * for the larger ones"
)
_OWN: Final = (b".git", b".flashgrep")
"""Nobody looks for source in these."""


Planner = Callable[[list[str], bytes, Snapshot, Walker], Plan | None]
PLANNERS: Final[Mapping[str, Planner]] = {
    "grep": grep_plan.plan,
    "find": find_plan.plan,
}


async def answer_call(
    context: RequestContext, cwd: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Answer one call of the client; bytes are latin-1 text."""
    argv: list[str] = params["argv"]
    kind = argv[0]
    if kind == "payload":
        return {"stdout": answer_payload(context, cwd, params, argv[1])}
    if kind == "--explain":
        tree = find_tree(context, cwd)
        rewriting = rewrite(argv[1], str(params["flashgrep"]), tree=tree)
        return {"stdout": format_explanation(rewriting)}
    words = argv[1:]
    if kind == "rg":
        return await answer_ripgrep(context, cwd, words, params)
    if is_refused(kind, words):
        return {"plan": None, "refusal": f"{kind} {REFUSAL}"}
    try:
        is_known = await run_sync(is_gnu, from_latin1(params["program"]))
    except (OSError, subprocess.TimeoutExpired):
        is_known = False
    if not is_known:
        return {"plan": None}
    if kind == "git":
        git = git_plan.Git(
            from_latin1(params["program"]),
            from_latin1(params["home"]),
            from_latin1(params["settings"]),
            context.call.host.environ.get("PATH", os.defpath),
        )
        plan: Planner = partial(git_plan.plan, git=git)
    else:
        plan = PLANNERS[kind]
    return await answer_program(context, cwd, f"hook {kind}", partial(plan, words))


def find_tree(context: RequestContext, folder: str) -> SearchedTree | None:
    """Return the files of the project around a folder; None: they are not known."""
    workspace = find_workspace(context, folder)
    if workspace is None:
        return None
    return SearchedTree(str(workspace.path), folder, workspace.tree.table)


def answer_payload(
    context: RequestContext, cwd: str, params: Mapping[str, Any], host: str
) -> str:
    """Return what a host is told about a payload; empty: it runs its command."""
    call = read_payload(str(params["payload"]), host if host in HOSTS else "")
    if call is None:
        return format_nothing(host)
    tree = find_tree(context, call.folder or cwd)
    rewriting = rewrite(call.command, str(params["flashgrep"]), call.folder, tree)
    if rewriting.text == call.command:
        return format_nothing(call.host)
    return format_answer(call, rewriting.text, only_reads=rewriting.only_reads)


def format_explanation(rewriting: Rewriting) -> str:
    """Return what happens to a line, command by command."""
    lines = [f"runs: {rewriting.text}"]
    for verdict in rewriting.verdicts:
        if verdict.reason:
            lines.append(f"  {verdict.name or 'all'}: as it is, {verdict.reason}")
        elif verdict.refused:
            lines.append(f"  {verdict.name}: {REFUSAL}")
        else:
            lines.append(f"  {verdict.name}: by flashgrep, where the index proves")
    if any(verdict.is_served for verdict in rewriting.verdicts):
        if rewriting.only_reads:
            lines.append(
                "  the host need not ask: the line only reads, below its folder"
            )
        else:
            lines.append("  the host asks as it always does")
    return "\n".join(lines) + "\n"


async def answer_program(
    context: RequestContext, cwd: str, name: str, plan: partial[Plan | None]
) -> dict[str, Any]:
    """Return ``{"plan": arguments}`` for a call of GNU grep, find or git; None: its own."""
    started = time.perf_counter()
    workspace = find_workspace(context, cwd)
    if workspace is None or not await workspace.refresh():
        return {"plan": None}
    planned = await workspace.in_thread(
        lambda snapshot: plan(os.fsencode(cwd), snapshot, workspace.walker)
    )
    if planned is None:
        return {"plan": None}
    took = time.perf_counter() - started
    answer = ServedAnswer(name, workspace.name, took, 0, planned.unread)
    context.call.host.note_answer(answer)
    return {"plan": [word.decode("latin-1") for word in planned.words]}


async def answer_ripgrep(
    context: RequestContext, cwd: str, argv: Sequence[str], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a plan for a call of ripgrep, and a note on what it leaves out by itself."""
    started = time.perf_counter()
    config = params.get("config")
    call = Call(
        argv=argv,
        cwd=os.fsencode(cwd),
        config=from_latin1(config) if config else None,
        readable_input=bool(params.get("readable_input")),
        room=read_room(params),
    )
    planned = await plan_ripgrep(context, call)
    workspace = find_workspace(context, cwd)
    if workspace is not None and planned["plan"] is not None:
        took = time.perf_counter() - started
        context.call.host.note_answer(ServedAnswer("hook rg", workspace.name, took, 0))
    note = ""
    if workspace is not None and searches_whole_folder(argv):
        note = await workspace.in_thread(
            lambda snapshot: describe_omissions(snapshot, os.fsencode(cwd))
        )
    return {**planned, "note": note}


def searches_whole_folder(argv: Sequence[str]) -> bool:
    """Return whether ripgrep is asked for all that it finds below the current folder."""
    try:
        arguments = parse(argv)
    except Unplannable:
        return False
    names = {flag.name for flag in arguments.flags}
    if not names.isdisjoint(_NOT_TOLD):
        return False
    paths = arguments.positional
    if "regexp" not in names:
        paths = paths[1:]
    return {".", "./"}.issuperset(paths)


def describe_omissions(snapshot: Snapshot, cwd: bytes) -> str:
    """Return which entries below a folder ripgrep leaves out because they are ignored, hidden or binary; or nothing."""
    inside = os.path.relpath(cwd, snapshot.root.path)
    lead = inside + b"/"
    if inside == b".":
        lead = b""
    names: list[str] = []
    for path, is_folder in (snapshot.excluded or {}).items():
        if not path.startswith(lead):
            continue
        _, _, name = path.rpartition(b"/")
        if name in _OWN:
            continue
        text = path.removeprefix(lead).decode(errors="replace")
        if is_folder:
            text += "/"
        names.append(text)
    binary = 0
    for path, reason in snapshot.table.skipped.items():
        if reason == "binary" and path.startswith(lead):
            binary += 1
    parts: list[str] = []
    if names:
        # Folders first.
        names.sort(key=lambda name: (not name.endswith("/"), name))
        omitted = f"ignored or hidden {', '.join(names[:MOST_TOLD])}"
        rest = len(names) - MOST_TOLD
        if rest > 0:
            omitted += f" and {rest} more"
        parts.append(omitted)
    if binary == 1:
        parts.append("1 binary file")
    elif binary:
        parts.append(f"{binary} binary files")
    if not parts:
        return ""
    return f"rg did not search {'; '.join(parts)} (rg -uuu does)"


@lru_cache(maxsize=8)
def is_gnu(program: str) -> bool:
    """Return whether a program is git, or GNU's grep or find, whose flags and patterns are known here.

    Raises:
        OSError: it cannot be run.
        subprocess.TimeoutExpired: it does not answer; a later call asks again.

    """
    process = subprocess.run(
        [program, "--version"],
        capture_output=True,
        check=False,
        timeout=_VERSION_SECONDS,
    )
    names = (b"GNU grep", b"GNU findutils", b"git version")
    return any(name in process.stdout for name in names)
