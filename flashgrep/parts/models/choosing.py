"""Which model the daemon uses: two tables of the user's config.toml, whose other lines stay as they are."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit import TOMLDocument
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Comment, Table, Whitespace

from flashgrep.base.config import (
    ENV_PREFIX,
    Settings,
)
from flashgrep.base.errors import BadSetting
from flashgrep.base.paths import config_file
from flashgrep.base.plain_files import (
    read_plain_file,
    replace_plain_file,
)

RERANKED: Final = 30
"""Results that a cross-encoder reads: each takes as long as an embedded text."""
EMBEDDING: Final = "embedding"
RERANKING: Final = "reranking"
LOCAL: Final = "local"


def choose_model(environ: Mapping[str, str], kind: str, folder: Path) -> None:
    """Have the daemon use a model's folder from its next start.

    Raises:
        BadSetting: config.toml cannot be read, or is no TOML.
        OSError: it cannot be written.

    """
    # Both may be chosen at once: one finds, the other orders what was found.
    if kind == "cross-encoder":
        chosen = {"provider": LOCAL, "model": str(folder), "top": RERANKED}
        _write(environ, {RERANKING: chosen})
    else:
        _write(environ, {EMBEDDING: {"provider": LOCAL, "model": str(folder)}})


def choose_default(environ: Mapping[str, str]) -> None:
    """Have the daemon use what is built in, and no reranker; raises as ``choose_model``."""
    _write(environ, {EMBEDDING: {}, RERANKING: {}})


def forget_model(environ: Mapping[str, str], folder: Path) -> bool:
    """Have the daemon no longer use a model's folder; return whether the file named it; raises as ``choose_model``."""
    document = _parse(_find_file(environ))
    naming = []
    # The other table may name another model, or a server.
    for name in (EMBEDDING, RERANKING):
        table = document.get(name)
        if isinstance(table, Mapping) and table.get("model") == str(folder):
            naming.append(name)
    if naming:
        _write(environ, {name: {} for name in naming})
    return bool(naming)


def is_chosen(settings: Settings, folder: Path) -> bool:
    """Return whether the settings name a model's folder."""
    embedding = settings.embedding
    reranking = settings.reranking
    for section in (embedding, reranking):
        if section.provider == LOCAL and section.model == str(folder):
            return True
    return False


def find_overruling(environ: Mapping[str, str]) -> list[str]:
    """Return the variables of the environment that count more than the file."""
    names = []
    for section in (EMBEDDING, RERANKING):
        for key in ("provider", "model"):
            name = f"{ENV_PREFIX}{section}_{key}".upper()
            if name in environ:
                names.append(name)
    return names


def _find_file(environ: Mapping[str, str]) -> Path:
    # Often a link into a folder of settings under version control.
    return Path(os.path.realpath(config_file(environ)))


def _parse(file: Path) -> TOMLDocument:
    text = ""
    if file.exists():
        text = _read(file)
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise BadSetting(f"{file}: {error}") from None


def _write(environ: Mapping[str, str], tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace tables of the file, whole or not at all; an empty one is removed."""
    file = _find_file(environ)
    document = _parse(file)
    # Other tables keep their lines, comments and order.
    for name, values in tables.items():
        _replace_table(document, name, values)
    file.parent.mkdir(parents=True, exist_ok=True)
    rest = tomlkit.dumps(document).strip("\n")
    if rest:
        rest += "\n"
    replace_plain_file(file, rest)


def _replace_table(
    document: TOMLDocument, name: str, values: Mapping[str, Any]
) -> None:
    # Whole: a URL or a width that was set for another provider does not apply.
    table = tomlkit.table()
    for key, value in values.items():
        table.add(key, value)
    comments = _find_comments(document.get(name))
    for item in comments:
        table.add(item)
    if not values and not comments:
        document.pop(name, None)
    else:
        document[name] = table


def _find_comments(table: object) -> list[Comment | Whitespace]:
    """Return the comments behind a table's last setting, with their blank lines: they are about what follows."""
    items: list[Comment | Whitespace] = []
    if not isinstance(table, Table):
        return items
    for _, item in reversed(table.value.body):
        if not isinstance(item, Comment | Whitespace):
            break
        items.insert(0, item)
    if not any(isinstance(item, Comment) for item in items):
        return []
    return items


def _read(file: Path) -> str:
    try:
        return read_plain_file(file).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file}: {error}") from None
