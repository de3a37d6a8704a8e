"""Many paths as one text, to find those that begin with, end with or contain something without a Python loop."""

from array import array
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
        self._sizes = np.fromiter(map(len, paths), np.int32, len(paths))
        self._ends = np.cumsum(self._sizes + 1, dtype=np.int32)
        self._bytes = np.frombuffer(self.text, np.uint8)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> bytes:
        if not 0 <= place < len(self._ends):
            raise IndexError(place)
        end = int(self._ends[place])
        start = end - int(self._sizes[place])
        return self.text[start:end]

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
        end = len(text)
        if high is not None:
            end = self._end_before(high) + 1
        places = array("i")
        separator = self._end_before(low)
        while True:
            hit = text.find(part, separator + 1 - skip, end)
            if not 0 <= hit < len(text) - 1:
                break
            place = hit + skip
            places.append(place)
            # Continue with the next path: one hit is enough for each.
            separator = text.find(b"\0", place)
        return np.searchsorted(self._ends, np.asarray(places))

    def _end_before(self, place: int) -> int:
        """Return where the separator before a path is; for the place after the last, the one at the end."""
        if not place:
            return 0
        return int(self._ends[place - 1])

    def with_literals(self, wanted: Literals) -> Places:
        """Return the indexes of the paths that have these parts, ascending."""
        if wanted.step:
            return self._with_step(wanted.step)
        low, high = self._starting_with(wanted.start)
        if wanted.inside:
            places = self._places_of(self.text, wanted.inside, low, high)
        else:
            places = np.arange(low, high)
        for back, byte in enumerate(reversed(wanted.end), 1):
            # A NUL is before each path.
            at = self._ends[places] - back
            has_byte = self._bytes[at] == byte
            places = places[has_byte]
        # Start and end must not overlap: "ab*ba" does not match "aba".
        if wanted.exact and wanted.start:
            least = len(wanted.start) + len(wanted.end)
            places = places[self._sizes[places] >= least]
        return places

    def _with_step(self, step: bytes) -> Places:
        """Return the indexes of the paths with this file name or folder."""
        names = [step]
        if not step.endswith(b"/"):
            names = [step + b"/", step + b"\0"]
        places = []
        for name in names:
            for lead in (b"/", b"\0"):
                part = lead + name
                places.append(self._places_of(self.text, part))
        return np.unique(np.concatenate(places))

    def _starting_with(self, start: bytes) -> tuple[int, int]:
        """Return the range of the indexes of the paths that start so."""

        def cut(path: bytes) -> bytes:
            return path[: len(start)]

        if not start:
            return 0, len(self)
        # The paths are sorted, so those that start alike are neighbours.
        low = bisect_left(self, start, key=cut)
        high = bisect_right(self, start, lo=low, key=cut)
        return low, high

    def matching(
        self, globs: Sequence[Literals], matches: Callable[[bytes], bool]
    ) -> Mask:
        """Return the paths that have the literal parts of one of the globs and that ``matches`` accepts."""
        if len(globs) > MOST_GLOBS:
            globs = [Literals()]
        mask = np.zeros(len(self), bool)
        for glob in globs:
            places = self.with_literals(glob)
            if glob.exact:
                mask[places] = True
                continue
            # Match each path once, however many globs propose it.
            is_new = ~mask[places]
            for place in places[is_new].tolist():
                checkpoint()
                if matches(self[place]):
                    mask[place] = True
        return mask
