"""Names and contents of the files in a downloaded package, for every registry."""

import io
import json
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import BytesParser
from pathlib import Path
from typing import NamedTuple

LARGEST = 400_000
"""Bytes of the largest files read; larger ones are data or bundles."""


class Member(NamedTuple):
    """A file of a package."""

    path: str
    data: bytes


class Described(NamedTuple):
    """A package's own metadata."""

    version: str
    licence: str


def members(kind: str, archive: Path) -> Iterator[Member]:
    """Yield a package's files that are small enough to be sources."""
    if kind == "pypi":
        with zipfile.ZipFile(archive) as wheel:
            for info in wheel.infolist():
                if info.file_size <= LARGEST and not info.is_dir():
                    yield Member(info.filename, wheel.read(info))
        return
    with _tar(kind, archive) as tar:
        for entry in tar:
            file = (
                tar.extractfile(entry)
                if entry.isreg() and entry.size <= LARGEST
                else None
            )
            if file is not None:
                yield Member(entry.name.removeprefix("./"), file.read())


def _tar(kind: str, archive: Path) -> tarfile.TarFile:
    if kind == "debian":
        data = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", archive], check=True, capture_output=True
        ).stdout
        return tarfile.open(fileobj=io.BytesIO(data))
    return tarfile.open(archive)


def describe(kind: str, archive: Path) -> Described:
    """Return a package's version and licence from its metadata; the licence is empty if there is none."""
    if kind == "pypi":
        return _wheel(archive)
    if kind == "npm":
        return _npm(archive)
    return Described(
        archive.name.split("_")[1].removesuffix(".orig.tar"),
        copyright_licence(_copyright(kind, archive)),
    )


def _wheel(archive: Path) -> Described:
    with zipfile.ZipFile(archive) as wheel:
        name = next(
            name
            for name in wheel.namelist()
            if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)
        )
        meta = BytesParser().parsebytes(wheel.read(name), headersonly=True)
    classifiers = [
        value
        for value in meta.get_all("Classifier", [])
        if value.startswith("License ::")
    ]
    stated = (
        meta.get("License-Expression") or "",
        *(value.rsplit(" :: ", 1)[-1] for value in classifiers),
    )
    licence = (
        " OR ".join(dict.fromkeys(filter(None, stated)))
        or (meta.get("License") or "").strip().split("\n")[0]
    )
    return Described(str(meta["Version"]), licence[:80])


def _npm(archive: Path) -> Described:
    found = next(
        member
        for member in members("npm", archive)
        if re.fullmatch(r"[^/]+/package\.json", member.path)
    )
    meta = json.loads(found.data)
    licence = meta.get("license") or meta.get("licenses") or ""
    listed = licence if isinstance(licence, list) else [licence]
    names = [
        str(item.get("type", "")) if isinstance(item, dict) else str(item)
        for item in listed
    ]
    return Described(str(meta["version"]), " OR ".join(names).strip("()")[:80])


def _copyright(kind: str, archive: Path) -> str:
    if kind == "source":
        archive = _debian_side(archive)
    wanted = r"(?:usr/share/doc/[^/]+|debian|[^/]+/debian)/copyright"
    found = (
        member for member in members(kind, archive) if re.fullmatch(wanted, member.path)
    )
    return next((member.data.decode(errors="replace") for member in found), "")


def _debian_side(archive: Path) -> Path:
    """Return the archive with a source package's ``debian`` folder: next to the upstream tar, or the native one."""
    name = archive.name.split("_")[0]
    return next(iter(sorted(archive.parent.glob(f"{name}_*.debian.tar.*"))), archive)


def copyright_licence(text: str) -> str:
    """Return the licence of the main stanza (``Files: *``) of a machine-readable copyright file, else of all."""
    stanzas = re.split(r"\n\s*\n", text)
    main = [
        stanza
        for stanza in stanzas
        if re.search(r"^Files:\s*(?:\*|\./\*|src/\*)\s*$", stanza, re.MULTILINE)
    ]
    named = re.findall(
        r"^License:[ \t]*(\S.*)$", "\n".join(main or stanzas), re.MULTILINE
    )
    return " AND ".join(dict.fromkeys(name.strip() for name in named))[:80]
