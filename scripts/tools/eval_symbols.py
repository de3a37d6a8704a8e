"""Compare definitions with ctags and other parsers, and direct callers in Python with Jedi, over sources given.

scripts/eval_symbols definitions LANGUAGE=FOLDER …     LANGUAGE as we name it
    scripts/eval_symbols broken LANGUAGE=FOLDER …     what is lost with one brace or end
scripts/eval_symbols callers [--jedi FOLDER] PACKAGE_FOLDER …
scripts/eval_symbols uses FOLDER=TRUTH.jsonl …     TRUTH: printed by a program of scripts/tools/oracles
scripts/eval_symbols implements FOLDER=TRUTH.jsonl …     the same of types and interfaces
scripts/eval_symbols ORACLE FOLDER …     callers and uses as pyright, tsserver, gopls, rust-analyzer, clangd or
                                         intelephense has them for a sample, or javac, kotlinc, roslyn, go-types,
                                         clang or typescript for all
scripts/eval_symbols reasons ORACLE=FOLDER …     the same, and in one table how often each reason is right by language
scripts/eval_symbols positions ORACLE=FOLDER …     definitions that we go to from random uses, by the same servers
scripts/eval_symbols first-ten FOLDER …     where query shows the definitions of names with 100 and more uses
scripts/eval_symbols defined-once FOLDER …     where query shows the definition of 100 names that have one
scripts/eval_symbols sweep FOLDER …     calls in the text that who calls neither tells nor counts as possible
"""

import argparse
import ast
import collections
import importlib
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio

from flashgrep.base.languages import language_of
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.symbols.relevance import search_by_relevance
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace, WorkspaceOptions
from flashgrep.search.exact import Question, search
from scripts.tools.eval_definitions import (
    CTAGS,
    JUDGED,
    Tag,
    broken,
    ctags,
    definitions,
)
from scripts.tools.eval_implements import compare_implements
from scripts.tools.eval_positions import compare_positions
from scripts.tools.eval_sweep import sweep
from scripts.tools.eval_uses import Folder, compare_rows, compare_uses, report_told
from scripts.tools.oracles.checkers import CHECKERS, read_checker
from scripts.tools.oracles.language_server import SERVERS, find_uses

TARGETS: Final = 40
"""Functions per package whose callers are compared."""
USES: Final = 100
NAMES: Final = 200
"""Names queried per tree."""
SINGLE: Final = 100
"""Names with a single definition."""
LIMIT: Final = 10
"""Hits per answer."""


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="scripts/eval_symbols",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what",
        choices=[
            "definitions",
            "broken",
            "callers",
            "uses",
            "implements",
            "first-ten",
            "defined-once",
            "sweep",
            "reasons",
            "positions",
            *SERVERS,
            *CHECKERS,
        ],
    )
    parser.add_argument("sources", nargs="+")
    parser.add_argument(
        "--jedi", help="folder to import jedi from, where it is not installed"
    )
    arguments = parser.parse_args()
    if arguments.what in {"definitions", "broken"}:
        compare = definitions if arguments.what == "definitions" else broken
        return compare([tuple(source.split("=", 1)) for source in arguments.sources])
    if arguments.what in {"uses", "implements"}:
        compare_with = compare_uses if arguments.what == "uses" else compare_implements
        pairs = (source.split("=", 1) for source in arguments.sources)
        return report_told(
            [compare_with(Path(folder), Path(truth)) for folder, truth in pairs]
        )
    if arguments.what in {"reasons", "positions"}:
        compare_by = (
            compare_oracles if arguments.what == "reasons" else compare_positions
        )
        return compare_by([tuple(source.split("=", 1)) for source in arguments.sources])
    if arguments.what in {*SERVERS, *CHECKERS}:
        return compare_oracles([(arguments.what, one) for one in arguments.sources])
    if arguments.what == "first-ten":
        return max(
            [
                anyio.run(first_ten, Path(source), common_names)
                for source in arguments.sources
            ]
        )
    if arguments.what == "defined-once":
        return max(
            [
                anyio.run(first_ten, Path(source), single_names)
                for source in arguments.sources
            ]
        )
    if arguments.what == "sweep":
        return sweep([Path(source).resolve() for source in arguments.sources])
    if arguments.jedi:
        sys.path.append(arguments.jedi)
    return callers([Path(source) for source in arguments.sources])


# Reasons


def compare_oracles(pairs: list[tuple[str, str]]) -> int:
    """Print what each oracle says of its folder, and of all how often each reason is right."""
    told = []
    for oracle, source in pairs:
        folder = Path(source).resolve()
        is_whole = oracle in CHECKERS
        read = read_checker if is_whole else find_uses
        told.append(compare_rows(folder, read(oracle, folder), is_whole=is_whole))
    return report_told(told)


# Callers


def callers(packages: list[Path]) -> int:
    """Print recall and precision of direct calls, with Jedi as the truth; return 1 if one is below its bar."""
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
    """Compare the calls, as (file, line), of some functions that have callers."""
    jedi = importlib.import_module("jedi")  # only this comparison needs it

    source, truth = Folder(package.parent), jedi_calls(jedi, package)
    counts = collections.Counter[str]()
    targets = sorted(truth, key=lambda target: (target.file, target.line))
    random.Random(11).shuffle(targets)  # noqa: S311 - as in draw
    for target in targets[:TARGETS]:
        research = Research(f"callers of {target.name}", 1)
        while research.advance(source):
            pass
        mine = {
            (edge.path.decode(), edge.line)
            for edge in research.graph.edges
            if edge.target[0].decode() == target.file
            and research.graph.nodes[edge.target].definition.symbols.lines.line(
                edge.target[1]
            )
            == target.line
        }
        counts["both"] += len(mine & truth[target])
        counts["ours"] += len(mine - truth[target])
        counts["theirs"] += len(truth[target] - mine)
        for side, rest in (
            ("ours", mine - truth[target]),
            ("jedi", truth[target] - mine),
        ):
            for file, line in sorted(rest)[:3]:
                print(
                    f"   {side} only: {target.file}:{target.line} {target.name} called at {file}:{line}"
                )
    return counts


def jedi_calls(jedi: Any, package: Path) -> dict[Tag, set[tuple[str, int]]]:
    """Return all calls that Jedi resolves to definitions in the same package, by definition."""
    project = jedi.Project(
        str(package.parent), sys_path=[str(package.parent), *sys.path]
    )
    found: dict[Tag, set[tuple[str, int]]] = collections.defaultdict(set)
    started = time.monotonic()
    for path in sorted(package.rglob("*.py")):
        script = jedi.Script(path=str(path), project=project)
        for line, column in called_names(path.read_text("utf-8", "replace")):
            for name in resolved(script, line, column):
                inside = (
                    name.module_path is not None
                    and package in Path(name.module_path).parents
                )
                if inside and name.type in {"function", "class"}:
                    target = Tag(
                        str(Path(name.module_path).relative_to(package.parent)),
                        name.line,
                        name.name,
                    )
                    found[target].add((str(path.relative_to(package.parent)), line))
    print(
        f"   jedi: {package.name} in {time.monotonic() - started:.0f} s, {len(found)} functions called"
    )
    return found


def resolved(script: Any, line: int, column: int) -> list[Any]:
    """Return the definitions that Jedi goes to; none if it exceeds its recursion limit."""
    try:
        return list(script.goto(line, column, follow_imports=True))
    except (RecursionError, AttributeError, ValueError):
        return []


def called_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of the called names in a Python text."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(
            node.func, ast.Name | ast.Attribute
        ):
            end_line, end = node.func.end_lineno or 0, node.func.end_col_offset or 0
            prefix = lines[end_line - 1].encode()[:end].decode("utf-8", "replace")
            yield end_line, len(prefix) - 1


# The first hits of a query


async def first_ten(
    folder: Path, choose: Callable[[Path], dict[str, set[tuple[str, int]]]]
) -> int:
    """Print how often a definition is the first hit, or among the first ten, and how long a query takes.

    Measured with definitions ranked first and without, alternating per query; returns 1 if a bar is missed.
    """
    with tempfile.TemporaryDirectory(prefix="fg") as base:
        root = Path(base) / "tree"
        shutil.copytree(
            folder,
            root,
            symlinks=True,
            ignore=shutil.ignore_patterns(".git", ".flashgrep"),
        )
        (root / ".git").mkdir()
        truth = choose(root)
        if not truth:
            raise SystemExit(f"{folder}: no such names are defined")
        options = WorkspaceOptions(
            state_dir=Path(base) / "state", cache_dir=Path(base) / "cache", workers=2
        )
        async with anyio.create_task_group() as tasks:
            workspace = Workspace("eval", os.fsencode(root), options, parts=BUILT_IN)
            await workspace.open(tasks)
            await workspace.wait_parsed()
            ranks: dict[str, list[int]] = {"plain": [], "led": []}
            took: dict[str, list[float]] = {"plain": [], "led": []}
            for name, places in truth.items():
                question = Question(
                    pattern=Pattern(texts=(name,), mode="literal"),
                    ranking=search_by_relevance,
                )
                views = {
                    "plain": replace(workspace.snapshot(), parsed_to=0),
                    "led": workspace.snapshot(),
                }
                for way in ("plain", "led") * 2:
                    started = time.perf_counter()
                    answer = search(views[way], question)
                    took[way].append(time.perf_counter() - started)
                hits = [(hit["file_path"], hit["start_line"]) for hit in answer.results]
                ranks["led"].append(
                    rank := next(
                        (at for at, hit in enumerate(hits) if hit in places), LIMIT
                    )
                )
                if rank:
                    print(f"   {name}: {rank}; {hits[0]}, not {sorted(places)[:2]}")
                plain = search(views["plain"], question).results
                found = (
                    (hit["file_path"], hit["start_line"]) in places for hit in plain
                )
                ranks["plain"].append(
                    next((at for at, true in enumerate(found) if true), LIMIT)
                )
            await workspace.close()
            tasks.cancel_scope.cancel()
    for way, each in ranks.items():
        first, ten = (
            sum(rank < most for rank in each) / len(each) for most in (1, LIMIT)
        )
        shown = f"{statistics.median(took[way]) * 1000:.1f} ms, {max(took[way]) * 1000:.0f} at most"
        print(
            f"{folder.name}, {way}: {len(each)} names, first {first:.3f}, first ten {ten:.3f}; {shown}"
        )
    return int(first < 0.95 or ten < 0.98)  # noqa: PLR2004 - the bars


def common_names(root: Path) -> dict[str, set[tuple[str, int]]]:
    """Return names that ctags finds defined and that occur 100 times or more, with their definitions."""
    return draw_names(root, NAMES, lambda uses, _places: uses >= USES)


def single_names(root: Path) -> dict[str, set[tuple[str, int]]]:
    """Return names of at least three letters that ctags finds defined once and that also occur elsewhere."""
    return draw_names(root, SINGLE, lambda uses, places: uses > places == 1)


def draw_names(
    root: Path, most: int, wanted: Callable[[int, int], bool]
) -> dict[str, set[tuple[str, int]]]:
    """Return names with their definitions; ``wanted`` gets the numbers of a name's occurrences and definitions."""
    files = [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file() and language_of(path.name.encode()).name in CTAGS
    ]
    uses = collections.Counter[str]()
    for path in files:
        uses.update(
            re.findall(r"[A-Za-z_]\w{2,}", path.read_bytes().decode("utf-8", "replace"))
        )
    found: dict[str, set[tuple[str, int]]] = collections.defaultdict(set)
    for language in CTAGS:
        for tag, kind in ctags(
            language,
            [
                path
                for path in files
                if language_of(path.name.encode()).name == language
            ],
        ).items():
            real, _ = JUDGED.get(
                (language, "ctags", kind), JUDGED.get(("*", "ctags", kind), (True, ""))
            )
            if real and uses[tag.name]:
                found[tag.name].add((str(Path(tag.file).relative_to(root)), tag.line))
    names = sorted(
        name for name, places in found.items() if wanted(uses[name], len(places))
    )
    random.Random(3).shuffle(names)  # noqa: S311 - as in draw
    return {name: found[name] for name in names[:most]}


if __name__ == "__main__":
    sys.exit(main())
