"""The index database: what is written is read, merged, found damaged, set aside."""

import hashlib
import math
import random
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.damage import Damaged
from flashgrep.cli.doctor import health
from flashgrep.files.openat import RootFolder
from flashgrep.index import schema
from flashgrep.index.reader import Reader
from flashgrep.index.segments import (
    MOST_SEGMENTS,
    Kind,
    SegmentRow,
    segments,
    worth_merging,
)
from flashgrep.index.table import FileRow, FileTable
from flashgrep.index.writer import Writer
from flashgrep.indexer.workers import prepare
from flashgrep.pattern import ANYTHING, NOTHING, Pattern
from tests.support.store import ROWS

ROOT = b"/tree"
NAMES = [b"one.py", b"two.py", b"three.py", b"copy of one.py", b"binary.bin", b"empty"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    words = ["alpha", "beta", "gamma", "delta"]
    for at, name in enumerate(["one.py", "two.py", "three.py"]):
        (root / name).write_text(
            f"def {words[at]}_function(): return {words[at + 1]}\n"
        )
    (root / "copy of one.py").write_bytes((root / "one.py").read_bytes())
    (root / "binary.bin").write_bytes(b"\0\1\2")
    (root / "empty").touch()
    return root


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "index.db", ROWS)
    yield writer
    writer.close()


def store(writer: Writer, tree: Path, names: list[bytes]) -> list[FileRow]:
    done = prepare(
        RootFolder(bytes(tree)), names, writer.reserve(len(names)), None, 1 << 20
    )
    return writer.put(
        writer.add_project(ROOT),
        done.reserved,
        done.texts,
        done.blocks,
        done.files,
        done.gone,
    )[1]


def found(reader: Reader, text: str) -> set[bytes]:
    table = FileTable.of(reader.files())
    text_ids = reader.candidates(Pattern(texts=(text,), mode="literal").grams())
    assert text_ids is not None
    return {table.paths[at] for at in table.places(text_ids)}


def test_files_are_found_by_their_grams_and_copies_share_a_text(
    writer: Writer, tree: Path, tmp_path: Path
) -> None:
    rows = {row.path: row for row in store(writer, tree, NAMES)}
    assert rows[b"one.py"].text_id == rows[b"copy of one.py"].text_id
    assert rows[b"binary.bin"].skip == "binary"
    reader = Reader(tmp_path / "index.db", ROOT)
    assert found(reader, "alpha_function") == {b"one.py", b"copy of one.py"}
    assert found(reader, "gamma") == {b"two.py", b"three.py"}
    assert found(reader, "nowhere") == set()
    assert found(reader, "bet") >= {b"one.py", b"copy of one.py", b"two.py"}
    assert reader.candidates(ANYTHING) is None
    nothing = reader.candidates(NOTHING)
    assert nothing is not None
    assert not len(nothing)
    reader.close()


def test_a_gone_file_and_a_changed_one_leave_no_trace_in_answers(
    writer: Writer, tree: Path, tmp_path: Path
) -> None:
    store(writer, tree, NAMES)
    (tree / "one.py").write_text("epsilon\n")
    (tree / "two.py").unlink()
    store(writer, tree, [b"one.py", b"two.py"])
    reader = Reader(tmp_path / "index.db", ROOT)
    assert found(reader, "alpha_function") == {b"copy of one.py"}
    assert found(reader, "epsilon") == {b"one.py"}
    assert b"two.py" not in {row.path for row in reader.files()}
    reader.close()


def test_merged_segments_answer_as_before_and_drop_dead_texts(
    writer: Writer, tree: Path, tmp_path: Path
) -> None:
    rng = random.Random(5)
    names = [f"f{at}.txt" for at in range(40)]
    for name in names:
        (tree / name).write_text(
            " ".join(rng.choices(["spam", "eggs", "bacon", "tomato", "herring"], k=3))
            + name
        )
        store(writer, tree, [name.encode()])
    for name in names[:20]:
        (tree / name).unlink()
        store(writer, tree, [name.encode()])
    reader = Reader(tmp_path / "index.db", ROOT)
    questions = ["spam", "eggs bacon", "herring", "tomato spam", "f3.txt", "f33.t"]
    before = {text: found(reader, text) for text in questions}
    assert any(before.values())
    deque(writer.merge(), maxlen=0)
    deque(writer.shrink(), maxlen=0)
    assert len(segments(writer.connection, Kind.GRAMS)) == 1
    assert {text: found(reader, text) for text in questions} == before
    assert reader.size().texts == 20
    assert writer.connection.execute("SELECT count(*) FROM text").fetchone() == (20,)
    assert writer.connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    reader.close()


def test_a_merge_that_is_given_up_half_way_leaves_the_segments_as_they_were(
    writer: Writer, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flashgrep.index.segments.SLICE_BYTES", 100)
    names = [f"f{at}.txt" for at in range(MOST_SEGMENTS + 2)]
    for name in names:
        noise = random.Random(name).randbytes(4000).hex()  # grams for several blocks
        (tree / name).write_text(f"some words of {name}, others of all\n{noise}\n")
        store(writer, tree, [name.encode()])
    before = segments(writer.connection, Kind.GRAMS)
    merging = writer.merge()
    shares = [next(merging).share for _ in range(3)]
    assert 0 < shares[0] < shares[1] < shares[2] < 1
    merging.close()
    assert segments(writer.connection, Kind.GRAMS) == before
    reader = Reader(tmp_path / "index.db", ROOT)
    assert found(reader, "words of f3.txt") == {b"f3.txt"}
    assert [step.share for step in writer.merge()][-1] == 1.0
    assert len(segments(writer.connection, Kind.GRAMS)) == 1
    assert found(reader, "words of f3.txt") == {b"f3.txt"}
    assert found(reader, "others of all") == {name.encode() for name in names}
    reader.close()


@given(st.lists(st.integers(1, 1_000_000), max_size=200))
def test_merging_keeps_segments_few_and_rewrites_each_posting_a_few_times(
    sizes: list[int],
) -> None:
    rows: list[SegmentRow] = []
    written = 0
    for at, size in enumerate(sizes):
        rows.append(SegmentRow(at, Kind.GRAMS, at, at, size))
        chosen = worth_merging(rows)
        assert list(chosen) == rows[len(rows) - len(chosen) :]
        if chosen:
            merged = sum(row.bytes for row in chosen)
            written += merged
            rows = [
                *rows[: len(rows) - len(chosen)],
                chosen[0]._replace(last=at, bytes=merged),
            ]
        assert len(rows) <= MOST_SEGMENTS + math.log2(1 + sum(sizes))
    assert written <= sum(sizes) * (2 + math.log(1 + sum(sizes), 1.5))


def test_a_large_segment_is_left_alone_until_the_newer_ones_weigh_something() -> None:
    rows = [
        SegmentRow(at, Kind.GRAMS, at, at, size)
        for at, size in enumerate([1000, 1, 2, 1, 3, 1, 1])
    ]
    assert worth_merging(rows) == rows[1:]
    assert worth_merging([row._replace(bytes=9) for row in rows]) == [
        row._replace(bytes=9) for row in rows
    ]
    assert worth_merging(rows[:MOST_SEGMENTS]) == []


def test_connections_that_many_look_ups_took_at_once_are_closed_but_one(
    writer: Writer, tree: Path, tmp_path: Path
) -> None:
    store(writer, tree, [b"one.py"])
    reader = Reader(tmp_path / "index.db", ROOT)
    identity = reader.identity
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(reader.transaction())
        reader.shrink()
        generation = reader.generation()
    assert len(reader._idle) == 5
    reader.shrink()
    assert len(reader._idle) == 1
    assert (reader.generation(), reader.identity, reader.is_replaced()) == (
        generation,
        identity,
        False,
    )
    with reader.transaction():
        reader.shrink()
    reader.close()
    reader.shrink()
    assert not reader._idle


def test_an_index_is_looked_over(writer: Writer, tree: Path, tmp_path: Path) -> None:
    store(writer, tree, NAMES)
    found = health(tmp_path / "index.db")
    assert (found.problem, found.rows) == ("", len(NAMES))
    assert found.sizes["grams"] > found.sizes["symbols"]
    (tmp_path / "noise.db").write_bytes(b"noise" * 1000)
    assert "not a database" in health(tmp_path / "noise.db").problem


def damage_checksum(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("UPDATE path SET text_id = text_id + 1 WHERE skip = ''")
    connection.commit()
    connection.close()


def damage_segment(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("DELETE FROM segment")
    connection.commit()
    connection.close()


def damage_truncate(file: Path) -> None:
    with file.open("r+b") as handle:
        handle.truncate(file.stat().st_size // 2)


def damage_foreign(file: Path) -> None:
    file.unlink()
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE recipes (name)")
    connection.commit()
    connection.close()


def damage_noise(file: Path) -> None:
    file.write_bytes(hashlib.sha256(b"noise").digest() * 1000)


def damage_format(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("UPDATE meta SET value = -1 WHERE key = 'format'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        damage_checksum,
        damage_segment,
        damage_truncate,
        damage_foreign,
        damage_noise,
        damage_format,
    ],
)
def test_a_damaged_index_is_distinguished_from_a_good_one(
    tree: Path, tmp_path: Path, damage: object
) -> None:
    file = tmp_path / "index.db"
    writer = Writer(file, ROWS)
    store(writer, tree, NAMES)
    writer.close()
    assert callable(damage)
    damage(file)
    with pytest.raises(Damaged):
        _read_all(file)


def _read_all(file: Path) -> None:
    reader = Reader(file, ROOT)
    try:
        list(reader.files())
        reader.candidates(Pattern(texts=("alpha_function",), mode="literal").grams())
    finally:
        reader.close()


def test_a_flipped_bit_in_postings_is_found_when_they_are_read(
    tree: Path, tmp_path: Path
) -> None:
    file = tmp_path / "index.db"
    writer = Writer(file, ROWS)
    store(writer, tree, NAMES)
    data = bytearray(
        writer.connection.execute("SELECT data FROM posting_block").fetchone()[0]
    )
    data[-1] ^= 4
    writer.connection.execute("UPDATE posting_block SET data = ?", [bytes(data)])
    writer.close()
    with pytest.raises(Damaged):
        _read_all(file)


def test_a_set_aside_index_makes_room_and_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "index.db"
    file.write_bytes(b"broken")
    aside = schema.set_aside(file)
    assert aside is not None
    assert aside.read_bytes() == b"broken"
    assert not file.exists()
    # Asked twice, it keeps what it has.
    assert schema.set_aside(file) is None
    assert aside.read_bytes() == b"broken"
    Writer(file, ROWS).close()
    assert schema.set_aside(tmp_path / "nothing.db") is None


def test_the_table_finds_places_by_few_and_by_many_texts() -> None:
    rows = [FileRow(b"p%05d" % at, at % 700 + 1, "", 1, 1, 1, 1) for at in range(3000)]
    table = FileTable.of(rows)
    for text_ids in (np.arange(1, 5), np.arange(1, 1500)):
        wanted = [
            at for at, row in enumerate(rows) if row.text_id in set(text_ids.tolist())
        ]
        assert table.places(text_ids).tolist() == wanted


def test_the_table_takes_changes_as_a_dictionary_does() -> None:
    rng = random.Random(7)
    table, truth = FileTable(), dict[bytes, FileRow]()
    for _ in range(60):
        fresh = [
            FileRow(
                b"%d" % rng.randrange(50),
                rng.randrange(9),
                rng.choice(["", "", "binary"]),
                1,
                2,
                3,
                rng.randrange(9),
            )
            for _ in range(rng.randrange(6))
        ]
        gone = [b"%d" % rng.randrange(50) for _ in range(rng.randrange(4))]
        gone = [path for path in gone if path not in {row.path for row in fresh}]
        table = table.with_changes(fresh, gone)
        truth.update({row.path: row for row in fresh})
        for path in gone:
            truth.pop(path, None)
        assert table.paths == sorted(truth)
        paths = {b"%d" % rng.randrange(80) for _ in range(rng.choice([1, 2, 40]))}
        assert table.count_among(paths) == len(paths & truth.keys())
        assert table.columns[:, 0].tolist() == [
            truth[path].text_id for path in table.paths
        ]
        assert table.columns[:, 4].tolist() == [
            truth[path].inode for path in table.paths
        ]
        assert table.skipped == {
            path: row.skip for path, row in truth.items() if row.skip
        }


def test_an_empty_database_is_one_that_an_indexer_is_making(tmp_path: Path) -> None:
    (tmp_path / "index.db").touch()
    with pytest.raises(FileNotFoundError):
        Reader(tmp_path / "index.db", ROOT)
    Writer(tmp_path / "index.db", ROWS).close()
    Reader(tmp_path / "index.db", ROOT).close()
