"""The rows of the result: a measurement, ripgrep's, and its bars."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scripts.benchmarks.timing import Times


@dataclass(frozen=True, slots=True)
class Bar:
    """A condition on a figure, and its text."""

    text: str
    holds: Callable[["Row"], bool]


@dataclass(slots=True)
class Row:
    """One measurement; ``value`` is for figures other than times, in ``unit``."""

    name: str
    ours: Times | None = None
    rg: Times | None = None
    value: float | None = None
    unit: str = ""
    note: str = ""
    bars: list[Bar] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """Return the speed relative to ripgrep's, by medians."""
        return self.rg.p50 / self.ours.p50 if self.ours and self.rg else None

    def verdict(self) -> str:
        """Return each bar, and whether it is met."""
        return "; ".join(
            f"{bar.text}: {'ok' if bar.holds(self) else 'MISSED'}" for bar in self.bars
        )


def p50(limit: float) -> Bar:
    """Return a bar on the median, in ms."""
    return Bar(
        f"p50 <= {limit:g} ms",
        lambda row: row.ours is not None and row.ours.p50 <= limit,
    )


def p99(limit: float) -> Bar:
    """Return a bar on the 99th percentile, in ms."""
    return Bar(
        f"p99 <= {limit:g} ms",
        lambda row: row.ours is not None and row.ours.p99 <= limit,
    )


def faster(times: float) -> Bar:
    """Return a bar on the speed relative to ripgrep; below 1, it allows to be slower."""
    text = f">= {times:g}x rg" if times >= 1 else f"<= {1 / times:g}x rg's time"
    return Bar(text, lambda row: row.ratio is not None and row.ratio >= times)


def most(limit: float, unit: str = "") -> Bar:
    """Return an upper bound on a value."""
    return Bar(
        f"<= {limit:g} {unit}".strip(),
        lambda row: row.value is not None and row.value <= limit,
    )


def least(limit: float, unit: str = "") -> Bar:
    """Return a lower bound on a value."""
    return Bar(
        f">= {limit:g} {unit}".strip(),
        lambda row: row.value is not None and row.value >= limit,
    )


def as_dict(row: Row) -> dict[str, Any]:
    """Return a row as a JSON object."""
    times = {
        name: {
            part: round(getattr(found, part), 3)
            for part in ("p50", "p99", "cpu", "runs", "hits")
        }
        for name, found in (("ours", row.ours), ("rg", row.rg))
        if found is not None
    }
    value = (
        {"value": round(row.value, 4), "unit": row.unit}
        if row.value is not None
        else {}
    )
    bars = [{"bar": bar.text, "kept": bar.holds(row)} for bar in row.bars]
    return {"name": row.name, **times, **value, "note": row.note, "bars": bars}
