"""Types of methods' parameters: every text, list and number a caller may send has a maximum here.

What a call may cost is decided before it runs, so a bound is generous to any real use and stands far below what would
hold the daemon up.
"""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from flashgrep.vocabulary import VERBATIM

MOST_PATTERN = 64 * 1024
"""Characters over all texts of a pattern."""
MOST_GLOBS = 1000
MOST_LANGUAGES = 200
"""We know fewer."""

MOST_PROJECTS = 100
"""In one question."""
MOST_PATH = 32 * 1024
MOST_GLOB = 4096


def limit_length(most: int) -> AfterValidator:
    """Return a bound on a text's characters.

    pydantic's own max_length refuses the lone surrogates by which a command line carries names that are no UTF-8.
    """

    def check(text: str) -> str:
        if len(text) > most:
            raise ValueError(f"at most {most} characters")
        return text

    return AfterValidator(check)


PathText: TypeAlias = Annotated[str, limit_length(MOST_PATH), Field(json_schema_extra={"maxLength": MOST_PATH})]
"""A path, or a project by name or root. A path has at most 4 KiB on Linux; the system says so where one is too long."""
PathBase64: TypeAlias = Annotated[str, Field(max_length=44 * 1024)]
"""A path's bytes in base64."""
GlobText: TypeAlias = Annotated[str, limit_length(MOST_GLOB), Field(json_schema_extra={"maxLength": MOST_GLOB})]
Globs: TypeAlias = Annotated[list[GlobText], Field(max_length=MOST_GLOBS)]
Languages: TypeAlias = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=MOST_LANGUAGES)]
PatternText: TypeAlias = Annotated[str, Field(max_length=MOST_PATTERN)]
NameText: TypeAlias = Annotated[str, Field(max_length=1000)]
"""A name the caller or a repository gave: of a symbol, a specification, an operation, a folder's collection."""
RevisionText: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
"""A revision's name, or two."""
SymbolName: TypeAlias = Annotated[NameText, Field(min_length=1, pattern=r"\S")]
"""A name with something in it: blanks alone would be compared with every name there is."""
CursorText: TypeAlias = Annotated[str, Field(max_length=16 * 1024)]
"""A cursor holds a path, escaped and in base64."""
FileText: TypeAlias = Annotated[str, VERBATIM, Field(max_length=64 * 1024 * 1024)]
"""Text of a file: as long as the largest `write.max_bytes`; the setting and the length of a line bound it further."""
LineNumber: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]
ByteCount: TypeAlias = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""Bytes; up to where a JSON number is exact in every client."""
