"""Every scenario of the contracts has one test that truly runs, and every such test a scenario."""

from collections import Counter
from pathlib import Path

import pytest

from scripts.tools.scenarios import Scenario, outcomes, problems, read_tests, wanted

CONTRACTS = {
    "collections": 19,
    "research": 21,
    "semantic_search": 48,
    "specs": 15,
    "methods": 23,
}
"""Scenarios of each contract."""


def test_the_ledger_has_every_scenario_once() -> None:
    scenarios = wanted()
    assert Counter(scenario.contract for scenario in scenarios) == CONTRACTS
    assert len(set(scenarios)) == len(scenarios)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_scenarios_and_tests_are_one_to_one_and_none_is_skipped(contract: str) -> None:
    module = f"tests.scenarios.test_{contract}"
    scenarios = [scenario for scenario in wanted() if scenario.contract == contract]
    assert (
        problems(
            scenarios, [test for test in read_tests() if test.module.startswith(module)]
        )
        == []
    )


BROKEN = """
import pytest

@pytest.mark.scenario("1", "R", "twice")
def test_one(): ...

@pytest.mark.scenario("1", "R", "twice")
def test_two(): ...

def test_of_nothing(): ...

@pytest.mark.skipif(True, reason="")
@pytest.mark.scenario("1", "R", "skipped")
def test_skipped(): pytest.importorskip("x")

@pytest.mark.scenario("1", "R", "unknown")
def test_unknown(): ...
"""


def test_scenarios_and_tests_that_do_not_match_are_reported(tmp_path: Path) -> None:
    (tmp_path / "test_1.py").write_text(BROKEN)
    scenarios = [Scenario("1", "R", name) for name in ("twice", "skipped", "missing")]
    assert problems(scenarios, read_tests(tmp_path)) == [
        "1 · R · twice: 2 tests",
        "1 · R · missing: 0 tests",
        "test_of_nothing: declares 0 scenarios",
        "test_skipped: may not use importorskip",
        "test_skipped: may not use skipif",
        "test_unknown: no such scenario: 1 · R · unknown",
    ]


def test_the_worst_of_a_tests_parameters_counts(tmp_path: Path) -> None:
    cases = [
        ("a[x]", ""),
        ("a[y]", "<failure/>"),
        ("b", "<skipped/>"),
        ("b", ""),
        ("c", ""),
        ("d", "<error/>"),
    ]
    written = "".join(
        f'<testcase classname="m" name="{name}">{inner}</testcase>'
        for name, inner in cases
    )
    junit = tmp_path / "junit.xml"
    junit.write_text(f"<testsuites><testsuite>{written}</testsuite></testsuites>")
    went = {name: status for (_, name), status in outcomes(junit).items()}
    assert went == {"a": "failed", "b": "skipped", "c": "passed", "d": "failed"}
