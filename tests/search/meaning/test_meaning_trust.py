"""An index that came with a hostile repository: it must not have questions sent anywhere."""

import socket
import sqlite3
from pathlib import Path

import pytest

from flashgrep.base.config import Embedding
from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion
from flashgrep.project import Workspace
from tests.support.workspace import index_of, opened, put


async def test_an_embedder_named_by_the_index_is_not_asked(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        put(root, {"door.py": b"def open_the_door():\n    return key\n"})
        async with opened(root) as workspace:
            await workspace.wait_embedded()
        _claim_embedder(root, listener.getsockname()[1])
        async with opened(root) as workspace:
            await workspace.refresh()
            assert await _found(workspace) == [b"door.py"]
            await workspace.wait_embedded()
            assert await _found(workspace) == [b"door.py"]
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


async def _found(workspace: Workspace) -> list[bytes]:
    answer = await search_by_meaning(
        workspace, MeaningQuestion(text="who opens the door", limit=3)
    )
    return [piece.path for piece in answer.results]


def _claim_embedder(root: Path, port: int) -> None:
    claimed = Embedding(
        provider="ollama", url=f"http://127.0.0.1:{port}", timeout_seconds=1, attempts=1
    )
    with sqlite3.connect(index_of(root)) as connection:
        connection.execute("UPDATE vector_set SET name = 'ollama:nomic-embed-text'")
        connection.execute(
            "UPDATE meta SET value = ? WHERE key = 'embedding'",
            [claimed.model_dump_json()],
        )
    connection.close()
