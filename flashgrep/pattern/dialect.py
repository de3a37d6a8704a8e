r"""Where this dialect differs from ripgrep's default engine: data, from which the reference prints its table.

Everything else of https://docs.rs/regex/latest/regex/#syntax is read and means the same, tested against ripgrep itself.
"""

from typing import NamedTuple


class Difference(NamedTuple):
    """One construct, what ripgrep does with it and what happens here; `refused` is a pattern that shows a refusal."""

    construct: str
    ripgrep: str
    here: str
    refused: str | None = None


DIFFERENCES = (
    Difference(
        "look-around `(?=` `(?!` `(?<=` `(?<!`, back-references `\\1`, `\\K`, atomic groups `(?>`",
        "refused by the default engine; `-P` runs them",
        'refused; `engine: "backtracking"` runs what Python\'s `re` knows of them, under a time limit',
        r"(?<=a)b",
    ),
    Difference(
        "counted repetitions that unroll to more than 20,000 parts, or 200,000 byte classes with Unicode",
        "accepted up to a compiled size of 100 MB",
        "refused: one file could otherwise hold a thread for minutes",
        "(?:a{1000}){1000}",
    ),
    Difference(
        "`\\p{age=…}`, `\\p{scx=…}`, `\\p{gcb=…}`, `\\p{wb=…}`, `\\p{sb=…}` and rare binary properties",
        "known",
        "refused; general categories, scripts and 40 binary properties are known, all of Unicode 16",
        r"\p{age=3.0}",
    ),
    Difference(
        "patterns of more than 64 Ki characters, groups or classes nested deeper than 200",
        "accepted; nesting up to 250",
        "refused",
        "(" * 201 + ")" * 201,
    ),
    Difference(
        "`\\x00` and other ways to write NUL",
        "refused unless `-a` is given",
        "searched for: a file's text may hold NUL after its first block",
    ),
    Difference(
        "a comment on the last line of a `(?x)` pattern",
        "refused: the comment swallows the group that ripgrep puts around each pattern",
        "accepted",
    ),
    Difference(
        "`\\A` and `\\z` without multi-line mode",
        "hold at both ends of every line, but no column is given on lines after the first",
        "hold at both ends of every line, with the column",
    ),
    Difference(
        "multi-line mode: `\\A`, `\\b`, `^` and whatever looks behind, after an earlier match",
        "the search goes on as if the text began there, so that lines may be added to a block",
        "the whole text is seen: `\\A` holds at its start only",
    ),
    Difference(
        "Unicode word conditions beside a stray continuation byte that starts a line",
        "judged together with the line before if that line did not match, else alone",
        "judged together with the line before",
    ),
    Difference(
        "groups in a replacement (`-r`)",
        "those of the match that was found",
        "the same, save beside conditions RE2 cannot say, where another way through the same span may be taken",
    ),
)
