"""The glob method: its contract, its errors and its paging, on a project opened as the daemon opens it."""

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from flashgrep.base.config import Settings
from flashgrep.base.errors import FlashgrepError, Forbidden, InvalidParams, NotFound
from flashgrep.base.registry import Call, Registry, Session
from flashgrep.methods.listing import HANDLERS
from flashgrep.methods.query import HANDLERS as QUERY_HANDLERS
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.project.catalogue import Catalogue
from tests.support.workspace import put

GLOB = Registry(HANDLERS).get("glob")


@asynccontextmanager
async def asking(root: Path) -> AsyncIterator[Any]:
    async with Catalogue(
        parts=BUILT_IN, state_dir=root.parent / "state", settings=Settings()
    ) as catalogue:
        await catalogue.open(str(root))

        async def ask(**params: Any) -> Any:
            return await GLOB.call(
                Call(catalogue, Session(projects=(str(root),))), params
            )

        yield ask


def glob(root: Path, **params: Any) -> Any:
    async def once() -> Any:
        async with asking(root) as ask:
            return await ask(**params)

    return anyio.run(once)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    for path in ("a.py", "src/b.py", "src/deep/c.rs", ".hidden"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)
    (folder / ".ignore").write_text("*.rs\n")
    return folder


def test_an_answer_has_every_field_of_the_contract(root: Path) -> None:
    answer = glob(root, pattern="**/*.py", path="src")
    modified = int((root / "src/b.py").stat().st_mtime)
    expected = {
        "file_path": "src/b.py",
        "name": "b.py",
        "relative_path": "b.py",
        "size": 8,
        "modified_unix": modified,
    }
    assert answer["results"] == [expected]
    assert (answer["total"], answer["returned"], answer["completed"]) == (1, 1, True)
    assert (answer["next_offset"], answer["next"]) == (None, None)
    assert answer["coverage"]["complete"]
    assert answer["coverage"]["fresh"]
    echo = answer["options"]
    assert echo["root"] == str(root / "src")
    assert (echo["includes"], echo["excludes"], echo["sort_by"], echo["limit"]) == (
        ["**/*.py"],
        [],
        "path",
        None,
    )


def test_ignore_rules_hold_unless_a_call_says_otherwise(root: Path) -> None:
    assert glob(root, pattern="*.rs")["total"] == 0
    assert glob(root, pattern="*.rs", respect_ignore=False)["total"] == 1
    assert glob(root, pattern="*.rs", follow_symlinks=True)["total"] == 1
    assert glob(root, pattern="*.rs", include_ignored=True)["total"] == 1


async def test_pages_follow_one_another_by_cursor_through_changes(root: Path) -> None:
    async with asking(root) as ask:
        first = await ask(respect_ignore=False, limit=1)
        (
            root / "a.py"
        ).unlink()  # what was sent already is gone: an offset would now pass over a file
        second = await ask(respect_ignore=False, limit=1, cursor=first["next"])
        third = await ask(respect_ignore=False, limit=1, cursor=second["next"])
        assert [page["completed"] for page in (first, second, third)] == [
            False,
            False,
            True,
        ]
        assert third["next"] is None
        assert [page["results"][0]["file_path"] for page in (first, second, third)] == [
            "a.py",
            "src/b.py",
            "src/deep/c.rs",
        ]


def test_pages_follow_one_another_by_offset(root: Path) -> None:
    first = glob(root, respect_ignore=False, limit=2)
    assert (
        first["returned"],
        first["total"],
        first["next_offset"],
        first["completed"],
    ) == (2, 3, 2, False)
    second = glob(root, respect_ignore=False, limit=2, offset=first["next_offset"])
    assert (second["returned"], second["next_offset"], second["completed"]) == (
        1,
        None,
        True,
    )
    assert glob(root, offset=99)["results"] == []


def test_an_answer_keeps_to_its_budget_and_leads_on(root: Path) -> None:
    for number in range(300):
        (root / f"many{number:03}").touch()
    answer = glob(root, pattern="many*", max_tokens=100)
    assert 1 <= answer["returned"] < 6
    assert answer["next_offset"] == answer["returned"]
    assert answer["total"] == 300
    assert glob(root, pattern="many*", limit=300)["returned"] == 300


def test_a_name_that_is_not_utf8_is_shown_and_carried_as_bytes(root: Path) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.py")).touch()
    (shown,) = glob(root, pattern="?.py", exclude=["a.py", "b.py"])["results"]
    assert shown["file_path"] == "\ufffd.py"
    assert base64.b64decode(shown["file_path_bytes"]) == b"\xff.py"


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"offset": -1}, "offset"),
        ({"max_depth": -1}, "max_depth"),
        ({"sort_by": "colour"}, "sort_by"),
        ({"sort_order": "up"}, "sort_order"),
        ({"recursive": False, "max_depth": 1}, "max_depth"),
        ({"respect_ignore": True, "follow_symlinks": True}, "follow_symlinks"),
        ({"cursor": "x", "offset": 1}, "offset"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"pattern": "[a"}, "query"),
        ({"include": ["[a"]}, "include"),
        ({"exclude": ["{a"]}, "exclude"),
        ({"extensions": [""]}, "extensions"),
        ({"colour": "red"}, "colour"),
        ({"pattern": {"a": 7}}, "query"),
    ],
)
def test_what_contradicts_the_contract_is_refused_by_field(
    root: Path, params: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidParams) as refused:
        glob(root, **params)
    assert refused.value.data["field"] == field


def test_a_cursor_of_another_question_is_refused(root: Path) -> None:
    cursor = glob(root, limit=1)["next"]
    with pytest.raises(InvalidParams, match="another question"):
        glob(root, limit=1, cursor=cursor, pattern="*.py")


@pytest.mark.parametrize(
    ("path", "error"), [("..", Forbidden), ("gone", NotFound), ("a.py", NotFound)]
)
def test_a_folder_that_is_none_of_the_projects_is_refused(
    root: Path, path: str, error: type[FlashgrepError]
) -> None:
    with pytest.raises(error):
        glob(root, path=path)


async def test_query_list_files_and_glob_have_the_same_files_also_hidden_ones_that_rules_bring_back(
    root: Path,
) -> None:
    put(
        root,
        {
            ".ignore": b"*.rs\n!*/\n!.hidden\n",
            ".dir/in.txt": b"x\n",
            ".dir/.deep": b"x\n",
            ".other": b"x\n",
        },
    )
    async with Catalogue(
        parts=BUILT_IN, state_dir=root.parent / "state", settings=Settings()
    ) as catalogue:
        await catalogue.open(str(root))
        call = Call(catalogue, Session(projects=(str(root),)))
        methods = Registry((*HANDLERS, *QUERY_HANDLERS))
        found = await methods.get("query").call(
            call, {"text": ".", "mode": "regex", "output": "files"}
        )
        listed = await methods.get("list_files").call(call, {})
        globbed = await methods.get("glob").call(call, {})
        expected = {".hidden", ".dir/in.txt", "a.py", "src/b.py"}
        assert set(listed["files"]) == expected
        assert {file["file_path"] for file in globbed["results"]} == expected
        assert {file["file_path"] for file in found["results"]} == expected


def test_a_list_whose_fields_have_their_defaults_is_the_plain_list(root: Path) -> None:
    list_files = Registry(HANDLERS).get("list_files")

    async def both() -> tuple[Any, Any]:
        async with Catalogue(
            parts=BUILT_IN, state_dir=root.parent / "state", settings=Settings()
        ) as catalogue:
            await catalogue.open(str(root))
            call = Call(catalogue, Session(projects=(str(root),)))
            plain = await list_files.call(call, {"query": "src b"})
            # As a host sends it that fills in every field.
            filled = {
                "include_hidden": False,
                "sort_by": "path",
                "respect_ignore": True,
            }
            return plain, await list_files.call(call, {"query": "src b", **filled})

    plain, filled = anyio.run(both)
    assert filled["files"] == plain["files"] == ["src/b.py"]
