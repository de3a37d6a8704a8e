"""Which files ripgrep has to look at: those of its own cover that the index does not prove to be without a match.

ripgrep then runs on these files alone, named one by one, and everything about its output is its own. A file that is
named is treated in three ways unlike one that is met on a walk: rules, globs and types do not hold for it, its name
is not printed if it is the only one, and a NUL byte in it is reported. So rules, globs and types are applied here,
``--with-filename`` is put before all flags (a later ``--no-filename`` still wins), and where a candidate has a NUL
byte nothing is planned. Whatever is not known to be safe is not planned either: ripgrep then runs unchanged.
"""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashgrep.checkpoint import checkpoint
from flashgrep.cli.rg.arguments import Arguments, Flag, parse
from flashgrep.cli.rg.cover import Cover
from flashgrep.errors import FlashgrepError
from flashgrep.ingest.walk import Walker
from flashgrep.path_text import Literals
from flashgrep.pattern import Pattern
from flashgrep.search.snapshot import Snapshot

MOST_SHARE = 0.2
"""Of the files that would be searched: a candidate costs 20 µs here, to look for a NUL byte, and 15 µs of ripgrep's, a
file met on its walk 10 µs. Up to FEW it is never noticed."""
FEW = 50
SAMPLE = 200
"""Files by which it is guessed how many would be searched."""
MOST_CANDIDATES = 3000
"""More are not looked at, however large the tree: all others wait meanwhile."""
MOST_LIKELY = 15_000
"""Before paths, globs and types take files away: each is looked at, in 1 to 4 µs."""
MOST_BYTES = 512 * 1024
"""Of names on one command line: Linux allows a quarter of the stack (2 MiB), macOS 1 MiB, environment included."""
NO_FILE = b"/dev/null"
"""Searched where no file can match: ripgrep then checks its arguments, prints nothing and says so by its status."""

_HARMLESS = """
after-context before-context block-buffered byte-offset color colors column context context-separator count
count-matches field-context-separator field-match-separator files-with-matches heading line-buffered line-number
max-columns max-columns-preview max-count messages mmap null only-matching path-separator pretty quiet replace sort
sort-files sortr threads trim vimgrep with-filename no-block-buffered no-byte-offset no-column no-config
no-context-separator no-filename no-heading no-line-buffered no-line-number no-max-columns-preview no-messages no-mmap
no-sort-files no-trim ignore ignore-dot ignore-exclude ignore-files ignore-global ignore-parent ignore-vcs no-binary
no-encoding no-follow no-include-zero no-invert-match no-json no-multiline no-multiline-dotall no-pcre2
no-pre no-search-zip no-stats no-text require-git
"""
HARMLESS = frozenset(_HARMLESS.split())
"""Flags that change neither which files are searched nor which lines match (or restore what is the default)."""
COVER = frozenset(["glob", "hidden", "iglob", "no-hidden", "max-depth", "type", "type-add", "type-not"])
"""Flags that change which files are searched, as ``cover`` has it."""
PATTERN_FLAGS: dict[str, dict[str, object]] = {
    "case-sensitive": {"case": "sensitive"},
    "ignore-case": {"case": "insensitive"},
    "smart-case": {"case": "smart"},
    "word-regexp": {"word": True, "line": False},
    "line-regexp": {"word": False, "line": True},
    "fixed-strings": {"mode": "literal"},
    "no-fixed-strings": {"mode": "regex"},
    "crlf": {"crlf": True},
    "no-crlf": {"crlf": False},
}
"""Flags that change what matches, and the member of a pattern that each sets; the last one given holds. Multi-line
searches are not planned: they read on behind a NUL byte, where the index of a text ends."""
COMPRESSED = tuple(b".br .bz2 .gz .lz4 .lzma .tbz2 .tgz .txz .xz .Z .zst .zstd".split())
"""Names that ``--search-zip`` decompresses; the index knows only what is compressed."""
MOST_ADDED_BYTES = 8 << 20
"""Read to look for NUL bytes of files that are not indexed: core files and disk images may be among them."""
PROVEN = frozenset({"binary"})
"""Why a file can be declined by the index and still be known to have no match in ripgrep's eyes."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of ``fgrep rg``."""

    argv: Sequence[str]
    cwd: bytes
    config: str | None
    """The file that RIPGREP_CONFIG_PATH names."""
    readable_input: bool
    """Whether standard input is a pipe, a file or a socket: ripgrep searches that where no path is given."""


class _Unplannable(Exception):
    """The call has to run as it is."""


def plan(call: Call, snapshot: Snapshot, walker: Walker) -> list[bytes] | None:
    """Return the arguments to give to ripgrep in place of the call's; None: the call as it is.

    ``snapshot``: the project around the call's folder, as it is now.
    """
    try:
        return _plan(call, snapshot, walker)
    except (_Unplannable, FlashgrepError, OSError, ValueError):  # ripgrep has its own words for what is wrong
        return None


def _plan(call: Call, snapshot: Snapshot, walker: Walker) -> list[bytes]:
    arguments = _with_config(call)
    if not all(_is_plannable(flag) for flag in arguments.flags):
        raise _Unplannable
    # Where the index covers other files, ripgrep decides; and it reports a folder or file that it cannot read.
    if walker.differs_from_ripgrep or walker.unreadable or "unreadable" in snapshot.table.skipped.values():
        raise _Unplannable
    texts = _texts(arguments.flags, call.cwd)
    pattern, paths = ([], arguments.positional) if texts else (arguments.positional[:1], arguments.positional[1:])
    if not (texts or pattern) or (not paths and call.readable_input):
        raise _Unplannable
    blobs = snapshot.reader.candidates(_pattern(arguments.flags, texts or pattern).grams()) if snapshot.reader else None
    if blobs is None:
        raise _Unplannable
    table = snapshot.table
    likely = [table.paths[at] for at in table.places(blobs)]
    likely += [path for path, why in table.skipped.items() if why not in PROVEN]
    if len(likely) > MOST_LIKELY:
        raise _Unplannable
    named = _name_candidates(call, arguments.flags, paths, likely, snapshot, walker)
    names = [name for name, _ in named]
    if len(names) > MOST_CANDIDATES or sum(map(len, names)) > MOST_BYTES:
        raise _Unplannable
    if any(flag.name == "search-zip" for flag in arguments.flags) and _has_compressed(names, snapshot):
        raise _Unplannable
    files = [name for name, is_dir in named if not is_dir]
    for name in files:
        checkpoint()
        if b"\0" in Path(os.fsdecode(os.path.join(call.cwd, name))).read_bytes():
            raise _Unplannable
    words = [b"--with-filename", b"--no-config", *map(os.fsencode, arguments.words), b"--"]
    # ripgrep warns where folders have no file to search: here others had some.
    return [*words, *map(os.fsencode, pattern), *names, *(() if files else (NO_FILE,))]


def _has_compressed(named: Iterable[bytes], snapshot: Snapshot) -> bool:
    settled = snapshot.table.text()
    if any(settled.with_literals(Literals(end=ending)).size for ending in COMPRESSED):
        return True
    return any(path.endswith(COMPRESSED) for path in (*snapshot.pending, *named))


def _with_config(call: Call) -> Arguments:
    """Return the call's arguments behind those of ripgrep's configuration file, if there is one."""
    arguments = parse(call.argv)
    if arguments is not None and call.config and not any(flag.name == "no-config" for flag in arguments.flags):
        lines = Path(os.fsdecode(call.cwd), call.config).read_text("utf-8").splitlines()
        stripped = [line.strip() for line in lines]
        arguments = parse([*(line for line in stripped if line and not line.startswith("#")), *call.argv])
    if arguments is None:
        raise _Unplannable
    return arguments


def _is_plannable(flag: Flag) -> bool:
    if flag.name == "max-count":  # ripgrep searches nothing for none
        return flag.value != "0"
    return flag.name in HARMLESS | COVER | PATTERN_FLAGS.keys() | {"regexp", "file", "search-zip"}


def _texts(flags: Sequence[Flag], cwd: bytes) -> list[str]:
    """Return the patterns that flags give.

    Raises:
        OSError, ValueError: one is in a file that cannot be read here, or should not be: a pipe can be read only once.

    """
    texts = []
    for flag in flags:
        if flag.name == "regexp":
            texts.append(flag.value or "")
        elif flag.name == "file":
            path = Path(os.fsdecode(cwd), flag.value or "")
            if not path.is_file() or path.is_relative_to("/dev") or path.is_relative_to("/proc"):
                raise ValueError(path)
            lines = path.read_text("utf-8").split("\n")
            texts += [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
            if not texts:  # no pattern at all: nothing matches
                raise ValueError(path)
    return texts


def _pattern(flags: Sequence[Flag], texts: Sequence[str]) -> Pattern:
    set_by_flags: dict[str, Any] = {"case": "sensitive"}
    for flag in flags:
        set_by_flags.update(PATTERN_FLAGS.get(flag.name, {}))
    return Pattern(texts=tuple(texts), **{"mode": "regex", **set_by_flags})


def _name_candidates(
    call: Call, flags: Sequence[Flag], paths: Sequence[str], likely: Sequence[bytes], snapshot: Snapshot, walker: Walker
) -> list[tuple[bytes, bool]]:
    """Return the candidates below the folders given, and the files given, each spelt as ripgrep would spell it.

    With each: whether it is a folder, of which nothing is indexed, to be searched as a whole.

    Raises:
        _Unplannable: a path is neither a file nor a covered folder of the project's, or there is no folder among them,
            or no file is left to be searched, of which ripgrep warns, or so many that a walk is as quick.

    """
    named: list[tuple[bytes, bool]] = []
    has_folder = has_file = False
    searched = 0
    for given in [os.fsencode(path) for path in paths] or [b""]:
        full = os.path.join(call.cwd, given)
        mode = os.lstat(full).st_mode
        if stat.S_ISREG(mode):
            named.append((given, False))
            has_file = True
            continue
        folder = os.path.normpath(full)
        if not stat.S_ISDIR(mode) or os.path.realpath(folder) != folder:
            raise _Unplannable
        inside = os.path.relpath(folder, snapshot.root.path) if folder != snapshot.root.path else b""
        if inside == b".." or inside.startswith(b"../") or not walker.accepts(inside, is_dir=True):
            raise _Unplannable
        lead = inside + b"/" if inside else b""
        cover = Cover(flags, _from_cwd(given, call.cwd))
        pending = snapshot.pending
        changed = [path for path, mark in pending.items() if mark.ours and path.startswith(lead)]
        found = [*changed, *(path for path in likely if path.startswith(lead) and path not in pending)]
        below = {path: False for path in (path[len(lead) :] for path in found) if cover.has(path)}
        if cover.adds:
            added = dict(cover.added(lead, snapshot, walker))
            sizes = (os.lstat(os.path.join(folder, path)).st_size for path, is_dir in added.items() if not is_dir)
            if sum(sizes) > MOST_ADDED_BYTES:
                raise _Unplannable
            below |= added
        settled = snapshot.table.below(inside)
        sample = settled[:: len(settled) // SAMPLE + 1]
        searched += sum(cover.has(path[len(lead) :]) for path in sample) * (len(settled) // SAMPLE + 1)
        has_file |= bool(searched) or not all(below.values())
        has_file = has_file or any(cover.has(path[len(lead) :]) for path in settled[:MOST_LIKELY])
        spelt = given if not given or given.endswith(b"/") else given + b"/"
        named += [(spelt + path, below[path]) for path in sorted(below, key=_walk_order)]
        has_folder = True
    if not (has_folder and has_file) or len(named) > max(FEW, searched * MOST_SHARE):
        raise _Unplannable
    return named


def _from_cwd(given: bytes, cwd: bytes) -> bytes:
    """Return what stands before a path below ``given`` when globs, which are relative to ``cwd``, are asked of it."""
    if given.startswith(b"/"):
        given = given.removeprefix(cwd.rstrip(b"/") + b"/") if given != cwd else b""
    given = given.removeprefix(b"./")
    return given if not given or given.endswith(b"/") else given + b"/" if given != b"." else b""


def _walk_order(path: bytes) -> bytes:
    """Return a key by which paths sort as a walk by name comes by them: no name has a NUL byte."""
    return path.replace(b"/", b"\0")
