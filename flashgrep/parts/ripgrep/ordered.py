"""A search in the order of paths as several calls, each over the next part of the tree.

ripgrep sorts on one thread, so a sorted search of everything takes as many times longer as there are cores. Its calls
over parts run side by side, and their output is joined in order (``cli/joined_runs.py``). A part of a walk is the same
call with globs that leave out what belongs to other parts: every name is on one side of a cut, also one that is new,
hidden or no UTF-8, and all else about the walk is ripgrep's own.
"""

import os
import re
import stat
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

from flashgrep.base.cores import count_cores
from flashgrep.parts.ripgrep.arguments import (
    COVER,
    HARMLESS,
    PATTERN_FLAGS,
    Arguments,
    Flag,
)
from flashgrep.parts.ripgrep.plan import as_folder
from flashgrep.search.snapshot import SIZE, Snapshot

LEAST_FILES = 500
"""Of a part: one more run of ripgrep takes 4 ms, in which it searches 400 files."""
PARTS_EACH = 4
"""Parts for each core: they never take equally long."""
MOST_PARTS = 48
FILE_BYTES = 16_384
"""What a file takes beside its bytes, in bytes: 10 µs are as many at ripgrep's pace."""
MOST_FOLDERS = 300
"""Read for a sample of a tree that is not listed yet, in 6 ms."""
MOST_SAMPLED = 2_000
"""Paths that stand for a tree."""
DEEPEST = 4
"""Most names in a cut."""

_SINGLE = frozenset(
    [
        "after-context",
        "before-context",
        "context",
        "file",
        "heading",
        "iglob",
        "no-messages",
        "no-sort-files",
        "pretty",
        "quiet",
        "sort",
        "sortr",
        "threads",
    ]
)
"""Flags that print something between files, or need a single run for another reason; ``sort`` is looked at. ripgrep
takes each ``--iglob`` after all ``--glob``, and the last that matches holds: one would undo a cut."""
_BY_FILE = frozenset(
    [
        "files-without-match",
        "regexp",
        "max-count",
        "invert-match",
        "multiline",
        "multiline-dotall",
        "pcre2",
        "text",
    ]
)
_CUTTABLE = (HARMLESS | COVER | PATTERN_FLAGS.keys() | _BY_FILE) - _SINGLE
_BY_PATH = frozenset({Flag("sort", "path"), Flag("sort-files", None)})
_WORD = re.compile(rb"\w{1,24}", re.ASCII)
"""The beginning of a name that a cut may have: after a slash in the order of bytes, and without a meaning in globs."""
_PLAIN = re.compile(r"(?:\w[\w.-]*/)*", re.ASCII)
"""A folder that means itself in a glob."""

Cut = tuple[str, ...]
"""Folders, and the beginning of the first name in them that comes after the cut."""


def is_cuttable(arguments: Arguments) -> bool:
    """Return whether a call's output is that of its parts, one after the other."""
    sorting = [flag for flag in arguments.flags if flag.name in {"sort", "sort-files"}]
    others = {flag.name for flag in arguments.flags if flag not in sorting}
    return bool(sorting) and _BY_PATH.issuperset(sorting) and others <= _CUTTABLE


def find_folder(paths: Sequence[str]) -> str | None:
    """Return the one folder below the current one that a call walks, as what is before names; None: it is no such."""
    if not paths:
        return ""
    folder = f"{paths[0].removesuffix('/')}/".removeprefix("./")
    if len(paths) > 1 or _PLAIN.fullmatch(folder) is None:
        return None
    return folder


def count_parts(files: int) -> int:
    """Return into how many parts a search of so many files is cut; one core has nothing to gain."""
    cores = count_cores()
    if cores == 1:
        return 1
    return max(1, min(files // LEAST_FILES, PARTS_EACH * cores, MOST_PARTS))


def cut_names(words: Sequence[str], start: int) -> list[list[str]]:
    """Return a call, whose words from ``start`` on are files in order, as calls for parts of them."""
    # The candidates of an index: their sizes are not known here, and parts are many.
    names = words[start:]
    count = count_parts(len(names))
    ends = [at * len(names) // count for at in range(count + 1)]
    calls = []
    for low, high in pairwise(ends):
        calls.append([*words[:start], *names[low:high]])
    return calls


def cut_walk(words: Sequence[str], folder: str, cuts: Sequence[Cut]) -> list[list[str]]:
    """Return a call that walks one folder as calls for the parts between cuts, which are in order.

    ``folder``: what is before the names in it, as seen from the current folder.
    """
    at = words.index("--")
    calls = []
    for low, high in pairwise((None, *cuts, None)):
        globs: list[str] = []
        if low is not None:
            globs += match_before(low, folder)
        if high is not None:
            globs += match_from(high, folder)
        flags = [f"--glob=!/{glob}" for glob in globs]
        calls.append([*words[:at], *flags, *words[at:]])
    return calls


def match_before(cut: Cut, folder: str) -> list[str]:
    """Return the globs that match all that comes before a cut in a folder."""
    globs = []
    for name in cut:
        # Names that agree with the cut's up to a letter, and have a lesser one there, or end before it.
        for at, letter in enumerate(name):
            start = f"{folder}{name[:at]}"
            globs.append(f"{start}[\x01-{chr(ord(letter) - 1)}]*")
            if at:
                globs.append(start)
        folder = f"{folder}{name}/"
    return globs


def match_from(cut: Cut, folder: str) -> list[str]:
    """Return the globs that match all that comes after a cut in a folder."""
    globs = []
    deepest = len(cut) - 1
    for depth, name in enumerate(cut):
        # Names that agree with the cut's up to a letter, and have a greater one there.
        for at, letter in enumerate(name):
            globs.append(f"{folder}{name[:at]}[!\x01-{letter}]*")
        # Inside the folders of the cut only what begins with its last name comes after it.
        if depth == deepest:
            globs.append(f"{folder}{name}*")
        else:
            globs.append(f"{folder}{name}?*")
        folder = f"{folder}{name}/"
    return globs


def make_cut(path: bytes) -> Cut:
    """Return the cut at a path or shortly before it; nothing if its first name cannot stand in a glob."""
    cut: list[str] = []
    for name in path.split(b"/")[:DEEPEST]:
        beginning = _WORD.match(name)
        if beginning is None:
            break
        cut.append(beginning[0].decode())
        if beginning[0] != name:
            break
    return tuple(cut)


def check_cuts(cuts: Sequence[Cut], folder: bytes) -> list[Cut]:
    """Return the cuts in a folder whose own folders are there, on disk now.

    A file in place of one would be on both sides of the cut, since no glob matches files alone.
    """
    return [
        cut
        for cut in cuts
        if not cut[:-1] or _is_folder(os.path.join(folder, *map(os.fsencode, cut[:-1])))
    ]


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Sample:
    """Some of the paths below a folder, how long each takes, in any unit, and how many files it stands for."""

    paths: Sequence[bytes]
    weights: Sequence[int]
    files: int

    def find_cuts(self) -> list[Cut]:
        """Return the cuts, in order, that divide the folder into parts of about one weight."""
        count = count_parts(self.files)
        if count == 1 or not self.paths:
            return []
        rows = sorted(zip(self.paths, self.weights, strict=True))
        ends = [*accumulate(weight for _, weight in rows)]
        cuts = set()
        for part in range(1, count):
            share = part * ends[-1] // count
            path, _ = rows[bisect_right(ends, share)]
            cuts.add(make_cut(path))
        return sorted(cut for cut in cuts if cut)


def sample_project(snapshot: Snapshot, inside: bytes) -> Sample:
    """Return a sample of a folder of a project whose files are listed, indexed or not."""
    table = snapshot.table
    rows = table.rows_below(inside)
    before = as_folder(inside)
    step = len(rows) // MOST_SAMPLED + 1
    sampled = slice(rows.start, rows.stop, step)
    paths = table.paths[sampled]
    sizes = table.columns[sampled, SIZE].tolist()
    weights = [step * (size + FILE_BYTES) for size in sizes]
    pending_step = len(snapshot.pending) // MOST_SAMPLED + 1
    for path in islice(snapshot.pending, None, None, pending_step):
        if path.startswith(before):
            paths.append(path)
            weights.append(pending_step * FILE_BYTES)
    below = [path[len(before) :] for path in paths]
    return Sample(below, weights, len(rows) + len(snapshot.pending))


def sample_folder(folder: bytes) -> Sample:
    """Return a sample of a folder of which nothing is known: what is in its upper levels."""
    paths: list[bytes] = []
    ahead = deque([b""])
    for _ in range(MOST_FOLDERS):
        if not ahead:
            break
        before = as_folder(ahead.popleft())
        try:
            with os.scandir(os.path.join(folder, before)) as entries:
                shown = [entry for entry in entries if not entry.name.startswith(b".")]
        except OSError:  # ripgrep reports it
            continue
        paths += [before + entry.name for entry in shown]
        folders = [entry for entry in shown if entry.is_dir(follow_symlinks=False)]
        ahead += [before + entry.name for entry in folders]
    return Sample(paths, [1] * len(paths), len(paths))
