"""Confinement: whatever the path and whoever swaps links meanwhile, nothing outside the root is read or written."""

import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import FlashgrepError, Forbidden, InvalidParams, NotFound
from flashgrep.base.own_folders import PrivateFolders
from flashgrep.files.editor import Editor
from flashgrep.files.read import SliceQuery, read_slice
from flashgrep.files.root import Root, is_protected
from flashgrep.parts.edit import files, transfer
from flashgrep.parts.edit.edits import LineEdit
from flashgrep.parts.edit.files import ListQuery, WriteOptions, list_folder, stat_entry
from flashgrep.parts.edit.write import WriteRequest, write_file
from tests.edit.harness import root_at, state_of

SENTINEL = "nobody's business\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder beside the root, with a sentinel in it; the names make prefix tricks possible."""
    folder = tmp_path / "root-outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SENTINEL)
    return folder


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub/deep").mkdir(parents=True)
    (folder / "file.txt").write_text("file\n")
    (folder / "sub/file.txt").write_text("sub\n")
    return folder


@pytest.fixture
def editor(inside: Path) -> Iterator[Editor]:
    with root_at(inside) as root:
        yield Editor(root)


def read(editor: Editor, path: str | bytes) -> str:
    return read_slice(editor, os.fsencode(path), SliceQuery())["content"]


def write(editor: Editor, path: str | bytes) -> None:
    write_file(editor, WriteRequest(os.fsencode(path), LineEdit(1, 1, "written")))


def removing(editor: Editor, path: bytes) -> object:
    return transfer.remove(editor, path, recursive=True, force=True, dry_run=False)


EVERY_WAY: list[Callable[[Editor, bytes], object]] = [
    read,
    write,
    files.read,
    stat_entry,
    removing,
    lambda editor, path: list_folder(editor, path, ListQuery()),
    lambda editor, path: files.write(
        editor, path, "w", WriteOptions(overwrite=True, parents=True)
    ),
    lambda editor, path: files.create(
        editor, path, WriteOptions(overwrite=True, parents=True), folder=False
    ),
    lambda editor, path: transfer.copy(
        editor, path, b"copied", WriteOptions(overwrite=True), recursive=True
    ),
    lambda editor, path: transfer.copy(
        editor, b"sub", path, WriteOptions(overwrite=True), recursive=True
    ),
    lambda editor, path: transfer.move(
        editor, path, b"moved", WriteOptions(overwrite=True)
    ),
    lambda editor, path: transfer.move(
        editor, b"sub", path, WriteOptions(overwrite=True)
    ),
]


@pytest.mark.parametrize("way", range(len(EVERY_WAY)))
@pytest.mark.parametrize(
    "path",
    [
        "../root-outside/secret.txt",
        "sub/../../root-outside/secret.txt",
        "./sub/deep/../../../root-outside/secret.txt",
        "/etc/passwd",
        "/proc/self/environ",
        "{outside}/secret.txt",
        "{inside}/../root-outside/secret.txt",
        "{inside}-outside/secret.txt",
        "..",
        "/",
    ],
)
def test_a_path_out_of_the_root_is_refused_by_every_method(
    editor: Editor, inside: Path, outside: Path, way: int, path: str
) -> None:
    with pytest.raises(Forbidden) as caught:
        EVERY_WAY[way](editor, os.fsencode(path.format(inside=inside, outside=outside)))
    assert caught.value.reason == "outside_root"
    assert (outside / "secret.txt").read_text() == SENTINEL


@pytest.mark.parametrize(
    "target",
    ["{outside}/secret.txt", "../root-outside/secret.txt", "/proc/self/cwd", "loop/.."],
)
def test_a_link_out_of_the_root_is_refused(
    editor: Editor, inside: Path, outside: Path, target: str
) -> None:
    (inside / "link").symlink_to(target.format(outside=outside))
    (inside / "loop").symlink_to("..")
    for way in (read, write):
        with pytest.raises(Forbidden):
            way(editor, "link")
    assert (outside / "secret.txt").read_text() == SENTINEL


def test_a_link_of_a_parent_folder_out_of_the_root_is_refused(
    editor: Editor, inside: Path, outside: Path
) -> None:
    (inside / "sub/link").symlink_to(outside, target_is_directory=True)
    for way in (read, write):
        with pytest.raises(Forbidden):
            way(editor, "sub/link/secret.txt")


@pytest.mark.parametrize(
    "target",
    ["sub/file.txt", "./sub/deep/../file.txt", "{inside}/sub/file.txt", "again"],
)
def test_a_link_that_stays_inside_is_followed(
    editor: Editor, inside: Path, target: str
) -> None:
    (inside / "again").symlink_to("sub/file.txt")
    (inside / "link").symlink_to(target.format(inside=inside))
    assert read(editor, "link") == "sub\n"
    write(editor, "link")
    assert (inside / "sub/file.txt").read_text() == "written\n"
    assert (inside / "link").is_symlink()


def test_an_absolute_path_inside_the_root_is_taken_as_relative(
    editor: Editor, inside: Path
) -> None:
    assert read(editor, f"{inside}/sub/../file.txt") == "file\n"


def test_a_root_reached_by_a_link_takes_both_spellings(
    inside: Path, tmp_path: Path
) -> None:
    (tmp_path / "alias").symlink_to(inside)
    with root_at(tmp_path / "alias") as root:
        for spelling in (tmp_path / "alias", inside):
            assert read(Editor(root), f"{spelling}/file.txt") == "file\n"


def test_links_in_a_circle_end(editor: Editor, inside: Path) -> None:
    (inside / "a").symlink_to("b")
    (inside / "b").symlink_to("a")
    with pytest.raises(NotFound):
        read(editor, "a")


@pytest.mark.parametrize("path", [b"", b"a\0b", b"sub\0/file.txt"])
def test_a_path_that_is_none_is_refused(editor: Editor, path: bytes) -> None:
    with pytest.raises(InvalidParams):
        read(editor, path)


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device"])
def test_what_is_no_file_never_blocks(editor: Editor, inside: Path, kind: str) -> None:
    path = inside / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    elif os.geteuid() == 0:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
    else:
        pytest.skip("only root makes devices")
    for way in (read, write):
        with pytest.raises(InvalidParams) as caught:
            way(editor, "odd")
        assert caught.value.reason == "not_a_file"


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".GIT",
        ".Git ",
        ".git.",
        ".git::$INDEX",
        ".g\u200cit",
        "git~1",
        ".FlashGrep",
        "sub/.git",
    ],
)
def test_a_protected_name_is_never_written(
    editor: Editor, inside: Path, name: str
) -> None:
    (inside / name).mkdir()
    (inside / name / "config").write_text("kept\n")
    ways: list[Callable[[], object]] = [
        lambda: write(editor, f"{name}/config"),
        lambda: files.write(
            editor, f"{name}/new".encode(), "x", WriteOptions(parents=True)
        ),
        lambda: files.create(
            editor, f"{name}/new/deep".encode(), WriteOptions(parents=True), folder=True
        ),
        lambda: removing(editor, f"{name}/config".encode()),
        lambda: removing(editor, name.encode()),
        lambda: transfer.move(editor, name.encode(), b"elsewhere", WriteOptions()),
        lambda: transfer.copy(
            editor,
            b"file.txt",
            f"{name}/config".encode(),
            WriteOptions(overwrite=True),
            recursive=False,
        ),
    ]
    for way in ways:
        with pytest.raises(Forbidden) as caught:
            way()
        assert caught.value.reason == "protected_path"
    assert [path.name for path in (inside / name).iterdir()] == ["config"]
    assert (inside / name / "config").read_text() == "kept\n"


def test_a_link_to_a_protected_folder_is_not_written_through(
    editor: Editor, inside: Path
) -> None:
    (inside / ".git").mkdir()
    (inside / ".git/config").write_text("kept\n")
    (inside / "innocent").symlink_to(".git")
    with pytest.raises(Forbidden):
        write(editor, "innocent/config")


def test_a_folder_with_a_repository_in_it_is_not_removed_or_moved_or_copied(
    editor: Editor, inside: Path
) -> None:
    (inside / "sub/deep/.git").mkdir()
    ways: list[Callable[[], object]] = [
        lambda: removing(editor, b"sub"),
        lambda: transfer.move(editor, b"sub", b"new", WriteOptions()),
        lambda: transfer.copy(editor, b"sub", b"new", WriteOptions(), recursive=True),
    ]
    for way in ways:
        with pytest.raises(Forbidden):
            way()
    assert (inside / "sub/deep/.git").is_dir()
    assert not (inside / "new").exists()


@pytest.mark.parametrize(
    "name", [b".gitignore", b".github", b"git", b".flashgrep.example", b"a~1", b"\xff"]
)
def test_names_that_only_look_alike_are_written(name: bytes) -> None:
    assert not is_protected(name)


def test_a_hard_link_to_a_protected_file_leaves_it_as_it_is(
    editor: Editor, inside: Path
) -> None:
    (inside / ".git").mkdir()
    (inside / ".git/config").write_text("kept\n")
    (inside / "link").hardlink_to(inside / ".git/config")
    write(editor, "link")
    files.write(editor, b"link", "more", WriteOptions(overwrite=True), append=True)
    assert (inside / ".git/config").read_text() == "kept\n"


def test_a_folder_of_ours_in_the_project_that_is_a_link_is_not_entered(
    editor: Editor, inside: Path, outside: Path
) -> None:
    (inside / ".flashgrep").symlink_to(outside, target_is_directory=True)
    write(editor, "file.txt")
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]


def test_a_name_that_is_not_utf8_is_found_as_it_is_shown(
    editor: Editor, inside: Path
) -> None:
    (inside / os.fsdecode(b"caf\xe9.txt")).write_text("coffee\n")
    shown = read_slice(editor, b"caf\xe9.txt", SliceQuery())
    assert (shown["file_path"], shown["content"]) == ("caf\ufffd.txt", "coffee\n")
    assert "file_path_bytes" in shown
    assert read(editor, "caf\ufffd.txt") == "coffee\n"


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(["..", ".", "", "sub", "deep", "file.txt", "up", "in", "x"]),
        min_size=1,
        max_size=7,
    )
)
def test_every_path_resolves_as_the_kernel_does_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    top = tmp_path_factory.mktemp("walk")
    inside = top / "root"
    (inside / "sub/deep").mkdir(parents=True)
    (inside / "sub/file.txt").write_text("sub\n")
    (inside / "sub/up").symlink_to("../..")
    (inside / "sub/in").symlink_to("deep/../../sub")
    path = "/".join(parts)
    real = os.path.realpath(inside / path)
    with root_at(inside) as root:
        where = walked(root, path or ".")
    if isinstance(where, FlashgrepError):
        leaves = path.startswith("/") or {"..", "up", "in"} & set(parts)
        assert leaves or isinstance(where, NotFound)
    else:
        assert str(inside / where) == real
        assert (inside / where).is_relative_to(inside)


def walked(root: Root, path: str) -> Path | FlashgrepError:
    try:
        with root.place(path.encode()) as place:
            return Path(os.fsdecode(place.path))
    except FlashgrepError as error:
        return error


SWAPPER = """
import itertools, os
print("ready", flush=True)
for turn in itertools.count():
    for name, honest, evil in (("swap", "real", "out"), ("swap.txt", "real/secret.txt", "out.txt")):
        os.symlink(evil if turn % 2 else honest, "next")
        os.rename("next", name)
    for name in ("real", "out"):
        os.rename(name, "turn")
        os.rename("turn", name)
"""
RACED = [
    "swap/secret.txt",
    "swap.txt",
    "turn/secret.txt",
    "real/secret.txt",
    "out/secret.txt",
]


@contextmanager
def swapping(folder: Path) -> Iterator[None]:
    """Swap a folder, a file and links for links out of the root as fast as can be."""
    with subprocess.Popen(
        [sys.executable, "-c", SWAPPER], cwd=folder, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def race(editor: Editor, path: bytes, *, write: bool) -> bool:
    """Read or write once; returns whether it was let through."""
    try:
        if write:
            files.write(editor, path, "inside\n", WriteOptions(overwrite=True))
        else:
            assert read(editor, path) != SENTINEL
    except FlashgrepError:
        return False
    return True


@pytest.mark.slow
def test_a_thousand_races_of_links_never_reach_the_sentinel(
    editor: Editor, inside: Path, outside: Path
) -> None:
    (inside / "real").mkdir()
    (inside / "real/secret.txt").write_text("inside\n")
    (inside / "out").symlink_to(outside)
    (inside / "out.txt").symlink_to(outside / "secret.txt")
    draw = random.Random(5)
    with swapping(inside):
        passed = [
            race(editor, draw.choice(RACED).encode(), write=draw.random() < 0.3)
            for _ in range(1000)
        ]
    assert (outside / "secret.txt").read_text() == SENTINEL
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert 50 < sum(passed) < 950


def test_a_private_folder_made_or_moved_while_the_root_is_open_is_known_at_once(
    tmp_path: Path,
) -> None:
    older, own = tmp_path / "older", tmp_path / "own"
    older.mkdir()
    for folder in (tmp_path, older):
        (folder / "token").write_text("secret")
    with Root(
        os.fsencode(tmp_path),
        os.fsencode(state_of(tmp_path)),
        PrivateFolders([str(own)]),
    ) as root:

        def is_refused(path: str) -> bool:
            try:
                os.close(root.open_file(os.fsencode(path))[0])
            except Forbidden:
                return True
            return False

        assert not is_refused("older/token")  # what is private has been looked at
        own.mkdir()
        (own / "token").write_text("secret")
        assert is_refused("own/token")
        own.rename(tmp_path / "former")
        older.rename(own)
        assert is_refused("own/token")
        assert not is_refused("former/token")
        assert not is_refused("token")
