"""Random calls of ``fgrep rg`` against ripgrep: in a changing indexed project, outside one, piped, on a terminal."""

import os
import pty
import random
import re
import select
import shlex
import subprocess
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from flashgrep.base.paths import bundled_ripgrep
from flashgrep.parts.ripgrep.arguments import COVER, HARMLESS, PATTERN_FLAGS, flag_table
from scripts.benchmarks.private import FGREP, Client, private_daemon
from tests.support.rg_tree import BOUND, TIMES, make_tree

RG = str(bundled_ripgrep())
VARYING = re.compile(rb"%b|(?<=^thread 'main' \()\d+" % TIMES.pattern, re.MULTILINE)
"""Parts of output that vary: times, and the number of a thread in which ripgrep panics."""
SKIPPED = {"debug", "trace"}
"""Flags whose output depends on times and on the order of threads."""
VALUES: dict[str, str] = {
    "color": "always ansi never auto",
    "colors": "match:fg:red path:none line:style:bold match:bg:0x33 nonsense",
    "context-separator": "== --",
    "dfa-size-limit": "1M 10",
    "encoding": "utf-8 utf-16 latin1 none auto nonsense",
    "engine": "default pcre2 auto",
    "field-context-separator": "~",
    "field-match-separator": "%",
    "file": "patterns {root}/patterns - nope /dev/null",
    "generate": "complete-bash",
    "glob": "*.py *.txt !*.py sub/** !sub /a.txt *.{c,h} [ab]* .* !.git **/er/* * {root}/sub/** ![",
    "hostname-bin": "hostname",
    "hyperlink-format": "none file://{path} vscode",
    "iglob": "*.PY !*.TXT SUB/**",
    "ignore-file": "patterns extra-ignore nope",
    "max-columns": "0 5 40",
    "max-count": "0 1 3",
    "max-depth": "0 1 2 5",
    "max-filesize": "0 100 1K 1M x",
    "path-separator": "/ | ab",
    "pre": "cat",
    "pre-glob": "*.py !*.txt",
    "regex-size-limit": "1M 10",
    "regexp": "foo needle -e ^ zzz",
    "replace": "X $0y ${1}z",
    "sort": "path modified none created",
    "sortr": "path modified",
    "threads": "1 2 0",
    "type": "py c all txt rust nosuch",
    "type-add": "x:*.txt py:*.c y:include:py,c bad",
    "type-clear": "py nosuch",
    "type-not": "py c all nosuch",
}
"""Values of flags, separated by spaces."""
PATTERNS = [
    *(
        "foo",
        "needle",
        "needle",
        "needle",
        "Needle",
        "other_words",
        "a needle",
        "foo|needle",
        "needle$",
        "n(ee)d",
        "é",
    ),
    *(
        r"\w+",
        "^",
        "(",
        "zzz",
        "[^a]foo",
        "foo.*bar",
        r"foo\nbar",
        "",
        "-foo",
        "(?i)NEEDLE",
        r"\bfoo\b",
        "foobar",
    ),
    *(r"bar\s", "has just been saved"),
]
PATHS = [
    *(
        "",
        "",
        "",
        "",
        ".",
        "./",
        "sub",
        "sub/",
        "sub a.txt",
        "a.txt",
        "a.txt b.py",
        "-",
        "- sub",
        ".hid",
        ".git",
    ),
    *(
        "build",
        "nope",
        "nope sub",
        "link.txt",
        "link-to-sub",
        "sub/../sub",
        "{root}",
        "{root}/sub",
        "..",
        "sub sub",
    ),
    *("binary.bin", "late.bin sub", "ignored.log", "sub/one.c sub"),
]
SHARE_SORTED, SHARE_CHANGED, SHARE_GONE, SHARE_CONFIGURED, SHARE_PIPED = (
    0.85,
    0.1,
    0.3,
    0.1,
    0.12,
)
SHOWN = 100
"""Calls between progress reports."""
INPUTS = [b"", b"foo\nneedle in input\n", b"a\0 needle\n", b"\xff\xfef\0o\0o\0\n\0"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call and its working directory."""

    flags: tuple[str, ...]
    words: tuple[str, ...]
    cwd: Path
    given: bytes | None
    """Data on stdin; None: stdin is not readable."""
    config: str | None
    on_terminal: bool


def compare(rng: random.Random, calls: int, base: Path, tried: Counter[str]) -> int:
    """Make this many calls, print those that differ, and return their number."""
    indexed, plain = base / "projects" / "indexed", base / "projects" / "plain"
    for root in (indexed, plain):
        root.mkdir(parents=True)
        make_tree(root)
        (root / "extra-ignore").write_text("*.c\n")
        for name in [
            "a.txt",
            "b.py",
            "sub/one.c",
            ".hidden.py",
            ".hid/inner.txt",
            "sub/deep/er/five.py",
            "ignored.log",
        ]:
            with (root / name).open("ab") as file:
                file.write(b"\n  a needle in it\nNeedle other_words\n")
    subprocess.run(["git", "init", "-q", str(indexed)], check=True)
    failed = 0
    with private_daemon(base / "state") as daemon:
        subprocess.run(
            [FGREP, "index", indexed],
            env=daemon.environ,
            check=True,
            capture_output=True,
        )
        control = Client(daemon.paths.socket)
        for number in range(calls):
            if number % SHOWN == SHOWN - 1:
                print(f"{dict(tried)}, differences {failed}", flush=True)
            if rng.random() < SHARE_CHANGED:
                _change(indexed, rng)
            call = _draw(rng, indexed, plain)
            tried["calls of rg"] += 1
            tried["on a terminal"] += call.on_terminal
            tried["with input"] += call.given is not None
            tried["outside a project"] += not call.cwd.is_relative_to(indexed)
            tried["planned"] += call.given is None and _is_planned(control, call)
            if not _is_same(call, daemon.environ):
                failed += 1
                print(f"DIFFERENCE: {_shrunk(call, daemon.environ)}", flush=True)
        control.close()
    return failed


def _change(root: Path, rng: random.Random) -> None:
    """Save, delete or rename one of a few files, some of which are ignored."""
    path = root / rng.choice(
        [
            "fresh.py",
            "sub/fresh.c",
            ".fresh",
            "fresh.log",
            "a.txt",
            ".new/in.txt",
            "new/in.txt",
        ]
    )
    if path.exists() and rng.random() < SHARE_GONE:
        path.unlink()
    else:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"foo\nneedle %d has just been saved\n" % rng.randrange(100))


def _draw(rng: random.Random, indexed: Path, plain: Path) -> Call:
    root = rng.choice([indexed, indexed, indexed, plain])
    flags = ["--sort=path"] if rng.random() < SHARE_SORTED else []
    flags += _draw_flags(rng, root, rng.choice([0, 1, 2, 2, 3, 5]))
    config = None
    if rng.random() < SHARE_CONFIGURED:
        config = (
            str(root / "patterns")
            if rng.random() < SHARE_CONFIGURED
            else str(root.parent / "ripgreprc")
        )
        (root.parent / "ripgreprc").write_text(
            "\n".join(["# drawn", *_draw_flags(rng, root, rng.randint(0, 2))])
        )
    words = [
        rng.choice(PATTERNS),
        *rng.choice(PATHS).replace("{root}", str(root)).split(),
    ]
    if words[0].startswith("-") or rng.random() < SHARE_GONE:
        words.insert(0, "--")
    # On a terminal it would wait for what nobody types.
    reads_input = "-" in words[1:] or "--file=-" in flags
    given = None
    if reads_input or rng.random() < SHARE_PIPED:
        given = rng.choice(INPUTS)
    on_terminal = given is None and rng.random() < SHARE_PIPED
    return Call(
        tuple(flags),
        tuple(words),
        rng.choice([root, root, root / "sub"]),
        given,
        config,
        on_terminal,
    )


def _draw_flags(rng: random.Random, root: Path, most: int) -> list[str]:
    takes_value, letters = flag_table()
    names = sorted(takes_value.keys() - SKIPPED)
    often = sorted(COVER | HARMLESS | PATTERN_FLAGS.keys() | {"regexp", "file"})
    given = []
    for _ in range(most):
        name = rng.choice(
            rng.choice(
                [names, often, often, often, list(letters.values()), sorted(COVER)]
            )
        )
        if not takes_value[name]:
            given.append(f"--{name}")
        else:
            values = VALUES.get(name, "0 1 2 5").replace("{root}", str(root)).split(" ")
            given.append(f"--{name}={rng.choice(values)}")
    return given


def _is_planned(control: Client, call: Call) -> bool:
    params = {
        "cwd": os.fsencode(call.cwd).decode("latin-1"),
        "tty": False,
        "color": False,
        "width": 80,
    }
    argv = [
        os.fsencode(word).decode("latin-1") for word in ("rg", *call.flags, *call.words)
    ]
    return (
        control.call("$/cli", argv=argv, config=call.config or "", **params)["plan"]
        is not None
    )


def _is_same(call: Call, environ: dict[str, str]) -> bool:
    ours, theirs = (
        _said([*program, *call.flags, *call.words], call, environ)
        for program in ([FGREP, "rg"], [RG])
    )
    if ours == theirs:
        return True
    sorts = [flag for flag in call.flags if "sort" in flag]
    if (
        sorts[-1:] in (["--sort=path"], ["--sortr=path"], ["--sort-files"])
        and call.config is None
    ):
        return False
    # Unsorted, or sorted with ties: compare the set of lines.
    return [sorted(part.splitlines()) for part in ours[:2]] == [
        sorted(part.splitlines()) for part in theirs[:2]
    ]


def _said(
    command: list[str], call: Call, environ: dict[str, str]
) -> tuple[bytes, bytes, int]:
    """Return a command's output, without times, and its exit status."""
    environ = {**environ, "TERM": "xterm"} | (
        {"RIPGREP_CONFIG_PATH": call.config} if call.config else {}
    )
    if call.on_terminal:
        return _said_on_terminal(command, call.cwd, environ)
    stdin = subprocess.DEVNULL if call.given is None else None
    done = subprocess.run(
        command,
        cwd=call.cwd,
        env=environ,
        stdin=stdin,
        input=call.given,
        capture_output=True,
        check=False,
        timeout=BOUND,
    )
    return VARYING.sub(b"", done.stdout), VARYING.sub(b"", done.stderr), done.returncode


def _said_on_terminal(
    command: list[str], cwd: Path, environ: dict[str, str]
) -> tuple[bytes, bytes, int]:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, cwd=cwd, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], BOUND)[0]:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            shown += piece
        status = process.wait(BOUND)
    os.close(ours)
    return VARYING.sub(b"", shown), b"", status


def _shrunk(call: Call, environ: dict[str, str]) -> str:
    """Return the call without irrelevant flags, and both outputs."""
    for flag in call.flags:
        smaller = replace(
            call, flags=tuple(other for other in call.flags if other is not flag)
        )
        if not _is_same(smaller, environ):
            call = smaller
    both = [
        _said([*program, *call.flags, *call.words], call, environ)
        for program in ([FGREP, "rg"], [RG])
    ]
    config = Path(call.config).read_text("utf-8") if call.config else ""
    lines = [
        f"in {call.cwd}, given {call.given!r}, config {config!r}, terminal {call.on_terminal}:"
    ]
    lines.append(shlex.join(["rg", *call.flags, *call.words]))
    for who, (stdout, stderr, status) in zip(("ours", "rg"), both, strict=True):
        lines.append(f"  {who}: {status} {stdout[-600:]!r} {stderr[-300:]!r}")
    return "\n".join(lines)
