"""Compare the ranking of `list_files` with that of `fzf -f`, for random files queried by parts of their paths.

    scripts/eval_paths [--files N] [--seed N] [--show] FOLDER …

Each row is a kind of query; it counts how often the intended file is the first result, and among the first ten.
"""

import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from flashgrep.files.walk import Walker
from flashgrep.search.path_search import search_paths

WORDS: Final = re.compile(r"[_\-./]|(?<=[a-z])(?=[A-Z])")
SHOWN: Final = 10
LEAST_WORD: Final = 3
LEAST_STEM: Final = 6
LEAST_HUMPS: Final = 3
LEAST_LONG: Final = 5
"""Letters of a word that people type three of."""


def main() -> int:
    """Print a row for each kind of query; return 1 if fzf is better in one."""
    parser = argparse.ArgumentParser(prog="scripts/eval_paths", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument(
        "--files", type=int, default=100, help="random files from each folder"
    )
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument(
        "--show", action="store_true", help="show files that only fzf found"
    )
    arguments = parser.parse_args()
    fzf = shutil.which("fzf")
    if fzf is None:
        sys.exit("fzf is not installed")
    draw = random.Random(arguments.seed)  # noqa: S311 - a sample, the same every time
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for folder in arguments.folders:
        paths = sorted(entry.path for entry in Walker(os.fsencode(folder)).walk())
        finder = make_finder(paths)
        for meant in draw.sample(paths, min(len(paths), arguments.files)):
            for row, text in make_questions(meant, draw):
                ours = search_paths(text, finder)[0]
                theirs = ask_fzf(fzf, text, paths)
                counts[row].update(
                    asked=1, **rate("ours", ours, meant), **rate("fzf", theirs, meant)
                )
                if arguments.show and theirs[:1] == [meant] != ours[:1]:
                    print(
                        f"{row}: {text!r} {os.fsdecode(meant)} {[os.fsdecode(one) for one in ours[:2]]}"
                    )
    print(f"{'first, in ten':12} asked        ours         fzf")
    for row, count in counts.items():
        told = [
            f"{count[f'{who} first']:5} {count[f'{who} shown']:5}"
            for who in ("ours", "fzf")
        ]
        print(f"{row:12} {count['asked']:6}   {'   '.join(told)}")
    return int(
        any(count["ours first"] < count["fzf first"] for count in counts.values())
    )


def make_questions(meant: bytes, draw: random.Random) -> Iterator[tuple[str, str]]:
    """Yield queries for a file, each with the name of its row."""
    path = os.fsdecode(meant)
    *folders, name = path.split("/")
    stem = name.split(".")[0]
    words = [
        word
        for word in WORDS.split(path.rpartition(".")[0] or path)
        if len(word) >= LEAST_WORD
    ]
    if len(set(words)) > 1:
        first, second = (
            words[at].lower() for at in sorted(draw.sample(range(len(words)), 2))
        )
        yield "two words", f"{first} {second}"
        yield "reversed", f"{second} {first}"
    if folders:
        yield "folder, name", f"{draw.choice(folders)} {stem}"
    yield "file", name
    yield "stem", stem
    of_name = [word for word in WORDS.split(stem) if len(word) > 1]
    if len(of_name) > 1:
        yield "prefixes", "".join(word[:3] for word in of_name).lower()
    long = [word.lower() for word in of_name if len(word) >= LEAST_LONG]
    if long:
        word = draw.choice(long)
        places = sorted(draw.sample(range(1, len(word)), 2))
        yield "abbreviated", word[0] + "".join(word[at] for at in places)
    if len(humps := re.findall("[A-Z]", stem)) >= LEAST_HUMPS:
        yield "humps", "".join(humps).lower()
    if len(stem) >= LEAST_STEM:
        at = draw.randrange(1, len(stem) - 2)
        yield "swapped", stem[:at] + stem[at + 1] + stem[at] + stem[at + 2 :]
        at = draw.randrange(1, len(stem) - 1)
        yield "missing", stem[:at] + stem[at + 1 :]


def make_finder(paths: list[bytes]) -> Callable[[str], list[bytes]]:
    """Return a function that finds the paths containing a text, ignoring case."""
    small = [path.lower() for path in paths]

    def find(text: str) -> list[bytes]:
        part = os.fsencode(text).lower()
        return [path for path, lower in zip(paths, small, strict=True) if part in lower]

    return find


def ask_fzf(fzf: str, text: str, paths: list[bytes]) -> list[bytes]:
    """Return the paths that `fzf -f` lists for a text."""
    done = subprocess.run(
        [fzf, "-f", text], input=b"\n".join(paths), capture_output=True, check=False
    )
    return done.stdout.splitlines()


def rate(who: str, found: list[bytes], meant: bytes) -> dict[str, int]:
    """Return whether the intended file is first in a list, and whether it is among the first ten."""
    return {
        f"{who} first": int(found[:1] == [meant]),
        f"{who} shown": int(meant in found[:SHOWN]),
    }


if __name__ == "__main__":
    sys.exit(main())
