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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import FlashgrepError, NotFound
from flashgrep.base.path_text import Literals
from flashgrep.base.paths import WORD_OVERHEAD, bundled_ripgrep, from_latin1
from flashgrep.files.globs import Overrides, name_matcher, types
from flashgrep.files.walk import Walker
from flashgrep.parts.ripgrep.arguments import (
    Call,
    Flag,
    Unplannable,
    make_pattern,
    read_arguments,
    read_patterns,
    read_room,
)
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.context import RequestContext
from flashgrep.search import exact
from flashgrep.search.snapshot import Snapshot

MOST_SHARE = 0.7
"""Of the files that would be searched: ripgrep takes 10 µs for each whether it is named or met on its walk, a plan 0.4
µs for a candidate. Up to FEW it is never noticed."""
FEW = 50
SAMPLE = 200
"""Sample of files used to estimate how many would be searched."""
MOST_LIKELY = 60_000
"""Before paths, globs and types take files away: each is looked at, in 0.3 to 4 µs, while everyone else waits."""
MOST_CHANGED = 500
"""Files below a folder that are not indexed as they are: each is read, in 20 to 40 µs."""
MOST_BYTES = 2 << 20
"""Of words on one command line, for all that the client has room for: they are made while everyone else waits."""
WITH_FILENAME = b"--with-filename"
"""The first word of every plan."""
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
        room=read_room(params),
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
    check_cover(snapshot, walker)
    arguments = read_arguments(call)
    texts = read_patterns(arguments.flags, call.cwd)
    pattern: list[str] = []
    paths = arguments.positional
    if not texts:
        pattern = arguments.positional[:1]
        paths = arguments.positional[1:]
    has_pattern = bool(texts or pattern)
    may_read_input = call.readable_input and not paths
    # An empty path is no folder: ripgrep reports it.
    if not has_pattern or may_read_input or "" in paths:
        raise Unplannable

    likely = find_candidates(make_pattern(arguments.flags, texts or pattern), snapshot)
    selector = Selector(call, arguments.flags, likely, snapshot, walker)
    given = [os.fsencode(path) for path in paths]
    chosen = selector.choose(given or [b""])
    selector.check_contents(chosen)
    words = [
        WITH_FILENAME,
        b"--no-config",
        *map(os.fsencode, arguments.words),
        b"--",
        *map(os.fsencode, pattern),
        *chosen.names,
    ]
    if not chosen.files:
        words.append(NO_FILE)
    size = sum(map(len, words)) + WORD_OVERHEAD * len(words)
    if size > min(call.room, MOST_BYTES):
        raise Unplannable
    return words


def check_cover(snapshot: Snapshot, walker: Walker) -> None:
    """Refuse a project whose index covers other files than ripgrep, or has some that ripgrep reports as unreadable."""
    if walker.differs_from_ripgrep or walker.unreadable:
        raise Unplannable
    if "unreadable" in snapshot.table.skipped.values():
        raise Unplannable


@dataclass(slots=True)
class Chosen:
    """What ripgrep is to search."""

    names: list[bytes] = field(default_factory=list)
    """Files, and folders of which nothing is indexed, spelt and in the order as ripgrep would have them."""
    doubtful: list[bytes] = field(default_factory=list)
    """Those of the files that may have a NUL byte."""
    files: int = 0
    searched: int = 0
    """About how many files would be searched below the folders; 0: none."""

    def extend(self, chosen: "Chosen") -> None:
        """Add what is chosen below another folder."""
        self.names += chosen.names
        self.doubtful += chosen.doubtful
        self.files += chosen.files
        self.searched += chosen.searched


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects the files that a call searches."""

    call: Call
    flags: Sequence[Flag]
    likely: Sequence[bytes]
    """The files that the index cannot rule out."""
    snapshot: Snapshot
    walker: Walker

    def choose(self, paths: Sequence[bytes]) -> Chosen:
        """Return the files among a call's paths, and the candidates below the folders among them.

        Raises:
            Unplannable: as for a folder; or ripgrep warns where it has no file to search, and names files unlike folders.

        """
        chosen = Chosen()
        has_folder = False
        for path in paths:
            place = os.path.join(self.call.cwd, path)
            if stat.S_ISREG(os.lstat(place).st_mode):
                chosen.names.append(path)
                chosen.doubtful.append(path)
                chosen.files += 1
            else:
                chosen.extend(self._choose_below(path))
                has_folder = True
        has_files = bool(chosen.searched or chosen.files)
        if has_folder and has_files:
            return chosen
        raise Unplannable

    def _choose_below(self, given: bytes) -> Chosen:
        """Return the candidates below a folder.

        Raises:
            Unplannable: it is not a covered folder of the project, too little is known of what is below it, or the
                candidates are too many.

        """
        call = self.call
        snapshot = self.snapshot
        folder, inside = locate_folder(given, call.cwd, snapshot, self.walker)
        # Below a whole path around the current folder, ripgrep asks globs of some paths as
        # seen from there, of others as they are.
        above = folder.rstrip(b"/") + b"/"
        is_around = given.startswith(b"/") and call.cwd.startswith(above)
        if is_around and self._has_flag("glob", "iglob"):
            raise Unplannable

        cover = Cover(self.flags, see_from(call.cwd, given))
        lead = as_folder(inside)
        candidates = keep_below(lead, add_changes(lead, self.likely, snapshot))
        below = dict.fromkeys(cover.select(candidates), False)
        doubtful = list_doubtful(snapshot)
        if cover.adds:
            added = dict(cover.find_additions(lead, snapshot, self.walker))
            files = [path for path, is_dir in added.items() if not is_dir]
            check_sizes(folder, files)
            below |= added
            doubtful.update(lead + path for path in files)
        searched = estimate_cover(cover, lead, snapshot.table.below(inside))
        if len(below) > max(FEW, searched * MOST_SHARE):
            raise Unplannable

        # A walk by name comes by paths as if their slashes were less than any other byte,
        # as NUL is.
        in_order = sorted(below, key=lambda path: path.replace(b"/", b"\0"))
        before = as_folder(given)
        return Chosen(
            names=[before + path for path in in_order],
            doubtful=[before + path for path in in_order if lead + path in doubtful],
            files=len(below) - sum(below.values()),
            searched=searched,
        )

    def check_contents(self, chosen: Chosen) -> None:
        """Refuse files with a NUL byte, which ripgrep reports in a file that is named, and those that it would decompress."""
        unpacks = self._has_flag("search-zip")
        if unpacks and has_compressed(self.snapshot, chosen.names):
            raise Unplannable
        for name in chosen.doubtful:
            checkpoint()
            path = os.fsdecode(os.path.join(self.call.cwd, name))
            if b"\0" in Path(path).read_bytes():
                raise Unplannable

    def _has_flag(self, *names: str) -> bool:
        return any(flag.name in names for flag in self.flags)


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
    is_scan, places = exact.find_candidates(snapshot, exact.Question(pattern=pattern))
    if is_scan:
        raise Unplannable
    table = snapshot.table
    likely = [table.paths[at] for at in places]
    likely += [path for path, why in table.skipped.items() if why not in PROVEN]
    if len(likely) > MOST_LIKELY:
        raise Unplannable
    return likely


class Place(NamedTuple):
    """A folder of a search: where it is, and its path below the project's root."""

    folder: bytes
    inside: bytes


def locate_folder(
    given: bytes, cwd: bytes, snapshot: Snapshot, walker: Walker
) -> Place:
    """Return where a folder is that the index covers.

    Raises:
        Unplannable: it is none, is behind a link, or outside the project.
        OSError: it is not there.

    """
    folder = os.path.normpath(os.path.join(cwd, given))
    if not stat.S_ISDIR(os.lstat(folder).st_mode) or os.path.realpath(folder) != folder:
        raise Unplannable
    inside = b""
    if folder != snapshot.root.path:
        inside = os.path.relpath(folder, snapshot.root.path)
    if inside == b".." or inside.startswith(b"../"):
        raise Unplannable
    if not walker.accepts(inside, is_dir=True):
        raise Unplannable
    return Place(folder, inside)


def see_from(cwd: bytes, given: bytes) -> bytes:
    """Return what is before a path below a folder as seen from the current one, which globs are relative to."""
    if given == cwd:
        return b""
    seen = given
    if given.startswith(b"/"):
        seen = given.removeprefix(cwd.rstrip(b"/") + b"/")
    seen = seen.removeprefix(b"./")
    return b"" if seen == b"." else as_folder(seen)


def add_changes(
    lead: bytes, likely: Sequence[bytes], snapshot: Snapshot
) -> Sequence[bytes]:
    """Return the candidates, and before them the files below ``lead`` that are not indexed as they are.

    Raises:
        Unplannable: those are many, as while a tree is being indexed: ripgrep would have read them all meanwhile.

    """
    if not snapshot.pending:
        return likely
    changed = [path for path in snapshot.changed_paths() if path.startswith(lead)]
    if len(changed) > MOST_CHANGED:
        raise Unplannable
    settled = [path for path in likely if path not in snapshot.pending]
    return [*changed, *settled]


def keep_below(lead: bytes, paths: Sequence[bytes]) -> Sequence[bytes]:
    """Return the paths below ``lead``, without it."""
    if not lead:
        return paths
    start = len(lead)
    return [path[start:] for path in paths if path.startswith(lead)]


def check_sizes(folder: bytes, paths: Iterable[bytes]) -> None:
    """Refuse files of a folder that are too large, together, to be read for NUL bytes."""
    size = 0
    for path in paths:
        size += os.lstat(os.path.join(folder, path)).st_size
    if size > MOST_ADDED_BYTES:
        raise Unplannable


def list_doubtful(snapshot: Snapshot) -> set[bytes]:
    """Return the files that may have a NUL byte for all that the index knows."""
    doubtful = {*snapshot.pending, *snapshot.table.skipped}
    if snapshot.reader is not None:
        doubtful.update(snapshot.reader.find_cut())
    return doubtful


def estimate_cover(cover: "Cover", lead: bytes, settled: Sequence[bytes]) -> int:
    """Return about how many of a folder's indexed files are searched; 0: none. ``lead``: what is before their names."""
    start = len(lead)
    step = len(settled) // SAMPLE + 1
    sampled = settled[::step]
    count = step * sum(cover.has(path[start:]) for path in sampled)
    if not count:  # an empty sample does not prove that there are none
        sampled = settled[:MOST_LIKELY]
        count = int(any(cover.has(path[start:]) for path in sampled))
    return count


def as_folder(path: bytes) -> bytes:
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
        self._has_rules = (
            self._depth is not None
            or not self._overrides.is_empty
            or self._type_verdict is not None
        )

    def select(self, paths: Sequence[bytes]) -> Sequence[bytes]:
        """Return those of the files that the index covers that are searched."""
        if self._has_rules:
            return [path for path in paths if self.has(path)]
        return paths

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
    table = read_types(flags)
    types_given = [
        (flag.name == "type", flag.value or "")
        for flag in flags
        if flag.name in {"type", "type-not"}
    ]
    if not types_given:
        return None
    # Our table is that of the ripgrep in the package.
    names_given = {name for _, name in types_given}
    if bundled_ripgrep() is None or not names_given <= {*table, "all"}:
        raise ValueError(types_given)
    every = [glob for globs in table.values() for glob in globs]
    choices = [
        (is_included, name_matcher(every if name == "all" else table[name]))
        for is_included, name in types_given
    ]
    choices.reverse()
    rest = False if any(is_included for is_included, _ in types_given) else None

    def verdict(path: bytes) -> bool | None:
        name = path.rpartition(b"/")[2]
        for is_included, has_name in choices:
            if has_name(name):
                return is_included
        return rest

    return verdict


def read_types(flags: Sequence[Flag]) -> dict[str, Sequence[str]]:
    """Return the globs of each type: ripgrep's own, and those that ``--type-add`` makes of one glob.

    Raises:
        ValueError: one is not made of one glob.

    """
    table: dict[str, Sequence[str]] = dict(types())
    for flag in flags:
        if flag.name != "type-add":
            continue
        name, _, glob = (flag.value or "").partition(":")
        is_name = name.isascii() and name.isalnum() and name != "all"
        is_glob = bool(glob) and ":" not in glob
        if not (is_name and is_glob):
            raise ValueError(flag.value)
        table[name] = (*table.get(name, ()), glob)
    return table
