"""Compares other tools with ours: the same queries on the same files, with edits; answers are checked by ripgrep's.

Python packages are installed, and Go modules built, from their registries, only for the run. Other tools are measured
if their program is on PATH or in the folder given by ``--programs``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from scripts.benchmarks.peer_process import MIB, NotAvailable, Processes
from scripts.benchmarks.targets import Targets
from scripts.benchmarks.timing import repeated

INDEX_SECONDS = 240.0
"""An index that takes longer is given up."""
INSTALL_SECONDS = 600.0
CATCH_UP_SECONDS = 3.0
"""A tool that watches has so long to notice what was saved."""
TOUCHES = 8
IDLE_SECONDS = 5.0
"""After the last question a server has so long to let go of memory."""
LINE = re.compile(rb"^(.+?):(\d+):")
BEFORE = ("tool", "index s", "index MB", "peak MB")
AFTER = ("wrong", "stale at once", "stale later", "saved file, ms", "idle MB", "note")
FLAGS: Mapping[str, tuple[str, ...]] = {"insensitive": ("-i",), "files only": ("-l",)}


@dataclass(frozen=True, slots=True)
class Question:
    """A query of one kind."""

    kind: str
    text: str
    regex: bool = False


@dataclass(frozen=True, slots=True)
class Peer:
    """How to install and query a tool; ``{tree}``, ``{state}`` and ``{text}`` are its folders and the query's text."""

    name: str
    programs: tuple[str, ...]
    package: str = ""
    module: str = ""
    """A Go module with a version."""
    index: tuple[str, ...] = ()
    watches: bool = False
    """Whether it notices saved files by itself; else it is indexed again, unless it needs no index."""
    serve: tuple[str, ...] = ()
    """The command of its server, started once the index is ready."""
    ready: tuple[str, ...] = ()
    """A command that prints ``state ready`` or similar once a background index is ready."""
    literal: tuple[str, ...] = ()
    """The command of a query; ``{flags}`` are those of its kind."""
    regex: tuple[str, ...] = ()
    escape: bool = False
    """Whether it supports only regular expressions."""
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: FLAGS)
    """The flags of each kind of query; ``""``: of all other kinds."""
    by_file: bool = False
    """Whether its answers are files instead of lines."""
    where: str = ""
    stop: tuple[str, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)


OURS = {
    "FLASHGREP_STATE_DIR": "{state}/daemon", "FLASHGREP_CACHE_DIR": "{state}/cache", "FLASHGREP_TCP_PORT": "0",
    "XDG_CONFIG_HOME": "{state}/config",
}  # fmt: skip
ZOEKT = {
    "": ("case:yes",),
    "insensitive": ("case:no",),
    "files only": ("-l", "case:yes"),
}
ASK_ZOEKT = ("zoekt", "-index_dir", "{state}/zoekt", "{flags}", "content:{text}")
ASK_RUST = (
    "flashgrep-rs",
    "query",
    "{flags}",
    "--limit",
    "100000",
    "--output",
    "json",
    "{text}",
    "{tree}",
    "--mode",
)
PEERS = (
    Peer("ripgrep", ("rg",), literal=("rg", "-nF", "{flags}", "{text}"), regex=("rg", "-n", "{flags}", "{text}")),
    Peer(
        "flashgrep, `fgrep rg`", ("fgrep",), index=("fgrep", "index", "{tree}"), watches=True, where="{state}/cache",
        literal=("fgrep", "rg", "-nF", "{flags}", "{text}"), regex=("fgrep", "rg", "-n", "{flags}", "{text}"),
        stop=("fgrep", "daemon", "stop"), environ=OURS,
    ),
    Peer(
        "google/codesearch", ("cindex", "csearch"), module="github.com/google/codesearch@v1.2.0", escape=True,
        index=("cindex", "{tree}"), literal=("csearch", "-n", "{flags}", "{text}"),
        regex=("csearch", "-n", "{flags}", "{text}"), where="{state}/csearch",
        environ={"CSEARCHINDEX": "{state}/csearch"},
    ),
    Peer(
        "sourcegraph/zoekt", ("zoekt-index", "zoekt"), escape=True,
        index=("zoekt-index", "-index", "{state}/zoekt", "{tree}"), literal=ASK_ZOEKT, regex=ASK_ZOEKT, flags=ZOEKT,
        where="{state}/zoekt",
    ),
    Peer(
        "microsoft/tgrep", ("tgrep",), index=("tgrep", "index", "{tree}"), serve=("tgrep", "serve", "{tree}"),
        ready=("tgrep", "status", "{tree}"), watches=True, literal=("tgrep", "-F", "{flags}", "{text}", "{tree}"),
        regex=("tgrep", "{flags}", "{text}", "{tree}"), where="{tree}/.tgrep",
    ),
    Peer(
        "nnlgsakib/flashgrep, in Rust", ("flashgrep-rs",), index=("flashgrep-rs", "index", "{tree}"), by_file=True,
        literal=(*ASK_RUST, "literal"), regex=(*ASK_RUST, "regex"), flags={"insensitive": ("-i",)},
        where="{tree}/.flashgrep",
    ),
    Peer(
        "ripgrepx", ("rgx",), package="ripgrepx", index=("rgx", "--server", "start"), watches=True,
        ready=("rgx", "--server", "status"), literal=("rgx", "-n", "-F", "{flags}", "{text}"),
        regex=("rgx", "-n", "{flags}", "{text}"), where="{state}/rgx", stop=("rgx", "--server", "stop"),
        environ={"RGX_CACHE_DIR": "{state}/rgx"},
    ),
    Peer(
        "glep", ("glep",), package="glep", index=("glep", "index"), watches=True, where="{tree}/.glep",
        literal=("glep", "-nF", "{flags}", "{text}"), regex=("glep", "-n", "{flags}", "{text}"),
    ),
    Peer("gist-search", ("gist",), package="gist-search"),
)  # fmt: skip


def measure(
    base: Path, root: Path, rg: Path, targets: Targets, programs: Path | None
) -> Iterator[str]:
    """Yield the lines of a table: medians of wall time, and processor time, in ms of whole processes.

    ``programs``: a folder with programs that no registry has.
    """
    questions = [
        Question("rare literal", targets.rare), Question("miss", targets.miss), Question("common, all", targets.common),
        Question("regex", targets.regex, regex=True), Question("regex, no literals", targets.scan, regex=True),
        Question("insensitive", targets.insensitive), Question("files only", targets.rare),
    ]  # fmt: skip
    columns = [*BEFORE, *(question.kind for question in questions), *AFTER]
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for peer in PEERS:
        state = base / "peer"
        try:
            yield from _Measured(peer, state, root, rg, programs).lines(questions)
        except NotAvailable as reason:
            yield f"| {peer.name} |" + " |" * (len(columns) - 2) + f" {reason} |"
        finally:
            shutil.rmtree(state, ignore_errors=True)


class _Measured:
    """The measurement of one tool, on a copy of the files that ripgrep searches."""

    def __init__(
        self, peer: Peer, state: Path, root: Path, rg: Path, programs: Path | None
    ) -> None:
        self._peer = peer
        self._rg = rg
        self._tree = state / "tree"
        self._names = {"{tree}": str(self._tree), "{state}": str(state)}
        self._bin = state / "bin"
        listed = subprocess.run(
            [rg, "--no-config", "--files", "-0"],
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout
        self._files = sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)
        for name in self._files:
            (self._tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, self._tree / name)
        ours = os.fspath(rg.parent)
        path = [
            str(self._bin),
            str(state / "venv" / "bin"),
            *([str(programs)] if programs else []),
            ours,
            os.defpath,
        ]
        environ = {"PATH": os.pathsep.join(path), "HOME": str(state), "LANG": "C.UTF-8"}
        environ |= {
            name: self._placed((value,))[0] for name, value in peer.environ.items()
        }
        self._path = environ["PATH"]
        self._processes = Processes(self._tree, environ)

    def lines(self, questions: Sequence[Question]) -> Iterator[str]:
        """Install the tool, index, query and edit; yield its row of the table."""
        self._install(self._names["{state}"])
        try:
            with self._processes.peak() as peak:
                seconds = self._index()
                if not self._peer.literal:
                    raise NotAvailable("cannot search text on the command line")
                cells, wrong = [], []
                for question in questions:
                    cells.append(self._cell(question))
                    wrong += self._compare(question)
                saved, stale, later = self._touch()
            time.sleep(IDLE_SECONDS)
            idle = self._processes.memory()
            size = f"{self._size() / MIB:.0f}" if self._peer.where else ""
            head = [
                self._peer.name,
                f"{seconds:.1f}" if seconds else "",
                size,
                f"{peak[-1] / MIB:.0f}",
            ]
            counted = [
                f"{len(wrong)} of {len(questions)}",
                f"{stale} of {TOUCHES}",
                f"{later} of {TOUCHES}",
            ]
            tail = [f"{saved:.1f}", f"{idle / MIB:.0f}", "; ".join(wrong)]
            yield "| " + " | ".join([*head, *cells, *counted, *tail]) + " |"
        finally:
            if self._peer.stop:
                with suppress(NotAvailable):
                    self._processes.run(self._placed(self._peer.stop))
            self._processes.end()

    def _install(self, state: str) -> None:
        """Install the tool's programs and put them on its PATH."""
        peer = self._peer
        if peer.package:
            venv = f"{state}/venv"
            commands = [
                [sys.executable, "-m", "venv", venv],
                [f"{venv}/bin/pip", "install", "-q", peer.package],
            ]
        elif peer.module and not shutil.which(peer.programs[0], path=self._path):
            module = peer.module.partition("@")[0]
            self._bin.mkdir(parents=True)
            commands = [
                ["go", "mod", "init", "peers"], ["go", "get", peer.module],
                ["go", "build", "-o", f"{self._bin}/", *(f"{module}/cmd/{program}" for program in peer.programs)],
            ]  # fmt: skip
        else:
            commands = []
        for command in commands:
            try:
                done = subprocess.run(
                    command, cwd=self._bin if command[0] == "go" else None, text=True, capture_output=True, check=False,
                    env={**os.environ, "GOFLAGS": "-mod=mod -buildvcs=false"}, timeout=INSTALL_SECONDS,
                )  # fmt: skip
            except (OSError, subprocess.TimeoutExpired) as error:
                raise NotAvailable(
                    f"not available: {' '.join(command[:3])}: {type(error).__name__}"
                ) from None
            if done.returncode:
                reasons = [
                    line for line in done.stderr.splitlines() if "error" in line.lower()
                ] or [done.stderr]
                raise NotAvailable(f"not available: {reasons[0][:110]}")
        missing = [
            program
            for program in peer.programs
            if not shutil.which(program, path=self._path)
        ]
        if missing:
            raise NotAvailable(
                f"not available: no {missing[0]} on PATH or in the folder of --programs"
            )

    def _index(self) -> float:
        peer = self._peer
        if not peer.index:
            return 0.0
        started = time.perf_counter()
        self._processes.run(self._placed(peer.index), INDEX_SECONDS)
        if peer.serve:
            self._processes.start(self._placed(peer.serve))
        while peer.ready and not re.search(
            rb"state +ready|Indexing: +complete", self._ready()
        ):
            if time.perf_counter() - started > INDEX_SECONDS:
                raise NotAvailable(f"no index within {INDEX_SECONDS:.0f} s")
            time.sleep(0.05)
        return time.perf_counter() - started

    def _ready(self) -> bytes:
        try:
            return self._processes.run(self._placed(self._peer.ready))
        except NotAvailable:  # its server is not ready yet
            return b""

    def _placed(
        self, command: Sequence[str], question: Question | None = None
    ) -> list[str]:
        """Return a command with its placeholders filled in."""
        names = dict(self._names)
        flags: tuple[str, ...] = ()
        if question is not None:
            is_plain = self._peer.escape and not question.regex
            names["{text}"] = re.escape(question.text) if is_plain else question.text
            flags = self._peer.flags.get(question.kind, self._peer.flags.get("", ()))
        parts = [
            one for part in command for one in (flags if part == "{flags}" else (part,))
        ]
        return [
            re.sub(r"\{(tree|state|text)\}", lambda name: names[name[0]], part)
            for part in parts
        ]

    def _ask(self, question: Question) -> list[str]:
        return self._placed(
            self._peer.regex if question.regex else self._peer.literal, question
        )

    def _cell(self, question: Question) -> str:
        command = self._ask(question)
        try:
            times = repeated(
                lambda: self._processes.run(command).count(b"\n"),
                self._processes.cpu,
                seconds=2,
                most=20,
            )
        except NotAvailable as reason:
            return f"({reason})"
        return f"{times.p50:.1f} (CPU {times.cpu:.1f})"

    def _compare(self, question: Question) -> list[str]:
        """Return the differences of an answer from ripgrep's at this moment."""
        truth = self._truth(question)
        try:
            found = self._found(question)
        except NotAvailable:
            return [f"{question.kind}: no answer"]
        missing, more = len(truth - found), len(found - truth)
        return (
            [f"{question.kind}: {missing} missing, {more} too many of {len(truth)}"]
            if missing or more
            else []
        )

    def _truth(self, question: Question) -> set[bytes]:
        flags = FLAGS.get(question.kind, ())
        plain = () if question.regex else ("-F",)
        command = [self._rg, "--no-config", "-n", *plain, *flags, question.text]
        told = subprocess.run(
            command,
            cwd=self._tree,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return self._places(told.stdout, question)

    def _found(self, question: Question) -> set[bytes]:
        told = self._processes.run(self._ask(question))
        if self._peer.by_file:
            told = b"".join(
                os.fsencode(one["file_path"]) + b":1:\n" for one in json.loads(told)
            )
        return self._places(told, question)

    def _places(self, told: bytes, question: Question) -> set[bytes]:
        """Return the lines or files in a tool's output, as ``path:line`` or ``path`` relative to the tree."""
        places = set()
        for line in told.splitlines():
            found = LINE.match(line)
            if question.kind == "files only" or (found and self._peer.by_file):
                place = found[1] if found else line
            elif found:
                place = found[1] + b":" + found[2]
            else:
                continue
            places.add(
                place.removeprefix(os.fsencode(self._tree) + b"/").removeprefix(b"./")
            )
        return places

    def _touch(self) -> tuple[float, int, int]:
        """Save, create and delete files; return the ms until the first save is found, and the counts of stale answers.

        Both at once, and later: after the tool was indexed again, or had time to notice.
        """
        took = 0.0
        stale = later = 0
        for turn in range(TOUCHES):
            path = self._tree / self._files[turn * len(self._files) // TOUCHES]
            made = next(self._tree.rglob("made_for_the_peers.txt"), None)
            if turn % 2 == 0:
                word = f"saved_for_the_peers_{turn}"
                with path.open("ab") as file:
                    file.write(f"\n{word}\n".encode())
            elif made is None:
                word = f"made_for_the_peers_{turn}"
                (path.parent / "made_for_the_peers.txt").write_text(f"{word}\n")
            else:
                word = made.read_text("utf-8").strip()
                made.unlink()
            question = Question("saved", word)
            truth = self._truth(question)
            started = time.perf_counter()
            if self._found(question) != truth:
                stale += 1
                if self._peer.watches:
                    while (
                        self._found(question) != truth
                        and time.perf_counter() - started < CATCH_UP_SECONDS
                    ):
                        time.sleep(0.05)
                elif self._peer.index:
                    self._processes.run(self._placed(self._peer.index), INDEX_SECONDS)
                later += self._found(question) != truth
            took = took or (time.perf_counter() - started) * 1000
        return took, stale, later

    def _size(self) -> int:
        path = Path(self._placed((self._peer.where,))[0])
        files = (
            [path]
            if path.is_file()
            else [file for file in path.rglob("*") if file.is_file()]
        )
        return sum(file.stat().st_size for file in files)
