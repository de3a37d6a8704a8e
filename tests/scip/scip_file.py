"""Writes SCIP files for tests, by the wire format, from what they shall say."""

from collections.abc import Iterable
from pathlib import Path

Occurrence = tuple[list[int], str, int]
"""A range as SCIP has it, a symbol, roles."""
DEFINES, IMPORTS = 1, 2


def number(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def field(at: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return number(at << 3) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(at << 3 | 2) + number(len(data)) + data


def document(
    path: str, occurrences: Iterable[Occurrence], encoding: int = 0, text: str = ""
) -> bytes:
    found = (
        field(1, path)
        + (field(6, encoding) if encoding else b"")
        + (field(5, text) if text else b"")
    )
    for place, symbol, roles in occurrences:
        said = (
            field(1, b"".join(map(number, place)))
            + field(2, symbol)
            + (field(3, roles) if roles else b"")
        )
        found += field(2, said)
    return found


def write_index(
    file: Path, documents: Iterable[bytes], root: Path | None = None
) -> Path:
    metadata = field(2, field(1, "loom") + field(2, "1.2")) + field(
        3, f"file://{root}" if root else ""
    )
    file.write_bytes(field(1, metadata) + b"".join(field(2, one) for one in documents))
    return file


def spans(text: str, word: str, symbol: str, roles: Iterable[int]) -> list[Occurrence]:
    """Return the occurrences of a word in a text of ASCII, each with its roles; -1: it is left out."""
    found: list[Occurrence] = []
    given = iter(roles)
    for line, content in enumerate(text.split("\n")):
        at = content.find(word)
        while at >= 0:
            if (role := next(given)) >= 0:
                found.append(([line, at, at + len(word)], symbol, role))
            at = content.find(word, at + 1)
    return found
