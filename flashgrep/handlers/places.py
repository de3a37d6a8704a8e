"""How clients count columns: a parameter of the methods that speak of places."""

from typing import Annotated, TypeAlias

from pydantic import Field

from flashgrep.ingest.columns import PositionEncoding
from flashgrep.registry import RARE

Encoding: TypeAlias = Annotated[
    PositionEncoding,
    RARE,
    Field(description="What a column counts: bytes (utf-8), UTF-16 units, or characters (utf-32)."),
]
