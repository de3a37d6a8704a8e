"""Questions about all libraries that a project names: which they are, what they find, and what is stored for them."""

import base64
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashgrep.base.own_folders import INDEX, library_owner, store_folder
from flashgrep.base.paths import bundled_ripgrep
from tests.conftest import BOUND, DaemonAtHand, MakeProject, Wire
from tests.libraries.library_trees import LOOMS, PACKAGES, USER, write_tree

NODE: dict[str, str | bytes] = {
    "package.json": "{}",
    "node_modules/yarns/package.json": '{"name": "yarns", "version": "5.1.0", "main": "spin.js"}',
    "node_modules/yarns/spin.js": "exports.spin = function spin(yarn) {\n  return weave(yarn);\n};\n",
    "node_modules/.pnpm/reels@7.0.0/node_modules/reels/package.json": '{"name": "reels", "version": "7.0.0"}',
    "node_modules/.pnpm/reels@7.0.0/node_modules/reels/index.js": "function reel() { return 'weave'; }\n",
}
GO_CACHE: dict[str, str | bytes] = {
    "example.org/warp@v1.2.0/warp.go": "package warp\n\nfunc Weave() int { return 1 }\n",
    "example.org/warp@v1.3.0/warp.go": "package warp\n\nfunc Weave() int { return 2 }\n",
    "example.org/weft@v0.1.0/weft.go": "package weft\n\nfunc Weave() int { return 3 }\n",
    "cache/download/weave.txt": "Weave\n",
}
CRATES: dict[str, str | bytes] = {
    "dyes-1.0.0/src/lib.rs": "pub fn weave_dye() {}\n",
    "dyes-2.0.0/src/lib.rs": "pub fn weave_dye() {}\n",
    "dyes-1.0.0/.gitignore": "src\n",
}
LOCK = '[[package]]\nname = "dyes"\nversion = "{}"\n'


def go_mod(*modules: str) -> str:
    """Return a ``go.mod`` that requires modules."""
    lines = "".join(f"\t{module}\n" for module in modules)
    return f"module here\n\nrequire (\n{lines})\n"


@pytest.fixture
def home(daemon: DaemonAtHand) -> Path:
    """Return the user's home, with caches of libraries."""
    home = Path(daemon.environ["HOME"])
    write_tree(home / "go/pkg/mod", GO_CACHE)
    write_tree(home / ".cargo/registry/src/index-1", CRATES)
    return home


@pytest.fixture
def root(project: MakeProject, home: Path) -> Path:
    """Return a project that uses libraries of four tools, and ignores them."""
    assert home
    return project(
        {
            **LOOMS,
            **NODE,
            "main.py": USER,
            "weave.py": "def weave(): ...\n",
            ".gitignore": "node_modules\n.venv\n",
            ".venv/.gitignore": "*\n",
            "services/api/go.mod": go_mod("example.org/warp v1.2.0"),
            "native/Cargo.lock": LOCK.format("1.0.0"),
        }
    )


def places(answer: Any) -> set[tuple[str, str]]:
    """Return the libraries and names of the files of an answer."""
    return {
        (hit.get("library", ""), Path(hit["file_path"]).name)
        for hit in answer["results"]
    }


def ask_until(
    wire: Wire, method: str, is_done: Callable[[Any], bool], **params: Any
) -> Any:
    """Ask until an answer is as it will be once the background work is done; each question is a wait by itself."""
    end = time.monotonic() + BOUND
    while True:
        answer = wire.ask(method, **params)
        if "result" in answer and is_done(answer["result"]):
            return answer["result"]
        assert time.monotonic() < end, answer


def is_ready(answer: Any) -> bool:
    """Return whether everything is indexed."""
    return bool(answer["coverage"]["stage"] == "ready")


def is_complete(answer: Any) -> bool:
    """Return whether nothing is missing in an answer by meaning."""
    return bool(answer["coverage"]["complete"])


def stored(daemon: DaemonAtHand) -> dict[str, int]:
    """Return the folders of libraries that are stored, with their numbers of files."""
    with closing(daemon.wire("unix")) as wire:
        stores = wire.call("$/stores")["stores"]
    owner = library_owner(Path(daemon.paths.cache)).decode()
    for store in stores:
        if store["owner"] == owner:
            return {place["root"]: place["files"] for place in store["projects"]}
    return {}


def find_index(daemon: DaemonAtHand) -> Path:
    """Return the database of the store of libraries."""
    cache = Path(daemon.paths.cache)
    return store_folder(cache, b"", library_owner(cache)) / INDEX


def test_all_libraries_are_searched_and_named(
    connect: Callable[..., Wire], root: Path
) -> None:
    wire = connect(root)
    answer = wire.call("query", query="weave", case="insensitive", libraries=True)
    assert places(answer) == {
        ("py_looms@2.1", "__init__.py"),
        ("py_looms@2.1", "frames.py"),
        ("yarns@5.1.0", "spin.js"),
        ("reels@7.0.0", "index.js"),
        ("example.org/warp@v1.2.0", "warp.go"),
        ("dyes@1.0.0", "lib.rs"),
    }
    assert all(Path(hit["file_path"]).is_file() for hit in answer["results"])
    assert answer["coverage"]["complete"]
    own = wire.call("query", query="weave", mode="literal")
    assert places(own) == {("", "main.py"), ("", "weave.py")}


def test_libraries_below_a_folder_whose_name_is_no_text_are_named(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9")
    write_tree(root, {**LOOMS, "main.py": USER, ".git/HEAD": "ref: refs/heads/main\n"})
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as wire:
        answer = wire.call("query", query="weave", libraries=True)
    libraries = {hit.get("library") for hit in answer["results"]}
    assert libraries == {"py_looms@2.1"}
    paths = {base64.b64decode(hit["file_path_bytes"]) for hit in answer["results"]}
    assert all(map(os.path.isfile, paths))


def test_symbols_texts_and_chunks_of_libraries_are_reached(
    connect: Callable[..., Wire], root: Path
) -> None:
    wire = connect(root)
    symbols = wire.call("get_symbol", symbol_name="weave", role=["definition"], libraries=True)  # fmt: skip
    assert places(symbols) == {("py_looms@2.1", "frames.py")}
    path = symbols["results"][0]["file_path"]
    text = wire.call("read_code", symbol_name="Loom.turn", libraries=True)
    assert "Turn once." in text["content"]
    assert (text["library"], text["file_path"]) == ("py_looms@2.1", path)
    for named in (path, "looms/frames.py"):
        text = wire.call("read_code", path=named, libraries=True)
        assert text["content"].startswith("class Loom")
        assert (text["library"], text["file_path"]) == ("py_looms@2.1", path)
    code = ask_until(
        wire, "search_code", is_complete, query="turn the yarn once", libraries=True
    )
    assert ("py_looms@2.1", "frames.py") in places(code)
    assert code["files"][0]["file_path"] == path
    code = ask_until(
        wire, "search_code", is_complete, query="turn yarn", library="looms"
    )
    assert {hit["file_path"] for hit in code["results"]} == {"frames.py", "__init__.py"}


def test_a_project_gets_the_versions_it_names_of_what_others_use_too(
    daemon: DaemonAtHand, project: MakeProject, home: Path
) -> None:
    assert home
    roots = [
        project({"go.mod": go_mod(*modules), "Cargo.lock": LOCK.format(version)})
        for modules, version in (
            (["example.org/warp v1.2.0"], "1.0.0"),
            (["example.org/warp v1.3.0", "example.org/weft v0.1.0"], "2.0.0"),
        )
    ]
    expected = [
        {("example.org/warp@v1.2.0", "warp.go"), ("dyes@1.0.0", "lib.rs")},
        {
            ("example.org/warp@v1.3.0", "warp.go"),
            ("example.org/weft@v0.1.0", "weft.go"),
            ("dyes@2.0.0", "lib.rs"),
        },
    ]
    for _ in range(2):
        for root, found in zip(roots, expected, strict=True):
            daemon.add(root)
            with closing(daemon.wire("unix", root)) as wire:
                question = {"query": "(?i)weave", "mode": "regex", "libraries": True}
                assert places(wire.call("query", **question)) == found
                name = "Weave"
                symbols = wire.call("get_symbol", symbol_name=name, libraries=True)
                assert places(symbols) == {
                    place for place in found if place[1] == "warp.go" or place[1] == "weft.go"
                }  # fmt: skip
    with closing(daemon.wire("unix", roots[0])) as wire:
        text = wire.call("read_code", symbol_name="Weave", libraries=True)
        assert "return 1" in text["content"]
        other = "example.org/weft@v0.1.0/weft.go"
        error = wire.fail("read_code", path=other, libraries=True)
        assert error["data"]["reason"] == "library_not_found"


@pytest.mark.parametrize(
    "manifest",
    [
        {"go.mod": go_mod("example.org/warp v1.2.0/../../..", "../.. v1", "a.b/../../.. v1.0.0")},
        {"go.mod": go_mod("example.org v1.0.0/..") + "replace a.b/c => ../../../etc v1.0.0\n"},
        {"Cargo.lock": LOCK.format("..") + '[[package]]\nname = "../.."\nversion = "1"\n'},
        {"package.json": '{"dependencies": {"../..": "1"}}'},
        {".venv/pyvenv.cfg": "home = /etc\nversion = ../../..\n"},
    ],
)  # fmt: skip
def test_a_hostile_manifest_reaches_nothing(
    daemon: DaemonAtHand, project: MakeProject, home: Path, manifest: dict[str, str | bytes]
) -> None:  # fmt: skip
    write_tree(home, {"go/pkg/secret.txt": "weave\n", ".cargo/secret.txt": "weave\n"})
    root = project(manifest)
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as wire:
        error = wire.fail("query", query="weave", libraries=True)
        assert error["data"]["reason"] == "library_not_found"


def test_links_of_a_project_to_folders_elsewhere_lead_to_no_libraries(
    daemon: DaemonAtHand, project: MakeProject, tmp_path: Path
) -> None:
    write_tree(tmp_path, {"node_modules/x/index.js": "weave\n", "v/a.go": "weave\n"})
    root = project({"package.json": "{}", "go.mod": go_mod("a.b/c v1.0.0")})
    (root / "node_modules").symlink_to(tmp_path / "node_modules")
    (root / "vendor").symlink_to(tmp_path / "v")
    (root / ".venv").symlink_to(tmp_path)
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as wire:
        error = wire.fail("query", query="weave", libraries=True)
        assert error["data"]["reason"] == "library_not_found"


def test_libraries_are_not_asked_together_with_something_else(
    connect: Callable[..., Wire], root: Path
) -> None:
    wire = connect(root)
    for other in ({"library": "looms"}, {"rev": "HEAD"}, {"projects": [str(root)]}):
        error = wire.fail("query", query="x", libraries=True, **other)
        assert error["data"]["incompatible"] == ["libraries", *other]


PIECES = ("weave", "def ", "yarn", "Loom", "return", "\\w+\\(", "e", "[a-f]", ".", "$", "^", " ")  # fmt: skip


@pytest.fixture(scope="module")
def searched(daemon: DaemonAtHand) -> Iterator[tuple[Wire, Path]]:
    """Return a project with libraries that are indexed, and a connection to it."""
    root = Path(daemon.environ["HOME"]) / "searched"
    write_tree(root, {**LOOMS, **NODE, ".git/HEAD": "ref: refs/heads/main\n"})
    write_tree(root, {f"{PACKAGES}/dull{n}.py": f"x = {n}\n" for n in range(40)})
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as wire:
        ask_until(wire, "query", is_ready, query="weave", libraries=True)
        yield wire, root


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=3))
def test_lines_of_libraries_are_those_of_ripgrep(
    searched: tuple[Wire, Path], pieces: list[str]
) -> None:
    wire, root = searched
    pattern = "".join(pieces)
    folders = [root / PACKAGES, root / "node_modules", root / "node_modules/.pnpm"]
    flags = ["--no-ignore", "--no-heading", "--line-number", "--case-sensitive"]
    command = [str(bundled_ripgrep()), *flags, "-e", pattern, *map(str, folders)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    question = {"query": pattern, "mode": "regex", "case": "sensitive", "limit": 10_000}
    answer = wire.call("query", libraries=True, max_tokens=1_000_000, **question)
    expected = {tuple(line.split(":", 2)[:2]) for line in run.stdout.splitlines()}
    hits = answer["results"]
    lines = [(hit["file_path"], str(hit["start_line"])) for hit in hits]
    assert sorted(lines) == sorted(expected)


def test_pages_of_libraries_have_each_hit_once(searched: tuple[Wire, Path]) -> None:
    wire, _ = searched
    question = {"query": "e", "mode": "literal", "libraries": True}
    whole = wire.call("query", limit=1000, max_tokens=100_000, **question)
    hits = list[Any]()
    cursor = None
    while True:
        page = wire.call("query", limit=3, cursor=cursor, **question)
        hits += page["results"]
        cursor = page["next"]
        if cursor is None:
            break
    assert hits == whole["results"]


def test_two_projects_store_a_library_once_and_one_removed_leaves_the_other(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    cold_daemon.start()
    roots = [project({**LOOMS, "main.py": USER}) for _ in range(2)]
    for root in roots:
        cold_daemon.add(root)
        with closing(cold_daemon.wire("unix", root)) as wire:
            ask_until(wire, "query", is_ready, query="weave", libraries=True)
    folders = [str(root / PACKAGES) for root in roots]
    assert set(stored(cold_daemon)) == set(folders)
    index = find_index(cold_daemon)
    with closing(sqlite3.connect(f"file:{index}?mode=ro", uri=True)) as connection:
        (texts,) = connection.execute("SELECT count(*) FROM text").fetchone()
    contents = {data for path, data in LOOMS.items() if PACKAGES in path}
    assert texts == len(contents)
    listed = cold_daemon.run("store", "list").stdout
    assert folders[0] in listed
    assert cold_daemon.run("projects", "remove", str(roots[0])).returncode == 0
    assert set(stored(cold_daemon)) == {folders[1]}
    with closing(cold_daemon.wire("unix", roots[1])) as wire:
        answer = wire.call("query", query="weave", libraries=True)
        assert ("py_looms@2.1", "frames.py") in places(answer)
    # A project whose folder is gone uses nothing, and its environment is gone as well.
    shutil.rmtree(roots[1])
    assert cold_daemon.run("store", "clean").returncode == 0
    assert stored(cold_daemon) == {}


def test_a_library_reinstalled_at_another_version_is_found_as_it_is(
    connect: Callable[..., Wire], root: Path
) -> None:
    wire = connect(root)
    question = {"symbol_name": "turn", "role": ["definition"], "libraries": True}
    ask_until(wire, "get_symbol", is_ready, **question)
    packages = root / PACKAGES
    shutil.rmtree(packages / "looms")
    (packages / "py_looms-2.1.dist-info").rename(packages / "py_looms-3.0.dist-info")
    write_tree(packages, {"looms/wheels.py": "def turn(): ...\n"})
    assert places(wire.call("get_symbol", **question)) == {("py_looms@3.0", "wheels.py")}  # fmt: skip
    ready = ask_until(wire, "get_symbol", is_ready, **question)
    assert places(ready) == {("py_looms@3.0", "wheels.py")}


def test_an_indexer_killed_at_libraries_is_started_again(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    many = {f"{PACKAGES}/looms/part{n}.py": f"def part{n}(): ...\n" * 5 for n in range(400)}  # fmt: skip
    root = project({**LOOMS, **many, "main.py": USER})
    cold_daemon.start()
    cold_daemon.add(root)
    with closing(cold_daemon.wire("unix", root)) as wire:
        question = {"query": "def part7(", "mode": "literal", "libraries": True}
        first = wire.call("query", limit=100, **question)
        assert first["total"] == 5
        killed = False
        end = time.monotonic() + BOUND
        while not killed and time.monotonic() < end:
            for pid in list_indexers(find_index(cold_daemon)):
                os.kill(pid, signal.SIGKILL)
                killed = True
            assert wire.call("query", limit=100, **question)["total"] == 5
        assert killed
        ready = ask_until(wire, "query", is_ready, limit=100, **question)
        assert ready["results"] == first["results"]


def list_indexers(index: Path) -> Iterator[int]:
    """Yield the numbers of processes that write an index."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            if b"flashgrep.indexer" in command and os.fsencode(index) in command:
                yield int(folder.name)
