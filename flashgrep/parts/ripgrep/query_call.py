"""``fgrep query`` in a shell: ripgrep prints the lines, on the files that the index does not rule out.

So a pipe gets every line, whole and in path order, byte for byte as ripgrep writes it. What ripgrep cannot answer is
left to the method: other revisions and projects, answers as JSON, limits and cursors, and the page of best hits that a
person at a terminal gets.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from flashgrep.base.errors import NotFound
from flashgrep.cli.grep_options import (
    GrepLine,
    Mode,
    WrongOption,
    find_ripgrep_only,
    parse,
    write_ripgrep,
)
from flashgrep.cli.query_line import find_fields
from flashgrep.files.globs import types
from flashgrep.methods.query import selects_text
from flashgrep.parts.ripgrep.arguments import Call, read_room
from flashgrep.parts.ripgrep.arguments import parse as parse_words
from flashgrep.parts.ripgrep.ordered import (
    check_cuts,
    cut_names,
    cut_walk,
    find_folder,
    is_cuttable,
    sample_folder,
    sample_project,
)
from flashgrep.parts.ripgrep.plan import NO_FILE, WITH_FILENAME, answer
from flashgrep.pattern.grep_syntax import BASIC_BAR
from flashgrep.project import Workspace
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.context import RequestContext

FALLBACK_NOTE = "no line has the text itself; these match it as a regular expression"
"""As for other readers of a smart answer."""

PROBE_BYTES = 64
"""Of the words that a probe has before those of the call."""


async def answer_query(
    context: RequestContext, cwd: str, params: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return ripgrep's arguments, as ``{"ripgrep": calls}``, bytes as latin-1; None: the method answers.

    Several calls are for consecutive parts of the search. ``warnings``: what is wrong with the project's settings.
    ``probe``: words that say by their status whether a line has the text itself; without one ``otherwise`` is run in
    place of ``ripgrep``, after ``note``.
    """
    catalogue: Catalogue = context.call.host
    try:
        line = parse(params["argv"], find_fields(catalogue.registry))
    except WrongOption:
        return None
    if is_for_method(line, params):
        return None
    needs_ripgrep = bool(find_ripgrep_only(line))
    workspace = None
    paths = line.paths
    try:
        root = catalogue.find_enclosing_root(Path(cwd))
        workspace = await catalogue.open(str(root))
    except NotFound:
        if not paths and not needs_ripgrep:
            return None
        if not paths:
            raise
    if workspace is not None:
        # ripgrep knows neither revisions nor our ignore files and folders.
        differs = workspace.walker.differs_from_ripgrep and not needs_ripgrep
        if workspace.is_bare or differs:
            return None
        above = len(Path(cwd).relative_to(workspace.path).parts)
        if above and not paths:
            paths = ["/".join([".."] * above)]
    arguments = [*choose_look(line, params), "--", *paths]
    mode: Mode = "literal" if line.mode == "smart" else line.mode
    literal = write_ripgrep(line, mode) + arguments
    room = read_room(params) - PROBE_BYTES
    planned = await plan_call(context, cwd, literal, room)
    # On a terminal ripgrep asks itself whether there are colours.
    to_cut = None if params.get("tty") else workspace
    result: dict[str, Any] = {"ripgrep": await cut_call(to_cut, cwd, planned)}
    if workspace is not None:
        result["warnings"] = list(workspace.take_warnings())
    if line.may_be_regex and selects_text(tuple(line.patterns)):
        result["probe"] = [encode(b"--quiet"), *planned]
        regex = write_ripgrep(line, "regex") + arguments
        otherwise = await plan_call(context, cwd, regex, room)
        result["otherwise"] = await cut_call(to_cut, cwd, otherwise)
        result["note"] = FALLBACK_NOTE
        return result
    finds_nothing = planned[-2:] == ["--", encode(NO_FILE)]
    if finds_nothing and not needs_ripgrep and not line.paths:
        # Nothing has it: the method says how much was searched and what comes near.
        return None
    return result


def is_for_method(line: GrepLine, params: Mapping[str, Any]) -> bool:
    """Return whether the words of a call alone say that the method answers."""
    if not line.patterns and not line.has("file"):
        return True
    if line.others or params.get("path_map"):
        return True
    if not has_ripgrep_types(line) or any("\n" in text for text in line.patterns):
        return True
    if find_ripgrep_only(line):
        return False
    if params.get("tty") and not line.everything:
        return True
    # The method also reads a pattern as grep does.
    has_bars = any(BASIC_BAR in text for text in line.patterns)
    return line.mode == "smart" and has_bars


def has_ripgrep_types(line: GrepLine) -> bool:
    """Return whether ripgrep knows the file types that are asked for; else they are languages of ours."""
    types_wanted = {value for name, value in line.flags if name in {"type", "type-not"}}
    return types_wanted <= {*types(), "all"} or line.has("type-add")


def choose_look(line: GrepLine, params: Mapping[str, Any]) -> list[str]:
    """Return the flags for how the lines are printed, where the call leaves it open."""
    words: list[str] = []
    if not line.has("line-number", "no-line-number", "quiet"):
        words.append("--line-number")
    if not line.has("sort", "sortr", "quiet"):
        words.append("--sort=path")
    if params.get("pager"):
        # ripgrep writes into a pipe, but a person reads it on a terminal.
        if params.get("color") and not line.has("color"):
            words.append("--color=always")
        if not line.has("heading", "no-heading"):
            words.append("--heading")
    return words


async def plan_call(
    context: RequestContext, cwd: str, words: list[str], room: int
) -> list[str]:
    """Return ripgrep's words for a call, on the files that may match if they are known; bytes as latin-1."""
    call = Call(
        argv=words,
        cwd=os.fsencode(cwd),
        config=None,
        readable_input=False,
        room=room,
    )
    planned = (await answer(context, call))["plan"]
    if planned is not None:
        return list(planned)
    return [encode(os.fsencode(word)) for word in ["--no-config", *words]]


async def cut_call(
    workspace: Workspace | None, cwd: str, words: list[str]
) -> list[list[str]]:
    """Return the calls for consecutive parts of a call, or that alone if it is as fast or its output another."""
    arguments = parse_words(words)
    if workspace is None or not is_cuttable(arguments):
        return [words]
    if words[0] == encode(WITH_FILENAME):
        return cut_names(words, len(words) - len(arguments.positional))
    folder = find_folder(arguments.positional)
    if folder is None:
        return [words]
    whole = Path(cwd, folder)
    place = os.fsencode(whole)
    inside = b""
    if whole != workspace.path:
        inside = os.fsencode(whole.relative_to(workspace.path))
    if workspace.tree.listed_since is None:
        sample = await workspace.in_turn(partial(sample_folder, place))
    else:
        sample = await workspace.in_thread(partial(sample_project, inside=inside))
    # What was listed may have changed since.
    check = partial(check_cuts, sample.find_cuts(), place)
    return cut_walk(words, folder, await workspace.in_turn(check))


def encode(word: bytes) -> str:
    """Return a word of bytes as the wire carries it."""
    return word.decode("latin-1")
