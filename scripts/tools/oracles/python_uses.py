"""Prints what each name in a folder refers to, by Jedi, as JSON lines like those of typescript/uses.cjs.

PYTHON_WITH_JEDI python_uses.py ROOT

A line with a name that Jedi cannot resolve, or with one in a string, which may be a type, is reported as
{"unseen": [file, first line, last line]}.
"""

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

TYPES = re.compile(r"[\w., |\[\]]+")
KINDS = {"function": "function", "class": "class"}


def uses_of(tree: ast.AST) -> Iterator[tuple[ast.Attribute | ast.Name, bool]]:
    """Yield the nodes of names that are read, and whether each is called."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    called |= {
        id(one)
        for node in ast.walk(tree)
        for one in getattr(node, "decorator_list", ())
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(
            node.ctx, ast.Load
        ):
            yield node, id(node) in called


def names_given(trees: Iterable[ast.AST]) -> set[str]:
    """Return the names of functions and classes, including import aliases: only these are looked up with Jedi."""
    found = set[str]()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.alias) and node.asname:
                found.add(node.asname)
    return found


def lines_of_strings(tree: ast.AST, given: set[str]) -> Iterator[int]:
    """Yield the lines of strings that may be types: Jedi does not go from the names in them."""
    for node in ast.walk(tree):
        text = getattr(node, "value", None)
        if not isinstance(node, ast.Constant) or not isinstance(text, str):
            continue
        if TYPES.fullmatch(text) and given.intersection(re.findall(r"\w+", text)):
            yield node.lineno


def main() -> None:
    """Print the uses of a folder."""
    jedi = import_module(
        "jedi"
    )  # of the interpreter that runs this, not of the project's environment
    root = Path(sys.argv[1]).resolve()
    project = jedi.Project(str(root), added_sys_path=[str(root / "src")])
    read: dict[Path, tuple[str, ast.AST]] = {}
    for path in sorted(root.rglob("*.py")):
        with suppress(SyntaxError):
            text = path.read_text("utf-8", "replace")
            read[path] = text, ast.parse(text)
    given = names_given(tree for _, tree in read.values())
    for path, (text, tree) in read.items():
        lines, script = text.splitlines(), jedi.Script(path=str(path), project=project)
        for number in lines_of_strings(tree, given):
            print(json.dumps({"unseen": [str(path.relative_to(root)), number, number]}))
        for node, is_call in uses_of(tree):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name not in given:
                continue
            last = node.end_lineno or node.lineno
            end = len(
                lines[last - 1]
                .encode()[: node.end_col_offset]
                .decode("utf-8", "replace")
            )
            found: list[Any] = []
            with suppress(
                RecursionError, AttributeError, ValueError, TypeError, KeyError
            ):  # its recursion limit
                found = script.goto(last, end - len(name), follow_imports=True)
            if not found:  # it cannot tell: a parameter without a type, a fixture
                print(
                    json.dumps(
                        {
                            "unseen": [
                                str(path.relative_to(root)),
                                node.end_lineno,
                                node.end_lineno,
                            ]
                        }
                    )
                )
            for one in found:
                where = one.module_path
                if (
                    one.type not in KINDS
                    or where is None
                    or root not in Path(where).parents
                ):
                    continue
                parent = one.parent()
                is_method = (
                    one.type == "function"
                    and parent is not None
                    and parent.type == "class"
                )
                row = {
                    "use": [str(path.relative_to(root)), node.end_lineno],
                    "target": [str(Path(where).relative_to(root)), one.line],
                    "name": one.name,
                    "container": parent.name if is_method else "",
                    "kind": "method" if is_method else KINDS[one.type],
                    "call": is_call,
                }
                print(json.dumps(row))


if __name__ == "__main__":
    main()
