"""Which lines of the package the tests run, in every process they start; run by ``scripts/coverage``.

The tests run in a copy of the checkout's environment in which every Python process is measured, whatever its
environment variables are (the daemon's differ from the caller's). Neither the product nor the tests know about it.

Prints lines and branches in percent and the worst files; exit status 1 below 95 % of the lines or when a test fails.
"""

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
LEAST_PERCENT: Final = 95.0
SLOWER: Final = 3
"""Factor on the tests' timeouts; measured code takes about twice as long."""

TEST_SECONDS: Final = 120
MEASURE: Final = """\
{root}
import coverage_start; coverage_start.begin({config!r}, {data!r})
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests with measurement, print the report, and return the exit status."""
    wanted = _wanted(arguments)
    with tempfile.TemporaryDirectory(prefix="fgcov", dir="/tmp") as name:
        folder = Path(name)
        python = _environment(folder)
        tests = subprocess.run(
            [python, *_pytest(wanted)], cwd=ROOT, check=False
        ).returncode
        totals = _report(_combined(folder), wanted.worst)
    lines = _percent(totals["covered_lines"], totals["num_statements"])
    branches = _percent(totals["covered_branches"], totals["num_branches"])
    print(
        f"\nlines {lines:.1f} %, branches {branches:.1f} %",
        "" if wanted.only else f"(required: {LEAST_PERCENT:g} % of lines)",
    )
    return int(tests != 0 or (not wanted.only and lines < LEAST_PERCENT))


def _wanted(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/coverage", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="TEST",
        help="run only these tests; no percentage is required",
    )
    parser.add_argument(
        "--worst",
        type=int,
        default=15,
        help="number of files to list, those with most missing lines first",
    )
    parser.add_argument(
        "--workers", type=int, default=2, help="processes that run tests"
    )
    return parser.parse_args(arguments)


def _pytest(wanted: argparse.Namespace) -> list[str]:
    timeout = f"--timeout={TEST_SECONDS * SLOWER}"
    return ["-m", "pytest", "-q", "-n", str(wanted.workers), timeout, *wanted.only]


def _environment(folder: Path) -> Path:
    """Create an environment with the checkout's packages and measurement; return its interpreter."""
    made = folder / "env"
    venv.create(made, symlinks=True)
    site_packages = Path(sysconfig.get_path("purelib", vars={"base": str(made)}))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not (site_packages / entry.name).exists():
            (site_packages / entry.name).symlink_to(entry)
    (site_packages / "coverage_start.py").symlink_to(
        ROOT / "scripts" / "tools" / "coverage_start.py"
    )
    measure = MEASURE.format(
        root=ROOT, config=str(ROOT / "pyproject.toml"), data=str(folder / "data")
    )
    (site_packages / "_0_measure.pth").write_text(measure, encoding="utf-8")
    for program in Path(sysconfig.get_path("scripts")).iterdir():
        _lend(program, made / "bin" / program.name)
    return made / "bin" / "python"


def _lend(program: Path, place: Path) -> None:
    """Install a program into another environment; a Python script is made to start that environment's interpreter."""
    if place.exists():
        return
    ours = f"#!{program.parent}/python".encode()
    text = program.read_bytes()
    if not text.startswith(ours):
        place.symlink_to(program)
        return
    place.write_bytes(text.replace(ours, f"#!{place.parent}/python".encode(), 1))
    place.chmod(0o755)


def _combined(folder: Path) -> dict[str, Any]:
    environ = os.environ | {"COVERAGE_FILE": str(folder / "data")}
    report = folder / "report.json"
    for command in (["combine", "-q"], ["json", "-q", "-o", str(report)]):
        subprocess.run(
            [sys.executable, "-m", "coverage", *command],
            cwd=ROOT,
            env=environ,
            check=True,
        )
    found: dict[str, Any] = json.loads(report.read_bytes())
    return found


def _report(report: dict[str, Any], worst: int) -> dict[str, Any]:
    files = sorted(
        report["files"].items(), key=lambda item: -item[1]["summary"]["missing_lines"]
    )
    for name, found in files[:worst]:
        facts = found["summary"]
        if facts["missing_lines"]:
            share = (
                f"{_percent(facts['covered_lines'], facts['num_statements']):5.1f} %"
            )
            print(f"{share}  {name}: {', '.join(_ranges(found['missing_lines']))}")
    totals: dict[str, Any] = report["totals"]
    return totals


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Yield numbers in order as ranges: 3-5, 9."""
    first = last = numbers[0]
    for number in [*numbers[1:], -1]:
        if number != last + 1:
            yield f"{first}-{last}" if last > first else str(first)
            first = number
        last = number


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / max(whole, 1)


if __name__ == "__main__":
    sys.exit(main())
