"""Look-ups that another process can run: what the scheduler asks of them, and of the processes."""

from collections.abc import Callable, Collection, Hashable
from typing import Any, Protocol, TypeVar

ResultT_co = TypeVar("ResultT_co", covariant=True)


class Worker(Protocol):
    """A process that runs one look-up at a time."""

    def ask(self, request: bytes, limit: float, reply: Callable[[bytes | None], None]) -> None:
        """Have a look-up run; ``reply`` is called once, on the event loop, with None where it has no answer.

        ``limit``: on the clock of time.monotonic(); a worker that answers much later hangs.
        """

    def cancel(self) -> None:
        """Have the look-up end: nobody waits for its answer any more."""


class Workers(Protocol):
    """The worker processes of a daemon; used on its event loop, but for ``serving``."""

    freed: Callable[[], None]
    """Set by the scheduler; called when a worker has nothing to do."""

    @property
    def serving(self) -> Collection[Hashable]:
        """Places whose look-ups wait for a worker: one has them loaded and is not busy with a long one."""

    def free(self, place: Hashable) -> Worker | None:
        """Return a worker that has nothing to do and can answer about a place."""

    def want(self, place: Hashable) -> None:
        """Note that look-ups of a place wait just now."""


class Portable(Protocol[ResultT_co]):
    """A look-up that a worker can run, too."""

    @property
    def place(self) -> Hashable:
        """What it is about, which a worker has to have loaded."""

    @property
    def limit(self) -> float:
        """When a worker that has it still hangs, on the clock of time.monotonic()."""

    def request(self, worker: Any) -> bytes | None:
        """Return what to ask a worker, as things are now; None where this has to be answered here."""

    def result(self, reply: bytes) -> ResultT_co:
        """Return what a worker has answered."""
