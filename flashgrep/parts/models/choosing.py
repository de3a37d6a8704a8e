"""Which model the daemon uses: two tables of the user's config.toml, whose other lines stay as they are."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

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


def _write(environ: Mapping[str, str], tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace tables of the file, whole or not at all; an empty one is removed."""
    # Often a link into a folder of settings under version control.
    file = Path(os.path.realpath(config_file(environ)))
    text = ""
    if file.exists():
        text = _read(file)
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise BadSetting(f"{file}: {error}") from None
    # Other tables keep their lines, comments and order.
    for name, values in tables.items():
        # Whole: a URL or a width that was set for another provider does not apply.
        document.pop(name, None)
        if values:
            document[name] = dict(values)
    file.parent.mkdir(parents=True, exist_ok=True)
    rest = tomlkit.dumps(document).strip("\n")
    replace_plain_file(file, f"{rest}\n" if rest else "")


def _read(file: Path) -> str:
    try:
        return read_plain_file(file).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file}: {error}") from None
