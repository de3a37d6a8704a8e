"""Shared fixtures of edit tests: an editor of an empty folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flashgrep.files.editor import Editor
from tests.edit.harness import root_at


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    with root_at(tmp_path) as root:
        yield Editor(root)
