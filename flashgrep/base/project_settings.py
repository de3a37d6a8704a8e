"""A project's own ``.flashgrep/config.toml``, which comes with the repository and may be hostile.

It can only set what is marked ``project`` in ``config``, and only tighten it. Nothing in it is an error: an unusable
file or setting is ignored with a warning. Reading takes milliseconds at most, but touches the disk: do it in a thread,
without holding a lock.
"""

import os
import stat
import tomllib
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from flashgrep.base.config import (
    Loaded,
    check_alone,
    get_value,
    has_mark,
    list_settings,
    nest,
    unknown_setting,
)
from flashgrep.base.errors import BadSetting
from flashgrep.base.paths import PROJECT_CONFIG, PROJECT_FOLDER

MAX_BYTES = 16 * 1024
MAX_DOTS = 100
"""In one line: tomllib's time is quadratic in a dotted key's length, 5 s for 8,000 parts."""
MAX_BRACKETS = 200
"""In the whole file: tomllib recurses for each level of nesting."""
MAX_FOLDERS = 64
MAX_FOLDER = 256
MAX_WARNINGS = 10
MAX_WARNING = 300
"""Characters: a warning repeats names from the file."""


def with_project(loaded: Loaded, root: Path) -> Loaded:
    """Return the user's settings, tightened by those of the project at ``root``; warnings say what is not used."""
    file = root / PROJECT_FOLDER / PROJECT_CONFIG
    try:
        table = _parse(_read(root))
    except FileNotFoundError:
        return loaded
    except (OSError, ValueError, RecursionError) as problem:
        # Without the path, which ``file`` names already.
        if isinstance(problem, OSError):
            reason = problem.strerror
        else:
            reason = str(problem)
        return replace(
            loaded, warnings=(*loaded.warnings, _clean(f"{file}: not used: {reason}"))
        )
    declared = dict(list_settings())
    sections = {key.partition(".")[0] for key in declared if "." in key}
    items: dict[str, Any] = {}
    for name, item in table.items():
        if name in sections and isinstance(item, dict):
            items |= {f"{name}.{leaf}": inner for leaf, inner in item.items()}
        else:
            items[name] = item
    # The current value is the bound: the user's own file may be stricter than any
    # default.
    values = {key: get_value(loaded.settings, key) for key in declared}
    origins = dict(loaded.origins)
    warnings = []
    for key, item in items.items():
        try:
            _check_stricter(key, item, values.get(key), str(file))
        except BadSetting as problem:
            warnings.append(_clean(f"{problem.message}; not used"))
        else:
            values[key] = item
            origins[key] = str(file)
    if len(warnings) > MAX_WARNINGS:
        warnings[MAX_WARNINGS:] = [
            f"{file}: {len(warnings) - MAX_WARNINGS} more settings are not used"
        ]
    settings = type(loaded.settings).model_validate(nest(values))
    return Loaded(settings, origins, (*loaded.warnings, *warnings))


def _read(root: Path) -> bytes:
    """Return the file's bytes; refuse a link on its path, or a pipe or device in its place.

    Raises:
        OSError: it does not exist, or is not the project's own file.
        ValueError: it is too large.

    """
    with ExitStack() as opened:
        folder = os.open(
            root / PROJECT_FOLDER,
            os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
        )
        opened.callback(os.close, folder)
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.open(PROJECT_CONFIG, flags, dir_fd=folder)
        opened.callback(os.close, file)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError("not a file")
        # Reading one byte over the limit detects a file that is too large without
        # trusting st_size.
        text = os.read(file, MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise ValueError(f"larger than {MAX_BYTES // 1024} KiB")
    return text


def _parse(text: bytes) -> dict[str, Any]:
    """Return the file's table.

    Raises:
        ValueError: it is not TOML, or nested so deep that parsing it would take long.
        RecursionError: it is nested too deep in a way that the bounds miss.

    """
    if (
        any(line.count(b".") > MAX_DOTS for line in text.splitlines())
        or sum(map(text.count, b"[{")) > MAX_BRACKETS
    ):
        raise ValueError(
            f"more than {MAX_DOTS} dots in a line or {MAX_BRACKETS} brackets"
        )
    try:
        return tomllib.loads(text.decode("utf-8"))
    except ValueError as problem:  # not only TOMLDecodeError: a number of 5,000 digits raises a plain one
        raise ValueError(f"not TOML: {problem}") from None


def _is_inside(folder: str) -> bool:
    """Return whether a folder that the settings name can only be one below the root."""
    if len(folder) > MAX_FOLDER or folder.startswith("/"):
        return False
    return ".." not in folder.split("/") and "\0" not in folder


def _check_stricter(key: str, item: Any, present: Any, source: str) -> None:
    """Refuse a project's setting unless it tightens the current value.

    Raises:
        BadSetting: unknown, invalid, reserved to the user, or looser than the current value.

    """
    declared = dict(list_settings())
    if key not in declared:
        raise unknown_setting(source, key, list(declared))
    allowed = [name for name, field in declared.items() if has_mark(field, "project")]
    if key not in allowed:
        message = f"{source}: {key} cannot be set by a project, only by its user (a project: {', '.join(allowed)})"
        raise BadSetting(
            message,
            source=source,
            key=key,
            allowed=allowed,
        )
    # Only now: for a setting a project may not set at all, that is reported rather than
    # a wrong type.
    check_alone(source, {key: item})
    if key == "specs.folders":
        # These cannot be stricter or looser, but no folder may be outside the project,
        # and each one costs a walk.
        if len(item) > MAX_FOLDERS or not all(map(_is_inside, item)):
            message = f"{source}: {key}: at most {MAX_FOLDERS} folders of the project, without '..'"
            raise BadSetting(message, source=source, key=key)
    elif present is True or isinstance(item, bool):  # of what is left, read_only
        if present and not item:
            raise BadSetting(
                f"{source}: {key} = false cannot loosen it",
                source=source,
                key=key,
                allowed=[True],
            )
    elif item > present:
        raise BadSetting(
            f"{source}: {key} can only be lowered, from {present}",
            source=source,
            key=key,
        )


def _clean(warning: str) -> str:
    """Return a warning, shortened and without terminal control characters."""
    plain = "".join(
        letter if letter.isprintable() else f"\\x{ord(letter):02x}"
        for letter in warning[:MAX_WARNING]
    )
    if len(warning) <= MAX_WARNING:
        return plain
    return plain + "…"
