"""Downloads with the ordinary clients (pip, npm, apt), one folder per package, in the exact versions of the lists."""

import subprocess
import sys
from pathlib import Path

from scripts.train_embedder.archives import Described, describe
from scripts.train_embedder.packages import Package, permissive

SECONDS = 300
"""Longest a download may take."""

_ARCHIVES = {
    "pypi": ("*.whl",),
    "npm": ("*.tgz",),
    "debian": ("*.deb",),
    "source": ("*.orig.tar.*", "*.tar.*"),
}


def folder_of(work: Path, kind: str, name: str) -> Path:
    """Return a package's folder."""
    return work / "packages" / kind / name.replace("/", "+")


def archive_of(work: Path, kind: str, name: str) -> Path | None:
    """Return the archive of a package's sources, if downloaded."""
    folder = folder_of(work, kind, name)
    found = [
        path
        for pattern in _ARCHIVES.get(kind, ())
        for path in sorted(folder.glob(pattern))
        if path.suffix != ".asc"
    ]
    return next((path for path in found if ".debian.tar" not in path.name), None)


def download(work: Path, kind: str, name: str, version: str) -> Path | None:
    """Download a package unless present (empty version: the newest); None if the registry no longer has it."""
    present = archive_of(work, kind, name)
    if (
        present is not None or kind not in _ARCHIVES
    ):  # Maven packages are only on the list to avoid
        return present
    folder = folder_of(work, kind, name)
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        _command(kind, name, version),
        cwd=folder,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        print(
            f"{kind} {name}: {done.stderr.decode(errors='replace').strip().splitlines()[-1:]}",
            file=sys.stderr,
        )
    return archive_of(work, kind, name)


def _command(kind: str, name: str, version: str) -> list[str]:
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--only-binary",
        ":all:",
    ]
    return {
        "pypi": [*pip, f"{name}=={version}" if version else name],
        "npm": ["npm", "pack", "-s", f"{name}@{version}" if version else name],
        "debian": [
            "apt-get",
            "download",
            "-qq",
            f"{name}={version}" if version else name,
        ],
        "source": ["apt-get", "source", "-qq", "--download-only", name],
    }[kind]


def described(work: Path, package: Package) -> Package | None:
    """Return a package with version and licence filled in; None if it is missing or lacks metadata."""
    archive = archive_of(work, package.kind, package.name)
    try:
        said = describe(package.kind, archive) if archive else Described("", "")
    except (StopIteration, KeyError, ValueError):
        return None
    return (
        package._replace(version=said.version, licence=said.licence)
        if said.licence
        else None
    )


def admit(work: Path, packages: list[Package]) -> list[Package]:
    """Download packages, and return those with a permissive licence in their metadata."""
    for package in packages:
        download(work, package.kind, package.name, package.version)
    known = [found for package in packages if (found := described(work, package))]
    for package in known:
        if not permissive(package.licence):
            print(f"left out: {package.kind} {package.name}: {package.licence}")
    return [package for package in known if permissive(package.licence)]
