"""The indexer's late stages: what changes meanwhile is left, batches come in order, and a waiting command ends them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from io import BytesIO
from pathlib import Path

from flashgrep.base.child_process import read_frame
from flashgrep.files.openat import RootFolder
from flashgrep.index import schema
from flashgrep.index.writer import Reserved
from flashgrep.indexer.index_scheduler import wait_before_retry
from flashgrep.indexer.indexer_process import Indexer
from flashgrep.indexer.job import IndexJob, ProjectJob
from flashgrep.indexer.workers import prepare, read_texts
from flashgrep.parts.meaning.index.word_impacts import find_words
from flashgrep.parts.meaning.part import PART as MEANING
from flashgrep.parts.symbols.parsing_stage import PARSE_BATCH, Parsers
from flashgrep.parts.symbols.part import PART as SYMBOLS


def test_a_text_that_changed_gets_no_row_and_others_do(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def first():\n    pass\n")
    (tmp_path / "b.py").write_text("def second():\n    pass\n")
    names = [b"a.py", b"b.py"]
    files = prepare(
        RootFolder(bytes(tmp_path)), names, Reserved(1, 1), None, 1 << 20
    ).files
    texts = [(at, text_hash, row.path) for at, (row, text_hash) in enumerate(files, 1)]
    (tmp_path / "a.py").write_text("def other():\n    pass\n")
    parsers = Parsers(partial(read_texts, RootFolder(bytes(tmp_path)), 1 << 20), 1)
    try:
        (done,) = parsers.run([texts])
    finally:
        parsers.close()
    assert [row.text_id for row in done.rows] == [2]
    assert done.declined == []


def test_batches_come_in_order_and_no_more_of_them_wait_than_are_worked_on(
    tmp_path: Path,
) -> None:
    for at in range(12):
        (tmp_path / f"{at:02}.py").write_text(
            f"def number_{at}():\n    pass\n" * (1 + 500 * (at % 3 == 0))
        )
    names = [f"{at:02}.py".encode() for at in range(12)]
    files = prepare(
        RootFolder(bytes(tmp_path)), names, Reserved(1, 1), None, 1 << 20
    ).files
    texts = [(at, text_hash, row.path) for at, (row, text_hash) in enumerate(files)]
    taken: list[int] = []

    def batches() -> Iterator[list[tuple[int, bytes, bytes]]]:
        for text in texts:
            taken.append(text[0])
            yield [text]

    parsers = Parsers(partial(read_texts, RootFolder(bytes(tmp_path)), 1 << 20), 2)
    try:
        for at, done in enumerate(parsers.run(batches())):
            assert [(row.text_id, row.names) for row in done.rows] == [
                (at, (f"number_{at}".encode(),))
            ]
            # Two are parsed, two are read, and one waits.
            assert len(taken) <= at + 5
    finally:
        parsers.close()
    assert taken == list(range(12))


def test_each_batch_tells_how_much_is_left_and_a_waiting_command_ends_a_stage_between_two(
    tmp_path: Path,
) -> None:
    root, out, waits = tmp_path / "tree", BytesIO(), iter([False, True, *[False] * 99])
    root.mkdir()
    for at in range(2 * PARSE_BATCH):
        (root / f"{at:03}.py").write_text(f"def number_{at}():\n    pass\n")
    files = [[f"{at:03}.py", 30] for at in range(2 * PARSE_BATCH)]
    functions = {**SYMBOLS.indexer_functions, **MEANING.indexer_functions}
    job = IndexJob(tmp_path / "index.db", bytes(root), 1, functions=functions)
    project = ProjectJob(RootFolder(bytes(root)), 1 << 20, 0, 1).to_json()
    indexer = Indexer(job, out, lambda: next(waits))

    def run(stage: str) -> list[int]:
        out.seek(0)
        out.truncate()
        indexer.run({"op": stage, "project": project, "embedding": "{}"})
        sent = BytesIO(out.getvalue())
        events = list(iter(partial(read_frame, sent), None))
        assert [event["last"] for event in events] == [
            *[False] * (len(events) - 1),
            True,
        ]
        return [event["texts"] for event in events]

    try:
        indexer.run(
            {
                "op": "update",
                "project": project,
                "batch": 1,
                "files": files,
                "forget": [],
            }
        )
        assert run("symbols") == [64, 32, 32, 32]
        assert run("symbols") == [32, 0, 0, 0]
        assert run("chunks") == [64, 0, 0, 0, 0]
        assert run("vectors") == [0, 0, 0]  # they came with the chunks
        with closing(sqlite3.connect(tmp_path / "index.db")) as other, other:
            other.execute("DELETE FROM embedded")
        assert run("vectors") == [64, 0, 0, 0]
        assert run("vectors")[-1] == 0
        indexer.run({"op": "stop"})
    finally:
        indexer.close()
    with closing(schema.connect(tmp_path / "index.db")) as connection:
        assert (
            find_words(connection, ["number", "number_7"])["number"].chunks
            == 2 * PARSE_BATCH
        )


def test_what_fails_for_days_is_tried_again_at_the_same_pace() -> None:
    waits = [
        wait_before_retry(0.5, 30.0, failures) for failures in (0, 1, 2, 10, 5_000)
    ]
    assert waits == [0.5, 1.0, 2.0, 30.0, 30.0]
