"""Patterns to search: the bars' literals on Linux sources, else words chosen by the number of files that have them."""

import os
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LONG = 12
"""Fewest characters of a word that is likely a name, not English."""

SAMPLE_BYTES = 64 << 20
"""Text from which words are chosen on an unknown tree."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Patterns by kind."""

    rare: str
    rarest: str
    common: str
    regex: str
    insensitive: str
    miss: str = "zq_nowhere_in_any_file_xj"
    scan: str = r"[a-z]{3}[0-9]{4}[a-z]"
    """A regex without a literal part, so that every file is read."""
    many: str = ""
    """A literal with tens of thousands of lines."""
    wide: str = ""
    """A regex with thousands of lines."""
    sparse_scan: str = r"[a-z]{6}[0-9]{4}[a-z]"
    """As ``scan``, but with few lines."""
    word: str = "return"
    """A word, part of longer ones too, that many lines have."""
    meaning: str = "where is a file opened and read"
    """A question in words."""


LINUX = Targets(
    rare="spin_lock_irqsave_nested",
    rarest="PCI_DEVICE_ID_INTEL_82599",
    common="static int",
    regex=r"devm_\w+_get_optional\(",
    insensitive="Spin_Lock_IrqSave_Nested",
    many="mutex_unlock",
    wide=r"\w+_probe\(struct \w+_device \*",
    word="dev",
    meaning="decide which process to kill when memory is exhausted",
)


def targets_for(root: Path, rg: Path) -> Targets:
    """Return the patterns to search in a tree."""
    return (
        LINUX
        if _has(root, rg, LINUX.rare) and _has(root, rg, LINUX.rarest)
        else _drawn(root, rg)
    )


def _has(root: Path, rg: Path, text: str) -> bool:
    return (
        subprocess.run(
            [rg, "--no-config", "-qF", text], cwd=root, check=False
        ).returncode
        == 0
    )


def _drawn(root: Path, rg: Path) -> Targets:
    words = _words(root, rg)
    long = sorted(word for word in words if len(word) >= LONG)
    rare = _nearest(words, long, 12)
    common = _nearest(words, sorted(words), max(words.values()))
    return Targets(
        rare,
        _nearest(words, long, 1),
        common,
        f"{rare[:6]}\\w+{rare[-4:]}",
        rare.swapcase(),
        many=common,
        wide=f"\\w*{common[:-1]}\\w+",
    )


def _nearest(words: Counter[str], among: Iterable[str], files: int) -> str:
    return min(among, key=lambda word: abs(words[word] - files))


def _words(root: Path, rg: Path) -> Counter[str]:
    """Count the files that have each word, in a sample that is the same for the same tree."""
    listed = subprocess.run(
        [rg, "--no-config", "--files", "-0"], cwd=root, capture_output=True, check=True
    ).stdout
    names = sorted(listed.split(b"\0")[:-1])
    random.Random(1).shuffle(names)  # noqa: S311 - nothing is kept secret by it
    counted: Counter[str] = Counter()
    left = SAMPLE_BYTES
    for name in names:
        text = (root / os.fsdecode(name)).read_bytes()
        left -= len(text)
        counted.update(
            {
                word.decode()
                for word in set(re.findall(rb"[A-Za-z_]\w{4,40}", text))
                if word.isascii()
            }
        )
        if left < 0:
            break
    return counted
