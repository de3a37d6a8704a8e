"""What is stored deflated and is not what was written: bounded, answered without, and made anew."""

import sqlite3
import zlib
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import anyio
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.damage import Damaged, inflate
from flashgrep.parts.meaning.index import chunks
from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion
from flashgrep.parts.symbols.parse import unpack
from flashgrep.parts.symbols.symbol_search import find_definition
from flashgrep.parts.symbols.symbol_source import forget_parsed_files
from flashgrep.project import Workspace
from tests.support.meaning import FILES, settled
from tests.support.workspace import BOUND, index_of, opened, put


@given(data=st.binary(max_size=300), most=st.integers(1, 300))
def test_no_more_is_inflated_than_is_allowed(data: bytes, most: int) -> None:
    packed = zlib.compress(data)
    if len(data) <= most:
        assert inflate(packed, most) == data
    else:
        with pytest.raises(Damaged):
            inflate(packed, most)


@given(st.data())
def test_what_was_cut_or_changed_is_not_inflated(data: st.DataObject) -> None:
    packed = zlib.compress(data.draw(st.binary(min_size=20, max_size=200)))
    at = data.draw(st.integers(2, len(packed) - 1))
    for broken in (
        packed[:at],
        packed[:at] + bytes([packed[at] ^ 0xFF]) + packed[at + 1 :],
        b"",
        b"plain",
    ):
        with pytest.raises(Damaged):
            inflate(broken, 1 << 20)


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\n",
        b"1 python tree-sitter 1 0 0 0 0 0\n",
        b"9 python generic 0 0 0 0 0 0\n",
        b"1 \xff\n",
    ],
)
def test_symbols_that_nobody_packed_are_damage(packed: bytes) -> None:
    with pytest.raises(Damaged):
        unpack(packed)


def test_symbols_that_are_fewer_than_they_say_are_damage() -> None:
    with pytest.raises(Damaged):
        unpack(b"1 python generic 5 0 0 0 0 0\n" + zlib.compress(b"\0" * 8))


@pytest.mark.parametrize("content", [{"a": 1}, [[1, 2]], [7], "text"])
def test_chunks_of_another_shape_are_damage(content: object) -> None:
    with pytest.raises(Damaged):
        chunks.unpack(zlib.compress(orjson.dumps(content)))


def spoil(root: Path, table: str) -> None:
    """Change a byte near the end of each row's packed part, as a bad disk would; nothing is remembered of before."""
    forget_parsed_files()
    with closing(sqlite3.connect(index_of(root))) as connection, connection:
        for text_id, packed in connection.execute(
            f"SELECT text_id, packed FROM {table}"  # noqa: S608 - ours
        ).fetchall():
            broken = packed[:-3] + bytes([packed[-3] ^ 0xFF]) + packed[-2:]
            connection.execute(
                f"UPDATE {table} SET packed = ? WHERE text_id = ?",  # noqa: S608 - ours
                [broken, text_id],
            )


async def healed(workspace: Workspace) -> None:
    """Wait until everything is stored again."""
    with anyio.fail_after(BOUND):
        await settled(workspace)
    assert workspace.progress.stage == "ready"


async def defines_the_cart(workspace: Workspace) -> None:
    """See that symbols answer."""
    assert (await find_definition(workspace, "Cart"))[:3] == (b"shop/cart.py", 4, 16)


async def hashes_passwords(workspace: Workspace) -> None:
    """See that chunks answer."""
    found = await search_by_meaning(
        workspace, MeaningQuestion(text="hash a password", limit=1)
    )
    assert [piece.path for piece in found.results] == [b"shop/passwords.py"]


@pytest.mark.parametrize(
    ("table", "answers"), [("symbol", defines_the_cart), ("chunked", hashes_passwords)]
)
async def test_a_damaged_index_costs_no_answer_and_is_rebuilt(
    table: str,
    answers: Callable[[Workspace], Awaitable[None]],
    root: Path,
) -> None:
    put(root, FILES)
    async with opened(root) as workspace:
        await healed(workspace)
        spoil(root, table)
        for _ in range(2):
            await answers(workspace)
            await healed(workspace)


@pytest.mark.parametrize(
    ("table", "unfinished"), [("symbol", "chunked"), ("chunked", "embedded")]
)
async def test_an_indexer_that_finds_them_rebuilds_the_index(
    table: str, unfinished: str, root: Path
) -> None:
    put(root, FILES)
    async with opened(root) as workspace:
        await healed(workspace)
    spoil(root, table)
    with closing(sqlite3.connect(index_of(root))) as connection, connection:
        connection.execute(f"DELETE FROM {unfinished}")  # noqa: S608 - one of ours
    async with opened(root) as workspace:
        await workspace.refresh()
        await healed(workspace)
        await defines_the_cart(workspace)
