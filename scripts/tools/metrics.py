"""Measures of how readable a package is: what stands on a line, branches, names, comments, sizes, references.

``--check`` compares them with ``LIMITS``, which should only go down: it fails if a measure is above its limit, or so
far below that the limit should be lowered. ``--lower`` writes the current measures as limits. ``LEAST`` has lower
bounds.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from math import ceil, floor
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from scripts.tools.references import find_broken

PACKAGE = Path(__file__).parents[2] / "flashgrep"

LIMITS = {
    "syntax nodes a code line": 7.9,
    "assigned names that are pronouns, %": 0.7,
    "functions with more than 15 branches, %": 2.0,
    "functions named by a participle": 12,
    "broken references": 0,
}
"""Upper bounds, which only go down: they say how much a reader meets on a line, not how many lines there are."""

MOST_NODES = 9.5
"""Syntax nodes a code line of any module."""

DENSE = {
    "base/identifiers.py": 9.7,
    "base/path_text.py": 9.9,
    "index/grams.py": 11.1,
    "index/postings.py": 11.2,
    "methods/text.py": 10.2,
    "parts/hosts/jsonc.py": 10.6,
    "parts/libraries/java_sources.py": 10.3,
    "parts/libraries/rust_crates.py": 10.1,
    "parts/meaning/chunk_cuts.py": 12.1,
    "parts/meaning/chunk_names.py": 11.4,
    "parts/meaning/embed/static.py": 10.4,
    "parts/meaning/index/vectors.py": 11.3,
    "parts/meaning/index/word_impacts.py": 10.9,
    "parts/meaning/search/passages.py": 10.4,
    "parts/symbols/parse/model.py": 10.9,
    "search/path_search.py": 10.4,
    "search/snapshot.py": 10.3,
}
"""Modules that are above ``MOST_NODES``, each with its own limit: no module comes to this list, and limits only go
down."""

LEAST = {"comment lines, %": 3.6}
"""Lower bounds."""

SMALL = 60
"""Most lines of a module that counts as small."""

SLACK = {
    "syntax nodes a code line": 0.2,
    "assigned names that are pronouns, %": 0.3,
    "functions with more than 15 branches, %": 0.3,
    "functions named by a participle": 5,
    "broken references": 0,
}
"""How far a measure may be below its limit before the limit must be lowered."""

MANY_BRANCHES = 15
"""A function with more of them is too much for one reading."""

BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.comprehension,
    ast.match_case,
)

PRONOUNS = frozenset(
    {
        "one",
        "found",
        "each",
        "known",
        "kept",
        "left",
        "asked",
        "said",
        "given",
        "wanted",
        "held",
        "meant",
        "made",
        "ours",
        "theirs",
        "taken",
        "shown",
        "begun",
        "done",
        "told",
        "ended",
    }
)
"""Names that say nothing about a value."""

PARTICIPLE = re.compile(
    r"_?(?:\w+_)?(?:\w{2,}ed|shown|told|said|sent|left|kept|given|taken|made|held|read_out|found)"
)
NOT_PARTICIPLES = {
    "need",
    "feed",
    "embed",
    "seed",
    "shed",
    "exceed",
    "proceed",
    "speed",
}


class Function(NamedTuple):
    """A function of the package; a decorated one may be called by other means than its name."""

    path: Path
    name: str
    line: int
    length: int
    branches: int
    decorated: bool


class House(NamedTuple):
    """The measured data of a package.

    ``densities``: nodes a code line of each module.
    ``comments`` and ``filled`` count lines with a comment and lines that are not blank; ``code`` counts lines without
    comments and docstrings, ``nodes`` the nodes of the syntax trees, ``assigned`` the names that are assigned.
    """

    lines: dict[Path, int]
    densities: dict[Path, float]
    functions: list[Function]
    uses: Counter[tuple[Path, str]]
    calls: Counter[tuple[Path, str]]
    comments: int
    filled: int
    code: int
    nodes: int
    assigned: Counter[str]


def read_house(folder: Path) -> House:
    """Read all Python modules below a folder."""
    lines: dict[Path, int] = {}
    densities: dict[Path, float] = {}
    functions: list[Function] = []
    uses: Counter[tuple[Path, str]] = Counter()
    calls: Counter[tuple[Path, str]] = Counter()
    assigned: Counter[str] = Counter()
    comments = 0
    filled = 0
    code = 0
    nodes = 0
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        lines[path] = source.count("\n")
        functions += find_functions(path, tree)
        uses.update((path, name) for node in ast.walk(tree) if (name := name_of(node)))
        calls.update(
            (path, name)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and (name := name_of(node.func))
        )
        comments += sum(
            token.type == tokenize.COMMENT
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
        )
        filled += sum(bool(line.strip()) for line in source.splitlines())
        code_of_module = count_code_lines(source, tree)
        nodes_of_module = sum(1 for _ in ast.walk(tree))
        densities[path] = round(nodes_of_module / max(1, code_of_module), 2)
        code += code_of_module
        nodes += nodes_of_module
        assigned.update(
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
    return House(
        lines,
        densities,
        functions,
        uses,
        calls,
        comments,
        filled,
        code,
        nodes,
        assigned,
    )


def count_code_lines(source: str, tree: ast.Module) -> int:
    """Return the number of lines that are neither blank, nor a comment, nor in a docstring."""
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    count = 0
    for number, line in enumerate(source.splitlines(), 1):
        text = line.strip()
        if text and number not in docstrings and not text.startswith("#"):
            count += 1
    return count


def count_branches(function: ast.AST) -> int:
    """Return the number of ways through a function, counting those in expressions as well."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            count += 1
        if isinstance(node, ast.comprehension):
            count += len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count


def find_functions(path: Path, tree: ast.Module) -> Iterator[Function]:
    """Yield the functions of a module, including methods and nested functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Function(
                path,
                node.name,
                node.lineno,
                length,
                count_branches(node),
                bool(node.decorator_list),
            )


def name_of(node: ast.AST) -> str:
    """Return the name that a node reads, if it is one."""
    return (
        node.id
        if isinstance(node, ast.Name)
        else node.attr
        if isinstance(node, ast.Attribute)
        else ""
    )


def is_private(name: str) -> bool:
    """Return whether a function is private to its module or class."""
    return name.startswith("_") and not name.endswith("__")


def find_once_used(house: House) -> list[Function]:
    """Return the private functions that their module uses only once; functions of the same name share their uses.

    Functions passed as values, such as callbacks, need a name and are left out.
    """
    private = [
        function
        for function in house.functions
        if is_private(function.name) and not function.decorated
    ]
    defined = Counter(function[:2] for function in private)
    return [
        function
        for function in private
        if house.uses[function[:2]] <= defined[function[:2]]
        and house.calls[function[:2]]
    ]


def find_participles(house: House) -> list[Function]:
    """Return the functions named by a participle (``_told``, ``_shown``) instead of a verb, except for properties."""
    return [
        function
        for function in house.functions
        if not function.decorated
        and not function.name.startswith(
            ("test_", "is_", "has_", "_is_", "_has_", "__")
        )
        and PARTICIPLE.fullmatch(function.name)
        and function.name.rsplit("_", 1)[-1] not in NOT_PARTICIPLES
    ]


def find_pronouns(folder: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield each assigned name that says nothing about its value: its module, line and name."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Name) or node.id not in PRONOUNS:
                continue
            if isinstance(node.ctx, ast.Store):
                yield path.relative_to(folder), node.lineno, node.id


def find_branchy(house: House) -> list[Function]:
    """Return the functions with too many branches, most first."""
    branchy = [
        function for function in house.functions if function.branches > MANY_BRANCHES
    ]
    return sorted(branchy, key=lambda function: -function.branches)


def find_recurring_names(house: House) -> dict[str, int]:
    """Return the module names that occur in several folders."""
    names = Counter(path.name for path in house.lines if not path.name.startswith("__"))
    return {name: count for name, count in names.items() if count > 1}


def measure(house: House) -> dict[str, float]:
    """Return each measure by its name."""
    lengths = [function.length for function in house.functions]
    sizes = list(house.lines.values())
    private = [function for function in house.functions if is_private(function.name)]
    pronouns = sum(house.assigned[name] for name in PRONOUNS)
    return {
        "syntax nodes": house.nodes,
        "syntax nodes a code line": round(house.nodes / house.code, 2),
        "assigned names that are pronouns, %": round(
            100 * pronouns / house.assigned.total(), 2
        ),
        "functions with more than 15 branches, %": round(
            100 * len(find_branchy(house)) / len(lengths), 2
        ),
        "lines": sum(sizes),
        "code lines": house.code,
        "modules": len([path for path in house.lines if path.name != "__init__.py"]),
        "lines of a module, median": median(sizes),
        f"modules of at most {SMALL} lines": sum(
            size <= SMALL
            for path, size in house.lines.items()
            if path.name != "__init__.py"
        ),
        "functions": len(lengths),
        "lines of a function, median": median(lengths),
        "lines of a function, 90th percentile": quantiles(lengths, n=10)[-1],
        "lines of a function, most": max(lengths),
        "private functions": len(private),
        "private functions used once": len(find_once_used(house)),
        "comment lines, %": floor(1000 * house.comments / house.filled)
        / 10,  # 3.96 is not 4 yet
        "functions named by a participle": len(find_participles(house)),
        "module names in several folders": len(find_recurring_names(house)),
    }


def describe_excess(name: str, limit: float, house: House) -> str:
    """Return how far a measure is above its limit, where that can be counted, and what names the places."""
    if name == "syntax nodes a code line":
        excess = ceil(house.nodes - house.code * limit)
        return (
            f"{excess} nodes too many; scripts/metrics FOLDER measures your part of it"
        )
    return "scripts/metrics --list names them"


def check(measures: dict[str, float], house: House) -> list[str]:
    """Return the measures above their limits, or so far below that the limit must be lowered."""
    faults = []
    for name, limit in LIMITS.items():
        if name not in measures:
            continue
        found = measures[name]
        if found > limit:
            excess = describe_excess(name, limit, house)
            faults.append(f"{name}: {found:g}, at most {limit} allowed ({excess})")
        elif found < limit - SLACK[name]:
            faults.append(
                f"{name}: {found:g}, far below its limit of {limit}: run scripts/metrics --lower"
            )
    for name, least in LEAST.items():
        if measures[name] < least:
            # The package stands close to its bound, so that a module without comments
            # is noticed: a few lines make up for it.
            missing = ceil(house.filled * least / 100) - house.comments
            faults.append(
                f"{name}: {measures[name]:g}, at least {least:g} required: {missing} more in the package;"
                " give reasons where readers ask"
            )
    return faults


def check_modules(house: House, folder: Path) -> list[str]:
    """Return the modules above ``MOST_NODES``, or above their own limit, and those that need no limit any more."""
    faults = []
    for path, density in house.densities.items():
        module = path.relative_to(folder).as_posix()
        limit = DENSE.get(module, MOST_NODES)
        if density > limit:
            faults.append(
                f"{module}: {density:g} nodes a line, at most {limit:g} allowed"
            )
        elif density <= MOST_NODES and module in DENSE:
            faults.append(f"{module}: within its limit: take it out of metrics.DENSE")
    return faults


def lower(source: str, measures: dict[str, float]) -> str:
    """Return this module's source with each limit at most as high as its measure."""
    for name, limit in LIMITS.items():
        measure = measures.get(name, limit)
        if isinstance(limit, float):
            measure = ceil(10 * measure) / 10
        else:
            measure = int(measure)
        source = source.replace(
            f'"{name}": {limit},', f'"{name}": {min(limit, measure)},', 1
        )
    return source


def print_tree(folder: Path) -> None:
    """Print each module with its lines and the first line of its docstring, folder by folder."""
    modules = [path.relative_to(folder) for path in folder.rglob("*.py")]
    for module in sorted(
        modules,
        key=lambda path: (path.parent.parts, path.name != "__init__.py", path.name),
    ):
        source = (folder / module).read_text(encoding="utf-8")
        name = (
            f"{module.parent}/" if module.name == "__init__.py" else f"  {module.name}"
        )
        purpose = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
        print(f"{name:32} {source.count(chr(10)):>4}  {purpose}")


def main() -> int:
    """Print the measures, or check them."""
    parser = argparse.ArgumentParser(
        prog="scripts/metrics", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, nargs="?", default=PACKAGE)
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare with the limits; status 1 if one is broken",
    )
    parser.add_argument(
        "--lower",
        action="store_true",
        help="set the limits to the measures that are below them",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="name one-use private functions, participles, pronouns, functions with many branches, dense modules",
    )
    parser.add_argument(
        "--tree", action="store_true", help="print each module with its purpose"
    )
    given = parser.parse_args()
    if given.tree:
        print_tree(given.folder)
        return 0
    house = read_house(given.folder)
    measures = measure(house)
    broken = []
    if given.folder == PACKAGE:
        broken = find_broken(PACKAGE.parent)
        measures["broken references"] = len(broken)
    if given.check:
        faults = [f"{reference}" for reference in broken] + check(measures, house)
        if given.folder == PACKAGE:
            faults += check_modules(house, PACKAGE)
        print("\n".join(faults) or "metrics: all within their limits")
        return bool(faults)
    if given.lower:
        own = Path(__file__)
        own.write_text(
            lower(own.read_text(encoding="utf-8"), measures), encoding="utf-8"
        )
        return 0
    for name, value in measures.items():
        print(f"{name:40} {value:>8g}")
    if given.list:
        lists = {
            "used once": find_once_used(house),
            "participle": find_participles(house),
            "many branches": find_branchy(house),
        }
        for title, functions in lists.items():
            for function in functions:
                place = f"{function.path.relative_to(given.folder)}:{function.line}"
                print(
                    f"{title}  {place:48} {function.name} ({function.length} lines, {function.branches} branches)"
                )
        for path, line, name in find_pronouns(given.folder):
            print(f"pronoun  {f'{path}:{line}':48} {name}")
        for path, density in house.densities.items():
            if density > MOST_NODES:
                module = path.relative_to(given.folder).as_posix()
                print(f"many nodes a line  {module:48} {density:g}")
        print("\n".join(f"broken reference  {reference}" for reference in broken))
    return 0


if __name__ == "__main__":
    sys.exit(main())
