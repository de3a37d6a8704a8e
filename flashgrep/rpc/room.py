"""How much of one client is taken in at once: lines read and not answered yet, by number and by size."""

import anyio


class Room:
    """A bound on lines and on their bytes; one line always fits, whatever its size."""

    def __init__(self, max_lines: int, max_bytes: int) -> None:
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._lines = 0
        self._bytes = 0
        self._left: anyio.Event | None = None

    def fits(self, size: int) -> bool:
        """Tell whether a line of ``size`` bytes may be taken in now."""
        return not self._lines or (self._lines < self._max_lines and self._bytes + size <= self._max_bytes)

    async def wait(self, size: int) -> None:
        """Wait until a line of ``size`` bytes fits."""
        while not self.fits(size):
            self._left = self._left or anyio.Event()
            await self._left.wait()

    def enter(self, size: int) -> None:
        """Count a line."""
        self._lines += 1
        self._bytes += size

    def leave(self, size: int) -> None:
        """Discount a line: it is answered."""
        self._lines -= 1
        self._bytes -= size
        if self._left is not None:
            self._left.set()
            self._left = None
