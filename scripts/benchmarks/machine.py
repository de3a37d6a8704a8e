"""Facts about the machine and the tree of a run, without names."""

import os
import platform
import sqlite3
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts that figures depend on; ``load`` shows whether the machine was busy."""

    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str
    sqlite: str
    ripgrep: str
    load_before: float


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """The files of the tree that ripgrep would search, and their bytes."""

    name: str
    files: int
    bytes: int


def machine(rg: Path) -> Machine:
    """Describe this machine."""
    facts = (
        Path("/proc/cpuinfo").read_text(encoding="utf-8")
        if Path("/proc/cpuinfo").exists()
        else ""
    )
    models = [
        line.partition(":")[2].strip()
        for line in facts.splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    version = subprocess.run(
        [rg, "--version"], capture_output=True, text=True, check=True
    ).stdout.split("\n")[0]
    return Machine(
        processor=models[0] if models else platform.machine(),
        cores=os.cpu_count() or 1,
        memory_gib=round(memory, 1),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        sqlite=sqlite3.sqlite_version,
        ripgrep=version,
        load_before=round(os.getloadavg()[0], 2),
    )


def tree_facts(root: Path, rg: Path) -> TreeFacts:
    """Count the files that ripgrep would search."""
    listed = subprocess.run(
        [rg, "--no-config", "--files", "-0"], cwd=root, capture_output=True, check=True
    ).stdout
    names = [os.fsdecode(name) for name in listed.split(b"\0")[:-1]]
    return TreeFacts(
        root.name, len(names), sum((root / name).lstat().st_size for name in names)
    )


def described(facts: Machine | TreeFacts) -> str:
    """Return facts as one line."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in asdict(facts).items()
    )
