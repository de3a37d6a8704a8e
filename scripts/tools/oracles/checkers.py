"""What names in a folder refer to, as a compiler's checker says: rows of the programs beside this module."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ORACLES: Final = Path(__file__).parent
CHECKERS: Final = {
    "javac": (
        "java",
        "--add-exports",
        "jdk.compiler/com.sun.tools.javac.tree=ALL-UNNAMED",
        str(ORACLES / "JavaUses.java"),
    ),
    "kotlinc": ("java", str(ORACLES / "KotlinUses.java")),
    "go-types": (
        "go",
        "run",
        *(str(path) for path in sorted((ORACLES / "go").glob("*.go"))),
        "uses",
    ),
    "clang": (sys.executable, str(ORACLES / "c_uses.py")),
    "roslyn": (sys.executable, str(ORACLES / "csharp_uses.py")),
    "typescript": ("node", str(ORACLES / "typescript" / "uses.cjs")),
}
"""Each checker's command; the folder comes last.

TypeScript is found by NODE_PATH, the modules for libclang and .NET by PYTHONPATH, Kotlin's compiler and the project's
libraries by CLASSPATH, Roslyn by ROSLYN and DOTNET_ROOT.
"""
HEADERS: Final = ("gcc", "-print-file-name=include")
"""Prints where the compiler's own headers are."""


def read_checker(name: str, root: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each use of all definitions in a folder."""
    command = [*CHECKERS[name], str(root)]
    if name == "clang":
        headers = subprocess.run(HEADERS, capture_output=True, check=True, text=True)
        command += ["-isystem", headers.stdout.strip()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as process:
        yield from map(json.loads, process.stdout or ())
    if process.returncode:
        raise SystemExit(f"{name} ended with {process.returncode}")
