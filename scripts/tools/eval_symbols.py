"""Compare definitions with Universal Ctags, and direct callers in Python with Jedi, over sources given.

    scripts/eval_symbols definitions LANGUAGE=FOLDER …     LANGUAGE as we name it
    scripts/eval_symbols callers [--jedi FOLDER] PACKAGE_FOLDER …
    scripts/eval_symbols uses FOLDER=TRUTH.jsonl …     TRUTH: printed by a program of scripts/tools/oracles
    scripts/eval_symbols first-ten FOLDER …     where query shows the definitions of names with 100 and more uses
    scripts/eval_symbols defined-once FOLDER …     where query shows the definition of 100 names that have one

Every class of difference is counted with examples and judged in ``JUDGED``: a class not judged counts against us.
"""

import argparse
import ast
import collections
import importlib
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio

from flashgrep.ingest.parse import ParsedFile, parse_symbols
from flashgrep.ingest.parse.lookup import FileSymbols
from flashgrep.languages import language_of
from flashgrep.pattern import Pattern
from flashgrep.search.exact import Question
from flashgrep.search.relevance import search
from flashgrep.search.research import Research
from flashgrep.workspace import Workspace, WorkspaceOptions
from scripts.tools.eval_uses import Folder, compare_uses, report_told

CTAGS: Final = {
    "ada": "Ada", "awk": "Awk", "bash": "Sh", "c": "C", "clojure": "Clojure", "cmake": "CMake", "config": "Iniconf",
    "cpp": "C++", "csharp": "C#", "css": "CSS", "cython": "Python", "d": "D", "elisp": "EmacsLisp", "elixir":
    "Elixir", "erlang": "Erlang", "fortran": "Fortran", "go": "Go", "haskell": "Haskell", "html": "HTML", "java":
    "Java", "javascript": "JavaScript", "julia": "Julia", "kotlin": "Kotlin", "lisp": "Lisp", "lua": "Lua", "make":
    "Make", "markdown": "Markdown", "objc": "ObjectiveC", "ocaml": "OCaml", "ocaml_interface": "OCaml", "pascal":
    "Pascal", "perl": "Perl", "php": "PHP", "powershell": "PowerShell", "proto": "Protobuf", "python": "Python",
    "r": "R", "rst": "ReStructuredText", "ruby": "Ruby", "rust": "Rust", "scss": "SCSS", "sql": "SQL",
    "systemverilog": "SystemVerilog", "tcl": "Tcl", "tex": "Tex", "tsx": "TypeScript", "typescript": "TypeScript",
    "verilog": "Verilog", "vhdl": "VHDL", "vim": "Vim",
}  # fmt: skip
FILES: Final = 300
"""Files of a folder looked at, drawn with a fixed seed."""
EXAMPLES: Final = 4
TARGETS: Final = 40
"""Functions of a package whose callers are compared."""
USES: Final = 100
NAMES: Final = 200
"""Names of a tree that are asked for."""
SINGLE: Final = 100
"""Names defined at one place."""
LIMIT: Final = 10
"""Hits of an answer."""
_REAL: Final = "read: real"
_LOCAL: Final = "ctags takes locals, or statements, for members"
JUDGED: Final[dict[tuple[str, str, str], tuple[bool, str]]] = {
    ("*", "ctags", "made-up name"): (False, "ctags names what has no name"),
    ("*", "ctags", "alias"): (False, "a name given to an import"),
    ("*", "ctags", "namespace"): (False, "a name given to an import"),
    ("*", "ctags", "local constant"): (False, "a local variable"),
    ("*", "ctags", "local variable"): (False, "a local variable"),
    ("*", "ours", "function (declaration)"): (True, "a prototype or overload; ctags leaves them out by default"),
    ("*", "ours", "variable (declaration)"): (True, "extern; ctags leaves them out by default"),
    ("python", "ctags", "unknown"): (False, "a name given to an import"),
    ("python", "ctags", "variable"): (False, "ctags misreads the keyword else"),
    ("python", "ours", "variable"): (True, "set in a branch or after an annotation: read, real"),
    ("python", "ours", "variable indented"): (True, "set in a branch at module level: read, real"),
    ("python", "ours", "field"): (True, "annotated without a value: read, real"),
    ("c", "ctags", "function in capitals"): (False, "a macro that makes a function: its own name is not defined there"),
    ("c", "ctags", "variable in capitals"): (False, "an attribute macro after the name"),
    ("c", "ctags", "variable named __"): (False, "an attribute macro after the name"),
    ("c", "ctags", "member named __"): (False, "an attribute macro after the name"),
    ("c", "ours", "variable"): (True, "the name before an attribute macro, which ctags takes for the name"),
    ("c", "ours", "field"): (True, "the name before an attribute macro, which ctags takes for the name"),
    ("c", "ours", "function"): (True, "behind a macro ctags does not see past; a few are calls"),
    ("go", "ours", "field"): (True, "of a struct without a name, or inside a function"),
    ("go", "ours", "struct"): (True, "a type declared inside a function"),
    ("go", "ctags", "packageName"): (False, "a name given to an import"),
    ("rust", "ours", "constant"): (True, "ctags knows no constants"),
    ("rust", "ours", "field"): (True, "of an enum's variant"),
    ("rust", "ours", "method"): (True, "ctags loses its way in the file (a quote in a lifetime): read, real"),
    ("rust", "ours", "function"): (True, "as for method"),
    ("rust", "ours", "struct"): (True, "as for method"),
    ("rust", "ours", "extension (implementation)"): (True, "as for method"),
    ("java", "ours", "method"): (True, "of a class inside a method or an expression"),
    ("java", "ours", "field"): (True, "of a class inside a method or an expression"),
    ("java", "ours", "class"): (True, "inside a method"),
    ("java", "ours", "constructor"): (True, "of a class inside a method"),
    ("java", "ours", "interface"): (True, "a sealed interface with permits, which ctags misnames"),
    ("java", "ctags", "interface"): (False, "a sealed interface with permits, which ctags misnames"),
    ("javascript", "ours", "method"): (True, _REAL),
    ("javascript", "ours", "function"): (True, "arrow functions and functions set on objects ctags does not follow"),
    ("javascript", "ours", "field"): (True, "private and static fields"),
    ("javascript", "ours", "class"): (True, "behind what ctags loses its way in"),
    ("javascript", "ours", "constant"): (True, _REAL),
    ("javascript", "ctags", "constant"): (False, _LOCAL),
    ("javascript", "ctags", "variable"): (False, _LOCAL),
    ("javascript", "ctags", "field"): (False, _LOCAL),
    ("javascript", "ctags", "property"): (False, "a key of an object literal: data"),
    ("javascript", "ctags", "class"): (False, "an object literal"),
    ("typescript", "ours", "method"): (True, "of object literals, and overloads"),
    ("typescript", "ours", "function"): (True, "after overloads, and functions set on objects"),
    ("typescript", "ours", "field"): (True, _REAL),
    ("typescript", "ours", "property"): (True, "a constructor's property"),
    ("typescript", "ctags", "constant"): (False, _LOCAL),
    ("typescript", "ctags", "variable"): (False, _LOCAL),
    ("typescript", "ctags", "method"): (False, "a construct signature: it has no name"),
    ("ruby", "ctags", "constant"): (False, "the key of a hash, or a comparison"),
    ("ruby", "ctags", "local constant"): (False, "the key of a hash, or a comparison"),
    ("ruby", "ours", "method"): (True, "an alias with an operator's name"),
    ("ruby", "ours", "constant"): (True, "set to an expression"),
    ("ruby", "ctags", "alias"): (False, "the same alias without its last character"),
    ("ruby", "ctags", "method"): (False, "inside a string that is evaluated"),
    ("php", "ours", "namespace"): (True, "the same, named by its last part"),
    ("php", "ctags", "namespace"): (False, "the same, named by its last part"),
    ("php", "ours", "field"): (True, "a constructor's property"),
    ("php", "ctags", "variable"): (False, "a local variable"),
    ("lua", "ours", "variable"): (True, "variables of a module; ctags knows functions only"),
    ("lua", "ours", "variable indented"): (True, "variables of a module, in a branch"),
    ("lua", "ours", "function"): (True, "functions on one line with their body"),
    ("lua", "ctags", "function"): (False, "a line with the word function in it"),
    **{
        (language, "ctags", kind): (False, why)
        for why, kinds in {
            "a name given to an import, or an import": (
                "csharp typedef, python namespace, cython namespace, cython unknown, php alias, tsx alias, "
                "typescript alias, go packageName"
            ),
            "a wire, a port or an instance: what a hardware module is made of": (
                "verilog register, verilog port, verilog net, verilog instance, systemverilog register, "
                "systemverilog port, systemverilog net, systemverilog instance, vhdl port, vhdl signal, vhdl "
                "generic, vhdl variable, verilog local port, systemverilog local port, verilog local register, "
                "systemverilog local register"
            ),
            "a label": (
                "perl label, bash heredoc, verilog block, systemverilog block, rst target, tex label, tex bibitem"
            ),
            "a local variable, or an argument": (
                "ada variable, fortran variable, scss variable, scss parameter, powershell variable, r globalVar, "
                "r nameattr, r vector, r list, r dataframe, kotlin local method, ocaml var, tsx constant, tsx "
                "local constant, tsx variable"
            ),
            "the module that a file is: no text names it": ("ocaml module, ocaml_interface module, haskell module"),
            "a condition that is compiled for": ("d version"),
            "misread: words of the signature": ("vhdl alias, julia constant, objc category, objc method, objc class"),
            "a test's sentence": ("elixir test, ruby describe, ruby context"),
            "a keystroke": ("vim map"),
            "an embedded field: its type's name": ("go anonMember"),
            "a rule for elements, not a name": ("css selector"),
        }.items()
        for language, _, kind in (entry.strip().partition(" ") for entry in kinds.split(","))
    },
}
"""(language, side, kind): whether such a difference is a definition after all, and why they differ."""


class Tag(NamedTuple):
    """A definition, as either side sees it."""

    file: str
    line: int
    name: str


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="scripts/eval_symbols", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["definitions", "callers", "uses", "first-ten", "defined-once"])
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--jedi", help="folder to import jedi from, where it is not installed")
    arguments = parser.parse_args()
    if arguments.what == "definitions":
        return definitions([tuple(source.split("=", 1)) for source in arguments.sources])
    if arguments.what == "uses":
        pairs = (source.split("=", 1) for source in arguments.sources)
        return report_told([compare_uses(Path(folder), Path(truth)) for folder, truth in pairs])
    if arguments.what == "first-ten":
        return max([anyio.run(first_ten, Path(source), common_names) for source in arguments.sources])
    if arguments.what == "defined-once":
        return max([anyio.run(first_ten, Path(source), single_names) for source in arguments.sources])
    if arguments.jedi:
        sys.path.append(arguments.jedi)
    return callers([Path(source) for source in arguments.sources])


# Definitions


def definitions(sources: list[tuple[str, ...]]) -> int:
    """Print each language's differences, recall and precision; return 1 where a bar is missed."""
    missed = 0
    for language, folder in sources:
        files = drawn(language, Path(folder))
        theirs, ours = ctags(language, files), parsed(language, files)
        agreed = matched(ours, theirs)
        missed |= report(language, ours, theirs, agreed)
    return missed


def drawn(language: str, folder: Path) -> list[Path]:
    """Return some files of a language in a folder."""
    found = sorted(
        path for path in folder.rglob("*") if path.is_file() and language_of(path.name.encode()).name == language
    )
    random.Random(7).shuffle(found)  # noqa: S311 - a sample, the same every time
    return found[:FILES]


def ctags(language: str, files: list[Path]) -> dict[Tag, str]:
    """Return what Universal Ctags finds, with its kinds."""
    command = ["ctags", "--output-format=json", "--fields=+nK", f"--language-force={CTAGS[language]}", "-L-", "-f-"]
    listing = "\n".join(map(str, files))
    done = subprocess.run(command, input=listing.encode(), capture_output=True, check=True)
    rows = (json.loads(line) for line in done.stdout.decode("utf-8", "replace").splitlines())
    return {Tag(row["path"], row["line"], plain(row["name"])): where(row) for row in rows if row["_type"] == "tag"}


def where(row: dict[str, Any]) -> str:
    """Return a tag's kind, and whether the name is made up by ctags or local to a function."""
    if row["name"].startswith(("__anon", "Anonymous", "anonymous")):
        return "made-up name"
    if row["name"].isupper() and row["kind"] in {"function", "variable"}:
        return f"{row['kind']} in capitals"
    if row["name"].startswith("__") and row["kind"] in {"variable", "member"}:
        return f"{row['kind']} named __"
    inside = row.get("scopeKind", "") in {
        "function",
        "method",
        "generator",
        "getter",
        "setter",
        "procedure",
        "subroutine",
    }
    return f"local {row['kind']}" if inside else str(row["kind"])


def parsed(language: str, files: list[Path]) -> dict[Tag, str]:
    """Return what we find, with our kinds."""
    found = {}
    for path in files:
        data = path.read_bytes()
        result = parse_symbols(language, data)
        if isinstance(result, ParsedFile):
            symbols = FileSymbols(result, data)
            for index in range(len(symbols.rows)):
                one = symbols.defined(index)
                role = "" if one.role == "definition" else f" ({one.role})"
                indented = one.kind == "variable" and symbols.lines.text(one.line)[:1].isspace()
                shape = " indented" if indented else " in capitals" if callable_in_capitals(one.kind, one.name) else ""
                found[Tag(str(path), one.line, plain(one.name))] = one.kind + role + shape
    return found


def callable_in_capitals(kind: str, name: str) -> bool:
    """Whether a function's name looks like a macro's."""
    return kind in {"function", "method"} and len(name) > 1 and name.isupper()


def plain(name: str) -> str:
    """Return a name without what the two write differently."""
    return (
        name.removeprefix("self.")
        .replace(" ", "")
        .rpartition("::")[2]
        .rpartition(":")[2]
        .rpartition(".")[2]
        .lstrip("#~$")
        .removesuffix("=")
    )


def matched(ours: dict[Tag, str], theirs: dict[Tag, str]) -> dict[Tag, Tag]:
    """Pair equal names at the same line, or up to two lines apart (where a declaration spans lines)."""
    pairs, taken = {}, set()
    for distance in (0, 1, -1, 2, -2):
        for tag in ours:
            other = tag._replace(line=tag.line + distance)
            if tag not in pairs and other in theirs and other not in taken:
                pairs[tag] = other
                taken.add(other)
    return pairs


def report(language: str, ours: dict[Tag, str], theirs: dict[Tag, str], agreed: dict[Tag, Tag]) -> int:
    """Print a language's figures; return 1 where a bar is missed."""
    only = {
        "ours": [(kind, tag) for tag, kind in ours.items() if tag not in agreed],
        "ctags": [(kind, tag) for tag, kind in theirs.items() if tag not in set(agreed.values())],
    }
    true = {"ours": 0, "ctags": 0}
    print(f"\n== {language}: {len(agreed)} agreed, {len(only['ours'])} ours only, {len(only['ctags'])} ctags only")
    for side, rows in only.items():
        for kind, count in collections.Counter(kind for kind, _ in rows).most_common():
            unknown = (side == "ctags", "NOT JUDGED")
            real, why = JUDGED.get((language, side, kind), JUDGED.get(("*", side, kind), unknown))
            true[side] += count * real
            mark = "a definition" if real else "no definition"
            print(f"   {side:5} {count:5} {kind}: {mark}: {why}")
            if why == "NOT JUDGED":
                alike = [row for row in rows if row[0] == kind]
                for _, tag in alike[:: max(1, count // EXAMPLES)][:EXAMPLES]:
                    print(f"         {tag.file}:{tag.line} {tag.name}")
    hit = len(agreed) + true["ours"]
    recall, precision = hit / max(1, hit + true["ctags"]), hit / max(1, len(agreed) + len(only["ours"]))
    print(f"   recall {recall:.4f}  precision {precision:.4f}")
    return int(recall < 0.98 or precision < 0.98)  # noqa: PLR2004 - the bars


# Callers


def callers(packages: list[Path]) -> int:
    """Print recall and precision of direct calls, Jedi being right; return 1 where a bar is missed."""
    total = collections.Counter[str]()
    for package in packages:
        counts = compare_callers(package)
        total.update(counts)
        print(f"{package.name}: {figures(counts)}")
    print(f"all: {figures(total)}")
    recall = total["both"] / max(1, total["both"] + total["theirs"])
    precision = total["both"] / max(1, total["both"] + total["ours"])
    return int(recall < 0.95 or precision < 0.85)  # noqa: PLR2004 - the bars


def figures(counts: collections.Counter[str]) -> str:
    """Return counts as recall and precision."""
    recall = counts["both"] / max(1, counts["both"] + counts["theirs"])
    precision = counts["both"] / max(1, counts["both"] + counts["ours"])
    return f"recall {recall:.4f} precision {precision:.4f} {dict(counts)}"


def compare_callers(package: Path) -> collections.Counter[str]:
    """Compare (file, line) of the calls of some functions, those that are called at all."""
    jedi = importlib.import_module("jedi")  # only this comparison needs it

    source, truth = Folder(package.parent), jedi_calls(jedi, package)
    counts = collections.Counter[str]()
    targets = sorted(truth, key=lambda target: (target.file, target.line))
    random.Random(11).shuffle(targets)  # noqa: S311 - as in drawn
    for target in targets[:TARGETS]:
        research = Research(f"callers of {target.name}", 1)
        while research.advance(source):
            pass
        mine = {
            (edge.path.decode(), edge.line)
            for edge in research.graph.edges
            if edge.target[0].decode() == target.file
            and research.graph.nodes[edge.target].definition.symbols.lines.line(edge.target[1]) == target.line
        }
        counts["both"] += len(mine & truth[target])
        counts["ours"] += len(mine - truth[target])
        counts["theirs"] += len(truth[target] - mine)
        for side, rest in (("ours", mine - truth[target]), ("jedi", truth[target] - mine)):
            for file, line in sorted(rest)[:3]:
                print(f"   {side} only: {target.file}:{target.line} {target.name} called at {file}:{line}")
    return counts


def jedi_calls(jedi: Any, package: Path) -> dict[Tag, set[tuple[str, int]]]:
    """Return every call in a package that Jedi resolves into it, by what it calls."""
    project = jedi.Project(str(package.parent), sys_path=[str(package.parent), *sys.path])
    found: dict[Tag, set[tuple[str, int]]] = collections.defaultdict(set)
    started = time.monotonic()
    for path in sorted(package.rglob("*.py")):
        script = jedi.Script(path=str(path), project=project)
        for line, column in called_names(path.read_text("utf-8", "replace")):
            for name in resolved(script, line, column):
                inside = name.module_path is not None and package in Path(name.module_path).parents
                if inside and name.type in {"function", "class"}:
                    target = Tag(str(Path(name.module_path).relative_to(package.parent)), name.line, name.name)
                    found[target].add((str(path.relative_to(package.parent)), line))
    print(f"   jedi: {package.name} in {time.monotonic() - started:.0f} s, {len(found)} functions called")
    return found


def resolved(script: Any, line: int, column: int) -> list[Any]:
    """Return the definitions Jedi goes to; none where it fails over its own depth."""
    try:
        return list(script.goto(line, column, follow_imports=True))
    except (RecursionError, AttributeError, ValueError):
        return []


def called_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the called names of a Python text stand."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            end_line, end = node.func.end_lineno or 0, node.func.end_col_offset or 0
            prefix = lines[end_line - 1].encode()[:end].decode("utf-8", "replace")
            yield end_line, len(prefix) - 1


# The first hits of a query


async def first_ten(folder: Path, choose: Callable[[Path], dict[str, set[tuple[str, int]]]]) -> int:
    """Print how often a definition is the first hit, or among the first ten, and how long a query takes.

    Both with definitions leading and without, question by question in turns; returns 1 where a bar is missed.
    """
    with tempfile.TemporaryDirectory(prefix="fg") as base:
        root = Path(base) / "tree"
        shutil.copytree(folder, root, symlinks=True, ignore=shutil.ignore_patterns(".git", ".flashgrep"))
        (root / ".git").mkdir()
        truth = choose(root)
        if not truth:
            raise SystemExit(f"{folder}: it defines no such names")
        options = WorkspaceOptions(state_dir=Path(base) / "state", cache_dir=Path(base) / "cache", workers=2)
        async with anyio.create_task_group() as tasks:
            workspace = Workspace("eval", os.fsencode(root), options)
            await workspace.open(tasks)
            await workspace.wait_parsed()
            ranks: dict[str, list[int]] = {"plain": [], "led": []}
            took: dict[str, list[float]] = {"plain": [], "led": []}
            for name, places in truth.items():
                question = Question(pattern=Pattern(texts=(name,), mode="literal"), order="relevance")
                views = {"plain": replace(workspace.snapshot(), parsed_to=0), "led": workspace.snapshot()}
                for way in ("plain", "led") * 2:
                    started = time.perf_counter()
                    answer = search(views[way], question)
                    took[way].append(time.perf_counter() - started)
                hits = [(hit["file_path"], hit["start_line"]) for hit in answer.results]
                ranks["led"].append(rank := next((at for at, hit in enumerate(hits) if hit in places), LIMIT))
                if rank:
                    print(f"   {name}: {rank}; {hits[0]}, not {sorted(places)[:2]}")
                plain = search(views["plain"], question).results
                found = ((hit["file_path"], hit["start_line"]) in places for hit in plain)
                ranks["plain"].append(next((at for at, true in enumerate(found) if true), LIMIT))
            await workspace.close()
            tasks.cancel_scope.cancel()
    for way, each in ranks.items():
        first, ten = (sum(rank < most for rank in each) / len(each) for most in (1, LIMIT))
        shown = f"{statistics.median(took[way]) * 1000:.1f} ms, {max(took[way]) * 1000:.0f} at most"
        print(f"{folder.name}, {way}: {len(each)} names, first {first:.3f}, first ten {ten:.3f}; {shown}")
    return int(first < 0.95 or ten < 0.98)  # noqa: PLR2004 - the bars


def common_names(root: Path) -> dict[str, set[tuple[str, int]]]:
    """Return names that ctags finds defined and that stand in 100 places or more, with where they are defined."""
    return draw_names(root, NAMES, lambda uses, _places: uses >= USES)


def single_names(root: Path) -> dict[str, set[tuple[str, int]]]:
    """Return names of three letters and more that ctags finds defined at one place and that stand at others, too."""
    return draw_names(root, SINGLE, lambda uses, places: uses > places == 1)


def draw_names(root: Path, most: int, wanted: Callable[[int, int], bool]) -> dict[str, set[tuple[str, int]]]:
    """Return names with where they are defined; ``wanted`` is told the places of a name and of its definitions."""
    files = [
        path for path in sorted(root.rglob("*")) if path.is_file() and language_of(path.name.encode()).name in CTAGS
    ]
    uses = collections.Counter[str]()
    for path in files:
        uses.update(re.findall(r"[A-Za-z_]\w{2,}", path.read_bytes().decode("utf-8", "replace")))
    found: dict[str, set[tuple[str, int]]] = collections.defaultdict(set)
    for language in CTAGS:
        for tag, kind in ctags(
            language, [path for path in files if language_of(path.name.encode()).name == language]
        ).items():
            real, _ = JUDGED.get((language, "ctags", kind), JUDGED.get(("*", "ctags", kind), (True, "")))
            if real and uses[tag.name]:
                found[tag.name].add((str(Path(tag.file).relative_to(root)), tag.line))
    names = sorted(name for name, places in found.items() if wanted(uses[name], len(places)))
    random.Random(3).shuffle(names)  # noqa: S311 - as in drawn
    return {name: found[name] for name in names[:most]}


if __name__ == "__main__":
    sys.exit(main())
