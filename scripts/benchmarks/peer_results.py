"""What a comparison with other tools measures, and its file."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scripts.benchmarks.machine import Machine, TreeFacts

FOLDER = Path(__file__).parent.parent / "bench-results" / "peers"
CHANGES = ("edit", "delete", "rename", "add")
"""The kinds of changes after which each tool is asked at once."""


@dataclass(slots=True)
class Indexing:
    """How a tool made its index: wall and processor seconds, and MB on the disk and, at most, in memory."""

    seconds: float
    cpu_seconds: float
    disk_mb: float
    peak_mb: float


@dataclass(slots=True)
class Freshness:
    """Wrong answers after changes; ``stale``: at once, by kind of change; ``later``: once it caught up."""

    stale: dict[str, int]
    of_each: int
    later: int
    caught_up_seconds: float
    """Until every answer was right, by its own watching or by another indexing."""


@dataclass(slots=True)
class PeerResult:
    """A tool's figures but for the questions' times."""

    name: str
    version: str = ""
    not_run: str = ""
    """Why it was not measured."""
    indexing: Indexing | None = None
    server_mb: float = 0.0
    """What its processes hold after the questions, at rest."""
    wrong: list[str] = field(default_factory=list)
    """Answers that differ from a full scan before any change: column, kind, how."""
    freshness: Freshness | None = None


@dataclass(slots=True)
class WayTimes:
    """One column's times of a question: medians in ms of wall and of processor time, the server's included."""

    p50: float
    cpu: float
    runs: int
    refusal: str = ""
    is_whole: bool = True
    """Whether the answer has every hit, so that its time can be the least of the row."""


@dataclass(slots=True)
class QuestionResult:
    """A row: the question, the lines that a full scan finds (-1: not known), and each column's times."""

    kind: str
    text: str
    lines: int
    load: float
    times: dict[str, WayTimes] = field(default_factory=dict)


@dataclass(slots=True)
class Comparison:
    """A whole run; ``day`` in ISO form."""

    day: str
    machine: Machine
    tree: TreeFacts
    remark: str
    load_after: float = 0.0
    ways: dict[str, str] = field(default_factory=dict)
    """The tool of each column, in the table's order."""
    questions: list[QuestionResult] = field(default_factory=list)
    peers: list[PeerResult] = field(default_factory=list)


def save(comparison: Comparison) -> Path:
    """Save a run under its day and tree; return its file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{comparison.day}-{comparison.tree.name}.json"
    path.write_text(json.dumps(asdict(comparison), indent=1) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Comparison:
    """Read a run's file."""
    raw: dict[str, Any] = json.loads(path.read_text("utf-8"))
    raw["machine"] = Machine(**raw["machine"])
    raw["tree"] = TreeFacts(**raw["tree"])
    raw["questions"] = [_question(row) for row in raw["questions"]]
    raw["peers"] = [_peer(row) for row in raw["peers"]]
    return Comparison(**raw)


def _question(row: dict[str, Any]) -> QuestionResult:
    times = {name: WayTimes(**cell) for name, cell in row.pop("times").items()}
    return QuestionResult(**row, times=times)


def _peer(row: dict[str, Any]) -> PeerResult:
    indexing = row.pop("indexing")
    freshness = row.pop("freshness")
    return PeerResult(
        **row,
        indexing=Indexing(**indexing) if indexing else None,
        freshness=Freshness(**freshness) if freshness else None,
    )
