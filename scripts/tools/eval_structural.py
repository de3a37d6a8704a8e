"""Compare search and rewriting by syntax with ast-grep's command, which reads every file, over a checkout.

For each pattern, prints the matches of both, those that one of them lacks, and the wall and processor time of both. The
command must be on PATH (pip install ast-grep-cli). Patterns that we parse as code inside a function (Go's calls of
packages) are left out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import anyio

from flashgrep.parts.built_in import BUILT_IN
from flashgrep.parts.structural.structural_search import (
    StructuralAnswer,
    StructuralQuestion,
    choose_languages,
    search_structural,
)
from flashgrep.project import Workspace, WorkspaceOptions

SHOWN: Final = 3
"""Differences printed per pattern."""
MOST: Final = 1_000_000
CASES: Final[dict[str, dict[str, str | None]]] = {
    "python": {
        "self.$A($$$B)": None,
        "$A is None": "not $A",
        "def $F($$$A): $$$B": None,
        "isinstance($A, $B)": "is_a($B, $A)",
        "raise $E($$$A)": "fail($E, $$$A)",
        "[$A for $B in $C]": "list($A,\n  $C)",
        "if $A:\n    return $B": "X($A)",
        '"utf-8"': None,
    },
    "typescript": {
        "$A.push($$$B)": "push($A, $$$B)",
        "const $A = $B": "let $A = $B",
        "if ($A) { $$$B }": "when($A, () => {\n  $$$B\n})",
        "expect($A).toBe($B)": None,
        "($A) => $B": "fn($A, $B)",
        "$A ? $B : $C": "cond($A, $B, $C)",
        "interface $I { $$$B }": None,
    },
    "go": {
        "if err != nil { $$$B }": "check(err, func() { $$$B })",
        "$A := $B": "var $A = $B",
        "append($A, $$$B)": "push($A, $$$B)",
        "return $A, $B": "return $B, $A",
        "for $A := range $B { $$$C }": None,
        "type $T struct { $$$A }": None,
    },
}


class Found(NamedTuple):
    """A match, in the form in which both sides are compared."""

    path: str
    line: int
    text: str
    replacement: str | None


def run_command(
    root: Path, language: str, pattern: str, rewrite: str | None
) -> Iterator[Found]:
    """Yield the matches of ast-grep's command."""
    command = [
        "ast-grep",
        "run",
        "--lang",
        language,
        "--pattern",
        pattern,
        "--json=stream",
        ".",
    ]
    command += [] if rewrite is None else ["--rewrite", rewrite]
    done = subprocess.run(
        command, cwd=root, capture_output=True, check=False
    )  # status 1: no match
    for line in done.stdout.splitlines():
        one = json.loads(line)
        path, start = one["file"].removeprefix("./"), one["range"]["start"]["line"] + 1
        yield Found(path, start, one["text"][:2000], one.get("replacement"))


def read_answer(answer: StructuralAnswer) -> Iterator[Found]:
    """Yield our matches; without .tsx files, which the command does not count as TypeScript."""
    for file in answer.files:
        if not file.path.endswith(b".tsx"):
            for one in file.matches:
                yield Found(
                    os.fsdecode(file.path),
                    one["start_line"],
                    one["text"],
                    one.get("replacement"),
                )


def processor_time() -> float:
    """Return the processor time, in seconds, of this process and its ended children."""
    return sum(os.times()[:4])


async def compare(root: Path, language: str) -> int:
    """Print a line for each pattern; return how many matches differ."""
    differ, names = 0, choose_languages([language])
    with tempfile.TemporaryDirectory() as user:
        options = WorkspaceOptions(
            state_dir=Path(user) / "state", cache_dir=Path(user) / "cache"
        )
        workspace = Workspace("compared", os.fsencode(root), options, parts=BUILT_IN)
        async with anyio.create_task_group() as tasks:
            await workspace.open(tasks)
            await workspace.wait_parsed()
            for pattern, rewrite in CASES[language].items():
                clock, cost = time.perf_counter(), processor_time()
                wanted = set(run_command(root, language, pattern, rewrite))
                theirs = f"{time.perf_counter() - clock:.2f} s ({processor_time() - cost:.2f})"
                question = StructuralQuestion(
                    pattern=pattern,
                    rewrite=rewrite,
                    languages=names,
                    is_chosen=True,
                    limit=MOST,
                )
                clock, cost = time.perf_counter(), processor_time()
                await workspace.refresh()
                answer = await workspace.in_thread(
                    partial(search_structural, question=question)
                )
                ours = f"{time.perf_counter() - clock:.2f} s ({processor_time() - cost:.2f})"
                found = set(read_answer(answer))
                differ += len(wanted ^ found)
                counts = f"{len(wanted):6}, {len(wanted - found)} not ours, {len(found - wanted)} only ours"
                print(
                    f"{pattern!r:40} {counts}; ast-grep {theirs}, ours {ours} {answer.skipped or ''}"
                )
                for one in sorted(wanted ^ found, key=str)[:SHOWN]:
                    print("  ", one)
            await workspace.close()
            tasks.cancel_scope.cancel()
    return differ


def main() -> int:
    """Compare; status 1 where matches differ."""
    parser = argparse.ArgumentParser(
        prog="scripts/eval_structural", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("root", type=Path, help="a checkout")
    parser.add_argument("language", choices=sorted(CASES))
    given = parser.parse_args()
    return int(anyio.run(compare, given.root.resolve(), given.language) > 0)


if __name__ == "__main__":
    sys.exit(main())
