"""A recursive ``grep``: GNU grep itself, on the files that the index does not rule out and on all that it does not cover.

What grep prints is its own, so a plan changes which files it is given and nothing else. A file that is named is treated
like one that is met on a walk, except that wildcards are compared with more of its path (``Selection.check_operand``) and
that its name is printed only if there are several; ``-H`` in front prints it always, and a later ``-h`` still wins.
"""

import os
import stat
from typing import Final, NamedTuple

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import FlashgrepError
from flashgrep.files.walk import Walker
from flashgrep.parts.hook.below import (
    Below,
    Entry,
    check_cover,
    check_size,
    find_entries,
    locate,
)
from flashgrep.parts.hook.grep_arguments import (
    GrepArguments,
    Selection,
    parse,
    read_pattern,
)
from flashgrep.parts.hook.links import find_links
from flashgrep.parts.ripgrep.arguments import Unplannable
from flashgrep.parts.ripgrep.plan import find_candidates
from flashgrep.pattern import Pattern
from flashgrep.search.snapshot import Snapshot

NO_FILE: Final = b"/dev/null"
"""Searched if no file can match: grep still checks its arguments, prints nothing and exits with its status."""
FEW: Final = 50
FEWEST_NAMED: Final = 2
MOST_SHARE: Final = 0.5
"""Of a folder's files: naming a file costs about a tenth of reading it."""


class Plan(NamedTuple):
    """The arguments to give to a program, and how many files it need not read."""

    words: list[bytes]
    unread: int


def plan(
    argv: list[str], cwd: bytes, snapshot: Snapshot, walker: Walker
) -> Plan | None:
    """Return what to give to grep in place of these arguments; None: these as they are.

    ``snapshot``: the project around the call's folder, as it is now.
    """
    try:
        return _plan(argv, cwd, snapshot, walker)
    except (Unplannable, FlashgrepError, OSError, ValueError):
        return None


def _plan(argv: list[str], cwd: bytes, snapshot: Snapshot, walker: Walker) -> Plan:
    arguments = parse(argv)
    if not arguments.is_recursive:
        return _plan_files(arguments, cwd, snapshot, walker)
    check_cover(snapshot, walker)
    pattern, operands = read_pattern(arguments, cwd)
    selection = Selection(arguments)

    likely = find_likely(pattern, snapshot)
    entries: list[Entry] = []
    # Of a single file the name is not printed, and nothing is saved.
    if len(operands) == 1 and _is_file(os.path.join(cwd, os.fsencode(operands[0]))):
        raise Unplannable
    searched = 0
    for operand in map(os.fsencode, operands or [""]):
        if operand and _is_file(os.path.join(cwd, operand)):
            entries.append(Entry(operand, is_folder=False))
            continue
        below = locate(operand, cwd, snapshot, walker)
        # grep compares wildcards for folders with the operand itself, too.
        selection.check_operand(operand.rstrip(b"/") or b".", is_folder=True)
        links: list[bytes] = []
        if arguments.follows_links:
            links = find_links(below, snapshot, selection)
        inner = find_entries(below, [*likely, *links], snapshot, selection)
        for entry in inner:
            selection.check_operand(entry.path, is_folder=entry.is_folder)
        entries += inner
        searched += len(snapshot.table.below(below.inside))
    if len(entries) > max(FEW, searched * MOST_SHARE):
        raise Unplannable
    check_size(entries)
    names = [entry.path for entry in entries] or [NO_FILE]
    words = [b"-H", *map(os.fsencode, arguments.words)]
    if not arguments.has_pattern_flags:
        words += [b"-e", os.fsencode(arguments.operands[0])]
    unread = max(0, searched - len(entries))
    return Plan([*words, b"--", *names], unread)


def _plan_files(
    arguments: GrepArguments, cwd: bytes, snapshot: Snapshot, walker: Walker
) -> Plan:
    """Return a plan for files that are named, as ``xargs`` names them: without those that the index rules out."""
    check_cover(snapshot, walker)
    pattern, operands = read_pattern(arguments, cwd)
    selecting = {"include", "exclude", "exclude-dir"}
    if any(flag.meaning in selecting for flag in arguments.flags):
        raise Unplannable
    # Of a single file the name is not printed, and nothing is saved.
    if len(operands) < FEWEST_NAMED or "-" in operands:
        raise Unplannable
    below = locate(b"", cwd, snapshot, walker)
    likely = set(find_likely(pattern, snapshot))
    names: list[bytes] = []
    for operand in map(os.fsencode, operands):
        checkpoint()
        path = _find_path(operand, below, snapshot)
        if path is None or path in likely or path in snapshot.pending:
            names.append(operand)
    if len(names) > len(operands) * MOST_SHARE:
        raise Unplannable
    words = [b"-H", *map(os.fsencode, arguments.words)]
    if not arguments.has_pattern_flags:
        words += [b"-e", os.fsencode(arguments.operands[0])]
    return Plan([*words, b"--", *(names or [NO_FILE])], len(operands) - len(names))


def _find_path(operand: bytes, below: Below, snapshot: Snapshot) -> bytes | None:
    """Return the path of a file of the table; None: it is none, or is not written as one."""
    plain = operand.removeprefix(b"./")
    root = snapshot.root.path + b"/"
    # Behind a link ``..`` is elsewhere, and with a slash at the end a file is an error.
    if plain != os.path.normpath(plain):
        return None
    if plain.startswith(root):
        path = plain.removeprefix(root)
    else:
        path = below.lead + plain
    if plain.startswith(b"..") or snapshot.table.find(path) is None:
        return None
    return path


def find_likely(pattern: Pattern, snapshot: Snapshot) -> list[bytes]:
    """Return the files of the table in which a program that reads every byte may match.

    Raises:
        Unplannable: the index cannot say.

    """
    likely = find_candidates(pattern, snapshot)
    # These programs read skipped files, and on behind a NUL byte, where a text of the
    # index ends; they do not decode UTF-16.
    likely += snapshot.table.skipped
    if snapshot.reader is not None:
        likely += snapshot.reader.find_cut()
    return list(dict.fromkeys(likely))


def _is_file(path: bytes) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)
