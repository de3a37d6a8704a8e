"""One suite for every store: what a question asks of an index, answered by SQLite and by PostgreSQL."""

import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.damage import Damaged
from flashgrep.base.model import path_from_json
from flashgrep.base.registry import Call, Session
from flashgrep.index.reader import TextIndex
from flashgrep.index.table import FileTable
from flashgrep.parts.symbols.symbol_table import SYMBOL_ROWS
from flashgrep.parts.team.team_catalogue import ACCESS
from flashgrep.parts.team.tree_listing import ListedFile, pack, unpack
from flashgrep.pattern import ANYTHING, NOTHING, Pattern
from flashgrep.search.snapshot import TEXT_ID, Snapshot
from tests.support.truth import Found, ripgrep
from tests.support.workspace import ask, opened
from tests.team.conftest import Rig

WORDS = [
    "alpha",
    "Beta",
    "gamma_delta",
    "spin_lock",
    "naïve",
    "x",
    "if",
    "Ωmega",
    "K\u212a",
    "return 0;",
    "\t",
]
SOURCES: dict[str, str | bytes] = {
    "src/one.py": "class Alpha:\n    def beta(self):\n        return gamma_delta(1)\n\n\n"
    "def gamma_delta(x):\n    return x\n",
    "src/two.py": "from one import Alpha, gamma_delta\n\n\ndef Betas():\n    return Alpha().beta() + gamma_delta(2)\n",
    "src/main.c": "#define SPIN_LOCK 1\nstruct alpha { int beta; };\nint main(void) { return SPIN_LOCK; }\n",
    "README.md": "# Alpha\n\nWords of alpha and Beta.\n",
    "copy.py": "def gamma_delta(x):\n    return x\n",
    "copy.txt": "def gamma_delta(x):\n    return x\n",
    "empty.py": "",
    "no-end.txt": "last line without an end: alpha",
    "wide.txt": "alpha in UTF-16\n".encode("utf-16"),
    "nul.bin": b"\0\1\2alpha",
    "latin.txt": "caf\xe9 alpha\n".encode("latin-1"),
}


def draw_files(seed: int, count: int) -> dict[str, str | bytes]:
    """Return sources, and texts of words in any order."""
    drawn = random.Random(seed)
    texts: dict[str, str | bytes] = {
        f"drawn/{number % 7}/{number}.txt": "\n".join(
            " ".join(drawn.choices(WORDS, k=drawn.randint(0, 6)))
            for _ in range(drawn.randint(0, 30))
        )
        for number in range(count)
    }
    return {**SOURCES, **texts}


@dataclass
class Stored:
    """A store with the sources, and how it is asked."""

    index: TextIndex
    table: FileTable
    find: Callable[[str], Awaitable[Found]]
    """Returns the lines that match a regular expression."""
    root: Path

    def paths(self, text_ids: Any) -> set[bytes]:
        """Return the paths of texts."""
        return {
            self.table.paths[at]
            for at in self.table.places(np.array(sorted(text_ids), np.int64))
        }


async def find_all(call: Callable[..., Any], pattern: str, **more: Any) -> Found:
    """Return (path, line) of all hits, page by page."""
    found: Found = set()
    cursor = None
    while True:
        asked = {
            "mode": "regex",
            "case": "sensitive",
            "limit": 200,
            "max_tokens": 100_000,
            **more,
        }
        page = await call("query", query=pattern, cursor=cursor, **asked)
        assert page["coverage"]["complete"], page["coverage"]
        for hit in page["results"]:
            found.add(
                (
                    path_from_json(hit["file_path"], hit.get("file_path_bytes")),
                    hit["start_line"],
                )
            )
        cursor = page["next"]
        if cursor is None:
            return found


@asynccontextmanager
async def open_stored(kind: str, rig: Rig) -> AsyncIterator[Stored]:
    """Open a store of a kind, filled with the sources."""
    root = rig.make_repository("one", draw_files(7, 60))
    if kind == "sqlite":
        async with opened(root) as workspace:
            await workspace.wait_parsed()
            snapshot = workspace.snapshot()
            assert snapshot.reader is not None
            yield Stored(
                snapshot.reader,
                snapshot.table,
                lambda pattern: ask(workspace, "regex", pattern),
                root,
            )
        return
    assert rig.sync() == 1
    asked = rig.ask_as("ann")
    session = Session(notes={ACCESS: asked.find_access()})
    project = await asked.catalogue.workspace(Call(asked.catalogue, session), "one")
    kept: list[Snapshot] = []
    await (await project.at("main")).in_thread(kept.append)
    assert kept[0].reader is not None
    yield Stored(
        kept[0].reader,
        kept[0].table,
        lambda pattern: find_all(asked.call, pattern),
        root,
    )


@pytest.fixture(params=["sqlite", "postgres", "three shards"])
async def stored(
    request: pytest.FixtureRequest, dsn: str, make_rig: Callable[..., Rig]
) -> AsyncIterator[Stored]:
    shards = (
        {"a": None, "b": None, "c": None} if request.param == "three shards" else {}
    )
    async with open_stored(request.param, make_rig(dsn, shards)) as found:
        yield found


@pytest.mark.slow
async def test_candidates_have_every_text_that_matches(stored: Stored) -> None:
    drawn, everything = (
        random.Random(3),
        set(stored.table.columns[:, TEXT_ID].tolist()) - {0},
    )
    for _ in range(60):
        text = (
            " ".join(drawn.choices(WORDS, k=drawn.randint(1, 3)))[drawn.randint(0, 3) :]
            or "alp"
        )
        pattern = Pattern(
            texts=(text,),
            mode="literal",
            case=drawn.choice(["sensitive", "insensitive"]),
        )
        found = stored.index.candidates(pattern.grams())
        proposed = everything if found is None else set(found.tolist())
        assert found is None or list(found) == sorted(proposed)
        truth = ripgrep(
            stored.root,
            re.escape(text),
            *([] if pattern.case == "sensitive" else ["-i"]),
        )
        assert {path for path, _ in truth} <= stored.paths(proposed), text
    assert stored.index.candidates(ANYTHING) is None
    nothing = stored.index.candidates(NOTHING)
    assert nothing is not None
    assert not len(nothing)


@pytest.mark.slow
async def test_hits_are_those_of_ripgrep(stored: Stored) -> None:
    drawn = random.Random(11)
    parts = [
        "alpha",
        "Beta",
        r"\w+_\w+",
        "^x",
        "if$",
        "na.ve",
        "(?i)spin",
        "[A-Z]",
        "K",
        "return",
        r"\bx\b",
        "",
        "zzz",
    ]
    for _ in range(40):
        pattern = (
            drawn.choice(["", "(?i)"])
            + drawn.choice(parts)
            + drawn.choice(["", ".*", " "])
            + drawn.choice(parts)
        )
        assert await stored.find(pattern) == ripgrep(stored.root, pattern), pattern


@pytest.mark.slow
async def test_symbols_are_found_by_name(stored: Stored) -> None:
    rows_of = stored.index.rows(SYMBOL_ROWS)
    assert stored.paths(rows_of.defining("gamma_delta")) == {b"src/one.py", b"copy.py"}
    assert stored.paths(rows_of.defining("BETA")) == {b"src/one.py", b"src/main.c"}
    assert stored.paths(rows_of.defining("bet", prefix=True)) == {
        b"src/one.py",
        b"src/two.py",
        b"src/main.c",
    }
    assert rows_of.defining("nobody") == []
    everything = set(stored.table.columns[:, TEXT_ID].tolist())
    assert rows_of.defined_names(everything, "BE", 10) == ["beta", "betas"]
    assert rows_of.defined_names(everything, "be", 1) == ["beta"]
    assert rows_of.defined_names({-1}, "be", 10) == []
    rows = rows_of.packed_symbols(everything)
    at = stored.table.find(b"src/one.py")
    assert at is not None
    assert rows.keys() == everything - {0}
    assert rows[int(stored.table.columns[at, TEXT_ID])]
    assert rows_of.packed_symbols([]) == {}


names = st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name)


@given(
    st.dictionaries(
        names,
        st.tuples(
            st.binary(min_size=20, max_size=20),
            st.integers(0, 2**40),
            st.integers(0, 2**40),
        ),
        max_size=20,
    )
)
def test_a_listing_comes_back_as_it_was(
    drawn: dict[bytes, tuple[bytes, int, int]],
) -> None:
    files = [
        ListedFile(path, blob, size, text_id, "" if text_id else "binary")
        for path, (blob, size, text_id) in sorted(drawn.items())
    ]
    listing = unpack(pack(files))
    assert [(path, file.blob, file.size) for path, file in listing.files.items()] == [
        (file.path, file.blob.hex().encode(), file.size) for file in files
    ]
    assert listing.table.columns[:, TEXT_ID].tolist() == [
        file.text_id for file in files
    ]
    assert listing.table.skipped == {file.path: "binary" for file in files if file.skip}


@pytest.mark.parametrize("cut", [0, 5, 12, -1])
def test_a_listing_that_is_not_what_was_written_is_damage(cut: int) -> None:
    with pytest.raises(Damaged):
        unpack(pack([ListedFile(b"a", b"b" * 20, 1, 1, "")])[:cut])
