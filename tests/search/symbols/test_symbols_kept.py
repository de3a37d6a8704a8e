"""What is kept of texts that were asked about is counted in bytes, so that the bounds of caches are those of memory."""

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from flashgrep.base.model import Skipped
from flashgrep.files.openat import RootFolder
from flashgrep.index.table import FileTable, Mark
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import ParsedFile, pack, unpacked_size
from flashgrep.parts.symbols.symbol_source import (
    PARSED_TEXTS,
    SnapshotSource,
    TextCache,
    forget_parsed_files,
    keep_symbols,
    parse_and_keep,
)
from flashgrep.search.snapshot import Snapshot

FILES = 60
FUNCTIONS = 200
MOST_UNCOUNTED = 2.0
"""Objects around the columns, and the cache's own entries; every row once more as a list makes it five."""


def write_module(number: int) -> bytes:
    functions = [
        f"def weave_{number}_{at}(one):\n    return one + {at}\n\n\n"
        for at in range(FUNCTIONS)
    ]
    return "".join(functions).encode()


def parse(data: bytes) -> ParsedFile:
    parsed = parse_and_keep("python", data)
    assert not isinstance(parsed, Skipped)
    return parsed


@pytest.fixture(autouse=True)
def _empty_caches() -> Iterator[None]:
    """Begin and end without anything that is kept."""
    forget_parsed_files()
    yield
    forget_parsed_files()


def test_symbols_that_are_kept_take_no_more_memory_than_is_counted(
    request: pytest.FixtureRequest,
) -> None:
    packed = {number: pack(parse(write_module(number))) for number in range(FILES)}
    forget_parsed_files()
    gc.unfreeze()  # the caches were imported before the tests
    gc.collect()
    tracemalloc.start()
    request.addfinalizer(tracemalloc.stop)
    for number, columns in packed.items():
        symbols = keep_symbols(columns, write_module(number))
        assert len(symbols.rows) == symbols.count == FUNCTIONS
        assert symbols.index_at(symbols.data.index(b"weave")) == 0
    gc.collect()
    memory, _ = tracemalloc.get_traced_memory()
    counted = sum(one.size for one in gc.get_objects() if isinstance(one, TextCache))
    assert memory < MOST_UNCOUNTED * counted


def test_files_parsed_for_a_question_are_counted_with_their_columns() -> None:
    data = write_module(0)
    parsed = parse(data)
    assert parse(data) is parsed
    assert PARSED_TEXTS.size == len(data) + parsed.size
    assert unpacked_size(pack(parsed)) >= parsed.size
    assert FileSymbols(parsed, data).count == FUNCTIONS


def test_what_was_parsed_goes_once_the_text_is_stored() -> None:
    data = write_module(0)
    parsed = parse(data)
    asked = keep_symbols(parsed, data)
    assert keep_symbols(parsed, data) is asked
    stored = keep_symbols(pack(parsed), data)
    assert keep_symbols(pack(parsed), data) is stored
    assert len(PARSED_TEXTS) == 0
    assert keep_symbols(parsed, data) is not asked


def test_of_a_saved_file_only_the_last_text_is_kept(tmp_path: Path) -> None:
    mark = Mark(ours=True, sequence=1, size=0)
    root = RootFolder(bytes(tmp_path))
    snapshot = Snapshot(root, FileTable(), None, {b"a.py": mark}, 1 << 20)
    sizes = []
    for number in range(1, 5):
        (tmp_path / "a.py").write_bytes(write_module(number))
        opened = SnapshotSource(snapshot).open(b"a.py")
        assert opened is SnapshotSource(snapshot).open(b"a.py")
        sizes.append(PARSED_TEXTS.size)
    assert len(PARSED_TEXTS) == 1
    assert sizes == [sizes[0]] * 4
