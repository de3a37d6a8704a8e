"""A tree with all difficult cases of searching, and runs of ripgrep on it."""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

RG = (
    shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which("rg") or "rg"
)
BOUND = 60.0
"""Timeout in seconds; a command takes milliseconds."""
TIMES = re.compile(
    rb'"elapsed(_total)?":\{[^}]*\}|[0-9.]+ seconds (spent searching|total)'
)
_TEXT = "foo one\nbar\nFoo foo two\nbaz qux\n\nfoobar barfoo\nlast foo"
_LINES = "".join(
    f"line {number} {'foo' if number % 97 == 0 else 'nothing'}\n"
    for number in range(9000)
)

FILES: dict[bytes, bytes] = {
    b"a.txt": _TEXT.encode(),
    b"b.py": b"def foo():\n    return 'bar'\n\n\n\nclass Foo:\n    foo = bar = 1\n",
    b"crlf.txt": _TEXT.replace("\n", "\r\n").encode() + b"\r\n",
    b"mixed.txt": b"foo\r\nbar\nfoo\r\n\r\nfoo\r",
    b"empty.txt": b"",
    b"newline.txt": b"\n",
    b"newlines.txt": b"\n\n\nfoo\n\n",
    b"no-match.txt": b"nothing here\n",
    b"utf8.txt": "été foo ÉTÉ\nжизнь foo\n日本語 bar\n".encode(),
    b"bom.txt": b"\xef\xbb\xbffoo at the top\nsecond foo\n",
    b"utf16le.txt": b"\xff\xfe" + "foo wide\nbar été\nfoo end".encode("utf-16-le"),
    b"utf16be.txt": b"\xfe\xff" + "foo wide\nbar\n".encode("utf-16-be"),
    b"latin.txt": "été foo\nbär\n".encode("latin-1"),
    b"invalid.txt": b"foo \xff\xfe bar\n\xc3 foo\n\xe2\x82 foo \xe2\x82\xac\n",
    b"binary.bin": b"foo before\nbar\n\0\0 foo in\nfoo after\nbar\n",
    b"binary2.bin": b"bar\nfoo\0foo\n",
    b"late.bin": _LINES.encode() + b"\0" + _LINES.encode(),
    b"late-line.bin": b"foo\n"
    + (b"x" * 10_000 + b" foo\n") * 6
    + b"y" * 9_000
    + b"\nbar\n\0 foo\n",
    # No line exceeds ripgrep's buffer: ripgrep would keep the larger one for later
    # files.
    b"long.txt": b"a" * 3000
    + b" foo "
    + b"b" * 3000
    + b"\nshort foo\n"
    + b"c" * 20_000
    + b"foo\n",
    b"big.txt": _LINES.encode(),
    b"tabs.txt": b"\t  foo\n \t\n  bar foo  \n",
    b"sub/one.c": b"int foo;\nint bar;\nint baz;\nint foo2;\n",
    b"sub/two.h": b"extern int foo;\n/* foo foo */\n",
    b"sub.x/three.c": b"foo\n",
    b"sub-y/four.rs": b"fn foo() {}\n",
    b"sub/deep/er/five.py": b"foo = 'bar'\nbar = foo\n",
    b"with space/a b.txt": b"foo in a space\n",
    b"odd\nname.txt": b"foo in a line end\n",
    b"odd\xff.txt": b"foo in no utf-8\n",
    "é.txt".encode(): b"foo in an accent\n",
    b".hidden.py": b"foo hidden\n",
    b".hid/inner.txt": b"foo in hidden\n",
    b"ignored.log": b"foo ignored\n",
    b"build/out.txt": b"foo built\n",
    b"build/keep.c": b"foo kept\n",
    b"node/deep.txt": b"foo by .ignore\n",
    b"rg.tmp": b"foo by .rgignore\n",
    b".gitignore": b"*.log\nbuild/\n",
    b".ignore": b"node/\n",
    b".rgignore": b"*.tmp\n",
    b"sub/.gitignore": b"*.h\n",
    b"patterns": b"foo\nbar$\n",
    b".git/config": b"[core]\n\tfoo = bar\n",
}


def make_tree(root: Path) -> bytes:
    """Write the files, each with a different age, and return the root."""
    for number, (name, content) in enumerate(FILES.items()):
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        stamp = 1_700_000_000 + (number * 37) % 101 * 1000
        os.utime(path, (stamp, stamp))
    (root / "link.txt").symlink_to("a.txt")
    (root / "link-to-sub").symlink_to("sub")
    return os.fsencode(root)


@dataclass(frozen=True, slots=True)
class Said:
    """A command's output, without times, and its exit status."""

    stdout: bytes
    stderr: bytes
    status: int


def ripgrep(arguments: Sequence[str | bytes], cwd: Path) -> Said:
    """Run ripgrep."""
    return run_to_end([RG, *arguments], cwd)


def run_to_end(
    command: Sequence[str | bytes], cwd: Path, environ: Mapping[str, str] | None = None
) -> Said:
    """Run a command without input."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=BOUND,
    )
    return Said(
        TIMES.sub(b"", done.stdout), TIMES.sub(b"", done.stderr), done.returncode
    )


def in_path_order(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with ``--sort path`` unless they have an order: ripgrep's own is undefined."""
    return [
        *(
            []
            if any(word.startswith("--sort") for word in arguments)
            else ["--sort=path"]
        ),
        *arguments,
    ]


def commands(*tables: str) -> list[list[str]]:
    """Return the commands of tables, separated by line ends or bars, with arguments separated by spaces."""
    cells = [
        cell
        for table in tables
        for line in table.strip().splitlines()
        for cell in line.split(" | ")
    ]
    return [cell.split(" ") for cell in cells]
