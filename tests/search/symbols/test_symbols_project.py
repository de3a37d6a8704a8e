"""Symbols in an open project: right before anything is parsed, and the same from the tables; the methods' answers."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from flashgrep.base.errors import InvalidParams, NotFound
from flashgrep.base.languages import language_of
from flashgrep.base.registry import Call, Registry, Session
from flashgrep.files.buffers import Buffers
from flashgrep.index import schema
from flashgrep.parts.navigation import research_methods
from flashgrep.parts.navigation.qualified_targets import find_targets
from flashgrep.parts.symbols import methods as symbol_methods
from flashgrep.parts.symbols import symbol_search
from flashgrep.parts.symbols import symbol_table as table
from flashgrep.parts.symbols.parse import ParsedFile, pack, parse_symbols
from flashgrep.parts.symbols.symbol_search import (
    Match,
    SymbolAnswer,
    SymbolQuestion,
    SymbolSearch,
)
from flashgrep.parts.symbols.symbol_source import (
    PARSED_TEXTS,
    SnapshotSource,
    forget_parsed_files,
)
from flashgrep.parts.symbols.symbol_table import StoredSymbols
from flashgrep.project import Workspace
from tests.search.research.test_research_engine import PYTHON, SWIFT
from tests.support.workspace import files_with, index_of, opened, put

REGISTRY = Registry([*symbol_methods.HANDLERS, *research_methods.HANDLERS])
FILES = {name: text.encode() for name, text in {**PYTHON, **SWIFT}.items()} | {
    "copy.py": PYTHON["app/store.py"].encode(),
    "notes.txt": b"read Store\n",
    "data.py": b"read = '\0'\n",
}
QUESTIONS: list[tuple[str, Match]] = [
    ("read", "exact"),
    ("Store", "exact"),
    ("Store.read", "exact"),
    ("authenticate", "exact"),
    ("nothing", "exact"),
    ("l", "prefix"),
    ("St", "prefix"),
    ("authentcate", "fuzzy"),
]


TOTALS = [6, 6, 4, 4, 0, 3, 2, 7]
"""How often each is there, counted by hand."""


@dataclass
class Host:
    """A catalogue of one project."""

    project: Workspace
    buffers: WeakSet[Buffers] = field(default_factory=WeakSet)

    async def workspace(self, _call: Call[Any], _name: str | None) -> Workspace:
        return self.project


def store_symbols(root: Path) -> None:
    """Fill the symbol tables as the indexer does."""
    connection = schema.connect(index_of(root), writer=True)
    with schema.transaction(connection):
        for text_id, _, path in table.choose_to_parse(connection, 1, 1000):
            data = (root / path.decode()).read_bytes()
            language = language_of(path, data)
            parsed = parse_symbols(language.name, data) if language.symbols else None
            if isinstance(parsed, ParsedFile):
                table.put(
                    connection,
                    [StoredSymbols(text_id, pack(parsed), parsed.names(data))],
                )
            else:
                table.put_without_symbols(connection, text_id, "")
    connection.close()


async def answers(workspace: Workspace) -> list[tuple[Any, int | None]]:
    await workspace.refresh()

    def ask(name: str, match: Match) -> Callable[[Any], SymbolAnswer]:
        return lambda snapshot: SymbolSearch(
            SnapshotSource(snapshot),
            SymbolQuestion(name=name, match=match, resolve=find_targets),
        ).run()

    found = [await workspace.in_thread(ask(name, match)) for name, match in QUESTIONS]
    assert all(answer.complete for answer in found)
    return [(answer.results, answer.total) for answer in found]


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    put(root, FILES)
    async with opened(root) as workspace:
        yield workspace


async def called(
    workspace: Workspace, method: str, progress: list[str] | None = None, **params: Any
) -> Any:
    notes = [] if progress is None else progress
    call: Call[Any] = Call(
        Host(workspace),
        Session(),
        progress=lambda _done, _total, note: notes.append(note),
    )
    return await REGISTRY.get(method).call(call, params)


async def test_answers_are_the_same_before_the_index_with_it_and_from_the_tables(
    root: Path, workspace: Workspace
) -> None:
    first = await answers(workspace)
    assert [total for _, total in first] == TOTALS
    await workspace.wait_indexed()
    assert await answers(workspace) == first
    store_symbols(root)
    assert await answers(workspace) == first


async def test_a_name_in_many_files_is_answered_some_files_at_a_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every use comes on some page, once; the definition first, wherever it stands; the last page knows the total."""
    opened_at_once, many = 20, 30
    monkeypatch.setattr(symbol_search, "MOST_OPENED", opened_at_once)
    put(
        root,
        {f"{at:04}.py": b"from zz import needed\nneeded()\n" for at in range(many)},
    )
    put(root, {"zz.py": b"def needed(): ...\n", "tests/test_a.py": b"needed()\n"})
    async with opened(root) as workspace:
        await workspace.wait_parsed()
        page: dict[str, Any] = {
            "symbol_name": "needed",
            "limit": 25,
            "max_tokens": 1_000_000,
        }
        first = await called(workspace, "get_symbol", **page)
        assert (first["total"], first["results"][0]["file_path"]) == (None, "zz.py")
        assert first["coverage"]["complete"]
        roles = [hit["role"] for hit in first["results"]]
        assert roles == [
            "definition",
            *["call"] * (opened_at_once - 1),
            *["import"] * (25 - opened_at_once),
        ]
        second = await called(workspace, "get_symbol", **page, cursor=first["next"])
        last = await called(workspace, "get_symbol", **page, cursor=second["next"])
        assert (second["total"], last["total"], last["next"]) == (
            2 * many + 2,
            2 * many + 2,
            None,
        )
        hits = [*first["results"], *second["results"], *last["results"]]
        shown = [(hit["file_path"], hit["line_number"]) for hit in hits]
        assert len(set(shown)) == len(shown) == 2 * many + 2
        calls = [hit["file_path"] for hit in hits if hit["role"] == "call"]
        assert calls[-1] == "tests/test_a.py"
        only = await called(
            workspace, "get_symbol", symbol_name="needed", role=["definition"]
        )
        assert only["total"] == 1


async def test_names_that_begin_alike_come_some_files_at_a_time_the_shortest_first(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every definition comes on some page, once, whatever has changed since."""
    monkeypatch.setattr(symbol_search, "OPENED_TOGETHER", 3)
    names = [f"need{'x' * at}_{at % 3}" for at in range(20)]
    put(
        root,
        {
            f"{at:02}.py": f"def {name}(): ...\ndef need(): ...\n".encode()
            for at, name in enumerate(names)
        },
    )
    put(
        root,
        {
            "loud.py": b"def NEED(): ...\ndef Needle(): ...\n",
            "other.py": b"def nee(): ...\n",
        },
    )
    async with opened(root) as workspace:
        await workspace.wait_parsed()

        async def ask(**more: Any) -> list[str]:
            found, cursor = list[str](), None
            while True:
                page = await called(
                    workspace,
                    "get_symbol",
                    symbol_name="need",
                    match="prefix",
                    limit=4,
                    cursor=cursor,
                    **more,
                )
                found += [
                    f"{hit['symbol_name']} {hit['file_path']}"
                    for hit in page["results"]
                ]
                cursor = page["next"]
                if cursor is None:
                    return found

        first = await called(
            workspace, "get_symbol", symbol_name="need", match="prefix", limit=4
        )
        assert [hit["symbol_name"] for hit in first["results"]] == ["need"] * 4
        assert first["total"] is None
        longer = [f"{name} {at:02}.py" for at, name in enumerate(names)]
        everything = [*longer, *(f"need {at:02}.py" for at in range(20))]
        found = await ask()
        assert (sorted(found), found[:20]) == (
            sorted(everything),
            [f"need {at:02}.py" for at in range(20)],
        )
        assert found[20:] == longer
        loud = ["NEED loud.py", "Needle loud.py"]
        assert sorted(await ask(case="insensitive")) == sorted(everything + loud)

        put(root, {"05.py": b"def needed_now(): ...\n", "new.py": b"def need(): ...\n"})
        (root / "06.py").unlink()
        there = [one for one in everything if not one.endswith((" 05.py", " 06.py"))]
        assert sorted(await ask()) == sorted(
            [*there, "needed_now 05.py", "need new.py"]
        )


async def test_before_there_is_an_index_only_files_with_the_name_are_parsed(
    root: Path,
) -> None:
    put(root, FILES)
    async with opened(root, indexes=False) as workspace:
        await workspace.refresh()
        forget_parsed_files()
        question = SymbolQuestion(name="AUTHENTICATE", match="exact", fold=True)
        answer = await workspace.in_thread(
            lambda snapshot: SymbolSearch(SnapshotSource(snapshot), question).run()
        )
        assert answer.complete
        assert answer.total == TOTALS[3]
        with_name = {text for text in FILES.values() if b"authenticate" in text.lower()}
        assert len(PARSED_TEXTS) == len(with_name) < len(FILES) / 2


async def test_a_file_changed_after_its_symbols_were_stored_is_parsed_again(
    root: Path, workspace: Workspace
) -> None:
    await workspace.wait_indexed()
    store_symbols(root)
    put(root, {"app/other.py": b"\n\ndef freshly_made():\n    pass\n"})
    answer = await called(
        workspace, "get_symbol", symbol_name="freshly_made", role=["definition"]
    )
    assert [(hit["file_path"], hit["line_number"]) for hit in answer["results"]] == [
        ("app/other.py", 3)
    ]
    assert (await called(workspace, "get_symbol", symbol_name="File"))["total"] == 0


async def test_a_database_that_lost_its_symbols_is_set_aside(
    root: Path, workspace: Workspace
) -> None:
    await workspace.wait_indexed()
    with sqlite3.connect(index_of(root)) as connection:
        connection.execute("DROP TABLE IF EXISTS symbol")
    connection.close()
    assert (await called(workspace, "get_symbol", symbol_name="Store"))["results"]
    assert "no such table: symbol" in workspace.progress.detail


async def test_get_symbol_tells_where_what_and_how_many(workspace: Workspace) -> None:
    answer = await called(workspace, "get_symbol", symbol_name="Store.read")
    assert answer["results"][0] == {
        "symbol_name": "read",
        "file_path": "app/store.py",
        "start_line": 3,
        "end_line": 4,
        "line_number": 3,
        "column": 17,
        "role": "definition",
        "kind": "method",
        "symbol_type": "method",
        "container": "Store",
        "signature": "def read(self, key):",
        "language": "python",
    }
    assert answer["symbol_name"] == "Store.read"
    assert answer["coverage"]["complete"]
    first = await called(workspace, "get_symbol", symbol_name="read", limit=5)
    rest = await called(
        workspace, "get_symbol", symbol_name="read", cursor=first["next"]
    )
    whole = await called(workspace, "get_symbol", symbol_name="read")
    assert [*first["results"], *rest["results"]] == whole["results"]
    assert rest["next"] is whole["next"] is None
    with pytest.raises(InvalidParams):
        await called(workspace, "get_symbol", symbol_name="other", cursor=first["next"])
    short = await called(workspace, "get_symbol", symbol_name="read", max_tokens=200)
    assert 0 < len(short["results"]) < short["total"]
    assert short["next"]


async def test_outlines_cover_files_folders_and_the_project(
    workspace: Workspace,
) -> None:
    folder = await called(workspace, "outline", path="app")
    assert [file["file_path"] for file in folder["results"]] == [
        "app/cli.py",
        "app/other.py",
        "app/store.py",
    ]
    assert folder["results"][1]["symbols"] == [
        "2-4 class File:",
        "  3-4 def read(self):",
        "7-8 def helper():",
    ]
    whole = await called(workspace, "outline")
    assert "2 protocol Authenticatable" in [
        line for file in whole["results"] for line in file["symbols"]
    ]
    with pytest.raises(NotFound):
        await called(workspace, "outline", path="nowhere")


async def test_search_progress(workspace: Workspace) -> None:
    """Every hop of a research is told; its answer names nodes, edges with evidence, chains and dependencies."""
    progress: list[str] = []
    query = "what calls authenticate()"
    answer = await called(workspace, "code_research", progress, query=query, depth=3)
    assert [note.partition(":")[0] for note in progress] == ["hop 1", "hop 2", "hop 3"]
    assert any(
        chain.endswith("User.authenticate ← login ← start ← main")
        for chain in answer["chains"]
    )
    names = {node["id"]: node["name"] for node in answer["results"]}
    shown = {
        (names[edge["source"]], names[edge["target"]], edge["text"])
        for edge in answer["edges"]
    }
    assert (
        "login",
        "User.authenticate",
        "func login(user: User) -> Bool { return user.authenticate() }",
    ) in shown
    assert {"from": "Login.swift", "to": "User.swift", "edges": 1} in answer[
        "dependencies"
    ]
    assert answer["coverage"]["complete"]
    small = await called(
        workspace, "code_research", query=query, depth=3, max_tokens=200
    )
    assert small["left_out"] > 0


async def test_research_about_what_is_not_there_says_so(workspace: Workspace) -> None:
    """A name without definition is no name without callers, nor a missing file one without effects."""
    await workspace.wait_parsed()
    answer = await called(
        workspace, "code_research", query="who calls User.autenticate"
    )
    assert (
        answer["summary"]
        == "callers of User.autenticate: nothing found; not defined here: User.autenticate"
    )
    assert answer["suggestions"] == ["authenticate"]
    answer = await called(
        workspace, "code_research", query="path from login to nothing_like_it"
    )
    assert (
        answer["summary"]
        == "path of login to nothing_like_it: no path; not defined here: nothing_like_it"
    )
    answer = await called(
        workspace, "code_research", query="who calls User.authenticate"
    )
    assert "not defined" not in answer["summary"]
    assert "suggestions" not in answer
    with pytest.raises(NotFound):
        await called(workspace, "code_research", query="impact of nowhere.swift:1-3")


@pytest.mark.parametrize(
    "names",
    [("a.txt", "b.py"), ("a", "b.py"), ("a.h", "b.hh"), ("b.py", "c.rb", "d.bak")],
)
async def test_the_same_text_is_in_the_language_of_each_files_name(
    root: Path, names: tuple[str, ...]
) -> None:
    text = (
        b"class Needle {\n};\n" if names[1] == "b.hh" else b"def needle():\n    pass\n"
    )
    put(root, dict.fromkeys(names, text))
    async with opened(root) as alone:
        await alone.wait_parsed()
        found = await alone.in_thread(
            lambda now: SnapshotSource(now).defining("needle", prefix=False)
        )
        assert found == [
            name.encode() for name in names if language_of(name.encode(), text).symbols
        ]
        assert await files_with(alone, "eedle") == {name.encode() for name in names}
