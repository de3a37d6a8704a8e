"""Search by meaning over a real project: code is found at once, whatever changed."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from flashgrep.files.globs import PathFilter
from flashgrep.index import schema
from flashgrep.index.schema import list_vector_files
from flashgrep.parts.meaning.index import chunks
from flashgrep.parts.meaning.search.fusion import RULES
from flashgrep.parts.meaning.search.meaning_search import MOST_HAVING
from flashgrep.project import Workspace
from tests.support.meaning import (
    CART,
    FILES,
    GUIDE,
    MAIL,
    PASSWORDS,
    ROUTER,
    TESTS,
    asked,
    best,
    meant,
    settled,
)
from tests.support.workspace import index_of, opened, put


async def test_words_find_code_before_during_and_after_indexing_and_say_by_what(
    root: Path,
) -> None:
    put(root, FILES)
    async with opened(root) as workspace:
        first = await asked(workspace, "how are passwords hashed")
        assert (first.results[0].path, first.ranked_by) == (PASSWORDS, "words")
        await workspace.wait_parsed()
        assert (await best(workspace, "how are passwords hashed"))[0] == PASSWORDS
        await workspace.wait_embedded()
        answer = await asked(workspace, "how are passwords hashed")
        assert (answer.results[0].path, answer.ranked_by, answer.problem) == (
            PASSWORDS,
            "words and meaning",
            "",
        )
        assert answer.chunks == len(FILES)
        assert answer.embedding_ms > 0
        assert workspace.indexing.done == {"symbols", "chunks", "vectors"}


async def test_a_question_is_answered_by_what_code_does_names_weights_filters_and_thresholds(
    root: Path,
) -> None:
    async def by_filters(workspace: Workspace) -> None:
        only = await best(workspace, "hash a password", keep=PathFilter(["*.ts"], []))
        assert only == [ROUTER]
        assert (
            await best(workspace, "hash a password", keep=PathFilter(["nowhere/*"], []))
            == []
        )
        classes = await asked(
            workspace,
            "hash a password",
            wanted=lambda piece: piece.chunk.kind == "class",
        )
        assert [piece.chunk.name for piece in classes.results] == ["Cart"]
        assert len((await asked(workspace, "customer", limit=2)).results) == 2
        every = [
            piece.score for piece in (await asked(workspace, "customer mail")).results
        ]
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


async def test_a_file_is_found_as_it_is_at_once_after_every_change(root: Path) -> None:
    async def by_changes(root: Path, workspace: Workspace, *, stored: bool) -> None:
        async def then() -> None:
            if stored:
                await settled(workspace)

        text = "rotate the telescope towards a star"
        assert b"sky/aim.py" not in await best(workspace, text)
        put(
            root,
            {
                "sky/aim.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"
            },
        )
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
        assert {b"tea.py", b"sky/aim.py"}.isdisjoint(
            await best(workspace, "boil the kettle")
        )

    async with meant(root) as workspace:
        for stored in (False, True):
            await by_changes(root, workspace, stored=stored)


async def test_the_file_saved_last_is_found_however_many_others_changed(
    root: Path,
) -> None:
    async with meant(root) as workspace:
        put(
            root,
            {f"a{at}.py": b"def filler_%d():\n    pass\n" % at for at in range(100)},
        )
        put(
            root,
            {
                "z.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"
            },
        )
        assert (await best(workspace, "rotate the telescope"))[0] == b"z.py"
        await settled(workspace)
        answer = await asked(workspace, "rotate the telescope")
        assert (answer.results[0].path, answer.unseen) == (b"z.py", 0)


async def test_of_files_that_wait_to_be_indexed_those_with_the_words_are_looked_at(
    root: Path,
) -> None:
    put(
        root,
        {
            f"f{at:03}.py": b"def function_%d():\n    return %d\n" % (at, at)
            for at in range(300)
        },
    )
    put(
        root,
        {"m.py": b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"},
    )
    async with opened(root, indexes=False) as workspace:
        for most_read in (3_000, 100):
            with mock.patch(
                "flashgrep.parts.meaning.search.word_search.MOST_SCANNED", most_read
            ):
                answer = await asked(workspace, "turn the telescope to a star", limit=3)
            assert [piece.path for piece in answer.results] == [b"m.py"]
            assert (answer.ranked_by, answer.unseen > 200) == ("words", True)


async def test_a_file_that_waits_for_its_chunks_is_shown_once(root: Path) -> None:
    text = b"def rotate_telescope(star):\n    return motor.turn(star.angle)\n"
    put(
        root,
        {
            f"f{at:02}.py": b"def function_%d():\n    return %d\n" % (at, at)
            for at in range(70)
        },
    )
    put(root, {"z.py": text, "copies/z.py": text})
    async with opened(root) as workspace:
        await workspace.wait_embedded()
    with (
        closing(schema.connect(index_of(root), writer=True)) as writer,
        schema.transaction(writer),
    ):
        chunks.drop_all(writer)
    async with opened(root, indexes=False) as workspace:
        assert await workspace.refresh()
        answer = await asked(workspace, "turn the telescope to a star", limit=5)
        assert ([piece.path for piece in answer.results], answer.unseen > 0) == (
            [b"z.py"],
            True,
        )


async def test_texts_of_other_encodings_and_line_ends_are_shown_by_their_lines(
    root: Path,
) -> None:
    wide = "def gr\u00fc\u00dfe(kunde):\n    # d\u00e9j\u00e0 vu\n    return kunde.winken()\n"
    files = {
        "wide.py": wide.encode("utf-16"),
        "crlf.py": b"# header\r\n\r\n\r\ndef open_valve(tank):\r\n    return tank.drain()\r\n",
        "old.py": b"def caf\xe9_menu():\n    return 'espresso'\n",
        "bytes.bin": b"\0open_valve",
        "blank.py": b"\n\n",
    }

    put(root, files)
    async with opened(root) as workspace:
        for _ in range(2):
            assert (await best(workspace, "winken kunde"))[0] == b"wide.py"
            assert (await best(workspace, "open the valve of a tank"))[0] == b"crlf.py"
            assert (await best(workspace, "espresso menu"))[0] == b"old.py"
            assert b"bytes.bin" not in await best(workspace, "open_valve")
            await settled(workspace)


async def test_a_text_of_two_files_is_shown_once_from_the_file_that_counts_and_nearest_to_the_heart(
    root: Path,
) -> None:
    text = FILES["shop/cart.py"]
    files = {
        "vendor/cart.py": text,
        "shop/cart.py": text,
        "tests/fixtures/cart.py": text,
    }

    async def copies(workspace: Workspace, **more: Any) -> list[bytes]:
        answer = await asked(workspace, "shopping cart of a customer", **more)
        return [piece.path for piece in answer.results if piece.chunk.name == "Cart"]

    async with meant(root, FILES | files) as workspace:
        assert await copies(workspace) == [b"shop/cart.py"]
        assert await copies(workspace, keep=PathFilter(["/vendor/**"], [])) == [
            b"vendor/cart.py"
        ]
        (root / "shop/cart.py").unlink()
        assert await copies(workspace) == [b"tests/fixtures/cart.py"]
        (root / "tests/fixtures/cart.py").write_bytes(b"x = 1\n")
        assert await copies(workspace) == [b"vendor/cart.py"]


async def test_a_project_without_a_line_of_text_answers_nothing(root: Path) -> None:
    async with meant(root, {"empty.py": b"", "image.bin": b"\0\0"}) as workspace:
        answer = await asked(workspace, "anything at all")
        assert (answer.results, answer.chunks, answer.problem) == ([], 0, "")


async def test_an_index_thrown_away_answers_right_again(root: Path) -> None:
    async with meant(root) as workspace:
        before = list_vector_files(index_of(root).parent)
        await workspace.rebuild()
        assert (await best(workspace, "how are passwords hashed"))[0] == PASSWORDS
        await settled(workspace)
        answer = await asked(workspace, "basket of a buyer")
        assert (answer.results[0].path, answer.ranked_by) == (CART, "words and meaning")
        after = list_vector_files(index_of(root).parent)
        assert len(after) == 1
        assert after != before
        assert not before[0].exists()


async def test_a_named_type_lifts_the_file_that_defines_it(tmp_path: Path) -> None:
    mention = "def draw_{0}(stars):\n    # Draws {0} stars of the SkyMap\n    pass\n"
    files = {
        "stars/drawing.py": mention.format("bright").encode(),
        "stars/atlas.py": b"class SkyMap:\n    pass\n",
    }
    question = "where are stars of the SkyMap drawn"
    async with meant(tmp_path, files) as workspace:
        without = replace(RULES, names_type=0.0)
        assert await best(workspace, question, rules=without) == [
            b"stars/drawing.py",
            b"stars/atlas.py",
        ]
        assert (await best(workspace, question))[0] == b"stars/atlas.py"
        put(tmp_path, {"stars/other.py": b"class SkyMap(Base):\n    pass\n"})
        assert set((await best(workspace, question))[:2]) == {
            b"stars/atlas.py",
            b"stars/other.py",
        }, "a file that is not stored yet, too"


async def test_of_a_long_function_the_part_with_most_of_the_words_is_shown(
    tmp_path: Path,
) -> None:
    lines = ["def leave_out(lines):", '    """Count."""']
    lines += [f"    value_{number} = compute({number})" for number in range(300)]
    lines += ["    told = 'what is left out in a long function'", "    return told"]
    files = {"cuts.py": "\n".join(lines).encode()}
    question = "what is left out in a long function"
    async with meant(tmp_path, files) as workspace:
        answer = await asked(workspace, question, passages=True, files=3)
        (found,) = answer.results
        passage = found.passage
        assert passage is not None
        assert passage.whole == (1, len(lines))
        assert passage.head == (1, 2)
        assert passage.part[0] < len(lines) - 1 < passage.part[1]
        assert found.score == 1.0
        (function,) = answer.files[0].functions
        assert function.lines == (1, len(lines))
        # By another word only the beginning answers.
        answer = await asked(workspace, "where is something counted", passages=True)
        first = answer.results[0].passage
        assert first is not None
        assert first.part[0] == 1


async def test_every_file_with_a_rare_word_comes_before_what_is_only_like_it(
    root: Path,
) -> None:
    having = {
        "CHANGELOG.md": b"# 1.2\n\n- a fix of what the cart did with passwords\n",
        "tests/test_mail.py": b"def test_mail() -> None:\n    assert send('passwords')\n",
        "web/limits.py": b"LIMIT = 10\n\n# Of passwords, too.\nWAIT = 3\n",
    }
    put(root, FILES | having)
    new = b"docs/new.md"
    async with meant(root, FILES | having) as workspace:
        first = {*map(str.encode, having), PASSWORDS}
        found = await best(workspace, "passwords")
        assert {*found[:5]} == {*first, TESTS}
        assert found.index(MAIL) >= 5
        put(root, {new.decode(): b"# New\n\nA page about passwords.\n"})
        found = await best(workspace, "passwords")
        assert {*found[:6]} == {*first, TESTS, new}, "before it is indexed, too"
        several = await best(workspace, "hash passwords of customers")
        assert several[0] == PASSWORDS
        assert several.index(b"CHANGELOG.md") > several.index(CART)


async def test_a_word_of_many_files_and_a_weight_leave_the_order_to_all_evidence(
    root: Path,
) -> None:
    def name(at: int) -> str:
        return f"docs/{at}.md"

    notes = {
        name(at): b"# Note %d\n\nAbout hashing.\n" % at for at in range(MOST_HAVING + 1)
    }
    async with meant(root, FILES | notes) as workspace:
        assert PASSWORDS in (await best(workspace, "hashing", limit=20))[:MOST_HAVING]
        (root / name(0)).unlink()
        assert await workspace.refresh()
        await settled(workspace)
        found = await best(workspace, "hashing", limit=20)
        assert found.index(PASSWORDS) == MOST_HAVING
        found = await best(
            workspace, "hashing", limit=20, semantic_weight=RULES.semantic_weight
        )
        assert found.index(PASSWORDS) < MOST_HAVING


async def test_a_manual_in_many_languages_leaves_room_for_code(root: Path) -> None:
    manual = {
        f"docs/{at}/manual.md": b"# Manual %d\n\nHow passwords are hashed: a password is hashed slowly.\n"
        % at
        for at in range(30)
    }
    few = replace(RULES, candidates=5)
    async with meant(root, FILES | manual) as workspace:
        text = "how are passwords hashed"
        assert (await best(workspace, text, rules=few))[0] == PASSWORDS
        assert PASSWORDS not in await best(
            workspace, text, rules=few, keep=PathFilter(["docs/**"], [])
        )
        asked_of_manual = await best(workspace, f"manual: {text}", rules=few)
        assert PASSWORDS not in asked_of_manual
