"""How many descriptors a daemon may use, and for what: whoever would take the last ones is refused or waits before."""

import resource
from typing import NamedTuple, Self

from flashgrep.project.project import MOST_OPEN

OTHERS = 8
"""Of each share: indexers' pipes, files being read, log, lock, the event loop."""
EACH_PROJECT = 12
"""An open project has its root, a queue of events, and databases with their logs."""
LEAST = 8
"""Of connections and sockets, however few descriptors there are."""


class Shares(NamedTuple):
    """How many there may be of what takes descriptors for long."""

    projects: int
    """Open projects."""
    sockets: int
    """Sockets of projects; for others the control socket serves."""
    connections: int
    """Connections of one listener."""

    @classmethod
    def of(cls, descriptors: int) -> Self:
        """Return the shares of this many descriptors: half for projects, a quarter for each of the others."""
        projects = (descriptors // 2 - OTHERS) // EACH_PROJECT
        quarter = max(LEAST, descriptors // 4 - OTHERS)
        return cls(max(1, min(MOST_OPEN, projects)), quarter, quarter)

    @classmethod
    def of_process(cls) -> Self:
        """Return the shares of what this process may open."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return cls.of(1 << 20)
        return cls.of(soft)
