"""What compilers know about a project's names: indexes that the user imported, and language servers, per project."""

from pathlib import Path
from typing import Final

from flashgrep.api.service import HostService, ProjectService, ServiceKey
from flashgrep.parts.navigation.language_server_source import LanguageServerSource
from flashgrep.parts.navigation.scip.scip_source import ScipSource
from flashgrep.parts.navigation.scip.scip_store import FILE, ScipTable
from flashgrep.parts.navigation.servers.pool import ServerPool
from flashgrep.search.snapshot import Snapshot


class ImportedIndexes(ProjectService):
    """The SCIP indexes that the user imported for a project."""

    def __init__(self, own_folder: Path) -> None:
        """``own_folder``: of the project, in the user's state folder."""
        self._file = own_folder / FILE

    def open_source(self, snapshot: Snapshot) -> ScipSource | None:
        """Return what they know; None: nothing was imported."""
        del snapshot
        table = ScipTable.open(self._file)
        if table is None:
            return None
        return ScipSource(table)


class ProjectServers(ProjectService):
    """The language servers of one project, out of those of all projects."""

    def __init__(self, pool: ServerPool | None, root: bytes) -> None:
        """``pool``: None if the user allows no language server."""
        self._pool = pool
        self._root = root

    def open_source(self, snapshot: Snapshot) -> LanguageServerSource | None:
        """Return what they know; None: none is allowed."""
        if self._pool is None:
            return None
        return LanguageServerSource(self._pool, snapshot)

    def close(self) -> None:
        """End them."""
        if self._pool is not None:
            self._pool.end_servers(self._root)


class LanguageServers(HostService):
    """The language servers of all projects."""

    def __init__(self, pool: ServerPool | None) -> None:
        self.pool = pool

    def rest(self) -> None:
        """End those that have been idle."""
        if self.pool is not None:
            self.pool.rest()

    def close(self) -> None:
        """End all."""
        if self.pool is not None:
            self.pool.close()


# A compiler wrote the imported indexes, and asking them costs no waiting: they are
# asked first.
IMPORTED_INDEXES: Final = ServiceKey[ImportedIndexes]("imported indexes")
PROJECT_SERVERS: Final = ServiceKey[ProjectServers]("language servers of a project")
LANGUAGE_SERVERS: Final = ServiceKey[LanguageServers]("language servers")
