"""Which files a command searches: those it names, and those below the folders it names, by ripgrep's rules."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from flashgrep.cli.rg.args import Arguments
from flashgrep.errors import InvalidParams
from flashgrep.ingest.globs import Overrides
from flashgrep.ingest.languages import types, verdict_of
from flashgrep.ingest.walk import Walker, WalkOptions
from flashgrep.search.rglike import Cover

_MOST_MAPPED = 10
"""Files named on the command line up to which ripgrep maps them into memory."""
_GIT = b".git"


@dataclass(frozen=True, slots=True)
class Target:
    """A file: its name as it is printed, and where it is."""

    shown: bytes
    full: bytes
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class Project:
    """The project a command may answer from; ``cover`` speaks of its default files."""

    root: bytes
    walker: Walker
    cover: Cover


class _Placed(Overrides):
    """Globs that are relative to the current folder, asked of paths below another."""

    def __init__(self, arguments: Arguments, lead: bytes) -> None:
        super().__init__(arguments.globs, arguments.iglobs)
        self._lead = lead

    def verdict(self, path: bytes, name: bytes, is_dir: bool) -> bool | None:  # noqa: FBT001 - as it is declared
        return super().verdict(self._lead + path, name, is_dir)


@dataclass(slots=True)
class Targets:
    """The files of one command, found as they are asked for."""

    arguments: Arguments
    paths: Sequence[bytes]
    cwd: bytes
    project: Project | None
    complain: Callable[[bytes, str], None]
    counted: bool = False
    """Whether it matters how many files there are in all."""
    seen: int = 0
    """Files there were, those included that the index has ruled out."""
    ruled_out: int = 0
    ruled_out_bytes: int = 0
    _kinds: Callable[[bytes], bool | None] | None = field(init=False)

    def __post_init__(self) -> None:
        self._kinds = _types(self.arguments.types)
        _Placed(self.arguments, b"")  # a bad glob is an error even if no folder is searched

    @property
    def implicit(self) -> bool:
        """Whether no path was given, and the current folder is meant."""
        return not self.paths

    @property
    def one_file(self) -> bool:
        """Whether the one path given is no folder, so that its name need not be printed."""
        return len(self.paths) == 1 and not os.path.isdir(self._full(self.paths[0]))

    @property
    def mapped(self) -> bool:
        """Whether ripgrep would map the files into memory."""
        return 0 < len(self.paths) <= _MOST_MAPPED and all(os.path.isfile(self._full(path)) for path in self.paths)

    def __iter__(self) -> Iterator[Target]:
        """Yield the files in the order they are printed in."""
        found = self._found()
        key = self.arguments.sort
        if key in {"modified", "accessed"}:
            return iter(sorted(found, key=_time_of(key), reverse=self.arguments.reverse))
        if key == "path" and self.arguments.reverse:
            return iter(sorted(found, key=lambda target: _in_order(target.shown), reverse=True))
        return found

    def _found(self) -> Iterator[Target]:
        for path in self.paths or (b"./",):
            full = self._full(path)
            try:
                mode = os.stat(full).st_mode
            except OSError as error:
                self.complain(path, f"IO error for operation on {os.fsdecode(path)}: {_told(error)}")
                continue
            if stat.S_ISDIR(mode):
                yield from self._below(path, os.path.realpath(full))
            else:
                self.seen += 1
                yield Target(path, full, explicit=True)

    def _full(self, path: bytes) -> bytes:
        return os.path.join(self.cwd, path)

    def _below(self, given: bytes, folder: bytes) -> Iterator[Target]:
        shown = b"" if self.implicit else given if given.endswith(b"/") else given + b"/"
        base = folder.rstrip(b"/") + b"/"
        inside = self._inside(folder)
        lead = inside + b"/" if inside else b""
        for path in sorted(self._names(given, folder, inside), key=_in_order):
            self.seen += 1
            size = None if self.project is None or inside is None else self.project.cover.ruled_out(lead + path)
            if size is None:
                yield Target(shown + path, base + path)
            else:
                self.ruled_out += 1
                self.ruled_out_bytes += size

    def _inside(self, folder: bytes) -> bytes | None:
        """Return a folder as seen from the project's root; None outside of it."""
        if self.project is None:
            return None
        root = self.project.root
        if folder == root:
            return b""
        return folder[len(root) + 1 :] if folder.startswith(root.rstrip(b"/") + b"/") else None

    def _names(self, given: bytes, folder: bytes, inside: bytes | None) -> Iterator[bytes]:
        arguments = self.arguments
        globs = _Placed(arguments, _lead(given, self.cwd)) if arguments.globs or arguments.iglobs else None
        if self.project is not None and inside is not None and self._is_covered(self.project, inside):
            return self._known(self.project, inside, globs)
        return self._walked(folder, globs)

    def _known(self, project: Project, inside: bytes, globs: Overrides | None) -> Iterator[bytes]:
        """Yield the files of a folder from what is known of the project: those that may match, where that is enough."""
        likely = project.cover.likely(inside)
        filtered = globs is not None or self._kinds is not None or self.arguments.max_depth is not None
        if likely is None or (self.counted and filtered):
            return self._listed(project.cover.below(inside), inside, globs)
        if self.counted:
            files, size = project.cover.totals(inside)
            self.seen += files
            self.ruled_out += files
            self.ruled_out_bytes += size
        elif not self.seen and next(self._listed(project.cover.below(inside), inside, globs), None) is not None:
            self.seen += 1
        return self._listed(likely, inside, globs)

    def _is_covered(self, project: Project, inside: bytes) -> bool:
        """Return whether the files of a folder that are wanted are among those the project knows."""
        arguments = self.arguments
        if arguments.hidden or not (arguments.ignore and arguments.vcs_ignore and self._only_takes_away()):
            return False
        return not inside or project.walker.accepts(inside, is_dir=True)

    def _only_takes_away(self) -> bool:
        """Return whether globs and types, if any, only take files away: others bring hidden and ignored ones back."""
        globs = [*self.arguments.globs, *self.arguments.iglobs]
        return all(glob.startswith("!") for glob in globs) and not any(wanted for _, wanted in self.arguments.types)

    def _listed(self, paths: Iterable[bytes], inside: bytes, globs: Overrides | None) -> Iterator[bytes]:
        cut = len(inside) + 1 if inside else 0
        folders: dict[bytes, bool] = {b"": True}
        depth = self.arguments.max_depth
        for path in paths:
            local = path[cut:]
            if depth is not None and local.count(b"/") >= depth:
                continue
            folder, _, name = local.rpartition(b"/")
            if globs is not None and not (
                _passes(folder, globs, folders) and globs.verdict(local, name, False) is not False
            ):
                continue
            if self._kinds is None or self._kinds(local) is not False:
                yield local

    def _walked(self, folder: bytes, globs: Overrides | None) -> Iterator[bytes]:
        arguments = self.arguments
        options = WalkOptions(
            hidden=arguments.hidden,
            ignore=arguments.ignore,
            vcs_ignore=arguments.vcs_ignore,
            flashgrep_ignore=arguments.ignore,
            overrides=globs,
            types=self._kinds,
        )
        walker = Walker(folder, options)
        folders: list[bytes] = []
        depth = arguments.max_depth
        for entry in walker.walk(on_directory=folders.append):
            if depth is None or entry.path.count(b"/") < depth:
                yield entry.path
        for path, why in walker.unreadable.items():
            self.complain(path or folder, why)
        if arguments.hidden:
            for inner in folders:
                for path in self._repository(folder, inner, options):
                    if depth is None or path.count(b"/") < depth:
                        yield path

    def _repository(self, folder: bytes, inner: bytes, options: WalkOptions) -> Iterator[bytes]:
        """Yield the files of a repository's own folder, which our walks leave out and ripgrep's hidden ones do not."""
        path = inner + b"/" + _GIT if inner else _GIT
        full = folder.rstrip(b"/") + b"/" + path
        try:
            mode = os.lstat(full).st_mode
        except OSError:
            return
        is_dir = stat.S_ISDIR(mode)
        wanted = options.overrides.verdict(path, _GIT, is_dir) if options.overrides else None
        if wanted is False or (not is_dir and options.types is not None and options.types(path) is False):
            return
        if stat.S_ISREG(mode):
            yield path
        elif is_dir:
            below = WalkOptions(hidden=True, ignore=options.ignore, vcs_ignore=options.vcs_ignore, types=options.types)
            for entry in Walker(full, below).walk():
                local = path + b"/" + entry.path
                if options.overrides is None or _passes_all(local, options.overrides):
                    yield local


def _types(given: Sequence[tuple[str, bool]]) -> Callable[[bytes], bool | None] | None:
    """Return what ``-t`` and ``-T`` say of a path: the last type that has it decides."""
    if not given:
        return None
    known = types()
    for name, _ in given:
        if name != "all" and name not in known:
            raise InvalidParams(f"unrecognized file type: {name}", field="type", value=name)
    holds = [(verdict_of([name], []), wanted) for name, wanted in given]
    otherwise = False if any(wanted for _, wanted in given) else None

    def verdict(path: bytes) -> bool | None:
        for has, wanted in reversed(holds):
            if has(path):
                return wanted
        return otherwise

    return verdict


def _passes(folder: bytes, globs: Overrides, known: dict[bytes, bool]) -> bool:
    """Return whether globs let a walk into a folder; ``known`` remembers."""
    found = known.get(folder)
    if found is None:
        above, _, name = folder.rpartition(b"/")
        found = _passes(above, globs, known) and globs.verdict(folder, name, True) is not False
        known[folder] = found
    return found


def _passes_all(path: bytes, globs: Overrides) -> bool:
    folder, _, name = path.rpartition(b"/")
    return _passes(folder, globs, {b"": True}) and globs.verdict(path, name, False) is not False


def _lead(given: bytes, cwd: bytes) -> bytes:
    """Return what stands before a path below ``given`` when globs, which are relative to ``cwd``, are asked of it."""
    if given.startswith(b"/"):
        given = given.removeprefix(cwd.rstrip(b"/") + b"/") if given != cwd else b""
    given = given.removeprefix(b"./")
    return given if not given or given.endswith(b"/") else given + b"/" if given != b"." else b""


def _in_order(path: bytes) -> bytes:
    """Return a key by which paths sort as a walk by name comes by them: no name has a NUL byte."""
    return path.replace(b"/", b"\0")


def _time_of(key: str) -> Callable[[Target], int]:
    def time_of(target: Target) -> int:
        try:
            found = os.stat(target.full)
        except OSError:
            return 2**63
        return found.st_mtime_ns if key == "modified" else found.st_atime_ns

    return time_of


def _told(error: OSError) -> str:
    return f"{error.strerror} (os error {error.errno})"
