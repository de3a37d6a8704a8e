"""Waking whoever waits for something to change, on the event loop."""

import anyio


class Signal:
    """Fires any number of times; who waits takes ``next`` first, and looks then, so that no change falls between."""

    def __init__(self) -> None:
        self.next = anyio.Event()
        """What the next change sets."""

    def fire(self) -> None:
        """Wake all who wait."""
        fired, self.next = self.next, anyio.Event()
        fired.set()
