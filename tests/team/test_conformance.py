"""Every host and every view answers alike: a work tree, unsaved text, a revision, a team's repository."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints
from weakref import WeakSet

import pytest

from flashgrep.api.host import Host
from flashgrep.api.view import View
from flashgrep.base.config import Settings
from flashgrep.base.errors import Forbidden, NotFound, TooLarge
from flashgrep.base.model import Document
from flashgrep.base.registry import Call, Session
from flashgrep.files.buffers import Buffers
from flashgrep.files.finder import Window
from flashgrep.files.globs import GlobOptions, PathFilter
from flashgrep.files.read import SliceQuery
from flashgrep.methods.common import view_of
from flashgrep.parts.built_in import BUILT_IN, REGISTRY
from flashgrep.parts.team.server import make_registry
from flashgrep.parts.team.team_catalogue import ACCESS
from flashgrep.pattern import Pattern
from flashgrep.project.catalogue import Catalogue
from flashgrep.search.exact import Question
from flashgrep.search.snapshot import SearchStats
from tests.support.git import commit, git
from tests.team.conftest import Rig

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

FILES = {
    "notes.md": "weave at night\n",
    "src/loom.py": "def weave(thread):\n    return thread\n",
    "src/mill.py": "from src.loom import weave\n\n\ndef grind():\n    return weave(1)\n",
}
PATHS = sorted(name.encode() for name in FILES)
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("query", {"query": "weave", "order": "path"}),
    ("query", {"query": r"def \w+\(", "mode": "regex", "path": "src"}),
    ("list_files", {"query": "loom"}),
    ("glob", {"query": "**/*.py"}),
    ("get_slice", {"path": "src/loom.py", "start_line": 2, "end_line": 2}),
    ("read_code", {"symbol_name": "grind"}),
    ("get_symbol", {"symbol_name": "weave", "role": ["definition", "call"]}),
    ("outline", {"path": "src/mill.py"}),
    ("list_folder", {"path": "src"}),
    ("folds", {"path": "src/loom.py"}),
    ("definition", {"path": "src/mill.py", "line": 5, "column": 12}),
    ("references", {"path": "src/loom.py", "line": 1, "column": 5}),
)
PASSING = frozenset(
    {"coverage", "took_ms", "modified_unix", "stage", "generation", "options"}
)
"""Fields that tell which host or view answered, or when."""


@dataclass
class Asked:
    """A host, a connection to it, and the revision that is asked; None: the files as they are."""

    host: Host
    session: Session
    rev: str | None

    async def view(self) -> View:
        call = Call(self.host, self.session)
        project = await self.host.workspace(call, None)
        return await view_of(call, project, self.rev)

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        if self.rev is not None:
            params = {**params, "rev": self.rev}
        answer = await REGISTRY.get(method).call(Call(self.host, self.session), params)
        return drop_passing(answer)


def drop_passing(value: Any) -> Any:
    """Return an answer without the fields that depend on who answers."""
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if name not in PASSING}
        return {name: drop_passing(item) for name, item in kept.items()}
    if isinstance(value, list):
        return [drop_passing(item) for item in value]
    return value


Open = Callable[[str], Awaitable[Asked]]
ASKED = ("work tree", "unsaved text", "revision", "team's repository")


@pytest.fixture
async def open_asked(
    rig: Rig, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[Open]:
    """Return a function that opens a host by the name of what is asked."""
    del anyio_backend
    async with AsyncExitStack() as stack:

        async def ask_team() -> Asked:
            rig.make_repository("mill", dict(FILES))
            rig.sync()
            asked = rig.ask_as("ann")
            session = Session(projects=("mill",), notes={ACCESS: asked.find_access()})
            return Asked(asked.catalogue, session, None)

        async def ask_local(name: str) -> Asked:
            base = tmp_path / name.replace(" ", "-")
            root = base / "mill"
            root.mkdir(parents=True)
            git(root, "init", "-q", "-b", "main")
            for path, text in FILES.items():
                (root / path).parent.mkdir(exist_ok=True)
                (root / path).write_text(text)
            commit(root)
            catalogue = await stack.enter_async_context(
                Catalogue(
                    parts=BUILT_IN,
                    state_dir=base / "state",
                    settings=Settings(),
                    environ=os.environ,
                    indexes=False,
                )
            )
            await catalogue.open(str(root))
            session = Session(projects=(str(root),))
            if name == "revision":
                (root / "notes.md").write_text("unravel by day\n")
                return Asked(catalogue, session, "HEAD")
            if name == "unsaved text":
                loom = root / "src" / "loom.py"
                loom.write_text("")
                buffers = session.notes["buffers"] = Buffers(WeakSet())
                real = os.fsencode(loom)
                buffers.open((None, real), real, FILES["src/loom.py"], 1)
            return Asked(catalogue, session, None)

        async def open_by_name(name: str) -> Asked:
            if name.startswith("team"):
                return await ask_team()
            return await ask_local(name)

        yield open_by_name


@pytest.mark.parametrize("name", ASKED)
async def test_every_view_answers_the_same_questions(
    open_asked: Open, name: str
) -> None:
    asked = await open_asked(name)
    view = await asked.view()
    assert await view.refresh()
    assert view.paths() == PATHS
    assert view.paths(PathFilter(["*.py"], [])) == PATHS[1:]
    assert view.paths(part="LOOM") == [b"src/loom.py"]
    assert await view.resolve("src/loom.py") == b"src/loom.py"
    assert await view.resolve("src", folder=True) == b"src"
    for missing in ("src/none.py", "none"):
        with pytest.raises(NotFound):
            await view.resolve(missing)
    with pytest.raises((Forbidden, NotFound)):
        await view.resolve("../other")
    for path in PATHS:
        assert await view.read(path, 1000) == FILES[path.decode()].encode()
    with pytest.raises(TooLarge):
        await view.read(b"src/mill.py", 10)
    with pytest.raises(NotFound):
        await view.read(b"src/none.py", 1000)
    part = await view.read_slice(b"src/mill.py", SliceQuery(start_line=4, end_line=4))
    assert part["content"] == "def grind():\n"
    page = await view.find_files(GlobOptions(include=("**/*.md",)), Window(), None)
    assert [file.path for file in page.files] == [b"notes.md"]
    question = Question(pattern=Pattern(texts=("weave",)), limit=10)
    hits = [
        ("notes.md", 1),
        ("src/loom.py", 1),
        ("src/mill.py", 1),
        ("src/mill.py", 5),
    ]
    answer = await view.search(question)
    assert [(hit["file_path"], hit["start_line"]) for hit in answer.results] == hits
    answer, is_fresh = await view.search_fresh(question)
    assert is_fresh
    assert len(answer.results) == len(hits)
    assert await view.in_turn(lambda: 1) == 1
    document = await view.in_thread(lambda snapshot: snapshot.read(b"notes.md"))
    assert isinstance(document, Document)
    assert document.data == FILES["notes.md"].encode()
    coverage = view.coverage(SearchStats(complete=True), fresh=True, started=0)
    assert coverage["complete"]
    assert coverage["files_searched"] == len(PATHS)
    assert (view.revision_id is None) == (name in ASKED[:2])
    assert view.is_on_disk == (name == "work tree")
    assert view.list_recent(0, 10) <= set(PATHS)
    assert not view.stages
    assert view.project.name == "mill"


@pytest.mark.parametrize("name", ASKED)
async def test_every_host_is_asked_alike(open_asked: Open, name: str) -> None:
    asked = await open_asked(name)
    host, session = asked.host, asked.session
    call = Call(host, session)
    project = await host.workspace(call, None)
    assert project.name == "mill"
    assert [bound.name for bound in await host.open_bound(call)] == ["mill"]
    assert host.list_bound(session) == ["mill"]
    assert host.list_reachable(session) == ["mill"]
    (root,) = host.find_roots(session, "*")
    assert (await host.workspace(call, root)).name == "mill"
    assert await (await asked.view()).refresh()
    # A revision needs no listing of the work tree, which may not have ended.
    assert host.is_listed(root) or name == "revision"
    assert {info.name for info in host.list_projects()} <= {"mill"}
    assert {opened.name for opened in host.list_open()} <= {"mill"}
    with pytest.raises((NotFound, Forbidden)):
        await host.workspace(call, "no such project")
    with pytest.raises(Forbidden):
        host.find_file(session, None, b"/etc/passwd")
    assert set(host.buffers) <= {session.notes.get("buffers")}
    assert host.settings.query.max_tokens


@pytest.mark.parametrize("name", ASKED[1:])
async def test_methods_answer_alike_whatever_is_asked(
    open_asked: Open, name: str
) -> None:
    work_tree = await open_asked(ASKED[0])
    asked = await open_asked(name)
    for method, params in CALLS:
        expected = await work_tree.call(method, params)
        assert expected
        assert await asked.call(method, params) == expected, method


async def test_a_team_has_only_methods_that_ask_any_host(
    rig: Rig, anyio_backend: str
) -> None:
    del anyio_backend
    own = {"list_revisions", "stats", "history", "blame"}
    for handler in make_registry(rig.open_catalogue()):
        if handler.name not in own:
            declared = get_type_hints(REGISTRY.get(handler.name).run)
            assert declared["call"] == Call[Host], handler.name
