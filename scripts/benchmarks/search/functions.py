"""Functions of a source tree without their documentation, which is used as queries for them."""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from flashgrep.base.languages import language_of
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, DECLARES, END, START

FEWEST_LINES: Final = 3
MOST_LINES: Final = 80
FEWEST_WORDS, MOST_WORDS = 4, 40
"""Words of a sentence that is used as a question."""
_ASIDE: Final = re.compile(
    r"(^|/)(tests?|testing|spec|examples?|benches|benchmarks?|vendor|deps|dist)(/|$)|[._]test\."
)
_COMMENT: Final = ("//", "/*", "*", "#", "--")
_ATTRIBUTE: Final = ("@", "#[", "[")
_MARKS: Final = re.compile(r"^\s*(?:/\*+!?|\*+/|///?!?|\*|#+|---?)\s?|\s*\*+/\s*$")
_END: Final = re.compile(
    r"^\s*(?:@|:param|:return|:rtype|:type|Args?:|Parameters|Returns?:|Raises:|Examples?:|>>>|\.\. |```|---|===|<pre)",
    re.MULTILINE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z(`'\"])|\n\s*\n")
_MARKUP: Final = re.compile(
    r":\w+(?::\w+)?:`~?([^`]+)`|\{@\w+\s+([^}]+)\}|</?\w+[^>]*>|`"
)


class Function(NamedTuple):
    """A function without its documentation."""

    path: str
    name: str
    code: str
    sentence: str
    """The first sentence of its documentation; empty if there is none usable as a question."""


def functions(root: Path, language: str) -> Iterator[Function]:
    """Yield the functions of a tree's sources, without tests and examples."""
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        found = language_of(path.name.encode()).name
        if (
            found in _alike(language)
            and path.is_file()
            and not _ASIDE.search(name.lower())
        ):
            yield from _of_file(name, path.read_bytes(), found)


def _alike(language: str) -> set[str]:
    return {"typescript": {"typescript", "tsx"}, "c": {"c"}}.get(language, {language})


def _of_file(path: str, data: bytes, language: str) -> Iterator[Function]:
    parsed = parse_symbols(language, data)
    if not isinstance(parsed, ParsedFile):
        return
    symbols = FileSymbols(parsed, data)
    strings = _docstrings(data) if language == "python" else {}
    for index, row in enumerate(symbols.rows):
        if (
            row[DECLARES]
            or symbols.kind(index) not in CALLABLE_KINDS
            or symbols.kind(index) == "macro"
        ):
            continue
        first, last = (
            symbols.lines.line(row[START]),
            symbols.lines.line(max(row[START], row[END] - 1)),
        )
        lines = [symbols.lines.text(number) for number in range(first, last + 1)]
        if language == "python":
            said, lines = _without(lines, first, strings)
        else:
            said = _above(
                [
                    symbols.lines.text(number)
                    for number in range(max(1, first - 60), first)
                ]
            )
        if len(lines) >= FEWEST_LINES:
            code = textwrap.dedent("\n".join(lines[:MOST_LINES]))
            yield Function(path, symbols.name(index), code, sentence(said))


def _docstrings(data: bytes) -> dict[int, tuple[int, str]]:
    """Return the last line and the text of each docstring, by its first line."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and node.body
        ):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                text = first.value.value
                if isinstance(text, str):
                    found[first.lineno] = (first.end_lineno or first.lineno, text)
    return found


def _without(
    lines: list[str], first: int, strings: dict[int, tuple[int, str]]
) -> tuple[str, list[str]]:
    """Return a Python function's own docstring, and its lines without any docstring."""
    gone: set[int] = set()
    said = ""
    for start in range(first, first + len(lines)):
        if start in strings:
            last, text = strings[start]
            gone.update(range(start, last + 1))
            opens = not any(
                line.lstrip().startswith(("def ", "async def "))
                for line in lines[1 : start - first]
            )
            said = said or (text if opens else "")
    return said, [
        line for number, line in enumerate(lines, first) if number not in gone
    ]


def _above(lines: list[str]) -> str:
    """Return the comment directly above a definition, ignoring attributes in between."""
    said: list[str] = []
    for line in reversed(lines):
        text = line.strip()
        if text.startswith(_ATTRIBUTE) and not said:
            continue
        if not text.startswith(_COMMENT):
            break
        said.append(_MARKS.sub("", line))
        if text.startswith("/*"):
            break
    return "\n".join(reversed(said))


def sentence(said: str) -> str:
    """Return the first sentence of documentation without markup; empty if it is not usable as a question."""
    text = textwrap.dedent(said).strip()
    end = _END.search(text)
    text = text[: end.start()].strip() if end else text
    text = _SENTENCE.split(text, maxsplit=1)[0]
    text = " ".join(
        _MARKUP.sub(lambda found: found[1] or found[2] or "", text).split()
    ).rstrip(".")
    return (
        text
        if text.isascii() and FEWEST_WORDS <= len(text.split()) <= MOST_WORDS
        else ""
    )
