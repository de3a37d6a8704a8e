"""Search by meaning when something breaks underneath: vectors, embedders, indexers."""

import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from flashgrep.base.config import Embedding
from flashgrep.index.schema import list_vector_files
from flashgrep.project import Workspace
from tests.faults.harness import kill
from tests.support.embed_server import Api, Reply, Request, serving
from tests.support.meaning import (
    CART,
    DEFAULT_MODEL,
    FILES,
    MAIL,
    PASSWORDS,
    TOPICS,
    asked,
    best,
    meant,
    settled,
    until,
)
from tests.support.workspace import BOUND, files_with, index_of, opened, put


def delete(file: Path) -> None:
    file.unlink()


def cut_short(file: Path) -> None:
    os.truncate(file, 100)


def make_a_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


@pytest.mark.parametrize("harm", [delete, cut_short, make_a_link])
async def test_damaged_vectors_cost_neither_the_answer_nor_the_exact_index_and_are_rebuilt(
    harm: Callable[[Path], None],
    root: Path,
) -> None:
    async with meant(root) as workspace:
        (file,) = list_vector_files(index_of(root).parent)
        inode, generation = index_of(root).stat().st_ino, workspace.generation
        harm(file)
        answer = await asked(workspace, "how are passwords hashed")
        assert (answer.results[0].path, answer.ranked_by) == (PASSWORDS, "words")
        assert "vectors" in answer.problem
        assert await files_with(workspace, "smtplib") == {MAIL}
        await settled(workspace)
        healed = await asked(workspace, "basket of a buyer")
        assert (healed.results[0].path, healed.ranked_by, healed.problem) == (
            CART,
            "words and meaning",
            "",
        )
        assert (index_of(root).stat().st_ino, workspace.generation) == (
            inode,
            generation,
        )
        assert [
            other.is_symlink() for other in list_vector_files(index_of(root).parent)
        ] == [False]


async def test_vectors_that_went_missing_while_nobody_looked_are_found_out_by_the_first_question(
    root: Path,
) -> None:
    async with meant(root):
        pass
    for file in list_vector_files(index_of(root).parent):
        file.unlink()
    async with opened(root) as workspace:
        assert (await asked(workspace, "basket of a buyer")).ranked_by == "words"
        await settled(workspace)
        assert (
            await asked(workspace, "basket of a buyer")
        ).ranked_by == "words and meaning"


async def test_vectors_of_a_model_that_is_no_more_are_rebuilt_though_no_file_changes(
    root: Path,
) -> None:
    async with meant(root):
        pass
    with closing(sqlite3.connect(index_of(root))) as connection, connection:
        connection.execute("UPDATE vector_set SET name = 'of an older release'")
    async with opened(root) as workspace:
        answer = await asked(workspace, "how are passwords hashed")
        assert (answer.results[0].path, answer.ranked_by) == (PASSWORDS, "words")
        await settled(workspace)
        answer = await asked(workspace, "basket of a buyer")
        assert (answer.results[0].path, answer.ranked_by) == (CART, "words and meaning")
        assert sets_of(root) == [DEFAULT_MODEL]


async def test_vectors_are_added_to_a_file_only_where_the_ones_before_are(
    root: Path,
) -> None:
    """Zeros in their place would pass for vectors of code that is like nothing."""
    async with meant(root) as workspace:
        (file,) = list_vector_files(index_of(root).parent)
        file.unlink()
        put(
            root,
            {
                "sky/aim.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"
            },
        )
        await workspace.refresh()
        await settled(workspace)
        for text, path in {
            "basket of a buyer": CART,
            "telescopes and stars": b"sky/aim.py",
        }.items():
            assert (await best(workspace, text, semantic_weight=1.0))[0] == path


@pytest.mark.slow
async def test_chunks_that_a_crash_has_left_without_vectors_get_them(
    root: Path,
) -> None:
    async with meant(root):
        pass
    with closing(sqlite3.connect(index_of(root))) as connection, connection:
        connection.execute(
            "DELETE FROM embedded WHERE text_id > (SELECT min(text_id) FROM embedded)"
        )
    async with opened(root) as workspace:
        await settled(workspace)
        for text, path in {
            "basket of a buyer": CART,
            "how are passwords hashed": PASSWORDS,
        }.items():
            assert (await best(workspace, text, semantic_weight=1.0))[0] == path


# Other embedders


class Model:
    """A server with a model that knows some topics; it can be held up, and made to fail."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.came = threading.Event()
        """Set when a text to be found was sent."""
        self.go_on = threading.Event()
        self.go_on.set()
        self.broken = False
        api.next.extend([self._reply] * 10_000)

    def settings(self, **more: Any) -> str:
        """Return the settings of an embedder that asks this server."""
        return Embedding(
            provider="ollama", url=self.api.url, attempts=1, **more
        ).model_dump_json()

    def reply_to_questions(self, request: Request) -> Reply:
        """Fail for texts that are to be found."""
        self.broken = any("document" in text[:20] for text in request.body["input"])
        return self._reply(request)

    def _reply(self, request: Request) -> Reply:
        texts = request.body["input"]
        if self.broken:
            return Reply(status=400, body={"error": "out of order"})
        if "probe" not in texts[0] and any("document" in text[:20] for text in texts):
            self.came.set()
            assert self.go_on.wait(BOUND)
        return Reply(
            {"model": "topics", "embeddings": [_topics(text) for text in texts]}
        )


def _topics(text: str) -> list[float]:
    said = text.lower().replace("xyzzy", "invoice")
    return [0.01 + said.count(topic) for topic in TOPICS]


@asynccontextmanager
async def embedded_elsewhere(root: Path) -> AsyncIterator[tuple[Workspace, Model]]:
    """Open the shop with all of it embedded by a server of the test's own."""
    with serving() as api:
        model = Model(api)
        put(root, FILES)
        async with opened(root) as workspace:
            workspace.embed_by(model.settings())
            await settled(workspace)
            yield workspace, model


async def reached(event: threading.Event) -> None:
    """Wait for something that happens in the server's threads."""
    assert await anyio.to_thread.run_sync(event.wait, BOUND)


def nobody() -> str:
    """Return the settings of an embedder that does not answer."""
    return Embedding(
        provider="ollama", url="http://127.0.0.1:9", attempts=1
    ).model_dump_json()


def sets_of(root: Path) -> list[str]:
    """Return the names of the sets of vectors in the index."""
    with closing(sqlite3.connect(index_of(root))) as connection:
        return [
            name
            for (name,) in connection.execute("SELECT name FROM vector_set ORDER BY id")
        ]


async def test_old_vectors_serve_while_another_embedder_makes_new_ones_and_then_these_do(
    root: Path,
) -> None:
    async def back_to_the_first(workspace: Workspace, root: Path) -> None:
        workspace.embed_by("{}")
        await settled(workspace)
        assert (await best(workspace, "basket of a buyer"))[0] == CART
        assert sets_of(root) == [DEFAULT_MODEL]

    with serving() as api:
        model = Model(api)
        async with meant(root) as workspace:
            model.go_on.clear()
            workspace.embed_by(model.settings())
            await reached(model.came)
            answer = await asked(workspace, "basket of a buyer")
            assert (answer.results[0].path, answer.ranked_by) == (
                CART,
                "words and meaning",
            )
            assert sets_of(root) == [DEFAULT_MODEL, "ollama:nomic-embed-text"]
            model.go_on.set()
            await settled(workspace)
            answer = await asked(workspace, "xyzzy")
            assert (answer.results[0].path, answer.ranked_by) == (
                MAIL,
                "words and meaning",
            )
            assert sets_of(root) == ["ollama:nomic-embed-text"]
            assert len(list_vector_files(index_of(root).parent)) == 1
            put(
                root,
                {"bill.py": b"def print_invoice():\n    invoice = invoice.invoice\n"},
            )
            assert b"bill.py" in (await best(workspace, "xyzzy"))[:2]
            await back_to_the_first(workspace, root)


async def test_an_embedder_that_does_not_answer_leaves_the_old_vectors_serving_and_is_named(
    root: Path,
) -> None:
    async with meant(root) as workspace:
        workspace.embed_by(nobody())
        answer = await asked(workspace, "basket of a buyer")
        assert (answer.results[0].path, answer.ranked_by) == (CART, "words and meaning")
        assert "ollama at http://127.0.0.1:9" in answer.problem
        await settled(workspace)
        assert "ollama at http://127.0.0.1:9" in workspace.progress.problem
        put(
            root,
            {
                "sky/aim.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"
            },
        )
        assert (await best(workspace, "telescopes and stars"))[0] == b"sky/aim.py"
        workspace.embed_by("{}")
        await settled(workspace)
        answer = await asked(workspace, "telescopes and stars")
        assert (answer.results[0].path, answer.problem) == (b"sky/aim.py", "")
        assert workspace.progress.problem == ""


async def test_without_any_embedder_words_serve_and_the_problem_is_reported(
    root: Path,
) -> None:
    put(root, FILES)
    async with opened(root) as workspace:
        workspace.embed_by(nobody())
        await settled(workspace)
        answer = await asked(workspace, "how are passwords hashed", semantic_weight=1.0)
        assert (answer.results[0].path, answer.ranked_by) == (PASSWORDS, "words")
        assert "ollama" in answer.problem
        assert workspace.progress.stage in {"vectors", "ready"}


async def test_an_embedder_that_falls_silent_is_asked_once_and_words_answer(
    root: Path,
) -> None:
    async with embedded_elsewhere(root) as (workspace, model):
        assert (await best(workspace, "xyzzy"))[0] == MAIL
        model.broken = True
        before = len(model.api.requests)
        for _ in range(5):
            answer = await asked(workspace, "how are passwords hashed")
            assert (answer.results[0].path, answer.ranked_by) == (PASSWORDS, "words")
            assert "out of order" in answer.problem
        assert len(model.api.requests) == before + 1


async def test_an_embedder_that_hangs_holds_up_no_question_for_long(root: Path) -> None:
    async with embedded_elsewhere(root) as (workspace, model):
        assert (await best(workspace, "xyzzy"))[0] == MAIL
        model.api.next.clear()
        model.api.next.extend([Reply(drip=-1)] * 10)
        with anyio.fail_after(BOUND / 3):
            for _ in range(3):
                answer = await asked(workspace, "how are passwords hashed")
                assert (answer.results[0].path, answer.ranked_by) == (
                    PASSWORDS,
                    "words",
                )
        assert "no response within" in answer.problem


async def test_a_changed_file_that_cannot_be_embedded_is_found_by_its_words(
    root: Path,
) -> None:
    async with embedded_elsewhere(root) as (workspace, model):
        await workspace.refresh()
        put(
            root,
            {
                "sky/aim.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"
            },
        )
        model.api.next.clear()
        model.api.next.extend([model.reply_to_questions] * 100)
        answer = await asked(workspace, "rotate the telescope")
        assert answer.results[0].path == b"sky/aim.py"


async def test_an_indexer_killed_while_it_makes_vectors_is_followed_by_one_that_goes_on(
    root: Path,
) -> None:
    with serving() as api:
        model = Model(api)
        model.go_on.clear()
        put(root, FILES)
        async with opened(root) as workspace:
            workspace.embed_by(model.settings(batch=1))
            await reached(model.came)
            kill(workspace.store.scheduler.pid)
            model.go_on.set()
            await until(lambda: "vectors" in workspace.indexing.done, workspace)
            assert (await best(workspace, "xyzzy"))[0] == MAIL
            assert await files_with(workspace, "smtplib") == {MAIL}
