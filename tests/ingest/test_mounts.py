"""File systems that do not tell of changes are known by their type."""

from pathlib import Path

import pytest

from flashgrep.files.outside import Mounts, find_mounts, find_silent_type

MOUNTS = rb"""21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
40 21 0:35 / /mnt/share rw - nfs4 server:/export rw
41 40 8:2 / /mnt/share/local rw - xfs /dev/sdb1 rw
42 21 0:36 / /mnt/with\040space rw shared:5 - fuse.sshfs host: rw
44 21 7:0 / /media/stick rw - fuseblk /dev/sdc1 rw
43 21 0:37 / /mnt/c rw - 9p C: rw
"""


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (b"/home/me/project", ""),
        (b"/mnt/share/project", "nfs4"),
        (b"/mnt/share", "nfs4"),
        (b"/mnt/share/local/project", ""),
        (b"/mnt/sharecroppers", ""),
        (b"/mnt/with space/x", "fuse.sshfs"),
        (b"/mnt/c/code", "9p"),
        (b"/media/stick/code", "fuseblk"),
    ],
)
def test_the_nearest_mount_decides(tmp_path: Path, path: bytes, wanted: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(MOUNTS)
    assert find_silent_type(path, mounts) == wanted


def test_the_machines_own_mounts_can_be_read(tmp_path: Path) -> None:
    assert find_silent_type(bytes(tmp_path)) == ""
    assert find_silent_type(bytes(tmp_path), tmp_path / "missing") == ""


def test_mounts_in_a_tree_are_distinguished_from_others(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(MOUNTS)
    found = find_mounts(b"/mnt", mounts)
    assert {point: mount.silent for point, mount in found.items()} == {
        b"": "",
        b"share": "nfs4",
        b"share/local": "",
        b"with space": "fuse.sshfs",
        b"c": "9p",
    }
    mounts.write_bytes(
        MOUNTS + b"50 41 8:3 /x /mnt/share/local rw - xfs /dev/sdc1 rw\n"
    )
    assert find_mounts(b"/mnt", mounts) != found
    assert find_mounts(b"/home", mounts) == {b"": found[b""]}


def test_a_table_that_did_not_change_is_not_read(tmp_path: Path) -> None:
    mounts = Mounts(bytes(tmp_path))
    assert not mounts.has_changed()
    assert mounts.silent_at(b"") == ""
    mounts.close()
    assert not mounts.has_changed()
