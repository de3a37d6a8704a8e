"""Installs the tools that are compared with ours, once, each into its own folder of a cache outside the tree."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.benchmarks.peer_process import NotAvailable
from scripts.benchmarks.peer_tools import Peer

INSTALL_SECONDS = 1800.0
"""A Rust crate with many grammars takes ten minutes on two busy cores."""
REASON_LENGTH = 110


@dataclass(frozen=True, slots=True)
class Installer:
    """Where programs are: the cache, a folder that the user names, and beside our own."""

    cache: Path
    programs: Path | None
    beside: Path

    def path_of(self, peer: Peer) -> str:
        """Return the PATH of a tool whose programs are there, installed if need be.

        Raises:
            NotAvailable: it cannot be installed; the message says why.

        """
        folder = self.cache / f"{peer.name.replace('/', '-')}-{peer.version}"
        path = self._path(folder)
        if _missing(peer, path):
            self._install(peer, folder)
        missing = _missing(peer, path)
        if missing:
            raise NotAvailable(f"no {missing} on PATH or in the folder of --programs")
        return path

    def _path(self, folder: Path) -> str:
        folders = [folder / "bin", self.beside, self.programs]
        return os.pathsep.join(
            [*(str(place) for place in folders if place), os.defpath]
        )

    def _install(self, peer: Peer, folder: Path) -> None:
        """Install by the registry that has the tool; do nothing for one that no registry has."""
        programs = str(folder / "bin")
        if peer.package:
            _run([sys.executable, "-m", "venv", str(folder)], folder)
            _run(
                [f"{programs}/pip", "install", "-q", f"{peer.package}=={peer.version}"],
                folder,
            )
        elif peer.module:
            commands = [f"{peer.module}/cmd/{program}" for program in peer.programs]
            _run(["go", "mod", "init", "peers"], folder)
            _run(["go", "get", f"{peer.module}@{peer.version}"], folder)
            _run(["go", "build", "-o", f"{programs}/", *commands], folder)
        elif peer.crate:
            _run(
                [
                    "cargo",
                    "install",
                    "--root",
                    str(folder),
                    f"{peer.crate}@{peer.version}",
                ],
                folder,
            )


def _missing(peer: Peer, path: str) -> str:
    for program in peer.programs:
        if not shutil.which(program, path=path):
            return program
    return ""


def _run(command: Sequence[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}
    said = " ".join(command[:3])
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environ,
            text=True,
            capture_output=True,
            check=False,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        reason = f"{said}: not done within {INSTALL_SECONDS:.0f} s"
        raise NotAvailable(reason) from None
    except OSError as error:
        raise NotAvailable(f"{said}: {error.strerror}") from None
    if done.returncode:
        reasons = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        raise NotAvailable(f"{said}: {(reasons or [done.stderr])[0][:REASON_LENGTH]}")
