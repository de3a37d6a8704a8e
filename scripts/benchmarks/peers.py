"""Compares other tools with ours on one copy of a tree: the same questions in turns, then changes.

Each tool's answers are compared with a full scan by ripgrep, before and right after changes. Python packages, Go
modules and Rust crates are installed from their registries, once, into a cache; other tools are measured if their
program is on PATH or in the folder given by ``--programs``. A tool that is not there is named, with the reason.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from scripts.benchmarks.peer_answers import compare, read_places, scan
from scripts.benchmarks.peer_edits import Change, measure_freshness, planned
from scripts.benchmarks.peer_install import Installer
from scripts.benchmarks.peer_process import MIB, NotAvailable, Processes
from scripts.benchmarks.peer_results import (
    Comparison,
    PeerResult,
    QuestionResult,
    WayTimes,
)
from scripts.benchmarks.peer_running import RunningPeer
from scripts.benchmarks.peer_tools import PEERS, Form, Peer, Question, Syntax, Way
from scripts.benchmarks.private import processor_seconds
from scripts.benchmarks.targets import Targets
from scripts.benchmarks.timing import children_cpu

FEWEST_ROUNDS = 3
MOST_ROUNDS = 15
SLOW_SECONDS = 15.0
"""A tool whose first answer takes longer is not asked the same again."""


def questions_of(targets: Targets) -> list[Question]:
    """Return the rows of the table."""
    return [
        Question("rare literal", targets.rare),
        Question("rarest", targets.rarest),
        Question("miss", targets.miss),
        Question("common literal", targets.many),
        Question("regex", targets.regex, Syntax.REGEX),
        Question("wide regex", targets.wide, Syntax.REGEX),
        Question("no gram", targets.sparse_scan, Syntax.REGEX),
        Question("insensitive", targets.insensitive),
        Question("by meaning", targets.meaning, Syntax.MEANING),
    ]


@dataclass(frozen=True, slots=True)
class Bench:
    """What is compared where: ``base`` is for the copy of the tree and the tools' indexes."""

    base: Path
    root: Path
    rg: Path
    installer: Installer
    peers: Sequence[Peer] = PEERS
    round_seconds: float = 40.0
    """Rounds of a question, in each of which every tool is asked, end then."""
    settle_seconds: float = 900.0
    """Work after the index, such as symbols, that takes longer goes on beside the questions."""
    idle_seconds: float = 10.0
    """After the last question a server has so long to let go of memory."""

    @property
    def tree(self) -> Path:
        """Return the copy of the tree, which all tools search."""
        return self.base / "tree"


def measure(comparison: Comparison, bench: Bench, targets: Targets) -> None:
    """Fill in a comparison."""
    tree = bench.tree
    # Only these: some tools know no ignore rules.
    files = list_files(bench.root, bench.rg)
    copy_files(bench.root, tree, files)
    plans: dict[str, list[Change]] = {}
    for number, peer in enumerate(bench.peers):
        plans[peer.name] = planned(f"tool{number}", tree, files)
        for change in plans[peer.name]:
            change.plant()
    running: list[RunningPeer] = []
    try:
        for peer in bench.peers:
            result = PeerResult(peer.name, peer.version)
            comparison.peers.append(result)
            try:
                running.append(_started(peer, result, bench))
            except NotAvailable as reason:
                result.not_run = str(reason)
            _progress(f"{peer.name}: {result.not_run or result.indexing}")
        for tool in running:
            for way in tool.peer.ways:
                comparison.ways[way.name] = tool.peer.name
        for question in questions_of(targets):
            comparison.questions.append(_ask_all(question, running, bench))
            _progress(f"{question.kind} {question.text}")
        time.sleep(bench.idle_seconds)
        for tool in running:
            tool.result.server_mb = round(tool.processes.memory() / MIB)
        for tool in running:
            try:
                plan = plans[tool.peer.name]
                tool.result.freshness = measure_freshness(tool, plan, bench.rg)
            except NotAvailable as reason:
                tool.result.wrong.append(f"after changes: {reason}")
            _progress(f"{tool.peer.name}: {tool.result.freshness}")
    finally:
        for tool in running:
            tool.end()
    comparison.load_after = round(os.getloadavg()[0], 1)


def list_files(root: Path, rg: Path) -> list[str]:
    """Return the files that ripgrep would search, sorted."""
    command = [str(rg), "--no-config", "--files", "-0"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    return sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)


def copy_files(root: Path, tree: Path, files: Sequence[str]) -> None:
    """Copy files, each to the same place in another tree."""
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, tree / name)


def _started(peer: Peer, result: PeerResult, bench: Bench) -> RunningPeer:
    """Install a tool and make its index, whose figures go into the result."""
    state = bench.base / "state" / re.sub(r"\W", "-", peer.name)
    state.mkdir(parents=True)
    environ = {
        "PATH": bench.installer.path_of(peer),
        "HOME": str(state),
        "LANG": "C.UTF-8",
    }
    for name, value in peer.environ.items():
        environ[name] = value.replace("{state}", str(state))
    running = RunningPeer(
        peer, result, bench.tree, state, Processes(bench.tree, environ, peer.name)
    )
    if peer.version_command:
        printed = running.processes.run(peer.version_command).decode()
        match = re.search(r"\d+(\.\d+)+", printed)
        result.version = match[0] if match else ""
    try:
        running.make_index(bench.settle_seconds)
    except NotAvailable:
        running.end()
        raise
    return running


def _ask_all(
    question: Question, running: Sequence[RunningPeer], bench: Bench
) -> QuestionResult:
    """Ask every tool in turns; compare its first answer with a full scan."""
    is_exact = question.syntax is not Syntax.MEANING
    expected = scan(bench.rg, bench.tree, question) if is_exact else set()
    lines = len(expected) if is_exact else -1
    row = QuestionResult(
        question.kind, question.text, lines, round(os.getloadavg()[0], 1)
    )
    columns: list[_Column] = []
    for peer in running:
        for way in peer.peer.ways:
            if not _can_answer(way, question):
                continue
            column = _Column(peer, way, question)
            try:
                answer = column.ask()
            except NotAvailable as reason:
                row.times[way.name] = WayTimes(0, 0, 0, str(reason))
                continue
            columns.append(column)
            if is_exact and way.is_whole:
                difference = compare(
                    read_places(answer, way.form, bench.tree), expected, way.form
                )
                if difference:
                    peer.result.wrong.append(
                        f"{way.name}, {question.kind}: {difference}"
                    )
    _rounds(columns, bench.round_seconds)
    for column in columns:
        row.times[column.way.name] = column.times()
    return row


def _can_answer(way: Way, question: Question) -> bool:
    if way.form is Form.SOCKET:
        return question.syntax is not Syntax.MEANING
    return bool(way.command(question))


class _Column:
    """A way to ask one question, with the times of its rounds in ms."""

    def __init__(self, peer: RunningPeer, way: Way, question: Question) -> None:
        self.way = way
        self._peer = peer
        self._question = question
        self._servers = list(peer.processes.running())
        self._walls: list[float] = []
        self._cpus: list[float] = []

    @property
    def is_slow(self) -> bool:
        """Whether it has taken so long that it is not asked again."""
        return bool(self._walls) and self._walls[0] > SLOW_SECONDS * 1000

    def ask(self) -> bytes:
        """Ask once, and note the times."""
        before = self._cpu()
        started = time.perf_counter()
        answer = self._peer.ask(self.way, self._question)
        self._walls.append((time.perf_counter() - started) * 1000)
        self._cpus.append((self._cpu() - before) * 1000)
        return answer

    def times(self) -> WayTimes:
        """Return the medians; the first answer, which warms, counts only if it is the only one."""
        walls = self._walls[1:] or self._walls
        cpus = self._cpus[1:] or self._cpus
        # A server's processor time comes in steps of 10 ms, so only its mean over the rounds means something.
        cpu = sum(cpus) / len(cpus)
        return WayTimes(
            round(median(walls), 2),
            round(cpu, 1),
            len(walls),
            is_whole=self.way.is_whole,
        )

    def _cpu(self) -> float:
        return children_cpu() + sum(processor_seconds(pid) for pid in self._servers)


def _rounds(columns: Sequence[_Column], seconds: float) -> None:
    until = time.monotonic() + seconds
    for number in range(MOST_ROUNDS):
        if number >= FEWEST_ROUNDS and time.monotonic() > until:
            return
        for column in columns:
            if not column.is_slow:
                with suppress(NotAvailable):
                    column.ask()


def _progress(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
