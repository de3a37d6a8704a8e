"""A team's store in a real PostgreSQL: one server for a run of tests, an empty database for each or for a module."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.config import Settings
from flashgrep.base.registry import Call, Session
from flashgrep.parts.built_in import REGISTRY
from flashgrep.parts.team import access, migrations
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.jobs import Team
from flashgrep.parts.team.store_connection import Store
from flashgrep.parts.team.team_catalogue import ACCESS, Access, TeamCatalogue
from tests.support.git import commit, git
from tests.support.postgres import Server, run_server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with run_server() as running:
        yield running


@pytest.fixture
def dsn(server: Server) -> str:
    return server.make_database("team")


@dataclass
class Asked:
    """The store as seen by one subject, in this process."""

    catalogue: TeamCatalogue
    token: str

    def find_access(self) -> Access:
        return self.catalogue.find_access(
            hashlib.sha256(self.token.encode()).hexdigest()
        )

    async def call(self, method: str, **params: Any) -> Any:
        session = Session(notes={ACCESS: self.find_access()})
        return await REGISTRY.get(method).call(Call(self.catalogue, session), params)


@dataclass
class Rig:
    """A store with its workers and clients."""

    dsn: str
    team: Team
    folder: Path
    catalogues: list[TeamCatalogue]

    def make_repository(self, name: str, files: dict[str, str | bytes]) -> Path:
        """Create a work tree with one commit, and add a bare clone of it to the store."""
        root = self.folder / "trees" / name
        root.mkdir(parents=True)
        git(root, "init", "-q", "-b", "main")
        self.write(root, files)
        bare = self.folder / "bare" / f"{name}.git"
        bare.parent.mkdir(parents=True, exist_ok=True)
        git(self.folder, "clone", "-q", "--mirror", str(root), str(bare))
        self.team.add(str(bare), name)
        return root

    def write(self, root: Path, files: dict[str, str | bytes]) -> str:
        """Write files, commit them, and return the commit."""
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode() if isinstance(text, str) else text)
        return commit(root)

    def push(self, root: Path) -> None:
        """Push a work tree to its bare clone."""
        git(
            self.folder / "bare" / f"{root.name}.git",
            "fetch",
            "-q",
            "--prune",
            "origin",
        )

    def sync(self) -> int:
        """Run all due jobs."""
        self.team.request()
        return self.team.work(lambda _what: None)

    def ask_as(self, subject: str, repositories: list[str] | None = None) -> Asked:
        """Return the store as seen by a subject with access to these repositories; None: all."""
        with closing(connect(self.dsn)) as connection:
            access.allow(connection, subject, repositories)
            token = access.make_token(connection, subject)
        return Asked(self.open_catalogue(), token)

    def open_catalogue(self) -> TeamCatalogue:
        """Return a new catalogue, like that of another process."""
        store = Store(self.dsn)
        store.open()
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        self.catalogues.append(TeamCatalogue(store, Settings(), empty, os.environ))
        return self.catalogues[-1]

    def close(self) -> None:
        """Close the open catalogues."""
        while self.catalogues:
            self.catalogues.pop().close()


def set_up(dsn: str, folder: Path, shards: dict[str, str | None] | None = None) -> Rig:
    """Create the tables of a store."""
    with closing(connect(dsn)) as connection:
        migrations.migrate(connection, shards or {})
    return Rig(dsn, Team(dsn, folder / "cache", os.environ, 1), folder, [])


@contextmanager
def lend(rig: Rig) -> Iterator[Rig]:
    """Yield a module's store to one test, and reset everything but the repositories afterwards."""
    yield rig
    rig.close()
    with closing(connect(rig.dsn)) as connection:
        connection.execute(
            "TRUNCATE flashgrep.token, flashgrep.member, flashgrep.permission, flashgrep.audit, flashgrep.job"
        )


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(dsn: str, shards: dict[str, str | None] | None = None) -> Rig:
        made.append(set_up(dsn, tmp_path, shards))
        return made[-1]

    yield make
    for rig in made:
        rig.close()


@pytest.fixture(scope="module")
def module_rig(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """Return an empty store, which the module fills once for all its tests."""
    return set_up(server.make_database("team_module"), tmp_path_factory.mktemp("team"))


@pytest.fixture
def rig(dsn: str, make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(dsn)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
