"""The ledger of scenarios: each scenario, its test, and the test's outcome."""

import argparse
import ast
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.table import Table

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "tests" / "scenarios"
PASSING_BY: Final = frozenset({"skip", "skipif", "xfail", "importorskip"})
"""Names that would let a test pass without running."""
Status = Literal["passed", "failed", "skipped", "not run", "no test"]
WORST_FIRST: Final[tuple[Status, ...]] = ("failed", "skipped", "not run", "passed")


class Scenario(NamedTuple):
    """A scenario or acceptance line: the contract, the requirement, its name."""

    contract: str
    requirement: str
    name: str

    def __str__(self) -> str:
        return " · ".join(self)


@dataclass(frozen=True, slots=True)
class ScenarioTest:
    """A test function: its module (like ``tests.scenarios.test_methods``), and the scenarios it declares."""

    module: str
    name: str
    scenarios: tuple[Scenario, ...]
    passed_by: tuple[str, ...]
    """The names of PASSING_BY that it uses."""


def wanted(file: Path = FOLDER / "ledger.toml") -> list[Scenario]:
    """Return all scenarios, in the order of the ledger."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return [
        Scenario(group["contract"], group["name"], name)
        for group in table["requirement"]
        for name in group["scenarios"]
    ]


def read_tests(folder: Path = FOLDER) -> list[ScenarioTest]:
    """Return the tests in a folder's modules, parsed without importing them."""
    return [
        test for file in sorted(folder.glob("test_*.py")) for test in _tests_of(file)
    ]


def problems(scenarios: Sequence[Scenario], tests: Sequence[ScenarioTest]) -> list[str]:
    """Return violations: scenarios and tests not one to one, and tests that might not run."""
    found: list[str] = []
    standing = [scenario for test in tests for scenario in test.scenarios]
    for scenario in scenarios:
        times = standing.count(scenario)
        if times != 1:
            found.append(f"{scenario}: {times} tests")
    for test in tests:
        if len(test.scenarios) != 1:
            found.append(f"{test.name}: declares {len(test.scenarios)} scenarios")
        found += [
            f"{test.name}: no such scenario: {one}"
            for one in test.scenarios
            if one not in scenarios
        ]
        found += [f"{test.name}: may not use {name}" for name in test.passed_by]
    return found


def outcomes(junit: Path) -> dict[tuple[str, str], Status]:
    """Return outcomes by module and name from a JUnit file; for a parametrized test, the worst."""
    found: dict[tuple[str, str], Status] = {}
    for case in ET.parse(junit).iter("testcase"):  # noqa: S314 - written by pytest for us
        key = (case.get("classname", ""), case.get("name", "").partition("[")[0])
        status = _status(case)
        found[key] = min(status, found.get(key, "passed"), key=WORST_FIRST.index)
    return found


def _status(case: ET.Element) -> Status:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


def _tests_of(file: Path) -> Iterator[ScenarioTest]:
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef
        ) and node.name.startswith("test_"):
            scenarios = tuple(
                one
                for decorator in node.decorator_list
                for one in _scenarios(decorator)
            )
            names = {
                one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)
            }
            passed_by = tuple(sorted(names & PASSING_BY))
            yield ScenarioTest(
                f"tests.scenarios.{file.stem}", node.name, scenarios, passed_by
            )


def _scenarios(decorator: ast.expr) -> Iterator[Scenario]:
    if (
        isinstance(decorator, ast.Call)
        and ast.unparse(decorator.func) == "pytest.mark.scenario"
    ):
        yield Scenario(
            *(str(ast.literal_eval(argument)) for argument in decorator.args)
        )


def _run(contracts: Iterable[str]) -> dict[tuple[str, str], Status]:
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "scenarios.xml"
        paths = [
            str(path)
            for contract in contracts
            for path in sorted(FOLDER.glob(f"test_{contract}*.py"))
        ]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n2",
            "-p",
            "no:randomly",
            f"--junitxml={junit}",
            *paths,
        ]
        ran = subprocess.run(command, cwd=ROOT, stdout=sys.stderr, check=False)
        if not junit.exists():
            sys.exit(ran.returncode)
        return outcomes(junit)


def _print(rows: Iterable[tuple[Scenario, str, Status]]) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("contract", "requirement", "scenario", "test", "status"):
        table.add_column(
            title, no_wrap=title in {"contract", "status"}, overflow="fold"
        )
    for scenario, test, status in rows:
        table.add_row(
            *scenario,
            test,
            status,
            style=None if status in {"passed", "not run"} else "red",
        )
    width = None if sys.stdout.isatty() else 220
    Console(width=width, highlight=False, markup=False).print(table)


def _rows(
    scenarios: Iterable[Scenario],
    tests: Iterable[ScenarioTest],
    went: Mapping[tuple[str, str], Status],
) -> list[tuple[Scenario, str, Status]]:
    standing = {scenario: test for test in tests for scenario in test.scenarios}
    rows: list[tuple[Scenario, str, Status]] = []
    for scenario in scenarios:
        test = standing.get(scenario)
        if test is None:
            rows.append((scenario, "", "no test"))
        else:
            rows.append(
                (scenario, test.name, went.get((test.module, test.name), "not run"))
            )
    return rows


def main() -> int:
    """Print the ledger; return 1 if a scenario has no test or its test did not pass."""
    parser = argparse.ArgumentParser(prog="scripts/scenarios", description=__doc__)
    parser.add_argument(
        "contracts",
        nargs="*",
        metavar="CONTRACT",
        help="only these contracts, e.g. specs",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--list", action="store_true", help="do not run the tests")
    how.add_argument(
        "--junit", type=Path, help="read outcomes from this file of pytest --junitxml"
    )
    options = parser.parse_args()
    everything = wanted()
    known = sorted({scenario.contract for scenario in everything})
    contracts = options.contracts or known
    if not set(contracts) <= set(known):
        parser.error(f"the contracts are {', '.join(known)}")
    went = (
        outcomes(options.junit)
        if options.junit
        else {}
        if options.list
        else _run(contracts)
    )
    tests = read_tests()
    rows = _rows(
        [scenario for scenario in everything if scenario.contract in contracts],
        tests,
        went,
    )
    _print(rows)
    passed = sum(status == "passed" for _, _, status in rows)
    Console().print(f"{passed} of {len(rows)} passed", highlight=False)
    return 0 if options.list or passed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
