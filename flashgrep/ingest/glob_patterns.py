"""What `glob` is to find: its options, and the patterns in them, held against paths and folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flashgrep.errors import InvalidParams
from flashgrep.ingest.globs import Globs
from flashgrep.model import path_to_text
from flashgrep.own_folders import NO_FOLDERS, PrivateFolders

SortBy = Literal["path", "name", "modified", "size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobOptions:
    """What to find; ``under`` is a folder relative to the root, patterns are relative to it."""

    include: tuple[str, ...] = ("**/*",)
    include_field: str = "include"
    """What the caller knows ``include`` as, for the error of a bad glob."""
    exclude: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    under: bytes = b""
    max_depth: int | None = None
    """0: the files directly in ``under``."""
    include_hidden: bool = False
    follow_symlinks: bool = False
    case_sensitive: bool = True
    respect_ignore: bool = False
    private: PrivateFolders = NO_FOLDERS
    """Folders that are not entered."""
    sort_by: SortBy = "path"
    descending: bool = False


class GlobPatterns:
    """The patterns of one search, compiled: which files are wanted, which folders cannot hold any."""

    def __init__(self, options: GlobOptions) -> None:
        fold, lead = not options.case_sensitive, path_to_text(options.under) + "/"
        # Patterns are of the folder searched; who writes them from the root on is understood as well.
        wanted = [
            *options.include,
            *(glob[len(lead) :] for glob in options.include if options.under and glob.startswith(lead)),
        ]
        includes = Globs(options.include_field, wanted, fold=fold)
        self.includes, self.literals = includes.matches, includes.literals
        self._excludes = Globs("exclude", options.exclude, fold=fold, below=True).matches if options.exclude else None
        # All below a folder is unwanted too where the pattern says so of what is in it.
        emptied = ["/" + glob[:-3].lstrip("/") for glob in options.exclude if glob.strip("/*") and glob.endswith("/**")]
        self._emptied = Globs("exclude", emptied, fold=fold).matches if emptied else None
        self._endings: tuple[bytes, ...] = ()
        for extension in options.extensions:
            bare = extension.strip().removeprefix(".").lower()
            if not bare or "/" in bare:
                message = f"extensions: not an extension: {extension!r}"
                raise InvalidParams(message, field="extensions", value=extension)
            self._endings += (b"." + bare.encode("utf-8", "surrogateescape"),)
        self._tops = _tops(wanted) if options.case_sensitive else [b""]

    def wants(self, path: bytes) -> bool:
        """Return whether a file is found by its path."""
        return self.lets_in(path) and self.includes(path)

    def lets_in(self, path: bytes) -> bool:
        """Return whether a file's ending is wanted, and no pattern excludes it."""
        if self._endings:
            name = path.rpartition(b"/")[2]
            if not name[1:].lower().endswith(self._endings):  # a name that begins with the dot has no ending
                return False
        return self._excludes is None or not self._excludes(path)

    def prunes(self, folder: bytes) -> bool:
        """Return whether nothing below a folder can be found."""
        if self._excludes is not None and self._excludes(folder):
            return True
        if self._emptied is not None and self._emptied(folder):
            return True
        below = folder + b"/"
        return not any(top.startswith(below) or below.startswith(top) for top in self._tops)


def _tops(globs: Sequence[str]) -> list[bytes]:
    """Return, for each pattern, what every match begins with: the text before its first wildcard, if it is a path."""
    tops = []
    for glob in globs:
        raw = glob.encode("utf-8", "surrogateescape").replace(b"\\", b"/").removeprefix(b"./")
        is_name = b"/" not in raw.rstrip(b"/")
        tops.append(
            b"" if is_name else min((raw.split(mark)[0] for mark in (b"*", b"?", b"[", b"{")), key=len).strip(b"/")
        )
    return tops
