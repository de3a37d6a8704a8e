"""Places in files as answers give them to programs: ranges of lines and columns."""

from typing import Annotated, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from flashgrep.ingest.columns import Columns, PositionEncoding
from flashgrep.registry import RARE

Encoding: TypeAlias = Annotated[
    PositionEncoding,
    RARE,
    Field(description="What a column counts: bytes (utf-8), UTF-16 units, or characters (utf-32)."),
]


class Range(TypedDict):
    """Lines and columns from 1; the end is the place behind."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int


def measure_range(columns: Columns, start: int, end: int) -> Range:
    """Return the range of some bytes of a text."""
    first, last = columns.place(start), columns.place(end)
    return {"start_line": first[0], "start_column": first[1], "end_line": last[0], "end_column": last[1]}
