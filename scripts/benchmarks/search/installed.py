"""A judged set that needs no network: packages of the scripts' own environment, whose versions ``constraints.txt`` pins.

Two have questions written by hand. Of the third, what its functions say of themselves is asked, and taken out of the
code first. The embedded table was trained on none of them (``avoid.tsv``, ``packages.tsv``). All are one folder, so
that each package is in the way of the others' questions.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from scripts.benchmarks.search.asking import Question, Target, asked
from scripts.benchmarks.search.functions import sentence

ASKED_BY_HAND: Final = {"jinja2": "src/jinja2", "starlette": "starlette"}
"""The folder of each package, as the questions call it."""
ASKED_BY_DOCUMENTATION: Final = ("click",)

Documented = ast.FunctionDef | ast.AsyncFunctionDef


def place_packages(folder: Path) -> list[Question]:
    """Copy the packages' sources into an empty folder, and return the questions about them.

    Raises:
        ModuleNotFoundError: the environment lacks a package.

    """
    by_hand = asked()
    questions = list[Question]()
    for package, place in ASKED_BY_HAND.items():
        for path, text in read_sources(package):
            write_source(folder / place / path, text)
        questions += by_hand[package]
    for package in ASKED_BY_DOCUMENTATION:
        for path, text in read_sources(package):
            functions = [*find_functions(text)]
            write_source(folder / package / path, remove_documentation(text, functions))
            questions += ask_documentation(package, path, functions)
    return drop_repetitions(questions)


def read_sources(package: str) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each source of an installed package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{package} is not installed")
    root = Path(spec.origin).parent
    for file in sorted(root.rglob("*.py")):
        yield file.relative_to(root).as_posix(), file.read_text("utf-8")


def write_source(file: Path, text: str) -> None:
    """Write a file and the folders around it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def find_functions(text: str) -> Iterator[Documented]:
    """Yield the functions with documentation and code, whose name no other definition of the file has."""
    definitions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, Documented | ast.ClassDef)
    ]
    names = Counter(node.name for node in definitions)
    for node in definitions:
        if not isinstance(node, Documented):
            continue
        is_alone = names[node.name] == 1
        has_code = len(node.body) > 1
        if is_alone and has_code and ast.get_docstring(node):
            yield node


def remove_documentation(text: str, functions: Sequence[Documented]) -> str:
    """Return a source without the documentation of functions."""
    lines = text.split("\n")
    gone = set[int]()
    for function in functions:
        documentation = function.body[0]
        gone.update(
            range(documentation.lineno, (documentation.end_lineno or 0) + 1),
        )
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in gone)


def ask_documentation(
    package: str, path: str, functions: Sequence[Documented]
) -> Iterator[Question]:
    """Yield the first sentence of each function's documentation, if it can be a question."""
    for function in functions:
        text = sentence(ast.get_docstring(function) or "")
        if text:
            target = Target(f"{package}/{path}", function.name)
            yield Question(package, text, "semantic", (target,))


def drop_repetitions(questions: Sequence[Question]) -> list[Question]:
    """Return the questions that are asked of one function only."""
    counts: Mapping[str, int] = Counter(question.text for question in questions)
    return [question for question in questions if counts[question.text] == 1]
