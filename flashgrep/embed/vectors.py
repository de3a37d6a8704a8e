"""Rows of unit length."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""(n, dims); rows of unit length, or zero for a text without anything known in it."""

Role = Literal["query", "document"]

PREFIXES: Mapping[str, tuple[str, str]] = {
    "nomic-embed": ("search_query: ", "search_document: "),
    "mxbai-embed": ("Represent this sentence for searching relevant passages: ", ""),
    "snowflake-arctic-embed": ("Represent this sentence for searching relevant passages: ", ""),
    "e5-": ("query: ", "passage: "),
}
"""Models, by a part of their names, that were trained with words before a question and a text (as their cards say)."""


def unit(table: npt.NDArray[Any]) -> Vectors:
    """Return rows divided by their lengths; rows of zeros stay as they are."""
    table = table.astype(np.float64)
    largest = np.abs(table).max(axis=1, keepdims=True, initial=0)  # first, so that squares of large numbers stay finite
    table = np.divide(table, largest, out=np.zeros_like(table), where=largest > 0)
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    rows: Vectors = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0).astype(np.float32)
    return rows


def prefix(model: str, role: Role) -> str:
    """Return the words that a model wants before a text."""
    found = next((pair for part, pair in PREFIXES.items() if part in model.lower()), ("", ""))
    return found[role == "document"]


def portions(texts: Sequence[str], batch: int, chars: int) -> Iterator[dict[int, str]]:
    """Yield texts that are not blank by their places, at most ``batch`` and, unless one is longer, ``chars`` a time."""
    part: dict[int, str] = {}
    size = 0
    for place, text in enumerate(texts):
        if not text.strip():
            continue
        if part and (len(part) == batch or size + len(text) > chars):
            yield part
            part, size = {}, 0
        part[place] = text
        size += len(text)
    if part:
        yield part
