"""A connection bound to a project reads the project's own repository: no pointer in the project leads it to another."""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from flashgrep.base.errors import Forbidden, NotFound, Unavailable
from flashgrep.parts.git import program
from flashgrep.parts.git.repository import blame
from flashgrep.parts.git.revisions import BOUND_REVISIONS
from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.support.git import commit, git
from tests.support.workspace import opened as opened_project
from tests.support.workspace import put

WORD = "secret_of_another"
QUESTIONS: tuple[tuple[str, dict[str, object]], ...] = (
    ("query", {"text": WORD, "mode": "literal", "rev": "HEAD"}),
    ("query", {"text": WORD, "mode": "literal", "rev": ":index"}),
    ("read_code", {"path": "secret.txt", "rev": "HEAD"}),
    ("list_files", {"rev": "HEAD"}),
    ("list_files", {"rev": ":index"}),
    ("glob", {"pattern": "*", "rev": "HEAD"}),
    ("list_revisions", {}),
    ("history", {}),
    ("blame", {"path": "secret.txt"}),
    ("changes", {"rev": "HEAD"}),
)
TOLD = ("secret", "theirs")
"""What only the other repository has: names of files, texts, names of branches and messages of commits."""


@pytest.fixture
def short() -> Iterator[Path]:
    """Return an empty folder whose path leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="fg") as folder:
        yield Path(folder)


@pytest.fixture
def victim(short: Path) -> Path:
    """Return another repository of the same user."""
    folder = short / "victim"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "theirs")
    put(folder, {"secret.txt": f"{WORD}\n".encode()})
    commit(folder, "theirs")
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def remove_git(root: Path) -> None:
    shutil.rmtree(root / ".git")


def by_file(root: Path, victim: Path) -> None:
    remove_git(root)
    write(root / ".git", f"gitdir: {victim}/.git\n")


def by_link(root: Path, victim: Path) -> None:
    remove_git(root)
    (root / ".git").symlink_to(victim / ".git")


def by_link_to_a_pointer(root: Path, victim: Path) -> None:
    remove_git(root)
    write(root / "pointer", f"gitdir: {victim}/.git\n")
    (root / ".git").symlink_to("pointer")


def by_common_folder(root: Path, victim: Path) -> None:
    write(root / ".git" / "commondir", f"{victim}/.git\n")
    shutil.copy(victim / ".git" / "HEAD", root / ".git" / "HEAD")


def by_made_up_work_tree(root: Path, victim: Path) -> None:
    remove_git(root)
    write(root / "own" / "commondir", f"{victim}/.git\n")
    write(root / "own" / "gitdir", f"{root}/.git\n")
    write(root / "own" / "HEAD", "ref: refs/heads/theirs\n")
    write(root / ".git", "gitdir: own\n")


def by_own_work_tree_setting(root: Path, victim: Path) -> None:
    """Make a folder inside the root that says what only one outside may say."""
    remove_git(root)
    shutil.copytree(
        victim / ".git",
        root / "own",
        symlinks=True,
        ignore=shutil.ignore_patterns("objects", "index", "logs"),
    )
    (root / "own" / "objects").symlink_to(victim / ".git" / "objects")
    git(root / "own", "config", "core.worktree", str(root))
    write(root / ".git", "gitdir: own\n")


def by_alternates(root: Path, victim: Path) -> None:
    write(root / ".git" / "objects" / "info" / "alternates", f"{victim}/.git/objects\n")
    head = git(victim, "rev-parse", "HEAD").decode()
    write(root / ".git" / "refs" / "heads" / "stolen", head)
    write(root / ".git" / "HEAD", "ref: refs/heads/stolen\n")


def by_alternates_inside(root: Path, victim: Path) -> None:
    write(root / ".git" / "objects" / "info" / "alternates", f"{root}/own\n")
    write(root / "own" / "info" / "alternates", f"{victim}/.git/objects\n")
    write(root / ".git" / "HEAD", git(victim, "rev-parse", "HEAD").decode())


def by_linked_objects(root: Path, victim: Path) -> None:
    shutil.rmtree(root / ".git" / "objects")
    (root / ".git" / "objects").symlink_to(victim / ".git" / "objects")
    write(root / ".git" / "HEAD", git(victim, "rev-parse", "HEAD").decode())


def by_linked_object_folders(root: Path, victim: Path) -> None:
    for folder in (victim / ".git" / "objects").glob("??"):
        target = root / ".git" / "objects" / folder.name
        shutil.rmtree(target, ignore_errors=True)
        target.symlink_to(folder)
    write(root / ".git" / "HEAD", git(victim, "rev-parse", "HEAD").decode())


def by_linked_refs_and_objects(root: Path, victim: Path) -> None:
    by_linked_object_folders(root, victim)
    shutil.rmtree(root / ".git" / "refs")
    (root / ".git" / "refs").symlink_to(victim / ".git" / "refs")
    write(root / ".git" / "HEAD", "ref: refs/heads/theirs\n")


def by_linked_index(root: Path, victim: Path) -> None:
    (root / ".git" / "index").unlink(missing_ok=True)
    (root / ".git" / "index").symlink_to(victim / ".git" / "index")


def by_bare_root(root: Path, victim: Path) -> None:
    remove_git(root)
    (root / "HEAD").symlink_to(victim / ".git" / "HEAD")
    (root / "objects").symlink_to(victim / ".git" / "objects")
    (root / "refs").symlink_to(victim / ".git" / "refs")


WAYS = (
    by_file, by_link, by_link_to_a_pointer, by_common_folder, by_made_up_work_tree, by_own_work_tree_setting,
    by_alternates, by_alternates_inside, by_linked_objects, by_linked_object_folders, by_linked_refs_and_objects,
    by_linked_index, by_bare_root,
)  # fmt: skip


def find_told(wire: Wire) -> list[tuple[str, str]]:
    """Return the answers that say something which only the other repository has."""
    answers = []
    for method, parameters in QUESTIONS:
        answer = wire.ask(method, **parameters)
        if "result" not in answer:
            assert answer["error"]["data"]["reason"] != "internal_error", answer
            continue
        shown = str(answer["result"])
        if any(word in shown for word in TOLD):
            answers.append((method, shown))
    return answers


@pytest.fixture
def bound(
    daemon: DaemonAtHand, project: MakeProject, opened: list[Wire]
) -> tuple[Path, Wire]:
    """Return a project, and a connection to its own socket."""
    root = project({"a.txt": "word\n"})
    commit(root, "ours")
    daemon.add(root)
    opened.append(daemon.wire("unix", root))
    return root, opened[-1]


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("lead", WAYS)
def test_no_pointer_in_a_project_leads_its_own_socket_to_another_repository(
    bound: tuple[Path, Wire],
    victim: Path,
    lead: Callable[[Path, Path], None],
    *,
    is_open: bool,
) -> None:
    root, wire = bound
    if is_open:  # git runs already
        assert wire.call("list_files", rev="HEAD")["files"] == ["a.txt"]
    lead(root, victim)
    assert find_told(wire) == []


@pytest.mark.parametrize("lead", [by_file, by_link, by_alternates])
def test_what_was_refused_is_explained(
    bound: tuple[Path, Wire], victim: Path, lead: Callable[[Path, Path], None]
) -> None:
    root, wire = bound
    lead(root, victim)
    error = wire.fail("list_files", rev="HEAD")
    assert error["data"]["reason"] == "repository_outside"
    assert "not bound" in error["data"]["suggestion"]


def test_pointers_that_change_all_the_time_never_lead_out(
    bound: tuple[Path, Wire], victim: Path
) -> None:
    root, wire = bound
    alternates = root / ".git" / "objects" / "info" / "alternates"
    git(root, "update-ref", "refs/heads/kept", "HEAD")
    head = git(victim, "rev-parse", "HEAD").decode().strip()
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            alternates.write_text(f"{victim}/.git/objects\n")
            alternates.unlink()

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(60):
            answer = wire.ask("list_files", rev=head)
            assert "result" not in answer, answer
    finally:
        ended.set()
        thread.join()


def test_a_terminal_reads_what_its_user_points_to(
    daemon: DaemonAtHand, bound: tuple[Path, Wire], victim: Path
) -> None:
    root, _ = bound
    by_file(root, victim)
    answer = daemon.run("query", WORD, "--rev", "HEAD", cwd=root)
    assert answer.returncode == 0, answer.stderr
    assert "secret.txt" in answer.stdout


def bind(daemon: DaemonAtHand, opened: list[Wire], root: Path) -> Wire:
    daemon.add(root)
    opened.append(daemon.wire("unix", root))
    return opened[-1]


def test_a_linked_work_tree_is_its_repositorys(
    daemon: DaemonAtHand, opened: list[Wire], victim: Path, short: Path
) -> None:
    tree = short / "tree"
    git(victim, "worktree", "add", "-q", "-b", "topic", str(tree))
    put(tree, {"own.txt": b"of the tree\n"})
    commit(tree)
    wire = bind(daemon, opened, tree)
    assert wire.call("list_files", rev="HEAD")["files"] == ["own.txt", "secret.txt"]
    assert wire.call("list_files", rev=":index")["files"] == ["own.txt", "secret.txt"]
    assert len(wire.call("history")["results"]) == 2
    assert wire.call("blame", path="own.txt")["results"]
    assert wire.call("changes", rev="theirs..HEAD")["results"]


def test_a_submodule_is_its_superprojects(
    daemon: DaemonAtHand, opened: list[Wire], victim: Path, short: Path
) -> None:
    outer = short / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(
        outer,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(victim),
        "sub",
    )
    commit(outer)
    wire = bind(daemon, opened, outer / "sub")
    assert wire.call("list_files", rev="HEAD")["files"] == ["secret.txt"]
    assert wire.call("query", text=WORD, mode="literal", rev="HEAD")["results"]
    # From the second work tree of the outer repository, too.
    tree = short / "outer tree"
    git(outer, "worktree", "add", "-q", "-b", "topic", str(tree))
    git(tree, "-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init")
    wire = bind(daemon, opened, tree / "sub")
    assert wire.call("list_files", rev="HEAD")["files"] == ["secret.txt"]


def test_a_separate_git_folder_is_read_if_it_names_the_work_tree(
    daemon: DaemonAtHand, opened: list[Wire], short: Path
) -> None:
    root = short / "root"
    root.mkdir()
    git(root, "init", "-q", "--separate-git-dir", str(short / "elsewhere"))
    put(root, {"a.txt": b"word\n"})
    commit(root)
    wire = bind(daemon, opened, root)
    git(root, "config", "--unset", "core.worktree", check=False)
    assert wire.fail("list_files", rev="HEAD")["data"]["reason"] == "repository_outside"
    git(root, "config", "core.worktree", str(root))
    assert wire.call("list_files", rev="HEAD")["files"] == ["a.txt"]


async def test_a_folder_below_the_top_has_its_part_of_the_repository(
    victim: Path,
) -> None:
    put(victim, {"part/b.txt": b"word\n"})
    commit(victim)
    async with opened_project(victim / "part", environ=dict(os.environ)) as workspace:
        view = await workspace.service(BOUND_REVISIONS).at("HEAD")
        assert list(view.files) == [b"b.txt"]
        ask = partial(blame, rev="HEAD", path=b"b.txt", lines=(1, 1))
        assert (await workspace.service(BOUND_REVISIONS).ask_repository(ask))[0]


def test_a_shared_clone_borrows_only_where_the_file_is_outside(
    daemon: DaemonAtHand, opened: list[Wire], victim: Path, short: Path
) -> None:
    clone = short / "clone"
    git(short, "clone", "-q", "-s", str(victim), str(clone))
    wire = bind(daemon, opened, clone)
    assert wire.fail("list_files", rev="HEAD")["data"]["reason"] == "repository_outside"
    # Of a work tree elsewhere, the file that names the other repository is out of
    # reach.
    tree = short / "tree"
    git(clone, "worktree", "add", "-q", "-b", "topic", str(tree))
    wire = bind(daemon, opened, tree)
    assert wire.call("list_files", rev="HEAD")["files"] == ["secret.txt"]
    git(clone, "repack", "-a", "-d", "-q")
    (clone / ".git" / "objects" / "info" / "alternates").unlink()
    wire = bind(daemon, opened, clone)
    assert wire.call("list_files", rev="HEAD")["files"] == ["secret.txt"]


@pytest.mark.parametrize("lead", WAYS)
async def test_without_landlock_no_pointer_and_no_link_leads_out(
    short: Path,
    victim: Path,
    lead: Callable[[Path, Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "is_available", lambda: False)
    root = short / "root"
    root.mkdir()
    git(root, "init", "-q")
    put(root, {"a.txt": b"word\n"})
    commit(root)
    async with opened_project(root, environ=dict(os.environ)) as workspace:
        revisions = workspace.service(BOUND_REVISIONS)
        assert list((await revisions.at("HEAD")).files) == [b"a.txt"]
        lead(root, victim)
        for rev in ("HEAD", ":index"):
            with pytest.raises((Forbidden, NotFound, Unavailable)):
                await revisions.at(rev)


async def test_without_landlock_a_link_inside_the_project_is_followed_and_circles_end(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "is_available", lambda: False)
    root = short / "root"
    root.mkdir()
    git(root, "init", "-q")
    put(root, {"a.txt": b"word\n"})
    commit(root)
    shutil.move(root / ".git" / "objects", root / "moved")
    (root / ".git" / "objects").symlink_to("../moved")
    (root / "moved" / "circle").symlink_to("../.git")
    async with opened_project(root, environ=dict(os.environ)) as workspace:
        assert b"a.txt" in (await workspace.service(BOUND_REVISIONS).at("HEAD")).files
