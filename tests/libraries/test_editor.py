"""An editor goes from a name into a library, and on from there."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.conftest import DaemonAtHand, short_folder
from tests.libraries.library_trees import LOOMS, USER, write_tree
from tests.lsp.editor import Editor


@pytest.fixture
def root() -> Iterator[Path]:
    folder = short_folder() / "one"
    write_tree(folder, {"main.py": USER})
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    yield folder
    subprocess.run(["rm", "-rf", str(folder.parent)], check=True)


def test_an_editor_goes_into_a_library_and_on_in_it(
    daemon: DaemonAtHand, root: Path
) -> None:
    outside = Path(daemon.environ["HOME"]) / ".virtualenvs/two"
    write_tree(outside, {name.removeprefix(".venv/"): text for name, text in LOOMS.items()})  # fmt: skip
    (root / ".venv").symlink_to(outside)
    frames = outside / "lib/python3.12/site-packages/looms/frames.py"
    editor = Editor(daemon, root)
    place: dict[str, Any] = {
        "text_document": types.TextDocumentIdentifier((root / "main.py").as_uri()),
        "position": types.Position(3, 7),
    }
    (location,) = editor.ask(
        types.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams(**place)
    )
    assert location.uri == frames.as_uri()
    assert location.range.start == types.Position(8, 4)
    hover = editor.ask(types.TEXT_DOCUMENT_HOVER, types.HoverParams(**place))
    assert "def weave(yarn):" in hover.contents.value
    inner = types.DefinitionParams(
        types.TextDocumentIdentifier(frames.as_uri()), types.Position(9, 13)
    )
    (next_location,) = editor.ask(types.TEXT_DOCUMENT_DEFINITION, inner)
    assert next_location.range.start == types.Position(0, 6)
    with pytest.raises(JsonRpcException, match="a library"):
        editor.ask(
            types.TEXT_DOCUMENT_RENAME, types.RenameParams(**place, new_name="knit")
        )
    assert editor.close() == 0
