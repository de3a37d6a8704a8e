"""The editors' plugins in real editors against a real daemon, and the example of the protocol as documents print it."""

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from flashgrep.parts.pick.editors import make_editor_command
from scripts.tools.editors import find_eglot, run_emacs
from scripts.tools.parcels import make_parcels
from tests.conftest import FGREP, DaemonAtHand
from tests.support.examples import find_example
from tests.support.workspace import repository

ROOT = Path(__file__).parents[2]
SECONDS = 100


@pytest.fixture(scope="module")
def parcels(daemon: DaemonAtHand) -> Iterator[Path]:
    """Return an indexed project, which the plugins' own tests know."""
    with repository() as root:
        make_parcels(root)
        assert daemon.run("index", str(root)).returncode == 0
        yield root


def test_the_plugin_works_in_neovim(daemon: DaemonAtHand, parcels: Path) -> None:
    program = shutil.which("nvim")
    if program is None:
        pytest.skip("nvim is not installed")
    plugin = ROOT / "editors" / "nvim"
    added = f"lua vim.opt.runtimepath:prepend([[{plugin}]])"  # the path may have blanks
    command = [program, "--headless", "-u", "NONE", "-i", "NONE", "-n", "--cmd", added]
    said = subprocess.run(
        [*command, "-c", f"lua dofile([[{plugin}/tests/run.lua]])"],
        cwd=parcels,
        env=daemon.environ_of_shell,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout.count("\nok ") > 5


def test_the_settings_for_emacs_work(daemon: DaemonAtHand) -> None:
    if not find_eglot(offline=True):
        pytest.skip("Emacs with eglot is not installed")
    with repository() as root:
        make_parcels(root)
        assert run_emacs(root, daemon.environ_of_shell) == 0


def test_the_client_of_vs_code_works_under_node(
    daemon: DaemonAtHand, parcels: Path
) -> None:
    extension = ROOT / "editors" / "vscode"
    npm = shutil.which("npm")
    if npm is None or not (extension / "node_modules").is_dir():
        pytest.skip("npm's packages are not installed: scripts/editors installs them")
    said = subprocess.run(
        [npm, "test"],
        cwd=extension,
        env={**daemon.environ_of_shell, "PROJECT": str(parcels)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_example_for_plugin_authors_runs_and_has_50_lines(
    daemon: DaemonAtHand, parcels: Path
) -> None:
    example = find_example("docs/editors.md", '"""Live grep')
    assert len(example.text.splitlines()) <= 50
    command = [sys.executable, "-c", example.text, str(parcels), "find_parcel"]
    said = subprocess.run(
        command,
        env=daemon.environ_of_shell,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert said.stdout.splitlines() == [
        "src/parcel.py:1:5:def find_parcel(number):",
        "src/use.py:1:20:from parcel import find_parcel",
        "src/use.py:4:11:    print(find_parcel(7))",
    ], said.stderr


@pytest.mark.parametrize("options", [["--plain"], []], ids=["plain", "fzf"])
def test_a_line_is_picked_in_a_terminal(
    daemon: DaemonAtHand, parcels: Path, tmp_path: Path, options: list[str]
) -> None:
    if shutil.which("setsid") is None or (not options and shutil.which("fzf") is None):
        pytest.skip("setsid or fzf is not installed")
    command = [
        str(Path(FGREP).with_name("flashgrep")),
        "pick",
        "find_parcel",
        "--print",
        *options,
    ]
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    with (tmp_path / "chosen").open("w") as chosen:
        picking = subprocess.Popen(
            ["setsid", "--ctty", *command],
            cwd=parcels,
            env={**daemon.environ_of_shell, "TERM": "xterm"},
            stdin=theirs,
            stdout=chosen,
            stderr=theirs,
        )
    os.close(theirs)
    shown = b""
    while b"use.py" not in shown:
        assert select.select([ours], [], [], SECONDS)[0]
        shown += os.read(ours, 65536)
    os.write(ours, b"\x0e\r")  # the next line
    with suppress(OSError):  # how a terminal says that its last program has ended
        while os.read(ours, 65536):
            pass
    os.close(ours)
    assert picking.wait(SECONDS) == 0
    assert (tmp_path / "chosen").read_text() == "src/use.py:1:20\n"


def test_without_a_terminal_the_picker_says_so(cold_daemon: DaemonAtHand) -> None:
    command = [str(Path(FGREP).with_name("flashgrep")), "pick"]
    done = subprocess.run(
        command,
        env=cold_daemon.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(
        b"flashgrep: pick needs a terminal, and there is none; "
    )


@pytest.mark.parametrize(
    ("editor", "arguments"),
    [
        ("vi", ["+3", "./a b.py"]),
        ("unknown", ["+3", "./a b.py"]),
        ("vim", ["+call cursor(3,4)", "./a b.py"]),
        ("emacsclient -t", ["-t", "+3:4", "./a b.py"]),
        ("nano", ["+3,4", "./a b.py"]),
        ("kak", ["+3:4", "./a b.py"]),
        ("micro", ["+3:4", "./a b.py"]),
        ("hx", ["./a b.py:3:4"]),
        ("subl -w", ["-w", "./a b.py:3:4"]),
        ("code", ["--goto", "./a b.py:3:4"]),
        ("code --wait -g", ["--wait", "-g", "./a b.py:3:4"]),
        ("code --goto", ["--goto", "./a b.py:3:4"]),
        ("kate", ["--line", "3", "--column", "4", "./a b.py"]),
    ],
)
def test_each_editor_gets_the_position_in_its_own_form(
    tmp_path: Path, editor: str, arguments: list[str]
) -> None:
    program = tmp_path / editor.split(maxsplit=1)[0]
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    environ = {"EDITOR": editor, "PATH": str(tmp_path)}
    command = make_editor_command(environ, "a b.py", 3, 4)
    assert command == [editor.split(maxsplit=1)[0], *arguments]
    assert make_editor_command(environ, "-x.py", 3, 4)[-1].startswith("./-x.py")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_reads_its_key_bindings(daemon: DaemonAtHand, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    keys = daemon.run("pick", "--keys", shell).stdout
    options = {
        "bash": ["-n"],
        "zsh": ["-f", "-n"],
        "fish": ["--no-config", "--no-execute"],
    }[shell]
    read = subprocess.run(
        [shell, *options],
        input=keys,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (read.returncode, read.stderr) == (0, "")


def test_the_lines_for_neovim_name_the_folder_of_the_plugin(
    daemon: DaemonAtHand,
) -> None:
    said = daemon.run("install", "nvim").stdout
    assert f'vim.opt.runtimepath:prepend("{ROOT / "editors" / "nvim"}")' in said
