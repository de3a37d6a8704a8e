"""Python's own tokenizer and syntax tree as the truth: names as code, definitions, calls, bases, over real modules."""

import ast
import io
import sysconfig
import tokenize
from collections import defaultdict
from pathlib import Path

import pytest

from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.lookup import FileSymbols

LIBRARY = Path(sysconfig.get_path("stdlib"))
MODULES = [
    "textwrap.py",
    "heapq.py",
    "sched.py",
    "shlex.py",
    "fnmatch.py",
    "queue.py",
    "bisect.py",
    "contextlib.py",
]


def symbols_of(module: str) -> FileSymbols:
    data = (LIBRARY / module).read_bytes()
    parsed = parse_symbols("python", data)
    assert isinstance(parsed, ParsedFile)
    return FileSymbols(parsed, data)


@pytest.mark.parametrize(
    ("language", "line", "columns"),
    [
        ("python", "f = f'{f} {f!f} {f:f}' + F'' + open(f'x')", [1, 8, 12, 18]),
        ("python", "f = rf'x' + f_('f') + f(\"f\")", [1, 23]),
        ("rust", 'fn f() { let r = r"r"; let s = r#"r"#; g(r) }', [14, 42]),
        ("c", 'int L = sizeof L"L" + L;', [5, 23]),
    ],
)
def test_letters_that_begin_a_string_are_no_name(
    language: str, line: str, columns: list[int]
) -> None:
    data = line.encode()
    parsed = parse_symbols(language, data)
    assert isinstance(parsed, ParsedFile)
    symbols = FileSymbols(parsed, data)
    name = {"python": "f", "rust": "r", "c": "L"}[language]
    assert sorted(place + 1 for place, _ in symbols.places(name)) == columns


@pytest.mark.parametrize("module", MODULES)
def test_a_name_stands_where_the_tokenizer_says(module: str) -> None:
    symbols = symbols_of(module)
    truth: dict[str, set[tuple[int, int]]] = defaultdict(set)
    texts = []
    before = ""
    for token in tokenize.tokenize(io.BytesIO(symbols.data).readline):
        # What follows "!" is how a value in an f-string is converted.
        if token.type == tokenize.NAME and before != "!":
            truth[token.string].add((token.start[0], token.start[1] + 1))
        elif token.type == tokenize.STRING and "{" in token.string:
            texts.append(
                token.string
            )  # names in the braces of an f-string are code to us, text to older tokenizers
        before = token.string
    in_braces = " ".join(texts)
    names = {name for name in truth if name not in in_braces}
    assert len(names) > 20
    for name in names:
        found = {
            (one.line, one.column)
            for one in (
                symbols.occurrence(*place, len(name)) for place in symbols.places(name)
            )
        }
        assert found == truth[name], name


@pytest.mark.parametrize("module", MODULES)
def test_definitions_calls_and_bases_are_those_of_the_syntax_tree(module: str) -> None:
    symbols = symbols_of(module)
    tree = ast.parse(symbols.data)
    nodes = list(ast.walk(tree))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {
        (node.name, node.lineno): node.end_lineno
        for node in nodes
        if isinstance(node, kinds)
    }
    ours = {symbols.defined(index) for index in range(len(symbols.rows))}
    callables = {one for one in ours if one.kind in {"function", "method", "class"}}
    ends = {
        (one.name, one.start_line): one.end_line
        for one in callables
        if (one.name, one.start_line) in defined
    }
    assert (
        {(one.name, one.start_line) for one in callables} - lambdas(nodes)
        == set(defined)
        == set(ends)
    )
    assert all(
        ends[key] >= (end or 0) for key, end in defined.items()
    )  # a comment below still belongs to it
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = sorted(
        name_of(func) for func in called if isinstance(func, ast.Name | ast.Attribute)
    )
    decorators = [
        one for node in nodes if isinstance(node, kinds) for one in node.decorator_list
    ]
    names += [
        name_of(one) for one in decorators if isinstance(one, ast.Name | ast.Attribute)
    ]
    marked = [
        symbols.word_at(offset) for offset in symbols.parsed.marked("call").tolist()
    ]
    assert sorted(marked) == sorted(names)


def name_of(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def lambdas(nodes: list[ast.AST]) -> set[tuple[str, int]]:
    """Return names set to a lambda, which count as functions with us."""
    return {
        (target.id, node.lineno)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
