"""``fgrep lsp`` as editors use it: pygls's client, a process of ours, the daemon."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from flashgrep.daemon import lifecycle
from tests.conftest import BOUND, DaemonAtHand, short_folder
from tests.lsp.editor import Editor

CODE = '''\
"""Shapes of things."""

import os


class Shape:
    """A shape with 😀 and é."""

    def area(self) -> int:
        """Tell the area."""
        return 0


class Square(Shape):
    def area(self) -> int:
        return twice("😀é", measure(1)) + 1


def measure(x):
    return x


def twice(text, x):
    return x + x
'''
OTHER = """\
from shapes import Square, measure


def draw():
    return Square().area() + measure(2)
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = short_folder()
    for name, text in (("shapes.py", CODE), ("other.py", OTHER)):
        (made / "one").mkdir(exist_ok=True)
        (made / "one" / name).write_text(text)
    (made / "two").mkdir()
    (made / "two" / "two.py").write_text("def second_folder():\n    return 1\n")
    for name in ("one", "two"):
        subprocess.run(["git", "init", "-q", str(made / name)], check=True)
    yield made
    subprocess.run(["rm", "-rf", str(made)], check=True)


@pytest.fixture(scope="module")
def editor(daemon: DaemonAtHand, folder: Path) -> Iterator[Editor]:
    made = Editor(daemon, folder / "one", folder / "two")
    yield made
    assert made.close() == 0


@pytest.fixture
def shapes(folder: Path) -> Path:
    return folder / "one" / "shapes.py"


def place_of(text: str, line: int, units: str = "utf-16-le") -> types.Position:
    """Return where the text begins in a line of CODE, in units of the encoding."""
    head = CODE.splitlines()[line].partition(text)[0]
    return types.Position(line, len(head.encode(units)) // 2)


def show(found: Any) -> list[tuple[str, int, int]]:
    return [
        (Path(one.uri).name, one.range.start.line, one.range.start.character)
        for one in found
    ]


def test_it_offers_what_it_answers(editor: Editor) -> None:
    offered = editor.offered
    assert offered.position_encoding == "utf-16"
    named = "definition declaration implementation references hover rename document_symbol workspace_symbol"
    for name in f"{named} document_highlight folding_range selection_range call_hierarchy type_hierarchy".split():
        assert getattr(offered, f"{name}_provider"), name


def test_a_definition_is_found_behind_characters_of_two_units(
    editor: Editor, shapes: Path
) -> None:
    where = editor.at(shapes, 15, place_of("measure", 15).character)
    assert show(
        editor.ask(types.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams(**where))
    ) == [("shapes.py", 18, 4)]
    hover = editor.ask(types.TEXT_DOCUMENT_HOVER, types.HoverParams(**where))
    assert "def measure(x)" in hover.contents.value
    assert hover.contents.value.endswith("*flashgrep*")
    assert hover.range == types.Range(place_of("measure", 15), place_of("(1)", 15))


def test_uses_come_whole_or_in_parts(editor: Editor, shapes: Path) -> None:
    context, where = (
        types.ReferenceContext(include_declaration=True),
        editor.at(shapes, 18, 5),
    )
    expected = [
        ("other.py", 0, 27),
        ("other.py", 4, 29),
        ("shapes.py", 15, 28),
        ("shapes.py", 18, 4),
    ]
    found = editor.ask(
        types.TEXT_DOCUMENT_REFERENCES, types.ReferenceParams(context, **where)
    )
    assert show(found) == expected
    asked = types.ReferenceParams(context, **where, partial_result_token=1)
    rest = editor.ask(types.TEXT_DOCUMENT_REFERENCES, asked)
    assert [
        one["range"]["start"]["line"] for part in editor.progress[1] for one in part
    ] == [0, 4, 15, 18]
    assert not rest
    here = editor.ask(
        types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, types.DocumentHighlightParams(**where)
    )
    assert [one.range.start.line for one in here] == [15, 18]


def test_symbols_of_a_file_are_nested_and_of_all_folders_are_found_by_part_of_a_name(
    editor: Editor, shapes: Path
) -> None:
    document = types.TextDocumentIdentifier(shapes.as_uri())
    tree = editor.ask(
        types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, types.DocumentSymbolParams(document)
    )
    assert [(one.name, [child.name for child in one.children or []]) for one in tree] == [
        ("Shape", ["area"]), ("Square", ["area"]), ("measure", []), ("twice", [])
    ]  # fmt: skip
    assert tree[0].selection_range.start == types.Position(5, 6)
    for query, name in (("seco", "second_folder"), ("sqare", "Square")):
        found = editor.ask(types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams(query))
        assert name in [one.name for one in found]
    parts = types.WorkspaceSymbolParams("measure", partial_result_token=2)
    assert not editor.ask(types.WORKSPACE_SYMBOL, parts)
    assert [one["name"] for part in editor.progress[2] for one in part] == ["measure"]


def test_names_alike_are_shown_where_few_begin_so(editor: Editor, folder: Path) -> None:
    path = folder / "one" / "plenty.py"
    names = [f"plentiful_{at:02}" for at in range(60)]
    editor.open(
        path, "".join(f"def {name}(): pass\n" for name in ["plantiful", *names])
    )
    for query, count, has_alike in (
        ("plentiful", 50, False),
        ("plentiful_00", 1, False),
        ("plentifol", 0, True),
    ):
        found = {
            one.name
            for one in editor.ask(
                types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams(query)
            )
        }
        assert len([name for name in found if name.startswith(query)]) == count
        assert has_alike == ("plantiful" in found)
    document = types.TextDocumentIdentifier(path.as_uri())
    editor.tell(
        types.TEXT_DOCUMENT_DID_CLOSE, types.DidCloseTextDocumentParams(document)
    )


def test_calls_and_types_are_followed_both_ways(editor: Editor, shapes: Path) -> None:
    prepared = types.CallHierarchyPrepareParams(**editor.at(shapes, 18, 4))
    (measure,) = editor.ask(types.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY, prepared)
    callers = editor.ask(
        types.CALL_HIERARCHY_INCOMING_CALLS,
        types.CallHierarchyIncomingCallsParams(measure),
    )
    assert [(one.from_.name, one.from_ranges[0].start) for one in callers] == [
        ("draw", types.Position(4, 29)), ("area", place_of("measure", 15))
    ]  # fmt: skip
    area = callers[1].from_
    called = editor.ask(
        types.CALL_HIERARCHY_OUTGOING_CALLS,
        types.CallHierarchyOutgoingCallsParams(area),
    )
    assert [(one.to.name, one.from_ranges[0].start) for one in called] == [
        ("measure", place_of("measure", 15)), ("twice", place_of("twice", 15))
    ]  # fmt: skip
    prepared_type = types.TypeHierarchyPrepareParams(**editor.at(shapes, 13, 7))
    (square,) = editor.ask(types.TEXT_DOCUMENT_PREPARE_TYPE_HIERARCHY, prepared_type)
    (shape,) = editor.ask(
        types.TYPE_HIERARCHY_SUPERTYPES, types.TypeHierarchySupertypesParams(square)
    )
    (below,) = editor.ask(
        types.TYPE_HIERARCHY_SUBTYPES, types.TypeHierarchySubtypesParams(shape)
    )
    assert (shape.name, below.name) == ("Shape", "Square")


def test_a_name_is_renamed_or_the_error_says_why_not(
    editor: Editor, shapes: Path
) -> None:
    where = editor.at(shapes, 18, 5)
    asked = editor.ask(
        types.TEXT_DOCUMENT_PREPARE_RENAME, types.PrepareRenameParams(**where)
    )
    assert asked.placeholder == "measure"
    edit = editor.ask(
        types.TEXT_DOCUMENT_RENAME, types.RenameParams(new_name="gauge", **where)
    )
    assert {Path(one.text_document.uri).name: len(one.edits) for one in edit.document_changes} == {
        "other.py": 2, "shapes.py": 2
    }  # fmt: skip
    assert edit.change_annotations["flashgrep"].label == "flashgrep: measure to gauge"
    refused = [
        ("twice", where),
        ("1x", where),
        ("a b", where),
        ("x", editor.at(shapes, 1, 0)),
    ]
    for name, place in refused:
        with pytest.raises(JsonRpcException, match="flashgrep: "):
            editor.ask(
                types.TEXT_DOCUMENT_RENAME, types.RenameParams(new_name=name, **place)
            )


def test_what_is_around_a_place_and_what_can_be_folded(
    editor: Editor, shapes: Path
) -> None:
    document = types.TextDocumentIdentifier(shapes.as_uri())
    asked = types.SelectionRangeParams(
        document, [place_of("measure", 15), types.Position(999, 0)]
    )
    inner, nowhere = editor.ask(types.TEXT_DOCUMENT_SELECTION_RANGE, asked)
    assert inner.range == types.Range(place_of("measure", 15), place_of("(1)", 15))
    assert inner.parent.range == types.Range(
        place_of("measure", 15), place_of(") + 1", 15)
    )
    assert nowhere.parent is None
    folds = editor.ask(
        types.TEXT_DOCUMENT_FOLDING_RANGE, types.FoldingRangeParams(document)
    )
    assert (5, 10) in [(one.start_line, one.end_line) for one in folds]


def test_what_is_typed_counts_before_it_is_saved(editor: Editor, folder: Path) -> None:
    path, name = folder / "one" / "new.py", "half_typed"
    editor.open(path, "")
    editor.change(
        path, 7, f"def {name}():\n    pass\n\n\n{name}()\n"
    )  # versions may skip
    editor.change(
        path, 9, "é😀", types.Range(types.Position(1, 99), types.Position(1, 99))
    )  # behind the line's end
    found = editor.ask(
        types.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams(**editor.at(path, 4, 3))
    )
    assert show(found) == [("new.py", 0, 4)]
    assert editor.ask(types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams(name))
    document = types.TextDocumentIdentifier(path.as_uri())
    editor.tell(
        types.TEXT_DOCUMENT_DID_CLOSE, types.DidCloseTextDocumentParams(document)
    )
    assert name not in [
        one.name
        for one in editor.ask(types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams(name))
    ]


def test_searches_are_commands(
    editor: Editor, daemon: DaemonAtHand, folder: Path
) -> None:
    for name in ("one", "two"):
        daemon.add(folder / name)
        wire = daemon.wire("unix", folder / name)
        wire.call("index_codebase", path=str(folder / name))
        wire.close()
    for command in ("flashgrep.search", "flashgrep.searchByMeaning"):
        asked = types.ExecuteCommandParams(command, ["second_folder", {"limit": 3}])
        answers = editor.ask(types.WORKSPACE_EXECUTE_COMMAND, asked)
        assert [Path(one["folder"]).name for one in answers] == ["one", "two"]
        assert answers[1]["results"][0]["uri"] == (folder / "two" / "two.py").as_uri()
    for wrong in ([], [1], ["x", []]):
        with pytest.raises(JsonRpcException):
            editor.ask(
                types.WORKSPACE_EXECUTE_COMMAND,
                types.ExecuteCommandParams("flashgrep.search", wrong),
            )


def test_what_is_known_of_nothing_is_answered_by_nothing(
    editor: Editor, folder: Path
) -> None:
    (folder / "one" / "binary.py").write_bytes(b"\0\1")
    (folder / "one" / "latin.py").write_bytes(b"x = '\xe9'; y = 1\n")
    nowhere = [
        Path("/etc/passwd"),
        folder / "one" / "gone.py",
        folder / "one" / "binary.py",
    ]
    for path in nowhere:
        asked = types.DefinitionParams(**editor.at(path, 0, 0))
        assert not editor.ask(types.TEXT_DOCUMENT_DEFINITION, asked), path
    latin = types.DefinitionParams(
        **editor.at(folder / "one" / "latin.py", 0, 9)
    )  # a byte counts for one unit
    assert show(editor.ask(types.TEXT_DOCUMENT_DEFINITION, latin)) == [
        ("latin.py", 0, 9)
    ]
    for line, column in ((0, 5000), (2**30, 0), (3, 0)):
        asked = types.DefinitionParams(
            **editor.at(folder / "one" / "shapes.py", line, column)
        )
        assert not editor.ask(types.TEXT_DOCUMENT_DEFINITION, asked)
    never = folder / "one" / "never.py"
    editor.change(never, 3, "def never_opened(): pass\n")
    assert "never_opened" not in [
        one.name
        for one in editor.ask(
            types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams("never_opened")
        )
    ]
    editor.open(folder / "one" / "large.py", "x = 1\n" * 2_000_000)
    assert not editor.ask(
        types.TEXT_DOCUMENT_DEFINITION,
        types.DefinitionParams(**editor.at(folder / "one" / "large.py", 0, 0)),
    )


def test_folders_come_and_go(editor: Editor, folder: Path) -> None:
    third = folder / "three"
    third.mkdir()
    (third / "three.py").write_text("def third_folder(): pass\n")
    named = types.WorkspaceFolder(third.as_uri(), "three")

    def found() -> list[str]:
        return [
            one.name
            for one in editor.ask(
                types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams("third_folder")
            )
        ]

    for added, removed, is_there in (([named], [], True), ([], [named], False)):
        event = types.WorkspaceFoldersChangeEvent(added=added, removed=removed)
        editor.tell(
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
            types.DidChangeWorkspaceFoldersParams(event),
        )
        assert ("third_folder" in found()) == is_there


def test_indexing_is_reported_to_its_end(daemon: DaemonAtHand, folder: Path) -> None:
    large = folder / "large"
    large.mkdir()
    for number in range(300):
        (large / f"module_{number}.py").write_text(
            f"def function_{number}(x):\n    return x\n\n\n" * 20
        )
    editor = Editor(daemon, large)
    told = editor.wait_for_progress()
    assert [one["kind"] for one in told] == [
        "begin",
        *["report"] * (len(told) - 2),
        "end",
    ]
    assert told[0]["title"] == "flashgrep: indexing large"
    shares = [one["percentage"] for one in told[:-1]]
    assert shares == sorted(shares)
    assert editor.close() == 0


def test_it_goes_on_when_the_daemon_is_killed_and_tells_the_next_of_what_is_typed(
    cold_daemon: DaemonAtHand, folder: Path
) -> None:
    root = folder / "two"
    editor = Editor(cold_daemon, root)
    path = root / "typed.py"
    editor.open(path, "def typed_only():\n    pass\n")
    editor.change(
        path,
        2,
        "typed_only()\n",
        types.Range(types.Position(2, 0), types.Position(2, 0)),
    )
    for _ in range(2):
        found = editor.ask(
            types.TEXT_DOCUMENT_DEFINITION,
            types.DefinitionParams(**editor.at(path, 2, 1)),
        )
        assert show(found) == [("typed.py", 0, 4)]
        pid = lifecycle.find_holder(cold_daemon.paths)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert lifecycle.wait_until_free(cold_daemon.paths, BOUND)
    assert editor.close() == 0
