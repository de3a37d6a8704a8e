"""Questions about revisions: what git grep finds there, whatever the work tree, the index and the packs look like."""

import os
import random
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from flashgrep.base.errors import InvalidParams, NotFound
from flashgrep.index import schema, segments
from flashgrep.index.segments import Kind, SegmentRow
from flashgrep.parts.git.revisions import REVISIONS
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace
from flashgrep.search.exact import Question, search
from flashgrep.search.snapshot import Snapshot
from tests.support.git import ask_revision as ask
from tests.support.git import commit, git, grep
from tests.support.workspace import opened, put

WORDS = ["needle", "thread", "Loom", "weft", "spin_lock", "größe", "x"]
NAMES = [
    "a.py",
    "b.c",
    "src/c.py",
    "src/deep/d.txt",
    ".hidden/e.py",
    "-f.txt",
    "g h.txt",
    "ü.md",
    "src-old/i.py",
]


@pytest.fixture
async def workspace(root: Path) -> AsyncIterator[Workspace]:
    async with opened(root, environ=dict(os.environ)) as project:
        yield project


def write_at_random(root: Path, rng: random.Random) -> None:
    """Change, add, rename and delete some files."""
    for name in rng.sample(NAMES, rng.randint(1, 4)):
        file = root / name
        if file.exists() and rng.random() < 0.3:
            file.unlink()
            continue
        lines = [" ".join(rng.choices(WORDS, k=3)) for _ in range(rng.randint(0, 8))]
        data = "\n".join(lines).encode() + rng.choice(
            [b"", b"\n", b"\r\n", b"\xff needle\n"]
        )
        put(root, {name: data if rng.random() < 0.9 else b"\0" + data})


@pytest.mark.parametrize("seed", range(2))
async def test_every_revision_is_as_git_grep_finds_it(
    root: Path, workspace: Workspace, seed: int
) -> None:
    rng = random.Random(seed)
    names = []
    for step in range(6):
        write_at_random(root, rng)
        names.append(commit(root))
        if step == 2:
            git(root, "tag", "-a", "-m", "a tag", "v1/x")
            git(root, "gc", "-q")
        if step == 4:
            git(root, "checkout", "-q", "-b", "side/branch", "HEAD~2")
    write_at_random(root, rng)
    git(root, "add", "-A")  # staged
    write_at_random(root, rng)  # and not
    if seed:
        await workspace.wait_parsed()
    for rev in [
        *names,
        "HEAD",
        "HEAD~2",
        "HEAD^",
        "@",
        "v1/x",
        "side/branch~1",
        names[0][:10],
        ":index",
    ]:
        for word in rng.sample(WORDS, 3):
            assert await ask(workspace, rev, word) == grep(root, word, rev, "-F"), (
                rev,
                word,
            )
        assert await ask(workspace, rev, r"(need|wef)\w+ L", "regex") == grep(
            root, r"(need|wef)\w+ L", rev, "-P"
        )


async def test_a_name_means_what_it_means_now(root: Path, workspace: Workspace) -> None:
    put(root, {"a.txt": b"first\n"})
    commit(root)
    assert await ask(workspace, "HEAD", "first") == {(b"a.txt", 1)}
    put(root, {"a.txt": b"second\n"})
    assert await ask(workspace, "HEAD", "second") == set()
    git(root, "add", "a.txt")
    assert await ask(workspace, ":index", "second") == {(b"a.txt", 1)}
    commit(root)
    assert await ask(workspace, "HEAD", "second") == {(b"a.txt", 1)}
    git(root, "gc", "-q", "--prune=now")
    assert await ask(workspace, "HEAD~1", "first") == {(b"a.txt", 1)}


async def test_what_the_index_has_is_ruled_out_by_it(
    root: Path, workspace: Workspace
) -> None:
    texts = [b"plain %d\n", b"\xef\xbb\xbfmarked %d\n", b"caf\xe9 %d\r\n", b"wide %d\n"]
    files = {
        f"{kind}{n}.txt": text % n for kind, text in enumerate(texts) for n in range(10)
    }
    put(
        root,
        {
            name: data.decode().encode("utf-16") if b"wide" in data else data
            for name, data in files.items()
        },
    )
    commit(root)
    put(root, {"new.txt": b"word\n", **{f"x{n}.txt": b"another\n" for n in range(10)}})
    commit(root)
    await workspace.wait_parsed()
    view = await workspace.service(REVISIONS).at("HEAD~1")
    for text, hits in {"plain 3": 1, "marked 3": 1, "wide 3": 1, "word": 0}.items():
        answer = await view.search(
            Question(pattern=Pattern(texts=(text,), mode="literal"), limit=100)
        )
        # Of the texts in UTF-16 the index does not know git's names.
        assert (answer.total, answer.files_read) == (
            hits,
            10 + (hits and text != "wide 3"),
        )


async def test_texts_dropped_while_a_question_runs_are_read(
    root: Path, workspace: Workspace
) -> None:
    put(root, {"a.txt": b"word\n"})
    commit(root)
    await workspace.wait_parsed()
    view = await workspace.service(REVISIONS).at("HEAD")
    index, asked = workspace.index.file, list[bool]()

    def ask(snapshot: Snapshot) -> int:
        asked.append(snapshot.reader is not None)
        with (
            closing(schema.connect(index, writer=True)) as connection,
            schema.transaction(connection),
        ):
            segments.put(
                connection,
                SegmentRow(1000 + len(asked), Kind.WORDS, 10**6 + len(asked), 10**6, 0),
                [],
            )
        return len(
            search(
                snapshot, Question(pattern=Pattern(texts=("word",), mode="literal"))
            ).results
        )

    assert await view.in_thread(ask) == 1
    assert asked == [True, True, False]


async def test_two_revisions_leave_the_files_that_differ(
    root: Path, workspace: Workspace
) -> None:
    put(root, {"same.txt": b"word\n", "changed.txt": b"word\n", "gone.txt": b"word\n"})
    commit(root)
    git(root, "branch", "old")
    put(root, {"changed.txt": b"word two\n", "new.txt": b"word\n"})
    (root / "gone.txt").unlink()
    commit(root)
    assert await ask(workspace, "old..HEAD", "word") == {
        (b"changed.txt", 1),
        (b"new.txt", 1),
    }
    assert await ask(workspace, "old..", "word") == {
        (b"changed.txt", 1),
        (b"new.txt", 1),
    }
    git(root, "branch", "new")
    git(root, "checkout", "-q", "-b", "third", "old")
    put(root, {"third.txt": b"word\n"})
    commit(root)
    # Since the two parted, the third has got one file; beside the other one it differs
    # in more.
    assert await ask(workspace, "new...third", "word") == {(b"third.txt", 1)}
    assert await ask(workspace, "new..@", "word") == {
        (b"changed.txt", 1),
        (b"gone.txt", 1),
        (b"third.txt", 1),
    }


async def test_a_project_may_be_a_folder_of_a_repository(root: Path) -> None:
    put(
        root,
        {"inner/a.txt": b"word\n", "outer.txt": b"word\n", "inner2/b.txt": b"word\n"},
    )
    first = commit(root)
    (root / "inner/a.txt").unlink()
    put(root, {"inner/b.txt": b"word\n"})
    commit(root)
    async with opened(root / "inner", environ=dict(os.environ)) as workspace:
        assert await ask(workspace, "HEAD~1", "word") == {(b"a.txt", 1)}
        assert await ask(workspace, first, "word") == {(b"a.txt", 1)}
        assert await ask(workspace, ":index", "word") == {(b"b.txt", 1)}
        git(root, "checkout", "-q", "--orphan", "empty")
        git(root, "rm", "-rfq", ".")
        put(root, {"only.txt": b"word\n"})
        commit(root)
        assert await ask(workspace, first, "word") == {(b"a.txt", 1)}


BAD_NAMES = [
    "-x", "--output=/tmp/x", "", "a b", "a\nb", "a..b..c", "HEAD:path", ":/message", "HEAD^{/text}", "a~b", "..a..",
    ":0:path", "@{upstream}", "a\0b", "^a", "x*", "HEAD^{tree}",
]  # fmt: skip


@pytest.mark.parametrize("rev", BAD_NAMES)
async def test_what_is_no_name_is_refused_before_git_is_asked(
    root: Path, workspace: Workspace, rev: str
) -> None:
    put(root, {".git/HEAD": b"broken"})  # git would fail
    with pytest.raises(InvalidParams) as refused:
        await workspace.service(REVISIONS).at(rev)
    assert refused.value.reason == "invalid_revision"


async def test_an_unknown_name_brings_the_nearest(
    root: Path, workspace: Workspace
) -> None:
    put(root, {"a.txt": b"word\n"})
    commit(root)
    git(root, "branch", "feature/parser")
    git(root, "tag", "v1.2.3")
    for rev, near in {
        "featur/parser": "feature/parser",
        "v1.2": "v1.2.3",
        "feature/parse~1": "feature/parser",
    }.items():
        with pytest.raises(NotFound) as unknown:
            await workspace.service(REVISIONS).at(rev)
        assert unknown.value.to_object()["code"] == -32001
        assert unknown.value.data["near"][0] == near
