"""Compares a team's store with PostgreSQL's own rankings of the same chunks, on the questions written by hand.

``ts_rank_cd`` ranks the words of our chunks, split like in our index; ``pgvector`` their vectors, by an HNSW index.
Neither has rules, so they are compared with our sides without rules.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flashgrep.base.config import Settings
from flashgrep.base.identifiers import find_identifiers
from flashgrep.base.model import Document
from flashgrep.base.registry import Call, Session
from flashgrep.parts.git.revisions import RevisionView
from flashgrep.parts.meaning.chunking import embedding_text
from flashgrep.parts.meaning.embed.providers import embedder_of
from flashgrep.parts.meaning.index.chunks import CHUNK_ROWS
from flashgrep.parts.meaning.index.word_impacts import parts
from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.fusion import query_words
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion
from flashgrep.parts.team import access, migrations
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.guard import hash_secret
from flashgrep.parts.team.jobs import Team
from flashgrep.parts.team.store_connection import Store
from flashgrep.parts.team.team_catalogue import ACCESS, TeamCatalogue
from flashgrep.search.snapshot import TEXT_ID, Snapshot
from scripts.benchmarks.search.asking import Question
from scripts.benchmarks.search.metrics import Figures, distinct, figures, mean
from scripts.benchmarks.search.ranking import RESULTS, SIDES, judged
from tests.support.postgres import run_server

if TYPE_CHECKING:
    from psycopg import Connection

WAYS: Final = ("hybrid", "BM25, no rules", "model, no rules")
AUTHOR: Final = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")


async def compare_stores(
    root: Path, questions: Sequence[Question]
) -> dict[str, list[Figures]]:
    """Return the figures of every question: of the embedded store, the team's, and of PostgreSQL's own ranking."""
    local = await judged(root, questions, {way: SIDES[way] for way in WAYS})
    found = {f"embedded: {way}": rows for way, rows in local.items()}
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="eval-team-"))
        )
        dsn = stack.enter_context(run_server()).make_database("team")
        with closing(connect(dsn)) as connection:
            migrations.migrate(connection, {})
            team = Team(dsn, folder, os.environ)
            team.add(str(make_clone(root, folder)), "measured")
            team.work(lambda _what: None)
            access.allow(connection, "bench", None)
            token = hash_secret(access.make_token(connection, "bench"))
        store = Store(dsn)
        store.open()
        (folder / "empty").mkdir()
        catalogue = stack.enter_context(
            closing(TeamCatalogue(store, Settings(), folder / "empty", os.environ))
        )
        call: Any = Call(
            catalogue, Session(notes={ACCESS: catalogue.find_access(token)})
        )
        view = await (await catalogue.workspace(call, None)).at("HEAD")
        for way in WAYS:
            found[f"team: {way}"] = [
                await ask_team(view, question, way) for question in questions
            ]
        with closing(connect(dsn)) as connection:
            await view.in_thread(lambda snapshot: fill_tables(connection, snapshot))
            found["ts_rank_cd"] = list(rank_words(connection, questions))
            found["pgvector"] = list(rank_vectors(connection, questions))
    return found


def make_clone(root: Path, folder: Path) -> Path:
    """Return a bare clone of a folder's files."""
    tree = folder / "tree"
    shutil.copytree(root, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    commands = (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        [*AUTHOR, "commit", "-qm", "all"],
    )
    for command in (
        *commands,
        ["clone", "-q", "--mirror", str(tree), str(folder / "bare.git")],
    ):
        subprocess.run(["git", "-C", str(tree), *command], check=True)
    return folder / "bare.git"


async def ask_team(view: RevisionView, question: Question, way: str) -> Figures:
    """Return how good the answer of the team's store is."""
    asked = MeaningQuestion(
        text=question.text,
        limit=RESULTS,
        rules=SIDES[way].rules,
        semantic_weight=SIDES[way].semantic_weight,
    )
    answer = await search_by_meaning(view, asked)
    return judge([os.fsdecode(piece.path) for piece in answer.results], question)


def judge(paths: Sequence[str], question: Question) -> Figures:
    """Return how good a ranking of files is."""
    return figures(distinct(paths), question.files)


def fill_tables(connection: "Connection[Any]", snapshot: Snapshot) -> None:
    """Store the words and the vectors of all chunks as PostgreSQL and pgvector want them, with an index of each."""
    embedder = embedder_of("{}", os.environ)
    connection.execute("CREATE EXTENSION vector")
    connection.execute(
        "CREATE TABLE measured (path text NOT NULL, words tsvector NOT NULL, "
        f"vector vector({int(embedder.dims)}) NOT NULL)".encode()
    )
    reader, table = snapshot.reader, snapshot.table
    assert reader is not None  # noqa: S101 - the store's own
    numbers = table.columns[:, TEXT_ID].tolist()
    stored = reader.rows(CHUNK_ROWS).chunks_of_texts(set(numbers) - {0})
    rows = (
        "INSERT INTO measured VALUES (%s, setweight(to_tsvector('simple', %s), 'A') || "
        "setweight(to_tsvector('simple', %s), 'B') || to_tsvector('simple', %s), %s::vector)"
    )
    with connection.cursor() as cursor:
        for path, number in zip(table.paths, numbers, strict=True):
            document = snapshot.read_with_stat(path)[1]
            if not isinstance(document, Document) or number not in stored:
                continue
            chunks, data = stored[number], document.data
            vectors = embedder.embed_code(
                [embedding_text(path, data, chunk) for chunk in chunks]
            )
            for chunk, vector in zip(chunks, vectors, strict=True):
                fields = (
                    " ".join([chunk.name, *chunk.defines]).encode(),
                    path,
                    data[chunk.start : chunk.end],
                )
                texts = [spell(field) for field in fields]
                cursor.execute(
                    rows.encode(), [os.fsdecode(path), *texts, str(vector.tolist())]
                )
    connection.execute("CREATE INDEX ON measured USING gin (words)")
    connection.execute("CREATE INDEX ON measured USING hnsw (vector vector_cosine_ops)")


def spell(text: bytes) -> str:
    """Return the words of a text as our index knows them: each identifier whole and in parts."""
    return b" ".join(
        word for one in find_identifiers(text) for word in parts(one)
    ).decode("ascii", "replace")


def rank_words(
    connection: "Connection[Any]", questions: Sequence[Question]
) -> Iterator[Figures]:
    """Yield how good the ranking by ``ts_rank_cd`` is, which 1 makes heed how long a chunk is."""
    query = (
        "SELECT path FROM measured, to_tsquery('simple', %s) AS asked WHERE words @@ asked "
        "ORDER BY ts_rank_cd(words, asked, 1) DESC LIMIT %s"
    )
    for question in questions:
        words = " | ".join(query_words(question.text))
        yield judge(
            [row[0] for row in connection.execute(query, [words, RESULTS]).fetchall()],
            question,
        )


def rank_vectors(
    connection: "Connection[Any]", questions: Sequence[Question]
) -> Iterator[Figures]:
    """Yield how good the ranking by pgvector is."""
    embedder = embedder_of("{}", os.environ)
    connection.execute("SET hnsw.ef_search = 100")
    query = "SELECT path FROM measured ORDER BY vector <=> %s::vector LIMIT %s"
    for question in questions:
        vector = str(embedder.embed_queries([question.text])[0].tolist())
        yield judge(
            [row[0] for row in connection.execute(query, [vector, RESULTS]).fetchall()],
            question,
        )


def print_table(found: Mapping[str, Mapping[str, Sequence[Figures]]]) -> None:
    """Print NDCG@10 of each way, by repository."""
    print(
        f"| NDCG@10 | {' | '.join(f'{name} ({len(next(iter(ways.values())))})' for name, ways in found.items())} |"
    )
    print("|---|" + "---|" * len(found))
    for way in next(iter(found.values())):
        print(
            f"| {way} | "
            + " | ".join(f"{mean(ways[way]).ndcg:.3f}" for ways in found.values())
            + " |"
        )
