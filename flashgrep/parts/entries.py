"""Where other packages offer their parts: the entry points of one group, read without importing any part."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Final

GROUP: Final = "flashgrep.parts"


def read_entries() -> Sequence[EntryPoint]:
    """Return what other packages offer, by name."""
    entries = entry_points(group=GROUP)
    return sorted(entries, key=lambda entry: entry.name)
