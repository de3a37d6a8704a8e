"""Many paths as one text, to find those that begin with, end with or contain something without a Python loop."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flashgrep.base.checkpoint import checkpoint

Places = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


MOST_GLOBS = 100
"""More globs (0.2 ms each) take as long as checking each of 80,000 paths."""


class Literals(NamedTuple):
    """Literal parts that a path must have to match a glob: its start, its end, and what it contains."""

    start: bytes = b""
    inside: bytes = b""
    end: bytes = b""
    step: bytes = b""
    """The name of the path's file or of one of its folders; with a trailing slash, only of a folder."""
    exact: bool = False
    """Whether every path with these parts, not overlapping, matches."""


class PathText:
    """Sorted paths between NULs: 80,000 paths take 3.5 MB, and are searched in about 1 ms."""

    def __init__(self, paths: Sequence[bytes]) -> None:
        self.text = b"\0".join([b"", *paths, b""])
        sizes = np.fromiter(map(len, paths), np.int32, len(paths))
        self._ends = np.cumsum(sizes + 1, dtype=np.int32)
        self._sizes = sizes
        self._bytes = np.frombuffer(self.text, np.uint8)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> bytes:
        if not 0 <= place < len(self._ends):
            raise IndexError(place)
        end = int(self._ends[place])
        return self.text[end - int(self._sizes[place]) : end]

    def containing(self, part: bytes, *, fold: bool = False) -> Places:
        """Return the indexes of the paths that contain ``part``, ascending; ``fold``: ignoring ASCII case."""
        if b"\0" in part:
            return np.empty(0, np.int64)
        if fold:
            return self._places_of(self.text.lower(), part.lower())
        return self._places_of(self.text, part)

    def _places_of(
        self, text: bytes, part: bytes, low: int = 0, high: int | None = None
    ) -> Places:
        """Return the places of the paths that contain ``part``, or that it begins before and ends after.

        ``low``, ``high``: the range of indexes to search, default all.
        """
        # A leading NUL is the separator before a path, so the hit is one byte before
        # its path.
        skip = part.startswith(b"\0")
        places = []
        end = (
            len(text) if high is None else int(self._ends[high - 1]) + 1 if high else 0
        )
        at = text.find(part, (int(self._ends[low - 1]) if low else 0) + 1 - skip, end)
        while 0 <= at < len(text) - 1:
            places.append(at + skip)
            # Continue with the next path: one hit is enough for each.
            at = text.find(part, text.find(b"\0", at + skip) + 1 - skip, end)
        return np.searchsorted(self._ends, np.array(places, np.int32))

    def with_literals(self, wanted: Literals) -> Places:
        """Return the indexes of the paths that have these parts, ascending."""
        if wanted.step:
            tails = (b"",) if wanted.step.endswith(b"/") else (b"/", b"\0")
            literals = [
                lead + wanted.step + tail for lead in (b"/", b"\0") for tail in tails
            ]
            return np.unique(
                np.concatenate([self._places_of(self.text, part) for part in literals])
            )
        low, high = 0, len(self._ends)
        if wanted.start:
            size = len(wanted.start)
            low = bisect_left(self, wanted.start, key=lambda path: path[:size])
            high = bisect_right(
                self, wanted.start, lo=low, key=lambda path: path[:size]
            )
        inside = wanted.inside
        places = (
            self._places_of(self.text, inside, low, high)
            if inside
            else np.arange(low, high)
        )
        for back, byte in enumerate(reversed(wanted.end), 1):
            places = places[
                self._bytes[self._ends[places] - back] == byte
            ]  # a NUL is before each path
        # Start and end must not overlap: "ab*ba" does not match "aba".
        if wanted.exact and wanted.start:
            places = places[self._sizes[places] >= len(wanted.start) + len(wanted.end)]
        return places

    def matching(
        self, globs: Sequence[Literals], matches: Callable[[bytes], bool]
    ) -> Mask:
        """Return the paths that have the literal parts of one of the globs and that ``matches`` accepts."""
        mask = np.zeros(len(self._ends), bool)
        for glob in globs if len(globs) <= MOST_GLOBS else [Literals()]:
            places = self.with_literals(glob)
            if glob.exact:
                mask[places] = True
                continue
            # Match each path once, however many globs propose it.
            for place in places[~mask[places]].tolist():
                checkpoint()
                if matches(self[place]):
                    mask[place] = True
        return mask
