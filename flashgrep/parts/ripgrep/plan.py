"""Which files ripgrep has to look at: those of its own cover that the index does not prove to be without a match.

ripgrep then runs on these files alone, named one by one, and everything about its output is its own. A file that is
named is treated in three ways unlike one that is met on a walk: rules, globs and types do not hold for it, its name
is not printed if it is the only one, and a NUL byte in it is reported. So rules, globs and types are applied here,
``--with-filename`` is put before all flags (a later ``--no-filename`` still wins), and where a candidate has a NUL
byte nothing is planned. Anything not known to be safe is not planned either: ripgrep then runs unchanged.

The cover is what ripgrep would search below a folder: the files of the index, less what flags take out, and what they
add. ``-g`` takes precedence over ignore rules, those over ``-t`` and ``-T``, and those over the exclusion of hidden
names. So ``-g '*.py'`` finds ignored and hidden files, ``-t py`` hidden ones, and ``--hidden`` folders that were never
listed. The daemon keeps the entries of its folders that rules take out (``Snapshot.excluded``); each is judged again.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import FlashgrepError, NotFound
from flashgrep.base.path_text import Literals
from flashgrep.base.paths import bundled_ripgrep, from_latin1
from flashgrep.files.globs import Overrides, name_matcher, types
from flashgrep.files.walk import Walker
from flashgrep.parts.ripgrep.arguments import (
    Call,
    Flag,
    Unplannable,
    make_pattern,
    read_arguments,
    read_patterns,
)
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.context import RequestContext
from flashgrep.search.snapshot import Snapshot

MOST_SHARE = 0.2
"""Of the files that would be searched: a candidate costs 20 µs here, to look for a NUL byte, and 15 µs of ripgrep's, a
file met on its walk 10 µs. Up to FEW it is never noticed."""
FEW = 50
SAMPLE = 200
"""Sample of files used to estimate how many would be searched."""
MOST_CANDIDATES = 3000
"""Upper bound whatever the size of the tree: everyone else waits meanwhile."""
MOST_LIKELY = 15_000
"""Before paths, globs and types take files away: each is looked at, in 1 to 4 µs."""
MOST_BYTES = 512 * 1024
"""Of names on one command line: Linux allows a quarter of the stack (2 MiB), macOS 1 MiB, environment included."""
NO_FILE = b"/dev/null"
"""Searched if no file can match: ripgrep still checks its arguments, prints nothing and exits with its status."""

COMPRESSED = tuple(b".br .bz2 .gz .lz4 .lzma .tbz2 .tgz .txz .xz .Z .zst .zstd".split())
"""Names that ``--search-zip`` decompresses; the index knows only what is compressed."""
MOST_ADDED_BYTES = 8 << 20
"""Read to look for NUL bytes of files that are not indexed: core files and disk images may be among them."""
PROVEN = frozenset({"binary"})
"""Reasons for which the index declines a file that ripgrep would not report a match in either."""


async def answer_call(
    context: RequestContext, cwd: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the plan of a call as the client describes it; as ``answer``."""
    config = params.get("config")
    call = Call(
        argv=params["argv"],
        cwd=os.fsencode(cwd),
        config=from_latin1(config) if config else None,
        readable_input=bool(params.get("readable_input")),
    )
    return await answer(context, call)


async def answer(context: RequestContext, call: Call) -> dict[str, Any]:
    """Return ``{"plan": arguments}``, bytes as latin-1; ``{"plan": None}``: run ripgrep with the call's own arguments.

    Never waits for a project to be opened or listed: ripgrep answers sooner. Opening starts in the background for the
    next call.
    """
    workspace = find_workspace(context, os.fsdecode(call.cwd))
    if workspace is None or not await workspace.refresh():
        return {"plan": None}
    planned = await workspace.in_thread(
        lambda snapshot: plan(call, snapshot, workspace.walker)
    )
    return {"plan": planned and [word.decode("latin-1") for word in planned]}


def find_workspace(context: RequestContext, cwd: str) -> Workspace | None:
    """Return the open and listed project around a folder, or None; opening starts in the background for the next call."""
    catalogue: Catalogue = context.call.host
    try:
        root = catalogue.find_enclosing_root(Path(cwd))
    except NotFound:
        return None
    for workspace in catalogue.list_open():
        if workspace.path == root:
            if workspace.tree.listed_since is None or not workspace.index.is_open:
                return None
            return workspace
    catalogue.open_later(str(root))
    return None


def plan(call: Call, snapshot: Snapshot, walker: Walker) -> list[bytes] | None:
    """Return the arguments to give to ripgrep in place of the call's; None: the call as it is.

    ``snapshot``: the project around the call's folder, as it is now.
    """
    try:
        return _plan(call, snapshot, walker)
    except (Unplannable, FlashgrepError, OSError, ValueError):
        return None


def _plan(call: Call, snapshot: Snapshot, walker: Walker) -> list[bytes]:
    arguments = read_arguments(call)
    # Where the index covers other files, ripgrep decides; and it reports a folder or
    # file that it cannot read.
    if (
        walker.differs_from_ripgrep
        or walker.unreadable
        or "unreadable" in snapshot.table.skipped.values()
    ):
        raise Unplannable
    texts = read_patterns(arguments.flags, call.cwd)
    pattern, paths = (
        ([], arguments.positional)
        if texts
        else (arguments.positional[:1], arguments.positional[1:])
    )
    if not (texts or pattern) or (not paths and call.readable_input):
        raise Unplannable

    likely = find_candidates(make_pattern(arguments.flags, texts or pattern), snapshot)

    # Keep those that the call's paths, globs and types select; too many are no faster
    # than a walk.
    named: list[tuple[bytes, bool]] = []
    has_folder = False
    searched = 0
    for path_given in [os.fsencode(path) for path in paths] or [b""]:
        if stat.S_ISREG(os.lstat(os.path.join(call.cwd, path_given)).st_mode):
            named.append((path_given, False))
            continue
        below, count = _name_below(
            path_given, call, arguments.flags, likely, snapshot, walker
        )
        named += below
        searched += count
        has_folder = True
    # ripgrep warns where it has no file to search, and names files unlike folders.
    has_file = searched or not all(is_dir for _, is_dir in named)
    if not (has_folder and has_file) or len(named) > max(FEW, searched * MOST_SHARE):
        raise Unplannable
    names = [name for name, _ in named]
    if len(names) > MOST_CANDIDATES or sum(map(len, names)) > MOST_BYTES:
        raise Unplannable

    # What ripgrep decompresses, the index knows compressed; a NUL byte it reports in a
    # file that is named.
    if any(flag.name == "search-zip" for flag in arguments.flags) and has_compressed(
        snapshot, names
    ):
        raise Unplannable
    files = [name for name, is_dir in named if not is_dir]
    for name in files:
        checkpoint()
        if b"\0" in Path(os.fsdecode(os.path.join(call.cwd, name))).read_bytes():
            raise Unplannable
    words = [
        b"--with-filename",
        b"--no-config",
        *map(os.fsencode, arguments.words),
        b"--",
    ]
    return [*words, *map(os.fsencode, pattern), *names, *(() if files else (NO_FILE,))]


def has_compressed(snapshot: Snapshot, names: Iterable[bytes]) -> bool:
    """Return whether the project, or one of these files, is compressed."""
    settled = snapshot.table.text()
    if any(settled.with_literals(Literals(end=ending)).size for ending in COMPRESSED):
        return True
    return any(path.endswith(COMPRESSED) for path in (*snapshot.pending, *names))


def find_candidates(pattern: Pattern, snapshot: Snapshot) -> list[bytes]:
    """Return the files that the index cannot rule out: texts with the grams, and what is not indexed.

    Raises:
        Unplannable: the index cannot say, or they are too many to look at.

    """
    if snapshot.reader:
        candidates = snapshot.reader.candidates(pattern.grams())
    else:
        candidates = None
    if candidates is None:
        raise Unplannable
    table = snapshot.table
    likely = [table.paths[at] for at in table.places(candidates)]
    likely += [path for path, why in table.skipped.items() if why not in PROVEN]
    if len(likely) > MOST_LIKELY:
        raise Unplannable
    return likely


def _name_below(
    given: bytes,
    call: Call,
    flags: Sequence[Flag],
    likely: Sequence[bytes],
    snapshot: Snapshot,
    walker: Walker,
) -> tuple[list[tuple[bytes, bool]], int]:
    """Return the candidates below a folder, spelt and in the order as ripgrep would have them.

    With each: whether it is a folder, of which nothing is indexed, to be searched as a whole. And about how many files
    are searched below it; 0: none.

    Raises:
        Unplannable: it is not a covered folder of the project, or too little is known of what is below it.

    """
    folder = os.path.normpath(os.path.join(call.cwd, given))
    if not stat.S_ISDIR(os.lstat(folder).st_mode) or os.path.realpath(folder) != folder:
        raise Unplannable
    if folder != snapshot.root.path:
        inside = os.path.relpath(folder, snapshot.root.path)
    else:
        inside = b""
    if (
        inside == b".."
        or inside.startswith(b"../")
        or not walker.accepts(inside, is_dir=True)
    ):
        raise Unplannable
    # Below a whole path around the current folder, ripgrep asks globs of some paths as
    # seen from there, of others as they are.
    is_around = given.startswith(b"/") and call.cwd.startswith(
        folder.rstrip(b"/") + b"/"
    )
    if is_around and any(flag.name in {"glob", "iglob"} for flag in flags):
        raise Unplannable

    # Globs are relative to the current folder: what is before a path below this one, as
    # seen from there.
    from_cwd = given
    if given.startswith(b"/"):
        if given == call.cwd:
            from_cwd = b""
        else:
            from_cwd = given.removeprefix(call.cwd.rstrip(b"/") + b"/")
    from_cwd = from_cwd.removeprefix(b"./")
    cover = Cover(flags, b"" if from_cwd == b"." else _as_folder(from_cwd))
    lead = _as_folder(inside)
    changed = [path for path, mark in snapshot.pending.items() if mark.ours]
    candidates = [*changed, *(path for path in likely if path not in snapshot.pending)]
    below = {
        path: False
        for path in (path[len(lead) :] for path in candidates if path.startswith(lead))
        if cover.has(path)
    }
    if cover.adds:
        added = dict(cover.find_additions(lead, snapshot, walker))
        sizes = (
            os.lstat(os.path.join(folder, path)).st_size
            for path, is_dir in added.items()
            if not is_dir
        )
        if sum(sizes) > MOST_ADDED_BYTES:
            raise Unplannable
        below |= added

    settled = snapshot.table.below(inside)
    step = len(settled) // SAMPLE + 1
    count = step * sum(cover.has(path[len(lead) :]) for path in settled[::step])
    if not count:  # an empty sample does not prove that there are none
        count = int(any(cover.has(path[len(lead) :]) for path in settled[:MOST_LIKELY]))
    # A walk by name comes by paths as if their slashes were less than any other byte,
    # as NUL is.
    in_order = sorted(below, key=lambda path: path.replace(b"/", b"\0"))
    return [(_as_folder(given) + path, below[path]) for path in in_order], count


def _as_folder(path: bytes) -> bytes:
    """Return what is before the names in a folder; for no path nothing."""
    if not path or path.endswith(b"/"):
        return path
    return path + b"/"


class Cover:
    """The effect of one call's flags on the files below one folder; paths are relative to that folder."""

    def __init__(self, flags: Sequence[Flag], from_cwd: bytes) -> None:
        """``from_cwd``: what is before a path as seen from the current folder, which globs are relative to.

        Raises:
            ValueError: a flag's value that is left for ripgrep to judge.

        """
        globs, iglobs = (
            [flag.value or "" for flag in flags if flag.name == name]
            for name in ("glob", "iglob")
        )
        depths = [int(flag.value or "") for flag in flags if flag.name == "max-depth"]
        self._overrides = Overrides(globs, iglobs)
        self._type_verdict = make_type_filter(flags)
        self._hidden = [
            flag.name for flag in flags if flag.name in {"hidden", "no-hidden"}
        ][-1:] == ["hidden"]
        self._depth = depths[-1] if depths else None
        self._from_cwd = from_cwd
        self._entered: dict[bytes, bool] = {b"": True}
        names = any(flag.name == "type" for flag in flags) or any(
            not glob.startswith("!") for glob in globs + iglobs
        )
        self.adds = self._hidden or names
        """Whether files that the index does not cover may be searched."""

    def has(self, path: bytes) -> bool:
        """Return whether a file that the index covers is searched."""
        verdict = self._judge(path, is_dir=False)
        if verdict is None and self._type_verdict is not None:
            verdict = self._type_verdict(path)
        return verdict is not False

    def find_additions(
        self, lead: bytes, snapshot: Snapshot, walker: Walker
    ) -> Iterator[tuple[bytes, bool]]:
        """Yield what is searched below ``lead`` beside the index: files, and folders (True) with all that is in them.

        Raises:
            ValueError: it is not known, or one of the folders is to be searched to some depth alone.

        """
        if snapshot.excluded is None:
            raise ValueError("too many entries are ignored to be known")
        for full, is_dir in snapshot.excluded.items():
            checkpoint()
            if not full.startswith(lead):
                continue
            path = full[len(lead) :]
            verdict = self._judge(path, is_dir=is_dir)
            if verdict is None:
                verdict = not walker.is_ignored(full, is_dir=is_dir) and (
                    self._hidden
                    if is_dir or self._type_verdict is None
                    else self._type_verdict(path)
                )
            if verdict and is_dir and self._depth is not None:
                raise ValueError(path)
            if verdict or (verdict is None and self._hidden):
                yield path, is_dir

    def _judge(self, path: bytes, *, is_dir: bool) -> bool | None:
        """Return what depth and globs decide about an entry; None: nothing, so other rules apply."""
        if self._depth is not None and path.count(b"/") + is_dir >= self._depth:
            return False
        if self._overrides.is_empty:
            return None
        folder, _, name = path.rpartition(b"/")
        # A folder that globs take out is not entered, whatever they say of what is in
        # it.
        enters = self._entered.get(folder)
        if enters is None:
            enters = self._entered[folder] = (
                self._judge(folder, is_dir=True) is not False
            )
        if enters:
            return self._overrides.verdict(self._from_cwd + path, name, is_dir)
        return False


def make_type_filter(flags: Sequence[Flag]) -> Callable[[bytes], bool | None] | None:
    """Return what ``-t`` and ``-T`` say of a path: True for wanted, False for unwanted, None for neither.

    Raises:
        ValueError: a type that is not known, or is not made of one glob.

    """
    table = dict(types())
    for flag in flags:
        if flag.name == "type-add":
            name, _, glob = (flag.value or "").partition(":")
            if (
                not (name.isascii() and name.isalnum())
                or name == "all"
                or not glob
                or ":" in glob
            ):
                raise ValueError(flag.value)
            table[name] = (*table.get(name, ()), glob)
    types_given = [
        (flag.name == "type", flag.value or "")
        for flag in flags
        if flag.name in {"type", "type-not"}
    ]
    if not types_given:
        return None
    if bundled_ripgrep() is None or not {name for _, name in types_given} <= {
        *table,
        "all",
    }:  # our table is that one's
        raise ValueError(types_given)
    every = [glob for globs in table.values() for glob in globs]
    choices = [
        (is_included, name_matcher(every if name == "all" else table[name]))
        for is_included, name in types_given
    ]
    rest = False if any(is_included for is_included, _ in types_given) else None

    def verdict(path: bytes) -> bool | None:
        name = path.rpartition(b"/")[2]
        return next(
            (
                is_included
                for is_included, has_name in reversed(choices)
                if has_name(name)
            ),
            rest,
        )

    return verdict
