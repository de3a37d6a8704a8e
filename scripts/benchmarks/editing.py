"""Reading and writing: slices of small and very large files, edits with and without the time of fsync."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flashgrep.files.editor import Editor
from flashgrep.files.read import SliceQuery, read_slice
from flashgrep.files.root import Root
from flashgrep.parts.edit.edits import LineEdit
from flashgrep.parts.edit.write import WriteRequest, write_file
from scripts.benchmarks.rows import Row, most, p50
from scripts.benchmarks.timing import Times, repeated

LINES = 5_000
BIG = 1 << 30
EDITS = 200


def measure(base: Path, cpu: Callable[[], float]) -> Iterator[Row]:
    """Yield the rows; ``base``: a folder on the disk to measure."""
    folder = base / "editing"
    folder.mkdir()
    (folder / "a.py").write_text(
        "".join(
            f"    value_{at} = compute(some, arguments, {at})\n" for at in range(LINES)
        )
    )
    editor = Editor(Root(os.fsencode(folder), os.fsencode(base / "state")))
    ask = SliceQuery(start_line=2000, end_line=2399, max_tokens=8000, with_total=True)
    yield Row(
        "read_code, 400 lines (engine)",
        repeated(lambda: _read(editor, b"a.py", ask), cpu),
        bars=[p50(1)],
    )
    yield from _edits(editor)
    yield from _large(editor, folder / "big.log", cpu)
    editor.close()


def _read(editor: Editor, path: bytes, ask: SliceQuery) -> int:
    return len(read_slice(editor, path, ask)["content"])


def _edits(editor: Editor) -> Iterator[Row]:
    """Measure ten-line edits, with the time of fsync separate."""
    real, spent = os.fsync, [0.0]

    def timed(fd: Any) -> None:
        started = time.perf_counter()
        real(fd)
        spent[0] += time.perf_counter() - started

    besides, disk = [], []
    os.fsync = timed
    try:
        for turn in range(EDITS):
            spent[0], started = 0.0, time.perf_counter()
            text = "".join(f"new {turn} {line}\n" for line in range(10))
            write_file(editor, WriteRequest(b"a.py", LineEdit(2000, 2009, text)))
            besides.append((time.perf_counter() - started - spent[0]) * 1e3)
            disk.append(spent[0] * 1e3)
    finally:
        os.fsync = real
    middle = EDITS // 2
    note = f"fsync of file and folder: {sorted(disk)[middle]:.2f} ms more"
    yield Row("write_code, 10 of 5,000 lines, besides fsync", value=sorted(besides)[middle], unit="ms",
              bars=[most(5, "ms")], note=note)  # fmt: skip


def _large(editor: Editor, file: Path, cpu: Callable[[], float]) -> Iterator[Row]:
    block = b"".join(
        b"2026-11-21 line %09d of a log with some text in it\n" % at
        for at in range(200_000)
    )
    with file.open("wb") as out:
        while out.tell() < BIG:
            out.write(block)
    os.utime(file, (1e9, 1e9))
    lines = file.stat().st_size // len(block) * 200_000
    ask = SliceQuery(start_line=lines - 50)
    path = os.fsencode(file.name)
    started = time.perf_counter()
    _read(editor, path, ask)
    yield Row(
        "slice near the end of 1 GB, first read",
        value=(time.perf_counter() - started) * 1e3,
        unit="ms",
    )
    found: Times = repeated(lambda: _read(editor, path, ask), cpu)
    yield Row("slice near the end of 1 GB, then", found, bars=[p50(50)])
    file.unlink()
