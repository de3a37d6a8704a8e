"""What the system may refuse, provoked for real in a child process: nothing is half done, and the error names it."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.edit.harness import state_of

pytestmark = pytest.mark.slow

CHILD = """
import codecs, json, os, resource, sys
from flashgrep.parts.edit import files, transfer
from flashgrep.parts.edit.batch import Operation, write_batch
from flashgrep.parts.edit.edits import LineEdit
from flashgrep.files.editor import Editor
from flashgrep.parts.edit.files import WriteOptions
from flashgrep.files.root import Root
from flashgrep.parts.edit.write import WriteRequest, write_file
from flashgrep.base.errors import FlashgrepError

folder, what, preparation = sys.argv[1:4]
exec(preparation)
root = Root(os.fsencode(folder), os.fsencode(os.environ.get("STATE") or folder + "-state"))
editor = Editor(root)
user = os.environ.get("AS_USER")
if user:
    codecs.lookup("utf-32-le")  # loaded now: the user may not read where Python lives
    os.setgid(int(user)); os.setuid(int(user))

def edit(path, size=10):
    return WriteRequest(path.encode(), LineEdit(1, 1, "x" * size))

try:
    if what == "batch":
        answer = write_batch(editor, [Operation(p, edit(p, 60000)) for p in sys.argv[4:]], "atomic")[0]
    elif what == "move":
        moved = transfer.move(editor, sys.argv[4].encode(), sys.argv[5].encode(), WriteOptions(overwrite=True))
        answer = list(moved._asdict())
    else:
        answer = write_file(editor, edit(sys.argv[4], int(what)))[0]
    print(json.dumps({"answer": answer}))
except FlashgrepError as error:
    print(json.dumps({"error": error.to_object()}))
"""


def run(
    folder: Path,
    *args: str,
    before: str = "",
    mounts: str = "",
    user: int | None = None,
) -> dict[str, Any]:
    """Run a write in a child, within mounts of its own if there are any, and return what came of it."""
    command = [sys.executable, "-c", CHILD, str(folder), args[0], before, *args[1:]]
    if mounts:
        command = [
            "unshare",
            "--map-root-user",
            "--mount",
            "sh",
            "-ec",
            f'{mounts}\nexec "$@"',
            "sh",
            *command,
        ]
    environment = dict(os.environ)
    with (
        tempfile.TemporaryDirectory() as state
    ):  # the user could not reach one beside the folder
        if user is not None:
            os.chown(state, user, user)
            environment |= {"AS_USER": str(user), "STATE": state}
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=60, env=environment
        )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def content(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder, and every journal left of writes in it."""
    paths = (*folder.rglob("*"), *state_of(folder).rglob("*"))
    return {
        os.path.relpath(path, folder): path.read_bytes()
        for path in paths
        if path.is_file()
    }


def _can_mount() -> bool:
    command = ["unshare", "--map-root-user", "--mount", "true"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, check=False).returncode == 0
    )


mounts_needed = pytest.mark.skipif(
    not _can_mount(), reason="this system gives no mounts of one's own"
)


def test_a_file_size_limit_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old\n")
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))"
    found = run(tmp_path, "100000", "file", before=limit)
    assert (found["error"]["code"], found["error"]["data"]["reason"]) == (
        -32000,
        "no_space",
    )
    assert content(tmp_path) == {"file": b"old\n"}


@mounts_needed
@pytest.mark.parametrize("what", ["100000", "batch"])
def test_a_full_disk_leaves_every_file_as_it_was(tmp_path: Path, what: str) -> None:
    (tmp_path / "disk").mkdir()
    mounts = (
        f"mount -t tmpfs -o size=104k none {tmp_path}/disk\n"
        f"for name in a b c; do echo old > {tmp_path}/disk/$name; done\n"
        f"trap 'cp -r {tmp_path}/disk/. {tmp_path}/after' EXIT"
    )
    mounts += '\n"$@"\nexit 0'  # without exec, so that the trap runs
    found = run(
        tmp_path / "disk",
        what,
        *(["a", "b", "c"] if what == "batch" else ["a"]),
        mounts=mounts,
    )
    if what == "batch":
        reasons = [each["reason_code"] for each in found["answer"]["results"]]
        assert reasons == ["atomic_aborted", "no_space", "atomic_aborted"]
    else:
        assert found["error"]["data"]["reason"] == "no_space"
    assert content(tmp_path / "after") == {"a": b"old\n", "b": b"old\n", "c": b"old\n"}


@mounts_needed
def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old\n")
    mounts = f"mount --bind {tmp_path} {tmp_path}\nmount -o remount,bind,ro {tmp_path}"
    found = run(tmp_path, "10", "file", mounts=mounts)
    assert (found["error"]["code"], found["error"]["data"]["reason"]) == (
        -32006,
        "read_only",
    )


@mounts_needed
def test_a_file_that_is_a_mount_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old\n")
    (tmp_path / "other").write_bytes(b"other\n")
    found = run(
        tmp_path, "10", "file", mounts=f"mount --bind {tmp_path}/other {tmp_path}/file"
    )
    assert (found["error"]["code"], found["error"]["data"]["reason"]) == (
        -32005,
        "busy",
    )
    assert content(tmp_path) == {"file": b"old\n", "other": b"other\n"}


@mounts_needed
@pytest.mark.parametrize("target", ["kept", "new"])
def test_a_move_to_another_file_system_copies_and_then_removes(
    tmp_path: Path, target: str
) -> None:
    (tmp_path / "root/folder/deep").mkdir(parents=True)
    (tmp_path / "root/folder/deep/file").write_bytes(b"text\n")
    (tmp_path / "root/folder/link").symlink_to("deep/file")
    (tmp_path / "root/disk").mkdir()
    mounts = (
        f"mount -t tmpfs -o size=1m none {tmp_path}/root/disk\n"
        f"mkdir {tmp_path}/root/disk/kept; echo x > {tmp_path}/root/disk/kept/x\n"
        f'"$@"; cp -a {tmp_path}/root/disk/. {tmp_path}/after\nexit 0'
    )
    found = run(tmp_path / "root", "move", "folder", f"disk/{target}", mounts=mounts)
    assert "answer" in found
    assert not (tmp_path / "root/folder").exists()
    files = {} if target == "kept" else {"kept/x": b"x\n"}
    assert content(tmp_path / "after") == {
        **files,
        f"{target}/deep/file": b"text\n",
        f"{target}/link": b"text\n",
    }
    assert (tmp_path / f"after/{target}/link").is_symlink()


def _unprivileged(folder: Path) -> int | None:
    """Give a folder to a user without rights, whom the child becomes; we ourselves, if we have none."""
    if os.geteuid() != 0:
        return None
    nobody = 65534
    for path in (folder, *folder.rglob("*")):
        os.chown(path, nobody, nobody)
    return nobody


def test_a_folder_one_may_not_write_is_named(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/file").write_bytes(b"old\n")
    user = _unprivileged(tmp_path)
    (tmp_path / "sub").chmod(0o555)
    try:
        found = run(tmp_path, "10", "sub/file", user=user)
    finally:
        (tmp_path / "sub").chmod(0o755)
    assert (found["error"]["code"], found["error"]["data"]["reason"]) == (
        -32006,
        "permission_denied",
    )
    assert content(tmp_path) == {"sub/file": b"old\n"}


def test_a_file_one_may_not_write_is_not_replaced_either(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old\n")
    user = _unprivileged(tmp_path)
    (tmp_path / "file").chmod(0o444)
    found = run(tmp_path, "10", "file", user=user)
    assert found["error"]["data"]["reason"] == "permission_denied"
    assert content(tmp_path) == {"file": b"old\n"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of two owners")
def test_owner_and_attributes_are_kept_where_they_may_be(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old\n")
    os.chown(file, 1234, 5678)
    file.chmod(0o2640)
    os.setxattr(file, "user.note", b"kept")
    assert run(tmp_path, "3", "file")["answer"]["ok"]
    status = file.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (
        1234,
        5678,
        0o2640,
    )
    assert os.getxattr(file, "user.note") == b"kept"
    assert file.read_bytes() == b"xxx\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files of two owners")
def test_a_set_id_bit_is_not_given_to_a_file_of_another_owner(tmp_path: Path) -> None:
    nobody = _unprivileged(tmp_path)
    file = tmp_path / "file"
    file.write_bytes(b"old\n")
    os.chown(file, 1234, 65534)
    file.chmod(0o6775)
    assert run(tmp_path, "3", "file", user=nobody)["answer"]["ok"]
    assert (file.stat().st_uid, stat.S_IMODE(file.stat().st_mode)) == (65534, 0o775)
