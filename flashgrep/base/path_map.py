"""Translation of paths for clients that see other paths than the daemon: in a container, on Windows with WSL.

A map is a list of pairs (theirs, ours), two names of one folder. What a client sends is translated before anything else
looks at it, so a map gives no access that its connection would not have without one.
"""

import base64
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from flashgrep.base.errors import FlashgrepError
from flashgrep.base.model import EncodedList
from flashgrep.base.vocabulary import SYNONYMS

Translate: TypeAlias = Callable[[str], str]
PROJECTS: Final = "projects"
PATH_FIELDS: Final = frozenset(
    {
        "project", "projects", "path", "paths", "file_path", "src", "dst", "file", "files", "folder", "directory",
        "root", "repo_override_path", "source_path", "target_path", "suggestions",
    }
)  # fmt: skip
"""Names of parameters and of result members that are paths; texts of files are never translated."""
PARAM_FIELDS: Final = PATH_FIELDS.union(
    {"targets"},
    *(SYNONYMS[name].split() for name in ("path", "src", "dst", "project", "targets")),
)
"""Alternative names of parameters that are paths."""
SENTENCES: Final = frozenset({"detail", "message", "suggestion"})
"""Names of result members with sentences that may mention a path."""
BYTES: Final = "_bytes"
"""Ends the name of a path in base64."""
MOST_PAIRS: Final = 50
DRIVE: Final = re.compile(r"[A-Za-z]:(?=[\\/]|$)")


class PathMap:
    """Translates paths in both directions; of several folders around a path, the innermost counts."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        """``pairs``: of absolute folders (theirs, ours), with or without a "/" at the end.

        Raises:
            ValueError: there are too many, or one is not absolute.

        """
        if len(pairs) > MOST_PAIRS:
            raise ValueError(f"at most {MOST_PAIRS} pairs of paths")
        self._pairs: list[tuple[str, str]] = []
        for remote, local in pairs:
            if (
                not local.startswith("/")
                or not (remote.startswith("/") or DRIVE.match(remote))
                or "\0" in remote + local
            ):
                raise ValueError(f"not a pair of absolute paths: {remote}={local}")
            self._pairs.append((remote.rstrip("\\/"), local.rstrip("/")))

    def to_ours(self, path: str) -> str:
        """Translate a client's path to ours; outside of the folders it is unchanged."""
        best = -1
        translated = path
        for remote, local in self._pairs:
            is_windows = DRIVE.match(remote) is not None
            # Windows accepts either separator and either case; elsewhere both matter.
            # Folding changes no length, so the offset below fits the path as it was
            # given.
            whole, folder = (
                (_fold(path), _fold(remote)) if is_windows else (path, remote)
            )
            if len(remote) > best and (
                whole == folder or whole.startswith(folder + "/")
            ):
                rest = path[len(remote) :]
                best = len(remote)
                if is_windows:
                    rest = rest.replace("\\", "/")
                translated = local + rest
        return translated or "/"

    def to_theirs(self, path: str) -> str:
        """Translate one of our paths to the client's; outside of the folders it is unchanged."""
        best = -1
        translated = path
        for remote, local in self._pairs:
            if len(local) > best and (path == local or path.startswith(local + "/")):
                rest = path[len(local) :]
                best = len(local)
                translated = remote + (
                    rest.replace("/", "\\") if "\\" in remote else rest
                )
        return translated or "/"

    def translate_params(self, params: Any) -> Any:
        """Return a method's parameters with their paths translated to ours."""
        return _translate(params, self.to_ours, None, PARAM_FIELDS)

    def translate_result(self, result: Any) -> Any:
        """Return a method's result with its paths translated to the client's."""
        return _translate(result, self.to_theirs, self.translate_text, PATH_FIELDS)

    def translate_error(self, error: FlashgrepError) -> None:
        """Translate the paths in an error to the client's."""
        error.message = self.translate_text(error.message)
        texts = {
            name: self.translate_text(item)
            for name, item in error.data.items()
            if isinstance(item, str)
        }
        error.data = {**self.translate_result(error.data), **texts}

    def translate_text(self, text: str) -> str:
        """Return a sentence with the folders in it translated to the client's."""
        # Reversed: of two pairs with one folder of ours the first wins, as in
        # to_theirs.
        by_ours = {local: remote for remote, local in reversed(self._pairs) if local}
        folders = "|".join(map(re.escape, sorted(by_ours, key=len, reverse=True)))
        if folders:
            return re.sub(
                rf"(?<![\w./-])(?:{folders})(?![\w.-])",
                lambda found: by_ours[found[0]],
                text,
            )
        return text


def parse_path_map(texts: Iterable[str]) -> PathMap | None:
    """Parse ``theirs=ours`` pairs, separated by commas, into a map; None for nothing.

    Raises:
        ValueError: one is not a pair of absolute paths.

    """
    pairs = []
    for text in ",".join(texts).split(","):
        remote, _, local = text.strip().partition("=")
        if text.strip():
            pairs.append((remote, local))
    if pairs:
        return PathMap(pairs)
    return None


def _translate_path(
    value: Any, translate: Translate, tell: Translate | None, fields: Collection[str]
) -> Any:
    """Return the value of a field that holds paths, translated."""
    if isinstance(value, str):
        return translate(value)
    return _translate(value, translate, tell, fields)


def _translate(
    value: Any, translate: Translate, tell: Translate | None, fields: Collection[str]
) -> Any:
    """Return a value with the paths in its members translated, and its sentences passed through ``tell``."""
    if isinstance(value, list | tuple | EncodedList):
        return [_translate(item, translate, tell, fields) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _translate_member(name, item, translate, tell, fields)
        for name, item in value.items()
    }


def _translate_member(
    name: str,
    item: Any,
    translate: Translate,
    tell: Translate | None,
    fields: Collection[str],
) -> Any:
    """Return the value of a member, translated as its name says."""
    if name == PROJECTS and isinstance(item, Mapping):
        # A table: the root of each by its name.
        return {project: translate(root) for project, root in item.items()}
    if name in fields:
        if isinstance(item, list):
            return [_translate_path(text, translate, tell, fields) for text in item]
        return _translate_path(item, translate, tell, fields)
    if isinstance(item, str):
        if name.endswith(BYTES) and name.removesuffix(BYTES) in fields:
            return _translate_bytes(item, translate)
        if name in SENTENCES and tell is not None:
            return tell(item)
    return _translate(item, translate, tell, fields)


def _translate_bytes(path: str, translate: Translate) -> str:
    try:
        text = base64.b64decode(path, validate=True).decode("utf-8", "surrogateescape")
    except ValueError:  # the method refuses it
        return path
    return base64.b64encode(translate(text).encode("utf-8", "surrogateescape")).decode(
        "ascii"
    )


def _fold(path: str) -> str:
    return path.replace("\\", "/").lower()
