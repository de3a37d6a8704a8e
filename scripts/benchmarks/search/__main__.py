"""Measure the ranking of search by meaning: scripts/eval_search --help."""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

from flashgrep.parts.meaning.embed.static import DATA, load
from scripts.benchmarks.search.asking import Question, asked, faults, read_set
from scripts.benchmarks.search.docstrings import Sides, measured, pool
from scripts.benchmarks.search.history import (
    Found,
    ask_history,
    collect_cases,
    format_history,
    is_held,
    name_repository,
)
from scripts.benchmarks.search.installed import place_packages
from scripts.benchmarks.search.judging import Judged
from scripts.benchmarks.search.metrics import Figures, interval, mean
from scripts.benchmarks.search.packages import Package, Unavailable, packages, unpacked
from scripts.benchmarks.search.ranking import SIDES, Way, ablations, judged
from scripts.benchmarks.search.rivals import compare, print_comparison
from scripts.benchmarks.search.shown import (
    Table,
    find_falls,
    format_table,
    load_table,
    measure_shown,
    save_table,
)
from scripts.benchmarks.search.team import compare_stores, print_table

Results = dict[str, dict[str, list[Figures]]]
"""The figures of each question, by repository and way of ranking."""


def main() -> int:
    """Run the selected measurements; return 1 if a question's target is missing."""
    options = _options()
    options.cache.mkdir(parents=True, exist_ok=True)
    needs_packages = not (options.set or options.history or options.installed)
    roots = dict(_roots(options)) if needs_packages else {}
    if options.check:
        return _check(roots)
    if options.team:
        print_table(anyio.run(_stores, roots))
        return 0
    if options.history:
        return _history(options)
    if options.shown:
        return _shown(roots, options)
    if options.rivals:
        print_comparison(dict(_compared(roots)))
        return 0
    saved: dict[str, Any] = {"questions": {}, "docstrings": {}}
    if not options.docstrings:
        results = anyio.run(
            _questions, roots, SIDES | (ablations() if options.ablate else {})
        )
        saved["questions"] = _told(results)
    if not (options.only or options.questions or options.held):
        saved["docstrings"] = _docstrings(roots)
    if options.save:
        options.save.write_text(json.dumps(saved, indent=1))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/eval_search", description=__doc__)
    usual = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        / "flashgrep-eval"
    )
    kept = (
        Path(__file__).parents[2]
        / "bench-results"
        / f"{datetime.now(UTC):%Y-%m-%d-%H%M}-search.json"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="REPOSITORY",
        help="only this repository; repeatable",
    )
    parser.add_argument(
        "--held",
        action="store_true",
        help="use the held-out half of the questions instead of the other",
    )
    parser.add_argument(
        "--questions", action="store_true", help="leave out documentation"
    )
    parser.add_argument(
        "--docstrings", action="store_true", help="leave out the questions"
    )
    parser.add_argument(
        "--ablate", action="store_true", help="also rank with each rule switched off"
    )
    parser.add_argument(
        "--team",
        action="store_true",
        help="instead compare a team's store with the local one",
    )
    parser.add_argument(
        "--shown",
        action="store_true",
        help="instead measure answers as shown: by file, range and function, and their tokens",
    )
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="with --shown: fail if anything is worse than in a saved table, beyond chance",
    )
    parser.add_argument(
        "--set",
        type=Path,
        metavar="FOLDER",
        help="with --shown: questions of FOLDER/queries.tsv about the folders beside it",
    )
    parser.add_argument(
        "--installed",
        action="store_true",
        help="with --shown: questions about packages of the scripts' own environment; needs no network",
    )
    parser.add_argument(
        "--history",
        action="append",
        type=Path,
        metavar="REPOSITORY",
        help="instead ask what commits of a repository say they change; repeatable; with --held: of the held half",
    )
    parser.add_argument(
        "--commits",
        type=int,
        default=40,
        help="with --history: most commits of a repository (usual: %(default)s)",
    )
    parser.add_argument(
        "--rivals",
        action="store_true",
        help="instead compare a daemon with other rankings",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only check that the questions' targets exist",
    )
    parser.add_argument(
        "--save",
        nargs="?",
        type=Path,
        const=kept,
        help="keep the figures as JSON (usual: %(const)s)",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=usual,
        help="folder of packages (usual: %(default)s)",
    )
    return parser.parse_args()


def _roots(options: argparse.Namespace) -> Iterator[tuple[Package, Path]]:
    """Yield the requested packages that are available."""
    for package in packages():
        wanted = (
            package.repository in options.only
            if options.only
            else _is_asked(package, options)
        )
        if wanted:
            try:
                yield package, unpacked(package, options.cache)
            except Unavailable as error:
                print(f"left out: {error}", file=sys.stderr)


def _is_asked(package: Package, options: argparse.Namespace) -> bool:
    if package.use == "tasks":
        return False
    if package.use == "held":
        return bool(options.held or options.check)
    return not options.held and not (
        package.use == "docstrings" and (options.check or options.questions)
    )


def _check(roots: Mapping[Package, Path]) -> int:
    questions = asked()
    found = [
        f"{package.repository}: {fault}"
        for package, root in roots.items()
        for question in questions.get(package.repository, [])
        for fault in faults(question, root)
    ]
    print(
        "\n".join(found)
        or f"{sum(map(len, questions.values()))} questions: every target exists"
    )
    return int(bool(found))


# Questions


async def _questions(roots: Mapping[Package, Path], ways: Mapping[str, Way]) -> Results:
    questions = asked()
    results: Results = {}
    for package, root in roots.items():
        if package.repository in questions:
            results[package.repository] = await judged(
                root, questions[package.repository], ways
            )
            print(
                _row(package.repository, results[package.repository]["hybrid"]),
                flush=True,
            )
    return results


async def _stores(roots: Mapping[Package, Path]) -> Results:
    questions = asked()
    return {
        package.repository: await compare_stores(root, questions[package.repository])
        for package, root in roots.items()
        if package.repository in questions
    }


def _history(options: argparse.Namespace) -> int:
    """Print what each way finds of what commits changed, by repository and together."""
    together: dict[str, list[Found]] = {}
    for repository in options.history:
        if is_held(name_repository(repository)) != options.held:
            print(f"left out, of the other half: {repository.name}", file=sys.stderr)
            continue
        cases = collect_cases(repository, options.commits)
        if not cases:
            print(f"left out, no usable commit: {repository.name}", file=sys.stderr)
            continue
        with TemporaryDirectory(prefix="eval-history-") as work:
            found = anyio.run(ask_history, repository, cases, Path(work))
        print(f"{repository.name} ({len(cases)})", flush=True)
        for way, rows in found.items():
            together.setdefault(way, []).extend(rows)
    print("\n".join(format_history(together)))
    return 0


def _shown(roots: Mapping[Package, Path], options: argparse.Namespace) -> int:
    """Print and save the table of answers as shown; return 1 if it is worse than the one to compare with."""
    table: Table = {}
    for root, questions in _sets(roots, options):
        measured_rows = anyio.run(
            partial(measure_shown, root, questions, with_sides=options.ablate)
        )
        for way, rows in measured_rows.items():
            table.setdefault(way, []).extend(rows)
    print("\n".join(format_table(table)))
    if options.save:
        save_table(table, options.save)
    if options.compare is None:
        return 0
    falls = list(find_falls(load_table(options.compare), table))
    print("\n".join(falls) or "nothing is worse, beyond chance")
    return int(bool(falls))


def _sets(
    roots: Mapping[Package, Path], options: argparse.Namespace
) -> Iterator[tuple[Path, list[Question]]]:
    if options.set is not None:
        for name, questions in read_set(options.set / "queries.tsv").items():
            yield options.set / name, questions
        return
    if options.installed:
        with TemporaryDirectory(prefix="eval-installed-") as work:
            folder = Path(work) / "installed"
            yield folder, place_packages(folder)
        return
    questions_of = asked()
    for package, root in roots.items():
        if package.repository in questions_of:
            yield root, questions_of[package.repository]


def _compared(
    roots: Mapping[Package, Path],
) -> Iterator[tuple[str, dict[str, list[Judged]]]]:
    questions = asked()
    for package, root in roots.items():
        if package.repository in questions:
            with TemporaryDirectory(prefix="eval-wire-") as work:
                yield (
                    package.repository,
                    compare(root, questions[package.repository], Path(work)),
                )


def _told(results: Results) -> dict[str, Any]:
    """Print the tables, and return their figures."""
    ways = list(next(iter(results.values())))
    print("\nNDCG@10 by repository: " + ", ".join(ways[: len(SIDES)]))
    for repository, found in results.items():
        print(
            f"  {repository:16}"
            + "".join(f"{mean(found[way]).ndcg:8.3f}" for way in ways[: len(SIDES)])
        )
    lost = [
        name
        for name, found in results.items()
        if _ndcg(found, "model, no rules") < _ndcg(found, "BM25, no rules")
    ]
    print(f"the model alone is worse than BM25 alone on: {', '.join(lost) or 'none'}")
    for title, groups in (
        ("kind of question", _by_kind(results)),
        ("language", _by_language(results)),
    ):
        print(f"\nBy {title}, hybrid")
        for name, rows in groups.items():
            print(_row(f"{name} ({len(rows)})", rows))
    print("\nAll questions, and how much better than hybrid")
    table = {
        way: [one for found in results.values() for one in found[way]] for way in ways
    }
    for way, rows in table.items():
        better = [
            one.ndcg - other.ndcg
            for one, other in zip(rows, table["hybrid"], strict=True)
        ]
        print(
            _row(way, rows) + f"  {sum(better) / len(better):+.3f} ({_bounds(better)})"
        )
    repositories = {
        name: {way: mean(rows)._asdict() for way, rows in found.items()}
        for name, found in results.items()
    }
    return {
        "all": {way: mean(rows)._asdict() for way, rows in table.items()},
        "repositories": repositories,
    }


def _by_kind(results: Results) -> dict[str, list[Figures]]:
    questions = asked()
    groups: dict[str, list[Figures]] = defaultdict(list)
    for repository, found in results.items():
        for question, figures in zip(
            questions[repository], found["hybrid"], strict=True
        ):
            groups[question.kind].append(figures)
    return groups


def _by_language(results: Results) -> dict[str, list[Figures]]:
    groups: dict[str, list[Figures]] = defaultdict(list)
    for package in packages():
        groups[package.language] += results.get(package.repository, {}).get(
            "hybrid", []
        )
    return {language: rows for language, rows in groups.items() if rows}


def _ndcg(found: Mapping[str, Sequence[Figures]], way: str) -> float:
    return mean(found[way]).ndcg


def _row(name: str, rows: Sequence[Figures]) -> str:
    ndcg, reciprocal, recall, tokens = mean(rows)
    bounds = _bounds([one.ndcg for one in rows])
    return f"  {name:34} NDCG@10 {ndcg:.3f} ({bounds})  MRR {reciprocal:.3f}  recall@10 {recall:.3f}  tokens {tokens:7.0f}"


def _bounds(values: Sequence[float]) -> str:
    return "{:.3f} to {:.3f}".format(*interval(values))


# Documentation


def _docstrings(roots: Mapping[Package, Path]) -> dict[str, Any]:
    pools: dict[str, list[tuple[Package, Path]]] = defaultdict(list)
    for package, root in roots.items():
        if package.use != "questions":
            pools[package.language].append((package, root))
    print(
        "\nFunctions found by documentation, NDCG@10: functions, queries, BM25 alone, the model alone, hybrid"
    )
    found = {
        language: measured(pool(rows), load(DATA)) for language, rows in pools.items()
    }
    for language, sides in found.items():
        print(f"  {language:12}{_sides(sides)}")
    alone = [
        (sides.words.ndcg, sides.meaning.ndcg, sides.hybrid.ndcg)
        for sides in found.values()
    ]
    means = [sum(column) / len(column) for column in zip(*alone, strict=True)]
    print(f"  {'mean':12}{'':14}" + "".join(f"{value:8.3f}" for value in means))
    return {language: sides._asdict() for language, sides in found.items()}


def _sides(sides: Sides) -> str:
    return f"{sides.functions:7}{sides.queries:7}{sides.words.ndcg:8.3f}{sides.meaning.ndcg:8.3f}{sides.hybrid.ndcg:8.3f}"


if __name__ == "__main__":
    sys.exit(main())
