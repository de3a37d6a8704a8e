"""Runs ripgrep's integration tests with `fgrep rg` instead of ripgrep: without a daemon, and in indexed projects."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(sys.executable).parent
PLAIN = '#!/bin/sh\nexec "{fgrep}" rg "$@"\n'
# Each test has its own folder, .../ripgrep-tests/NAME/NUMBER, and may run ripgrep
# anywhere below it.
INDEXED = """#!/bin/sh
top=$(pwd | sed 's#\\(.*/ripgrep-tests/[^/]*/[0-9]*\\).*#\\1#')
"{fgrep}" index "$top" >/dev/null 2>&1 </dev/null
exec "{fgrep}" rg "$@"
"""


def main() -> int:
    """Build the tests and run them three times; return 1 if one fails that ripgrep passes."""
    parser = argparse.ArgumentParser(prog="scripts/ripgrep_suite", description=__doc__)
    parser.add_argument(
        "checkout", type=Path, help="a checkout of ripgrep's repository"
    )
    options = parser.parse_args()
    tests = build(options.checkout)
    failed = False
    with tempfile.TemporaryDirectory(prefix="fgsuite") as folder:
        truth = run(tests, options.checkout, BIN / "rg", Path(folder), "ripgrep itself")
        for name, script in (
            ("fgrep rg without a daemon", PLAIN),
            ("fgrep rg in indexed projects", INDEXED),
        ):
            program = Path(folder, "rg")
            program.write_text(script.format(fgrep=BIN / "fgrep"))
            program.chmod(0o755)
            found = run(tests, options.checkout, program, Path(folder), name)
            worse = sorted(
                test for test, passed in truth.items() if passed and not found.get(test)
            )
            failed |= bool(worse)
            for test in worse:
                print(f"  differs: {test}")
    return int(failed)


def build(checkout: Path) -> Path:
    """Return the program with the tests; the first build takes some minutes."""
    command = [
        "cargo",
        "test",
        "--ignore-rust-version",
        "--no-run",
        "--test",
        "integration",
        "--features",
        "pcre2",
    ]
    done = subprocess.run(
        [*command, "--message-format=json"],
        cwd=checkout,
        stdout=subprocess.PIPE,
        check=True,
    )
    made = [json.loads(line) for line in done.stdout.splitlines()]
    return Path(
        next(
            one["executable"]
            for one in made
            if one.get("target", {}).get("name") == "integration"
        )
    )


def run(
    tests: Path, checkout: Path, program: Path, folder: Path, name: str
) -> dict[str, bool]:
    """Run all tests with this program as ripgrep, and return whether each passed."""
    environ = {
        **os.environ,
        "CARGO_BIN_EXE_rg": str(program),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "FLASHGREP_STATE_DIR": str(folder / "state"),
        "FLASHGREP_TCP_PORT": "0",
    }
    done = subprocess.run(
        [tests, "--test-threads", "2"],
        cwd=checkout,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    subprocess.run(
        [BIN / "fgrep", "daemon", "stop"], env=environ, capture_output=True, check=False
    )
    found = {
        test: how == "ok"
        for test, how in re.findall(
            r"^test (\S+) \.\.\. (ok|FAILED)", done.stdout, re.MULTILINE
        )
    }
    print(f"{name}: {sum(found.values())} of {len(found)} passed", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
