"""Other tools on the same questions, each installed on the fly, on a copy of the tree of its own; so is ripgrep."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.targets import Targets
from benchmarks.timing import children_cpu, repeated

INDEX_SECONDS = 240.0
"""An index that takes longer is given up: ours has 90 s."""

INSTALL_SECONDS = 120.0
MIB = 1 << 20
KINDS = ("rare literal", "miss", "common, all", "regex", "regex, no literals", "insensitive", "files only")
FLAGS: dict[str, tuple[str, ...]] = {"insensitive": ("-i",), "files only": ("-l",)}
TOUCHED = "fresh_text_for_the_peers_end"


@dataclass(frozen=True, slots=True)
class Peer:
    """How a tool is had and asked; ``{tree}``, ``{bin}`` and ``{state}`` stand for its folders."""

    name: str
    package: str = ""
    more: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    index_again: bool = False
    """It finds what changed only after indexing again."""
    ready: tuple[str, ...] = ()
    """A command whose output has the word ready once a background index is there."""
    literal: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()
    escape: bool = False
    """It knows regular expressions only."""
    where: str = ""
    stop: tuple[str, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)


PEERS = (
    Peer("ripgrep", literal=("{rg}", "-n", "-F"), regex=("{rg}", "-n")),
    Peer(
        "csearch", index=("cindex", "{tree}"), index_again=True, literal=("csearch", "-n"), regex=("csearch", "-n"),
        escape=True, where="{state}/csearch", environ={"CSEARCHINDEX": "{state}/csearch"},
    ),
    Peer(
        "ripgrepx", package="ripgrepx", index=("{bin}/rgx", "--server", "start"),
        ready=("{bin}/rgx", "--server", "status"), literal=("{bin}/rgx", "-n", "-F"), regex=("{bin}/rgx", "-n"),
        where="{state}/rgx", stop=("{bin}/rgx", "--server", "stop"), environ={"RGX_CACHE_DIR": "{state}/rgx"},
    ),
    Peer(
        "glep", package="glep", index=("{bin}/glep", "index"), literal=("{bin}/glep", "-n", "-F"),
        regex=("{bin}/glep", "-n"), where="{tree}/.glep",
    ),
    Peer("gist-search", package="gist-search"),
    Peer("moeix", package="moeix"),
    Peer(
        "code-explore-by-sql", package="code-explore-by-sql", more=("mcp<2",),
        index=("{bin}/code-explore-by-sql-build-db", "{tree}", "{state}/code.db"), where="{state}/code.db",
    ),
)  # fmt: skip


class NotToBeHad(Exception):
    """The tool cannot be measured; the message says why."""


def measure(base: Path, root: Path, rg: Path, targets: Targets) -> Iterator[str]:
    """Yield the lines of a table: medians of wall time, and processor time, in ms of whole processes."""
    yield "| tool | index s | index MB | " + " | ".join(KINDS) + " | after touching a file | idle MB | note |"
    yield "|" + "---|" * (len(KINDS) + 6)
    for peer in PEERS:
        state = base / f"peer-{peer.name}"
        left_out = shutil.ignore_patterns(".flashgrep", ".gitignore")  # some heed its rules outside of git, some do not
        shutil.copytree(root, state / "tree", symlinks=True, ignore=left_out)
        try:
            yield _Measured(peer, state, rg).line(targets)
        except NotToBeHad as reason:
            yield f"| {peer.name} |" + " |" * (len(KINDS) + 4) + f" {reason} |"
        finally:
            shutil.rmtree(state, ignore_errors=True)


class _Measured:
    """One tool being measured."""

    def __init__(self, peer: Peer, state: Path, rg: Path) -> None:
        self._peer = peer
        self._tree = state / "tree"
        self._names = {"tree": str(self._tree), "bin": str(state / "venv" / "bin"), "state": str(state), "rg": str(rg)}
        self._environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(state)}
        self._environ |= {name: value.format(**self._names) for name, value in peer.environ.items()}

    def line(self, targets: Targets) -> str:
        """Install, index and ask; return its line."""
        self._install()
        index_seconds = self._index()
        if not self._peer.literal:
            told = (
                "indexes, but has no search of text by command line" if index_seconds else "no search by command line"
            )
            return self._row(index_seconds, [""] * len(KINDS), "", told)
        try:
            cells = [self._cell(kind, targets) for kind in KINDS]
            return self._row(index_seconds, cells, self._touched(), "")
        finally:
            if self._peer.stop:
                self._run(self._peer.stop)

    def _row(self, seconds: float, cells: list[str], touched: str, note: str) -> str:
        index = f"{seconds:.1f}" if seconds else ""
        size = f"{self._size() / MIB:.0f}" if self._peer.where else ""
        return "| " + " | ".join([self._peer.name, index, size, *cells, touched, self._memory(), note]) + " |"

    def _install(self) -> None:
        if not self._peer.package:
            if self._peer.index and not shutil.which(self._peer.index[0]):
                raise NotToBeHad("not installed")
            return
        folder = Path(self._names["bin"]).parent
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        command = [str(folder / "bin" / "pip"), "install", "-q", self._peer.package, *self._peer.more]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            raise NotToBeHad("does not install in time") from None
        if done.returncode:
            reasons = [each for each in done.stderr.splitlines() if "error" in each.lower()]
            raise NotToBeHad(f"does not install: {reasons[0][:90] if reasons else 'pip fails'}")

    def _index(self) -> float:
        if not self._peer.index:
            return 0.0
        started = time.perf_counter()
        self._run(self._peer.index, INDEX_SECONDS)
        while self._peer.ready and not re.search(rb"state +ready", self._run(self._peer.ready)):
            if time.perf_counter() - started > INDEX_SECONDS:
                raise NotToBeHad(f"no index within {INDEX_SECONDS:.0f} s")
            time.sleep(0.05)
        return time.perf_counter() - started

    def _run(self, command: tuple[str, ...], seconds: float = 120.0) -> bytes:
        given = [part.format(**self._names) if "{" in part else part for part in command]
        try:
            done = subprocess.run(
                given, cwd=self._tree, env=self._environ, capture_output=True, check=False, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            raise NotToBeHad(f"{Path(given[0]).name} does not end within {seconds:.0f} s") from None
        except OSError as error:
            raise NotToBeHad(f"{Path(given[0]).name}: {error.strerror}") from None
        if done.returncode > 1 and not done.stdout:
            raise NotToBeHad(f"{Path(given[0]).name} fails: {done.stderr.decode(errors='replace').strip()[:90]}")
        return done.stdout

    def _command(self, kind: str, text: str, *, regex: bool) -> tuple[str, ...]:
        peer = self._peer
        base = peer.regex if regex else peer.literal
        wanted = text if regex or not peer.escape else re.escape(text).replace("\\ ", " ").replace("\\_", "_")
        given = (*base, *FLAGS.get(kind, ()))
        if kind == "files only":
            given = tuple(part for part in given if part != "-n")
        return (*given, wanted)

    def _cell(self, kind: str, targets: Targets) -> str:
        texts = (
            targets.rare, targets.miss, targets.common, targets.regex, targets.scan, targets.insensitive, targets.rare
        )  # fmt: skip
        command = self._command(kind, texts[KINDS.index(kind)], regex="regex" in kind)
        quoted = tuple(part.replace("{", "{{").replace("}", "}}") if part == command[-1] else part for part in command)
        try:
            times = repeated(partial(self._lines, quoted), children_cpu, seconds=4, most=30)
        except NotToBeHad as reason:
            return f"({reason})"
        return f"{times.p50:.1f} (p99 {times.p99:.1f}, CPU {times.cpu:.1f}, {times.hits} lines)"

    def _lines(self, command: tuple[str, ...]) -> int:
        return self._run(command).count(b"\n")

    def _touched(self) -> str:
        path = next(file for file in sorted(self._tree.rglob("*.[ch]")) if file.is_file())
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n/* {TOUCHED} */\n")
        ask: Callable[[], int] = partial(self._lines, self._command("touched", TOUCHED, regex=False))
        started = time.perf_counter()
        found = ask()
        spent = (time.perf_counter() - started) * 1000
        if found:
            return f"{spent:.1f}"
        if not self._peer.index_again:
            return "NOT FOUND"
        self._run(self._peer.index, INDEX_SECONDS)
        ask()
        return f"{(time.perf_counter() - started) * 1000:.1f} (indexed again; stale before)"

    def _size(self) -> int:
        path = Path(self._peer.where.format(**self._names))
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        return sum(file.stat().st_size for file in files)

    def _memory(self) -> str:
        """Return the resident memory of what it left running, by the tree its command line or folder names."""
        total = 0
        for process in Path("/proc").iterdir():
            try:
                if process.name.isdigit() and str((process / "cwd").readlink()).startswith(str(self._tree)):
                    total += int((process / "statm").read_text().split()[1]) * 4096
            except OSError:
                continue
        return f"{total / MIB:.0f}" if total else ""
