"""Search by meaning over a real project: found at once whatever changed, right whatever breaks underneath."""

import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from flashgrep.config import Embedding
from flashgrep.embed import static
from flashgrep.index.vectors import vector_files
from flashgrep.search.meaning import MeaningAnswer, MeaningQuestion, Piece
from flashgrep.workspace import Workspace
from tests.embed_server import Api, Reply, Request, serving
from tests.fault_harness import index_of, kill
from tests.workspace_harness import BOUND, files_with, opened, put, run

FILES = {
    "shop/passwords.py": b'''"""Keeps passwords safe."""

import hashlib


def hash_password(password: str, salt: bytes) -> bytes:
    """Derive a key from a password, slowly, so that guessing it is expensive."""
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 600_000)


def verify_password(password: str, salt: bytes, expected: bytes) -> bool:
    """Return whether a password is the one that was hashed."""
    return hash_password(password, salt) == expected
''',
    "shop/cart.py": b'''"""A customer's shopping cart."""


class Cart:
    """Articles that a customer wants to buy."""

    def __init__(self) -> None:
        self.articles: dict[str, int] = {}

    def add_article(self, name: str, count: int) -> None:
        """Put articles into the cart."""
        self.articles[name] = self.articles.get(name, 0) + count

    def total_price(self, prices: dict[str, int]) -> int:
        """Sum up what all articles cost together."""
        return sum(prices[name] * count for name, count in self.articles.items())
''',
    "shop/mail.py": b'''"""Sends mail."""

import smtplib


def send_invoice(address: str, text: str) -> None:
    """Deliver an invoice to a customer by electronic mail."""
    with smtplib.SMTP("localhost") as server:
        server.sendmail("shop@example.org", address, text)
''',
    "web/router.ts": b"""export function matchRoute(path: string, routes: Map<string, Handler>): Handler | undefined {
  // Find the handler for a URL by its longest prefix.
  return routes.get(path);
}
""",
    "tests/test_passwords.py": b"""from shop.passwords import hash_password, verify_password


def test_a_hashed_password_is_verified() -> None:
    assert verify_password("secret", b"salt", hash_password("secret", b"salt"))
""",
    "docs/guide.md": b"# Guide\n\n## Deployment\n\nRun the container behind a reverse proxy.\n\n## Backup\n\nDump the "
    b"database every night.\n",
}

TOPICS = ("password", "article", "invoice", "route", "database", "proxy")
"""What the tests' own model knows, one number each; ``xyzzy`` is its word for an invoice."""

BUILT_IN = static.load(static.DATA).name

PASSWORDS, CART, MAIL, ROUTER, TESTS, GUIDE = (path.encode() for path in FILES)


async def asked(workspace: Workspace, text: str, **more: Any) -> MeaningAnswer:
    """Return the answer of a project that has taken in all changes, checked for what holds of every answer."""
    assert await workspace.refresh()
    answer = await workspace.by_meaning(MeaningQuestion(**{"text": text, "limit": 10, **more}))
    scores = [piece.score for piece in answer.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    for piece in answer.results:
        assert piece.text == lines_on_disk(workspace, piece), piece
    places = [(piece.path, piece.chunk.start) for piece in answer.results]
    assert len(set(places)) == len(places)
    return answer


async def best(workspace: Workspace, text: str, **more: Any) -> list[bytes]:
    """Return the files of an answer, best first."""
    return list(dict.fromkeys(piece.path for piece in (await asked(workspace, text, **more)).results))


def lines_on_disk(workspace: Workspace, piece: Piece) -> str:
    """Return the lines of a piece as its file has them, without the blanks at the end."""
    data = (workspace.path / os.fsdecode(piece.path)).read_bytes()
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8"
    lines = data.decode(encoding, "replace").split("\n")[piece.chunk.start_line - 1 : piece.chunk.end_line]
    return "\n".join(lines).rstrip()


@asynccontextmanager
async def meant(root: Path, files: dict[str, bytes] | None = None) -> AsyncIterator[Workspace]:
    """Open a project and have all of it indexed, vectors too."""
    put(root, FILES if files is None else files)
    async with opened(root) as workspace:
        await settled(workspace)
        yield workspace


async def settled(workspace: Workspace) -> None:
    """Wait until the vectors are there, past failures that are tried again."""
    await workspace.wait_meant()
    while workspace.progress.stage == "failed":
        await workspace.keeper.pause()
        await workspace.wait_meant()


async def until(happens: Callable[[], bool], workspace: Workspace) -> None:
    """Wait for something that the keeper brings about."""
    while not happens():
        with anyio.move_on_after(0.05):
            await workspace.keeper.pause()


def test_words_find_code_before_during_and_after_indexing_and_say_by_what() -> None:
    async def body(root: Path) -> None:
        put(root, FILES)
        async with opened(root) as workspace:
            first = await asked(workspace, "how are passwords hashed")
            assert (first.results[0].path, first.ranked_by) == (PASSWORDS, "words")
            await workspace.wait_parsed()
            assert (await best(workspace, "how are passwords hashed"))[0] == PASSWORDS
            await workspace.wait_meant()
            answer = await asked(workspace, "how are passwords hashed")
            assert (answer.results[0].path, answer.ranked_by, answer.problem) == (PASSWORDS, "words and meaning", "")
            assert answer.chunks == len(FILES)
            assert answer.embedding_ms > 0
            assert workspace.keeper.done == {"symbols", "chunks", "vectors"}

    run(body)


def test_a_question_is_answered_by_what_code_does_names_weights_filters_and_thresholds() -> None:
    async def body(root: Path) -> None:
        async with meant(root) as workspace:
            for text, path in {
                "basket of a buyer": CART,
                "bills by email": MAIL,
                "URL dispatch": ROUTER,
                "container behind a reverse proxy": GUIDE,
                "hash_password": PASSWORDS,
                "total_price": CART,
                "Cart.add_article": CART,
                "web/router.ts": ROUTER,
                "tests of the password check": TESTS,
            }.items():
                assert (await best(workspace, text))[0] == path, text
            await by_filters(workspace)
            await by_weights(workspace)

    async def by_filters(workspace: Workspace) -> None:
        only = await best(workspace, "hash a password", keep=lambda path: path.endswith(b".ts"))
        assert only == [ROUTER]
        assert await best(workspace, "hash a password", keep=lambda _: False) == []
        classes = await asked(workspace, "hash a password", wanted=lambda piece: piece.chunk.kind == "class")
        assert [piece.chunk.name for piece in classes.results] == ["Cart"]
        assert len((await asked(workspace, "customer", limit=2)).results) == 2
        every = [piece.score for piece in (await asked(workspace, "customer mail")).results]
        for least in (0.2, 0.3, every[1] - 0.001, 0.99):
            answer = await asked(workspace, "customer mail", threshold=least)
            assert all(piece.score >= least for piece in answer.results)
            assert len(answer.results) >= sum(score >= least for score in every) > 0

    async def by_weights(workspace: Workspace) -> None:
        assert await best(workspace, "basket", semantic_weight=0.0) == []
        assert (await best(workspace, "basket", semantic_weight=1.0))[0] == CART
        assert (await best(workspace, "basket"))[0] == CART
        assert await best(workspace, "smtplib", semantic_weight=0.0) == [MAIL]
        assert await best(workspace, "zzyzx qqqq", semantic_weight=0.0) == []
        assert (await asked(workspace, "%% ??")).results == []

    run(body)


def test_a_file_is_found_as_it_is_at_once_after_every_change() -> None:
    async def body(root: Path) -> None:
        async with meant(root) as workspace:
            for stored in (False, True):
                await by_changes(root, workspace, stored=stored)

    async def by_changes(root: Path, workspace: Workspace, *, stored: bool) -> None:
        async def then() -> None:
            if stored:
                await settled(workspace)

        text = "rotate the telescope towards a star"
        assert b"sky/aim.py" not in await best(workspace, text)
        put(root, {"sky/aim.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"})
        await then()
        assert (await best(workspace, text))[0] == b"sky/aim.py"
        put(root, {"sky/aim.py": b"\n\ndef boil_kettle():\n    return heater.on()\n"})
        await then()
        (piece, *_) = (await asked(workspace, "boil the kettle")).results
        assert (piece.path, piece.chunk.end_line) == (b"sky/aim.py", 4)
        assert "telescope" not in piece.text
        (root / "sky/aim.py").rename(root / "tea.py")
        await then()
        assert (await best(workspace, "boil the kettle"))[0] == b"tea.py"
        (root / "tea.py").unlink()
        (root / "sky").rmdir()
        await then()
        assert {b"tea.py", b"sky/aim.py"}.isdisjoint(await best(workspace, "boil the kettle"))

    run(body)


def test_the_file_saved_last_is_found_however_many_others_changed() -> None:
    async def body(root: Path) -> None:
        async with meant(root) as workspace:
            put(root, {f"a{at}.py": b"def filler_%d():\n    pass\n" % at for at in range(100)})
            put(root, {"z.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"})
            assert (await best(workspace, "rotate the telescope"))[0] == b"z.py"
            await settled(workspace)
            answer = await asked(workspace, "rotate the telescope")
            assert (answer.results[0].path, answer.unseen) == (b"z.py", 0)

    run(body)


def test_texts_of_other_encodings_and_line_ends_are_shown_by_their_lines() -> None:
    wide = "def gr\u00fc\u00dfe(kunde):\n    # d\u00e9j\u00e0 vu\n    return kunde.winken()\n"
    files = {
        "wide.py": wide.encode("utf-16"),
        "crlf.py": b"# header\r\n\r\n\r\ndef open_valve(tank):\r\n    return tank.drain()\r\n",
        "old.py": b"def caf\xe9_menu():\n    return 'espresso'\n",
        "bytes.bin": b"\0open_valve",
        "blank.py": b"\n\n",
    }

    async def body(root: Path) -> None:
        put(root, files)
        async with opened(root) as workspace:
            for _ in range(2):
                assert (await best(workspace, "winken kunde"))[0] == b"wide.py"
                assert (await best(workspace, "open the valve of a tank"))[0] == b"crlf.py"
                assert (await best(workspace, "espresso menu"))[0] == b"old.py"
                assert b"bytes.bin" not in await best(workspace, "open_valve")
                await settled(workspace)

    run(body)


def test_a_text_of_two_files_is_shown_once_from_the_file_that_counts_and_nearest_to_the_heart() -> None:
    text = FILES["shop/cart.py"]
    files = {"vendor/cart.py": text, "shop/cart.py": text, "tests/fixtures/cart.py": text}

    async def body(root: Path) -> None:
        async with meant(root, FILES | files) as workspace:
            assert await copies(workspace) == [b"shop/cart.py"]
            assert await copies(workspace, keep=lambda path: path.startswith(b"vendor/")) == [b"vendor/cart.py"]
            (root / "shop/cart.py").unlink()
            assert await copies(workspace) == [b"tests/fixtures/cart.py"]
            (root / "tests/fixtures/cart.py").write_bytes(b"x = 1\n")
            assert await copies(workspace) == [b"vendor/cart.py"]

    async def copies(workspace: Workspace, **more: Any) -> list[bytes]:
        answer = await asked(workspace, "shopping cart of a customer", **more)
        return [piece.path for piece in answer.results if piece.chunk.name == "Cart"]

    run(body)


def test_a_project_without_a_line_of_text_answers_nothing() -> None:
    async def body(root: Path) -> None:
        async with meant(root, {"empty.py": b"", "image.bin": b"\0\0"}) as workspace:
            answer = await asked(workspace, "anything at all")
            assert (answer.results, answer.chunks, answer.problem) == ([], 0, "")

    run(body)


def test_an_index_thrown_away_answers_right_again() -> None:
    async def body(root: Path) -> None:
        async with meant(root) as workspace:
            before = vector_files(index_of(root).parent)
            await workspace.rebuild()
            assert (await best(workspace, "how are passwords hashed"))[0] == PASSWORDS
            await settled(workspace)
            answer = await asked(workspace, "basket of a buyer")
            assert (answer.results[0].path, answer.ranked_by) == (CART, "words and meaning")
            after = vector_files(index_of(root).parent)
            assert len(after) == 1
            assert after != before
            assert not before[0].exists()

    run(body)


def delete(file: Path) -> None:
    file.unlink()


def cut_short(file: Path) -> None:
    os.truncate(file, 100)


def make_a_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


@pytest.mark.parametrize("harm", [delete, cut_short, make_a_link])
def test_damaged_vectors_cost_neither_the_answer_nor_the_exact_index_and_are_made_anew(
    harm: Callable[[Path], None],
) -> None:
    async def body(root: Path) -> None:
        async with meant(root) as workspace:
            (file,) = vector_files(index_of(root).parent)
            inode, generation = index_of(root).stat().st_ino, workspace.generation
            harm(file)
            answer = await asked(workspace, "how are passwords hashed")
            assert (answer.results[0].path, answer.ranked_by) == (PASSWORDS, "words")
            assert "vectors" in answer.problem
            assert await files_with(workspace, "smtplib") == {MAIL}
            await settled(workspace)
            healed = await asked(workspace, "basket of a buyer")
            assert (healed.results[0].path, healed.ranked_by, healed.problem) == (CART, "words and meaning", "")
            assert (index_of(root).stat().st_ino, workspace.generation) == (inode, generation)
            assert [other.is_symlink() for other in vector_files(index_of(root).parent)] == [False]

    run(body)


def test_vectors_that_went_missing_while_nobody_looked_are_found_out_by_the_first_question() -> None:
    async def body(root: Path) -> None:
        async with meant(root):
            pass
        for file in vector_files(index_of(root).parent):
            file.unlink()
        async with opened(root) as workspace:
            assert (await asked(workspace, "basket of a buyer")).ranked_by == "words"
            await settled(workspace)
            assert (await asked(workspace, "basket of a buyer")).ranked_by == "words and meaning"

    run(body)


def test_vectors_of_a_model_that_is_no_more_are_made_anew_though_no_file_changes() -> None:
    async def body(root: Path) -> None:
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
            assert sets_of(root) == [BUILT_IN]

    run(body)


def test_vectors_are_added_to_a_file_only_where_the_ones_before_are() -> None:
    """Zeros in their place would pass for vectors of code that is like nothing."""

    async def body(root: Path) -> None:
        async with meant(root) as workspace:
            (file,) = vector_files(index_of(root).parent)
            file.unlink()
            put(root, {"sky/aim.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"})
            await workspace.refresh()
            await settled(workspace)
            for text, path in {"basket of a buyer": CART, "telescopes and stars": b"sky/aim.py"}.items():
                assert (await best(workspace, text, semantic_weight=1.0))[0] == path

    run(body)


# Other embedders


class Model:
    """A server with a model that knows some topics; it can be held up, and made to fail."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.came = threading.Event()
        """Set when a text to be found was sent."""
        self.go_on = threading.Event()
        self.go_on.set()
        self.broken = False
        api.next.extend([self._reply] * 10_000)

    def settings(self, **more: Any) -> str:
        """Return the settings of an embedder that asks this server."""
        return Embedding(provider="ollama", url=self._api.url, attempts=1, **more).model_dump_json()

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
        return Reply({"model": "topics", "embeddings": [_topics(text) for text in texts]})


def _topics(text: str) -> list[float]:
    said = text.lower().replace("xyzzy", "invoice")
    return [0.01 + said.count(topic) for topic in TOPICS]


async def reached(event: threading.Event) -> None:
    """Wait for something that happens in the server's threads."""
    assert await anyio.to_thread.run_sync(event.wait, BOUND)


def nobody() -> str:
    """Return the settings of an embedder that does not answer."""
    return Embedding(provider="ollama", url="http://127.0.0.1:9", attempts=1).model_dump_json()


def sets_of(root: Path) -> list[str]:
    """Return the names of the sets of vectors in the index."""
    with closing(sqlite3.connect(index_of(root))) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM vector_set ORDER BY id")]


def test_old_vectors_serve_while_another_embedder_makes_new_ones_and_then_these_do() -> None:
    async def body(root: Path) -> None:
        with serving() as api:
            model = Model(api)
            async with meant(root) as workspace:
                model.go_on.clear()
                workspace.embed_by(model.settings())
                await reached(model.came)
                answer = await asked(workspace, "basket of a buyer")
                assert (answer.results[0].path, answer.ranked_by) == (CART, "words and meaning")
                assert sets_of(root) == [BUILT_IN, "ollama:nomic-embed-text"]
                model.go_on.set()
                await settled(workspace)
                answer = await asked(workspace, "xyzzy")
                assert (answer.results[0].path, answer.ranked_by) == (MAIL, "words and meaning")
                assert sets_of(root) == ["ollama:nomic-embed-text"]
                assert len(vector_files(index_of(root).parent)) == 1
                put(root, {"bill.py": b"def print_invoice():\n    invoice = invoice.invoice\n"})
                assert b"bill.py" in (await best(workspace, "xyzzy"))[:2]
                await back_to_the_first(workspace, root)

    async def back_to_the_first(workspace: Workspace, root: Path) -> None:
        workspace.embed_by("{}")
        await settled(workspace)
        assert (await best(workspace, "basket of a buyer"))[0] == CART
        assert sets_of(root) == [BUILT_IN]

    run(body)


def test_an_embedder_that_does_not_answer_leaves_the_old_vectors_serving_and_is_named() -> None:
    async def body(root: Path) -> None:
        async with meant(root) as workspace:
            workspace.embed_by(nobody())
            answer = await asked(workspace, "basket of a buyer")
            assert (answer.results[0].path, answer.ranked_by) == (CART, "words and meaning")
            assert "ollama at http://127.0.0.1:9" in answer.problem
            await settled(workspace)
            assert "ollama at http://127.0.0.1:9" in workspace.progress.problem
            put(root, {"sky/aim.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"})
            assert (await best(workspace, "telescopes and stars"))[0] == b"sky/aim.py"
            workspace.embed_by("{}")
            await settled(workspace)
            answer = await asked(workspace, "telescopes and stars")
            assert (answer.results[0].path, answer.problem) == (b"sky/aim.py", "")
            assert workspace.progress.problem == ""

    run(body)


def test_without_any_embedder_words_serve_and_the_problem_is_told() -> None:
    async def body(root: Path) -> None:
        put(root, FILES)
        async with opened(root) as workspace:
            workspace.embed_by(nobody())
            await settled(workspace)
            answer = await asked(workspace, "how are passwords hashed", semantic_weight=1.0)
            assert (answer.results[0].path, answer.ranked_by) == (PASSWORDS, "words")
            assert "ollama" in answer.problem
            assert workspace.progress.stage in {"vectors", "ready"}

    run(body)


def test_an_embedder_that_falls_silent_is_asked_once_and_words_answer() -> None:
    async def body(root: Path) -> None:
        with serving() as api:
            model = Model(api)
            put(root, FILES)
            async with opened(root) as workspace:
                workspace.embed_by(model.settings())
                await settled(workspace)
                assert (await best(workspace, "xyzzy"))[0] == MAIL
                model.broken = True
                before = len(api.requests)
                for _ in range(5):
                    answer = await asked(workspace, "how are passwords hashed")
                    assert (answer.results[0].path, answer.ranked_by) == (PASSWORDS, "words")
                    assert "out of order" in answer.problem
                assert len(api.requests) == before + 1

    run(body)


def test_an_embedder_that_hangs_holds_up_no_question_for_long() -> None:
    async def body(root: Path) -> None:
        with serving() as api:
            model = Model(api)
            put(root, FILES)
            async with opened(root) as workspace:
                workspace.embed_by(model.settings())
                await settled(workspace)
                assert (await best(workspace, "xyzzy"))[0] == MAIL
                api.next.clear()
                api.next.extend([Reply(drip=-1)] * 10)
                with anyio.fail_after(BOUND / 3):
                    for _ in range(3):
                        answer = await asked(workspace, "how are passwords hashed")
                        assert (answer.results[0].path, answer.ranked_by) == (PASSWORDS, "words")
                assert "no answer within" in answer.problem

    run(body)


def test_a_changed_file_that_cannot_be_embedded_is_found_by_its_words() -> None:
    async def body(root: Path) -> None:
        with serving() as api:
            model = Model(api)
            put(root, FILES)
            async with opened(root) as workspace:
                workspace.embed_by(model.settings())
                await settled(workspace)
                await workspace.refresh()
                put(root, {"sky/aim.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"})
                api.next.clear()
                api.next.extend([model.reply_to_questions] * 100)
                answer = await asked(workspace, "rotate the telescope")
                assert answer.results[0].path == b"sky/aim.py"

    run(body)


def test_an_indexer_killed_while_it_makes_vectors_is_followed_by_one_that_goes_on() -> None:
    async def body(root: Path) -> None:
        with serving() as api:
            model = Model(api)
            model.go_on.clear()
            put(root, FILES)
            async with opened(root) as workspace:
                workspace.embed_by(model.settings(batch=1))
                await reached(model.came)
                kill(workspace.keeper.pid)
                model.go_on.set()
                await until(lambda: "vectors" in workspace.keeper.done, workspace)
                assert (await best(workspace, "xyzzy"))[0] == MAIL
                assert await files_with(workspace, "smtplib") == {MAIL}

    run(body)
