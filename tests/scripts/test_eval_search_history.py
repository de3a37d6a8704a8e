"""Questions made of commits, against a repository whose changes are known."""

import subprocess
from pathlib import Path

import pytest

from scripts.benchmarks.search import history
from scripts.benchmarks.search.asking import Question, Target
from scripts.benchmarks.search.history import (
    BUDGETS,
    ask_history,
    collect_cases,
    format_history,
    is_held,
    judge_found,
    list_commits,
    name_repository,
    place_files,
)
from scripts.benchmarks.search.judging import Place

BEFORE = b"""def load_rows(path):
    return open(path)


class Store:
    def save_rows(self, rows):
        self.rows = rows
"""
AFTER = BEFORE.replace(b"open(path)", b'open(path, encoding="utf-8")')
SUBJECT = "reader: Open files as Unicode text in `load_rows` on every platform (#12)"


def commit(root: Path, message: str) -> str:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for command in (["add", "-A"], [*author, "commit", "-qm", message]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    asked = ["git", "-C", str(root), "rev-parse", "HEAD"]
    return subprocess.run(
        asked, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with one commit that is a question, and two that are none."""
    root = tmp_path / "shop"
    root.mkdir()
    subprocess.run(["git", "-C", str(root), "init", "-qb", "main"], check=True)
    (root / "rows.py").write_bytes(BEFORE)
    for at in range(7):
        (root / f"part{at}.py").write_text(f"def part_{at}():\n    return {at}\n")
    (root / "guide.md").write_text("# Guide\n")
    commit(root, "Add everything that a small shop needs at first")
    (root / "rows.py").write_bytes(AFTER)
    (root / "guide.md").write_text("# Guide\n\nUnicode.\n")
    commit(root, SUBJECT)
    for at in range(7):
        (root / f"part{at}.py").write_text(f"def part_{at}():\n    return -{at}\n")
    commit(root, "Turn the sign of every part around at once")
    return root


def test_a_commit_is_a_question_about_the_code_before_it(repository: Path) -> None:
    (case,) = collect_cases(repository, 10)
    assert case.question.text == "Open files as Unicode text in on every platform"
    assert case.question.targets == (Target("rows.py", "load_rows"),)
    tree = repository.with_name("tree")
    tree.mkdir()
    place_files(repository, case.rev, tree)
    assert (tree / "rows.py").read_bytes() == BEFORE
    place_files(repository, "main", tree)
    assert (tree / "rows.py").read_bytes() == AFTER
    assert (tree / "guide.md").read_text() == "# Guide\n\nUnicode.\n"
    status = ["git", "-C", str(repository), "status", "--porcelain"]
    assert subprocess.run(status, capture_output=True, check=True).stdout == b""


def test_commits_of_the_set_are_asked_as_they_are_listed(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (drawn,) = collect_cases(repository, 10)
    command = ["git", "-C", str(repository), "rev-parse", "main~1"]
    number = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = {"shop": [number.stdout.strip()]}
    monkeypatch.setattr(history, "list_commits", lambda: listed)
    assert collect_cases(repository, 10) == [drawn]
    listed["shop"] = ["0" * 40]
    with pytest.raises(ValueError, match="lacks 0000"):
        collect_cases(repository, 10)


def test_the_set_is_large_and_has_no_repository_that_was_trained_on() -> None:
    commits = list_commits()
    assert len(commits) >= 20
    assert sum(map(len, commits.values())) >= 600
    for rows in commits.values():
        assert len(set(rows)) == len(rows)
    folder = Path(history.__file__).parents[2] / "train_embedder"
    trained = (folder / "repositories.tsv").read_text().lower()
    others = "".join((folder / name).read_text() for name in ("allow.tsv", "avoid.tsv"))
    packages = {line.split("\t")[1].lower() for line in others.splitlines()}
    for name in commits:
        assert f"\t{name.lower()}\t" not in trained
        assert name.lower().rpartition("/")[2] not in packages
        assert name_repository(Path(name.replace("/", "+"))) == name
    held = [name for name in commits if is_held(name)]
    assert len(commits) / 3 < len(held) < len(commits) * 2 / 3


def test_an_answer_is_judged_by_ranks_and_by_what_fits() -> None:
    question = Question("shop", "open", "history", (Target("rows.py", "load_rows"),))
    truth = [[Place("rows.py", 1, 2, "", code=frozenset({1, 2}))]]
    long = "x" * 4 * BUDGETS[0]
    places = [
        Place("a.py", 1, 9, long),
        Place("rows.py", 5, 7, "class"),
        Place("rows.py", 2, 2, "return"),
    ]
    found = judge_found(places, question, truth)
    assert (found.file, found.function) == (2, 3)
    assert found.recall == found.function_recall == (0, 1, 1, 1)
    nothing = judge_found([], question, truth)
    assert (nothing.file, nothing.function, nothing.recall) == (0, 0, (0, 0, 0, 0))
    heading, row = format_history({"way": [found, nothing]})
    assert len(heading.split()) >= len(row.split()) > 14
    assert row.split()[1:4] == ["0.000", "0.500", "0.500"]


async def test_every_way_is_asked_at_the_commits_parent(
    repository: Path, tmp_path: Path
) -> None:
    cases = collect_cases(repository, 10)
    work = tmp_path / "work"
    work.mkdir()
    found = await ask_history(repository, cases, work)
    assert set(found) >= {"search_code", "search_code as text", "words", "query", "rg"}
    assert found["search_code"][0].file == 1
    assert found["search_code"][0].function == 1


def test_half_of_the_repositories_are_held() -> None:
    held = [is_held(f"repository-{at}") for at in range(200)]
    assert 70 < sum(held) < 130
