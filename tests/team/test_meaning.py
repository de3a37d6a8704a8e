"""Questions by meaning over the store: the first files are those of the local index, and what is missing is told."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.parts.meaning.methods import MOST_FUNCTIONS
from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion
from flashgrep.parts.team.database import connect
from tests.support.git import git
from tests.support.meaning import FILES
from tests.support.workspace import opened
from tests.team.conftest import Rig
from tests.team.test_jobs import count
from tests.team.test_store import draw_files

pytestmark = pytest.mark.slow

QUESTIONS = [
    "how are passwords kept safe",
    "put an article into the cart",
    "send a mail to a customer",
    "match the path of a URL to a handler",
    "back up the database",
    "hash_password",
    "shop/cart.py",
    "gamma_delta",
    "what tests verify a password",
]
TEXTS = {**FILES, **draw_files(5, 150)}


async def ask_locally(
    root: Path, questions: list[str]
) -> tuple[dict[str, list[tuple[str, int, float]]], dict[str, list[tuple[str, int]]]]:
    """Return the places and scores of each answer of the local index, and its files with their functions' number."""
    found = {}
    files = {}
    async with opened(root) as workspace:
        await workspace.wait_embedded()
        for question in questions:
            answer = await search_by_meaning(
                workspace,
                MeaningQuestion(text=question, limit=10, passages=True, files=10),
            )
            files[question] = [
                (file.path.decode(), min(MOST_FUNCTIONS, len(file.functions)))
                for file in answer.files
            ]
            found[question] = [
                (piece.path.decode(), piece.chunk.start_line, piece.score)
                for piece in answer.results
            ]
    return found, files


async def ask_store(call: Callable[..., Any], question: str, **more: Any) -> Any:
    return await call(
        "search_code", query=question, limit=10, max_tokens=100_000, **more
    )


@pytest.mark.parametrize("shards", [{}, {"a": None, "b": None, "c": None}])
async def test_the_first_answers_are_those_of_the_local_index(
    dsn: str, make_rig: Callable[..., Rig], shards: dict[str, None]
) -> None:
    rig = make_rig(dsn, shards)
    root = rig.make_repository("one", TEXTS)
    rig.sync()
    asked = rig.ask_as("ann")
    local, best = await ask_locally(root, QUESTIONS)
    for question in QUESTIONS:
        page = await ask_store(asked.call, question)
        assert page["coverage"]["complete"], page["coverage"]
        assert page["ranked_by"] == "words and meaning"
        listed = [(one["path"], len(one["functions"])) for one in page["files"]]
        assert listed == best[question], question
        files = list(dict.fromkeys(hit["file_path"] for hit in page["results"]))
        assert files == list(dict.fromkeys(path for path, _, _ in local[question])), (
            question
        )
        scores = [hit["score"] for hit in page["results"]]
        assert scores == pytest.approx(
            [score for _, _, score in local[question]], abs=0.01
        ), question


async def test_what_has_no_chunks_yet_is_read_as_far_as_it_is_few_and_the_rest_is_reported(
    rig: Rig,
) -> None:
    rig.make_repository("one", TEXTS)
    rig.sync()
    asked = rig.ask_as("ann")
    with closing(connect(rig.dsn)) as connection:
        connection.execute("DELETE FROM flashgrep.segment WHERE kind = 1")
        connection.execute(
            "UPDATE flashgrep.repository SET generation = generation + 1"
        )
    page = await ask_store(asked.call, "how are passwords kept safe")
    assert page["coverage"]["complete"] is False
    assert "files are not indexed yet" in page["coverage"]["detail"]
    assert page["results"][0]["file_path"] in {
        "shop/passwords.py",
        "tests/test_passwords.py",
    }


async def test_chunks_of_another_version_are_rebuilt(rig: Rig) -> None:
    rig.make_repository("one", dict(FILES))
    rig.sync()
    chunks = count(rig, "chunk"), count(rig, "vector")
    with closing(connect(rig.dsn)) as connection:
        connection.execute("UPDATE flashgrep.repository SET cut_by = 'older'")
    rig.sync()
    assert (count(rig, "chunk"), count(rig, "vector")) == chunks
    assert count(rig, "leftover") == 0
    page = await ask_store(rig.ask_as("ann").call, "how are passwords kept safe")
    assert page["results"][0]["file_path"] == "shop/passwords.py"


async def test_vectors_of_another_embedder_are_not_compared_with_the_question(
    rig: Rig,
) -> None:
    rig.make_repository("one", dict(FILES))
    rig.sync()
    with closing(connect(rig.dsn)) as connection:
        connection.execute(
            "UPDATE flashgrep.repository SET embedder = 'another', generation = generation + 1"
        )
    page = await ask_store(rig.ask_as("ann").call, "verify a password")
    assert page["ranked_by"] == "words"
    assert page["coverage"]["complete"] is False
    assert "the vectors are of another" in page["coverage"]["detail"]
    assert page["results"][0]["file_path"] in {
        "shop/passwords.py",
        "tests/test_passwords.py",
    }


async def test_several_repositories_and_revisions_are_asked(rig: Rig) -> None:
    root = rig.make_repository("shop", dict(FILES))
    rig.make_repository("drawn", draw_files(5, 10))
    old = git(root, "rev-parse", "HEAD").decode().strip()
    git(root, "checkout", "-q", "-b", "next")
    rig.write(
        root,
        {
            "shop/parcels.py": "def weigh_parcel(parcel):\n    return parcel.weight * 2\n"
        },
    )
    rig.push(root)
    rig.sync()
    asked = rig.ask_as("ann")
    page = await ask_store(asked.call, "weigh_parcel", projects="*", rev="next")
    assert page["coverage"]["complete"] is False, (
        "the other repository has no such branch"
    )
    assert page["results"][0]["file_path"] == "shop/parcels.py"
    page = await ask_store(asked.call, "hash_password", projects="*")
    assert page["coverage"]["complete"]
    assert page["results"][0]["project"] == "shop"
    for rev in ("main", old[:12]):
        page = await ask_store(asked.call, "weigh_parcel", project="shop", rev=rev)
        assert "shop/parcels.py" not in {hit["file_path"] for hit in page["results"]}
    page = await ask_store(asked.call, "weigh_parcel", project="shop", rev="main..next")
    assert {hit["file_path"] for hit in page["results"]} == {"shop/parcels.py"}
