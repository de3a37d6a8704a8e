"""Filters on what is known of a piece of code."""

import re
from collections.abc import Callable
from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field

from flashgrep.ingest.globs import PathFilter
from flashgrep.ingest.wildcard import Dialect, matcher, translate
from flashgrep.params import GlobText, LineNumber
from flashgrep.registry import Params
from flashgrep.search.exported import is_exported
from flashgrep.search.meaning import Piece

Wanted: TypeAlias = GlobText | Annotated[list[GlobText], Field(max_length=100)]
_NAMES = Dialect(free_star=True, characters=True)


class Payload(Params):
    """Filters; what is not given is not filtered. A list means any of its items."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    language: Wanted | None = Field(None, description="Languages, as typescript.")
    repository: Wanted | None = Field(None, description="Collections, by name.")
    filePath: Wanted | None = Field(None, description="Paths or globs below the project's root, as /src/*.")  # noqa: N815 - as its contract has it
    kind: Wanted | None = Field(None, description="Kinds, as function, class or section.")
    name: Wanted | None = Field(None, description="Names of symbols, or globs of them, as get_*.")
    exported: bool | None = Field(None, description="Whether other files can use it.")
    startLine: LineNumber | None = Field(None, description="Only code that reaches this line or lies below it.")  # noqa: N815 - as above
    endLine: LineNumber | None = Field(None, description="Only code that begins at this line or above it.")  # noqa: N815 - as above

    def repositories(self) -> list[str]:
        """Return the repositories that are let in; none: all."""
        return _listed(self.repository)


def _listed(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else value


def payload_path_filter(payload: Payload | None) -> PathFilter | None:
    """Return the filter of paths; None: every file."""
    if payload is None or (payload.filePath is None and payload.language is None):
        return None
    return PathFilter(
        [_below_root(glob) for glob in _listed(payload.filePath)], [], languages=_listed(payload.language)
    )


def _below_root(glob: str) -> str:
    """Return a glob that is meant from the root on; a folder stands for all that lies in it."""
    below = glob.removeprefix("./").lstrip("/")
    return f"/{below}**" if below.endswith("/") else f"/{below}" if glob.startswith("/") else below


def payload_filter(payload: Payload | None) -> Callable[[Piece], bool] | None:
    """Return the filter of pieces; None: every piece."""
    if payload is None:
        return None
    kinds = set(_listed(payload.kind))
    is_named = matcher([_as_regex(name) for name in _listed(payload.name)]) if payload.name else None
    first, last = payload.startLine or 1, payload.endLine

    def wanted(piece: Piece) -> bool:
        chunk = piece.chunk
        called = {chunk.name, chunk.name.rpartition(".")[2], *chunk.defines}
        return (
            (not kinds or chunk.kind in kinds)
            and (is_named is None or any(is_named(one.encode()) for one in called))
            and (payload.exported is None or is_exported(piece) == payload.exported)
            and chunk.end_line >= first
            and (last is None or chunk.start_line <= last)
        )

    return wanted


def _as_regex(glob: str) -> bytes:
    """Return RE2's form of a glob in which only ``*`` and ``?`` mean more than themselves."""
    escaped = glob.replace("\\", r"\\").replace("[", r"\[")
    return translate(re.sub(r"\*+", "*", escaped).encode(), _NAMES)
