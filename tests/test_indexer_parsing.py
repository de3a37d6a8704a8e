"""Parsing texts that change meanwhile stores nothing for them: the text may come back."""

from collections.abc import Iterator
from pathlib import Path

from flashgrep.daemon.parsing import Parsers
from flashgrep.daemon.prepare import prepare
from flashgrep.index.writer import Reserved
from flashgrep.ingest.openat import RootFolder


def test_a_text_that_changed_gets_no_row_and_others_do(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def first():\n    pass\n")
    (tmp_path / "b.py").write_text("def second():\n    pass\n")
    names = [b"a.py", b"b.py"]
    files = prepare(RootFolder(bytes(tmp_path)), names, Reserved(1, 1), None, 1 << 20).files
    texts = [(at, text_hash, row.path) for at, (row, text_hash) in enumerate(files, 1)]
    (tmp_path / "a.py").write_text("def other():\n    pass\n")
    parsers = Parsers(RootFolder(bytes(tmp_path)), 1 << 20, 1)
    try:
        (done,) = parsers.run([texts])
    finally:
        parsers.close()
    assert [row.blob for row in done.rows] == [2]
    assert done.declined == []


def test_batches_come_in_order_and_no_more_of_them_wait_than_are_worked_on(tmp_path: Path) -> None:
    for at in range(12):
        (tmp_path / f"{at:02}.py").write_text(f"def number_{at}():\n    pass\n" * (1 + 500 * (at % 3 == 0)))
    names = [f"{at:02}.py".encode() for at in range(12)]
    files = prepare(RootFolder(bytes(tmp_path)), names, Reserved(1, 1), None, 1 << 20).files
    texts = [(at, text_hash, row.path) for at, (row, text_hash) in enumerate(files)]
    taken: list[int] = []

    def batches() -> Iterator[list[tuple[int, bytes, bytes]]]:
        for text in texts:
            taken.append(text[0])
            yield [text]

    parsers = Parsers(RootFolder(bytes(tmp_path)), 1 << 20, 2)
    try:
        for at, done in enumerate(parsers.run(batches())):
            assert [(row.blob, row.names) for row in done.rows] == [(at, (f"number_{at}".encode(),))]
            assert len(taken) <= at + 3
    finally:
        parsers.close()
    assert taken == list(range(12))
