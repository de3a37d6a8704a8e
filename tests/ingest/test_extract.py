"""Text comes out of files as ripgrep searches it, and nothing on a disk can block or fool the reader."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.base.model import Document, FileStat, Skipped
from flashgrep.files.extract import BLOCK, extract, read_file
from flashgrep.files.openat import RootFiles, RootFolder

RG = (
    shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which("rg") or "rg"
)
MARKS = {
    "": b"",
    "utf-8-sig": b"\xef\xbb\xbf",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
}


def below(root: bytes) -> RootFiles:
    return RootFiles(RootFolder(root))


def searched_by_ripgrep(raw: bytes) -> bytes:
    """Return every line ripgrep finds in a file of this content that it comes by itself."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "file").write_bytes(raw)
        # Of each line its beginning alone: the empty pattern has one at each character.
        command = [RG, "--no-config", "--json", "^", "."]
        answer = subprocess.run(
            command, cwd=folder, capture_output=True, check=False
        ).stdout
    found = [json.loads(line) for line in answer.splitlines()]
    lines = [event["data"]["lines"] for event in found if event["type"] == "match"]
    return b"".join(
        line["text"].encode() if "text" in line else base64.b64decode(line["bytes"])
        for line in lines
    )


def text_of(raw: bytes) -> bytes:
    found = extract(raw)
    return found.data if isinstance(found, Document) else b""


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(alphabet="ab\n\0\u00e9\u20ac\U0001f600\r", max_size=12),
    encoding=st.sampled_from(sorted(MARKS)),
)
def test_small_files_are_read_as_ripgrep_reads_them(text: str, encoding: str) -> None:
    raw = MARKS[encoding] + text.encode(encoding.removesuffix("-sig") or "utf-8")
    assert text_of(raw) == searched_by_ripgrep(raw)


@settings(max_examples=40, deadline=None)
@given(
    raw=st.binary(max_size=8)
    | st.binary(max_size=12).map(lambda tail: b"\xff\xfe" + tail)
)
def test_broken_encodings_are_read_as_ripgrep_reads_them(raw: bytes) -> None:
    assert text_of(raw) == searched_by_ripgrep(raw)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from([0, 1, 2, 39, 1000, 30_000, 65_535, 65_536, 150_000]),
        min_size=1,
        max_size=8,
    ),
    short=st.sampled_from([0, 1, 700, 9000]),
    nul=st.floats(0, 1),
    encoding=st.sampled_from(["", "utf-8-sig", "utf-16-le"]),
)
def test_a_late_nul_ends_the_search_where_ripgrep_ends_it(
    lines: list[int], short: int, nul: float, encoding: str
) -> None:
    text = bytearray(
        b"seven b\n" * short + b"\n".join(b"x" * length for length in lines) + b"\n"
    )
    text[int(nul * (len(text) - 1))] = 0
    raw = MARKS[encoding] + bytes(text).decode().encode(
        encoding.removesuffix("-sig") or "utf-8"
    )
    assert text_of(raw) == searched_by_ripgrep(raw)


def test_a_nul_in_the_first_block_makes_a_file_binary() -> None:
    assert extract(b"hello\n\0") == Skipped("binary")
    assert extract(b"x" * (BLOCK - 1) + b"\0") == Skipped("binary")
    assert extract(b"xxx\n" * (BLOCK // 4) + b"\0") == Document(
        b"xxx\n" * (BLOCK // 4), binary_at=BLOCK
    )


@pytest.mark.parametrize(
    ("raw", "document"),
    [
        (b"", Document(b"")),
        (b"abc", Document(b"abc")),
        ("\u00e9\n".encode(), Document("\u00e9\n".encode())),
        (b"caf\xe9\r\n", Document(b"caf\xe9\r\n", "latin-1")),
        (b"\xef\xbb\xbfabc", Document(b"abc", "utf-8-sig")),
        (
            "\ufeffa\u20ac\n".encode("utf-16-le"),
            Document("a\u20ac\n".encode(), "utf-16-le"),
        ),
        (
            "\ufeffa\U0001f600".encode("utf-16-be"),
            Document("a\U0001f600".encode(), "utf-16-be"),
        ),
        (b"\xff\xfea\0\0\xd8b\0c", Document("a\ufffdb\ufffd".encode(), "utf-16-le")),
    ],
)
def test_the_encoding_is_recognized_by_the_bytes(
    raw: bytes, document: Document
) -> None:
    assert extract(raw) == document


@pytest.fixture
def root(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK])
def test_a_file_of_any_size_is_read_whole_with_its_version(
    tmp_path: Path, root: bytes, size: int
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * size)
    found = file.stat()
    expected = FileStat(size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    assert read_file(below(root), b"file", None) == (expected, Document(b"x" * size))


def test_a_file_that_says_it_is_empty_is_read_to_its_end() -> None:
    stat, found = read_file(below(b"/proc/self"), b"status", None)
    assert stat.size == 0
    assert isinstance(found, Document)
    assert b"VmRSS" in found.data


def test_a_file_over_the_limit_is_declined_and_one_at_it_is_read(
    tmp_path: Path, root: bytes
) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10)
    assert read_file(below(root), b"file", 9)[1] == Skipped("too_large", "10 bytes")
    assert read_file(below(root), b"file", 10)[1] == Document(b"x" * 10)


def test_a_large_binary_file_is_left_after_its_first_block(
    tmp_path: Path, root: bytes
) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 40)  # a hole of a terabyte, which nobody could read
    assert read_file(below(root), b"file", None)[1] == Skipped("binary")


@pytest.mark.timeout(10)
def test_fifos_devices_folders_sockets_and_links_are_no_files(
    tmp_path: Path, root: bytes
) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "target").write_text("secret")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
        for name in (b"fifo", b"folder", b"link", b"dangling", b"socket"):
            assert read_file(below(root), name, None)[1] == Skipped("not_a_file")
    assert read_file(below(b"/dev"), b"zero", None)[1] == Skipped("not_a_file")


@pytest.mark.parametrize("path", [b"gone", b"file/below", b"gone/below"])
def test_a_vanished_file_raises(tmp_path: Path, root: bytes, path: bytes) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError):
        read_file(below(root), path, None)


def test_a_name_of_any_bytes_is_read(root: bytes) -> None:
    path = b"new\nline \xff"
    Path(os.fsdecode(root + b"/" + path)).write_text("x")
    assert read_file(below(root), path, None)[1] == Document(b"x")


def test_a_name_nobody_can_open_is_unreadable(root: bytes) -> None:
    assert read_file(below(root), b"x" * 300, None)[1] == Skipped(
        "unreadable", "File name too long"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_unreadable(tmp_path: Path, root: bytes) -> None:
    (tmp_path / "file").touch(mode=0)
    stat, found = read_file(below(root), b"file", None)
    assert found == Skipped("unreadable", "Permission denied")
    assert stat.inode == (tmp_path / "file").stat().st_ino


def test_no_descriptor_left_is_said_and_not_taken_for_an_unreadable_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    program = (
        "import resource, sys, os\n"
        "from flashgrep.base.errors import Busy\n"
        "from flashgrep.files.extract import read_file\n"
        "from flashgrep.files.openat import RootFiles, RootFolder\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "try: read_file(RootFiles(RootFolder(os.fsencode(sys.argv[1]))), b'file', None)\n"
        "except Busy as error: print(error.message)\n"
    )
    command = [sysconfig.get_path("scripts") + "/python", "-c", program, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, check=False, text=True)
    assert answer.stdout == "out of resources: Too many open files\n", answer.stderr


def test_reading_leaves_no_descriptor_open(tmp_path: Path, root: bytes) -> None:
    (tmp_path / "file").write_bytes(b"\0")
    before = sorted(Path("/proc/self/fd").iterdir())
    for name in (b"file", b".", b"x" * 300):
        read_file(below(root), name, 0)
    assert sorted(Path("/proc/self/fd").iterdir()) == before
