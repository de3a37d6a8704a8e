"""The pinned packages of packages.tsv, fetched by the registries' own clients and unpacked into a cache."""

import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
APT: Final = Path("/etc/apt")


class Package(NamedTuple):
    """A row of packages.tsv."""

    kind: str
    """``pypi`` (a source distribution), ``npm``, ``maven`` (the jar of sources), ``deb`` (a binary package) or
    ``source`` (Debian's upstream tar)."""
    name: str
    """For ``maven``: group and artefact, separated by a colon."""
    version: str
    """For ``source``: the upstream version; else the full version."""
    licence: str
    language: str
    use: str
    """``questions``, ``docstrings`` or ``both``; ``held``: questions never used to choose a rule or model;
    ``tasks``: only for ``scripts/bench_agent``."""
    part: str
    """The folder of the archive that is the repository."""
    repository: str


class Unavailable(Exception):
    """A pinned package cannot be fetched by its registry's client."""


def packages() -> list[Package]:
    """Return all rows."""
    with (HERE / "packages.tsv").open(newline="") as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows)
        return [Package(*row) for row in rows]


def unpacked(package: Package, cache: Path) -> Path:
    """Return the folder of a package's repository, fetched and unpacked unless cached.

    Raises:
        Unavailable: the client fails, or delivers another version.

    """
    folder = (
        cache / f"{package.repository}-{re.sub('[^0-9A-Za-z.]', '_', package.version)}"
    )
    if not folder.exists():
        work = cache / f"{folder.name}.part"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        archive = FETCH[package.kind](package, work)
        tree = work / "tree"
        tree.mkdir()
        unpack(archive, tree)
        (tree / package.part).rename(folder)
        shutil.rmtree(work)
    return folder


def unpack(archive: Path, tree: Path) -> None:
    """Unpack an archive; a tar's single top folder is stripped."""
    if archive.suffix == ".deb":
        _run(["dpkg-deb", "-x", str(archive), str(tree)], tree)
    elif archive.suffix == ".jar":
        _run([sys.executable, "-m", "zipfile", "-e", str(archive), str(tree)], tree)
    else:
        _run(["tar", "xf", str(archive), "-C", str(tree), "--strip-components=1"], tree)


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is not installed here") from None
    except subprocess.CalledProcessError as error:
        raise Unavailable(
            f"{' '.join(command)}: {error.stderr.strip()[-300:]}"
        ) from None
    return done.stdout


def _only(folder: Path) -> Path:
    found = [path for path in folder.iterdir() if path.is_file()]
    if len(found) != 1:
        raise Unavailable(f"{folder}: {len(found)} archives instead of one")
    return found[0]


def _pypi(package: Package, folder: Path) -> Path:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        ".",
        # Not of all packages: what builds this one may come as wheels.
        "--no-binary",
        package.name,
    ]
    _run([*pip, f"{package.name}=={package.version}"], folder)
    return _only(folder)


def _npm(package: Package, folder: Path) -> Path:
    _run(["npm", "pack", "--silent", f"{package.name}@{package.version}"], folder)
    return _only(folder)


def _maven(package: Package, folder: Path) -> Path:
    artefact = f"-Dartifact={package.name}:{package.version}:jar:sources"
    _run(
        ["mvn", "-q", "-B", "dependency:copy", artefact, f"-DoutputDirectory={folder}"],
        folder,
    )
    return _only(folder)


def _deb(package: Package, folder: Path) -> Path:
    _run(["apt-get", "download", "-q", f"{package.name}={package.version}"], folder)
    return _only(folder)


def _source(package: Package, folder: Path) -> Path:
    """Fetch Debian's upstream tar, with our own list of sources, since the machine's may have none."""
    apt = folder.parent / "apt"
    options = [
        *(
            "-o",
            f"Dir::Etc::SourceList={apt}/all.sources",
            "-o",
            "Dir::Etc::SourceParts=-",
        ),
        *("-o", f"Dir::State::Lists={apt}/lists"),
    ]
    if not apt.exists():
        (apt / "lists" / "partial").mkdir(parents=True)
        given = "\n\n".join(
            path.read_text()
            for path in sorted((APT / "sources.list.d").glob("*.sources"))
        )
        (apt / "all.sources").write_text(
            re.sub(r"(?m)^Types:.*$", "Types: deb-src", given)
        )
        _run(["apt-get", *options, "update", "-q"], folder)
    shown = _run(["apt-cache", *options, "showsrc", package.name], folder)
    upstream = re.escape(package.version)
    full = re.search(rf"(?m)^Version: ((?:\d+:)?{upstream}[^\s]*)$", shown)
    if full is None:
        raise Unavailable(f"{package.name}: no source of version {package.version}")
    command = [
        "apt-get",
        *options,
        "source",
        "--download-only",
        "--tar-only",
        "-q",
        f"{package.name}={full[1]}",
    ]
    _run(command, folder)
    return _only(folder)


FETCH: Final[dict[str, Callable[[Package, Path], Path]]] = {
    "pypi": _pypi,
    "npm": _npm,
    "maven": _maven,
    "deb": _deb,
    "source": _source,
}
