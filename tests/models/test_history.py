"""Questions drawn from a history: what a commit says, asked of the code before it."""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from flashgrep.base.errors import FlashgrepError
from flashgrep.files.openat import RootFolder
from flashgrep.parts.git.program import Git
from flashgrep.parts.git.repository import Repository
from flashgrep.parts.models.comparing import (
    Measured,
    difference,
    find_rank,
    format_comparison,
    is_plain_path,
    judge,
)
from flashgrep.parts.models.history import (
    Target,
    clean_sentence,
    draw_questions,
    remove_names,
)
from tests.support.git import commit, git

BEFORE = """\
def load_pages(size):
    return size


def save_pages(size):
    return size
"""


@contextmanager
def opened(root: Path) -> Iterator[Repository]:
    folder = RootFolder(os.fsencode(root))
    with closing(Repository.open(Git.find(folder, os.environ))) as repository:
        yield repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "pages.py").write_text(BEFORE)
    (tmp_path / "notes.md").write_text("notes\n")
    commit(tmp_path, "Begin with two functions here")
    return tmp_path


def test_a_commit_asks_for_what_it_changed_at_its_parent(root: Path) -> None:
    parent = git(root, "rev-parse", "HEAD").decode().strip()
    (root / "pages.py").write_text(
        BEFORE.replace("return size\n\n", "return min(size, 9)\n\n")
    )
    message = "pages: Limit how much load_pages takes at once (#12)\n\nSmall machines ran out of memory here. More.\n"
    number = commit(root, message)
    with opened(root) as repository:
        (question,) = draw_questions(repository, 5)
    assert (question.commit, question.parent) == (number, parent)
    assert (
        question.text
        == "Limit how much takes at once. Small machines ran out of memory here"
    )
    assert question.targets == (Target("pages.py", "load_pages"),)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"notes.md": "other\n"}, "Say more of what the notes are for"),
        ({"new.py": "x = 1\n"}, "Add a file that was not there before"),
        ({"pages.py": BEFORE + "\nx = 1\n"}, "Bump the version of everything there is"),
        ({"pages.py": BEFORE + "\nx = 1\n"}, "Fix it"),
        ({"test_pages.py": "x = 2\n"}, "Try what happens to an empty page"),
    ],
)
def test_commits_that_ask_nothing_are_left_out(
    root: Path, files: dict[str, str], message: str
) -> None:
    (root / "test_pages.py").write_text("x = 1\n")
    commit(root, "Begin again with one more file")
    for name, text in files.items():
        (root / name).write_text(text)
    commit(root, message)
    with opened(root) as repository:
        assert draw_questions(repository, 5) == []


def test_the_same_questions_are_drawn_each_time_from_the_newest_commits(
    root: Path,
) -> None:
    for number in range(12):
        (root / "pages.py").write_text(
            BEFORE.replace("return size", f"return size + {number}")
        )
        commit(root, f"Add number {number} to what is returned by both")
    with opened(root) as repository:
        everything = draw_questions(repository, 50)
        assert len(everything) == 12
        assert everything[0].text.startswith("Add number 11")
        assert draw_questions(repository, 4, window=4) == everything[:4]
        # Without time there is nothing, however many commits there are.
        assert draw_questions(repository, 4, ends=time.monotonic()) == []
        few = draw_questions(repository, 6, window=3)
        assert {question.commit for question in few} == {
            question.commit for question in everything[:6]
        }


def test_a_folder_without_history_says_so(tmp_path: Path) -> None:
    with pytest.raises(FlashgrepError):
        Repository.open(Git.find(RootFolder(os.fsencode(tmp_path)), os.environ))
    git(tmp_path, "init", "-q")
    with (
        opened(tmp_path) as repository,
        pytest.raises(FlashgrepError, match="no commit yet"),
    ):
        draw_questions(repository, 5)


def test_names_of_the_change_are_removed_and_words_stay() -> None:
    names = {"read_config", "parse", "Config.load", "load", "size"}
    text = "Let read_config() and Config.load parse the size of other_name"
    assert remove_names(text, names) == "Let and parse the size of other_name"
    assert clean_sentence("fix(io): Keep the last line (#77)") == "Keep the last line"


@pytest.mark.parametrize(
    "path",
    [b"../a.py", b"/a.py", b"a/../../b.py", b".git/a.py", b"a//b.py", b"x" * 256],
)
def test_paths_that_no_checkout_would_write_are_left_out(path: bytes) -> None:
    assert not is_plain_path(path)
    assert is_plain_path(b"a/b.py")


def test_a_difference_is_judged_by_its_interval() -> None:
    assert find_rank(["b", "b", "a"], frozenset("a")) == 2
    assert find_rank(["b"], frozenset("a")) == 0
    ranks = {"default": [2] * 9, "mine": [1] * 9}
    mean, low, high = difference(ranks)
    assert (mean, low, high) == (0.5, 0.5, 0.5)
    assert judge(low, high) == "better here"
    assert judge(-0.2, -0.1) == "worse here"
    assert "no difference" in judge(-0.2, 0.1)
    lines = list(format_comparison(Measured(ranks)))
    assert lines[1].split() == ["default", "0%", "100%", "100%", "0.500"]
