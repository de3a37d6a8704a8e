"""Which files ripgrep has to look at: those of its own cover that the index does not prove to be without a match.

ripgrep then runs on these files alone, named one by one, and everything about its output is its own. A file that is
named is treated in three ways unlike one that is met on a walk: rules, globs and types do not hold for it, its name
is not printed if it is the only one, and a NUL byte in it is reported. So rules, globs and types are applied here,
``--with-filename`` is put before all flags (a later ``--no-filename`` still wins), and where a candidate has a NUL
byte nothing is planned. Whatever is not known to be safe is not planned either: ripgrep then runs unchanged.
"""

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashgrep.cli.rg.arguments import Arguments, Flag, parse
from flashgrep.errors import FlashgrepError
from flashgrep.ingest.file_types import types, verdict_of
from flashgrep.ingest.globs import Overrides
from flashgrep.ingest.walk import Walker
from flashgrep.pattern import Pattern
from flashgrep.places import bundled_ripgrep
from flashgrep.scheduler import checkpoint
from flashgrep.search.exact import View

MOST_CANDIDATES = 3000
"""More candidates are not worth naming: from about a quarter of a tree on a walk of ripgrep's own is as quick, and
opening a file here, to look for a NUL byte, takes 15 µs."""
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
no-encoding no-follow no-hidden no-include-zero no-invert-match no-json no-multiline no-multiline-dotall no-pcre2
no-pre no-search-zip no-stats no-text require-git
"""
HARMLESS = frozenset(_HARMLESS.split())
"""Flags that change neither which files are searched nor which lines match (or restore what is the default)."""
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


def plan(call: Call, view: View, walker: Walker) -> list[bytes] | None:
    """Return the arguments to give to ripgrep in place of the call's; None: the call as it is.

    ``view``: the project around the call's folder, as it is now.
    """
    try:
        return _plan(call, view, walker)
    except (_Unplannable, FlashgrepError, OSError, ValueError):  # ripgrep has its own words for what is wrong
        return None


def _plan(call: Call, view: View, walker: Walker) -> list[bytes]:
    arguments = _with_config(call)
    if not all(_is_plannable(flag) for flag in arguments.flags):
        raise _Unplannable
    # Where the index covers other files, ripgrep decides; and it reports a folder or file that it cannot read.
    if walker.differs_from_ripgrep or walker.unreadable or "unreadable" in view.table.skipped.values():
        raise _Unplannable
    texts = _texts(arguments.flags, call.cwd)
    pattern, paths = ([], arguments.positional) if texts else (arguments.positional[:1], arguments.positional[1:])
    if not (texts or pattern) or (not paths and call.readable_input):
        raise _Unplannable
    blobs = view.reader.candidates(_pattern(arguments.flags, texts or pattern).grams()) if view.reader else None
    if blobs is None:
        raise _Unplannable
    table = view.table
    likely = [table.paths[at] for at in table.places(blobs)]
    likely += [path for path, why in table.skipped.items() if why not in PROVEN]
    if len(likely) > MOST_CANDIDATES:
        raise _Unplannable
    named = _name_candidates(call, arguments.flags, paths, likely, view, walker)
    if len(named) > MOST_CANDIDATES or sum(map(len, named)) > MOST_BYTES:
        raise _Unplannable
    for name in named:
        checkpoint()
        if b"\0" in Path(os.fsdecode(os.path.join(call.cwd, name))).read_bytes():
            raise _Unplannable
    words = [b"--with-filename", b"--no-config", *map(os.fsencode, arguments.words), b"--"]
    return [*words, *map(os.fsencode, pattern), *(named or [NO_FILE])]


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
    if flag.name in {"glob", "iglob"}:
        return (flag.value or "").startswith("!")
    if flag.name == "max-count":  # ripgrep searches nothing for none
        return flag.value != "0"
    if flag.name == "type-not":  # our table of types is the bundled ripgrep's
        return bundled_ripgrep() is not None
    return flag.name in HARMLESS or flag.name in PATTERN_FLAGS or flag.name in {"regexp", "file", "max-depth"}


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
    call: Call, flags: Sequence[Flag], paths: Sequence[str], likely: Sequence[bytes], view: View, walker: Walker
) -> list[bytes]:
    """Return the candidates below the folders given, and the files given, each spelt as ripgrep would spell it.

    Raises:
        _Unplannable: a path is neither a file nor a covered folder of the project's, or there is no folder among them,
            or no file is left to be searched, of which ripgrep warns.

    """
    named: list[bytes] = []
    has_folder = has_file = False
    for given in [os.fsencode(path) for path in paths] or [b""]:
        full = os.path.join(call.cwd, given)
        mode = os.lstat(full).st_mode
        if stat.S_ISREG(mode):
            named.append(given)
            has_file = True
            continue
        folder = os.path.normpath(full)
        if not stat.S_ISDIR(mode) or os.path.realpath(folder) != folder:
            raise _Unplannable
        inside = os.path.relpath(folder, view.root.path) if folder != view.root.path else b""
        if inside == b".." or inside.startswith(b"../") or not walker.accepts(inside, is_dir=True):
            raise _Unplannable
        lead = inside + b"/" if inside else b""
        is_wanted = _filter(flags, _from_cwd(given, call.cwd))
        pending = view.pending
        changed = [path for path, mark in pending.items() if mark.ours and path.startswith(lead)]
        found = [*changed, *(path for path in likely if path.startswith(lead) and path not in pending)]
        below = [path[len(lead) :] for path in sorted(set(found), key=_walk_order)]
        spelt = given if not given or given.endswith(b"/") else given + b"/"
        wanted = [spelt + path for path in below if is_wanted(path)]
        has_file |= bool(wanted) or any(is_wanted(path[len(lead) :]) for path in view.table.below(inside))
        named += wanted
        has_folder = True
    if not (has_folder and has_file):
        raise _Unplannable
    return named


def _filter(flags: Sequence[Flag], from_cwd: bytes) -> Callable[[bytes], bool]:
    """Return what ``-g``, ``--iglob``, ``-T`` and ``-d`` leave of the files below a folder.

    Globs are relative to the current folder: ``from_cwd`` is what stands before a path as seen from there.
    """
    globs, iglobs = ([flag.value or "" for flag in flags if flag.name == name] for name in ("glob", "iglob"))
    overrides = Overrides(globs, iglobs)
    unwanted = [flag.value or "" for flag in flags if flag.name == "type-not"]
    if unwanted and not set(unwanted) <= {*types(), "all"}:
        raise ValueError(unwanted)
    of_types = verdict_of([], unwanted) if unwanted else None
    depths = [int(flag.value or "") for flag in flags if flag.name == "max-depth"]
    folders: dict[bytes, bool] = {b"": True}

    def enters(folder: bytes) -> bool:
        known = folders.get(folder)
        if known is None:
            above, _, name = folder.rpartition(b"/")
            known = folders[folder] = enters(above) and overrides.verdict(from_cwd + folder, name, True) is not False
        return known

    def is_wanted(path: bytes) -> bool:
        folder, _, name = path.rpartition(b"/")
        if depths and path.count(b"/") >= depths[-1]:
            return False
        if not overrides.is_empty and not (
            enters(folder) and overrides.verdict(from_cwd + path, name, False) is not False
        ):
            return False
        return of_types is None or of_types(path) is not False

    return is_wanted


def _from_cwd(given: bytes, cwd: bytes) -> bytes:
    """Return what stands before a path below ``given`` when globs, which are relative to ``cwd``, are asked of it."""
    if given.startswith(b"/"):
        given = given.removeprefix(cwd.rstrip(b"/") + b"/") if given != cwd else b""
    given = given.removeprefix(b"./")
    return given if not given or given.endswith(b"/") else given + b"/" if given != b"." else b""


def _walk_order(path: bytes) -> bytes:
    """Return a key by which paths sort as a walk by name comes by them: no name has a NUL byte."""
    return path.replace(b"/", b"\0")
