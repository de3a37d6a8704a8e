"""What the recipe learns from histories: a real repository's commits, cleaned and beside the code they left."""

import subprocess
from pathlib import Path

import pytest

from flashgrep.parts.models.history import clean_sentence
from scripts.train_embedder.commits import commits_of, rows_of


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize(
    ("subject", "question"),
    [
        (
            "fix(parser): keep blank lines between two rules (#1234)",
            "keep blank lines between two rules",
        ),
        (
            "net/http: close idle connections when asked to",
            "close idle connections when asked to",
        ),
        (
            "[Bugfix] KAFKA-12: Retry a failed write at most twice.",
            "Retry a failed write at most twice",
        ),
        ("Bump the version of the parser to 2.0", ""),
        ("Fix typo", ""),
        ("Fix typos in the names of the many rules", ""),
        ("Überprüfe die Größe vor dem Schreiben", ""),
    ],
)
def test_subjects_are_cleaned_and_chores_left_out(subject: str, question: str) -> None:
    assert clean_sentence(subject) == question


def test_a_commits_rows_are_its_words_beside_the_code_as_it_stood_after(
    tmp_path: Path,
) -> None:
    _git(tmp_path, "init", "-q", "-b", "main")
    before = "def wait_for(lock):\n    return lock.acquire()\n"
    (tmp_path / "locks.py").write_text(before)
    (tmp_path / "test_locks.py").write_text("def test_lock():\n    assert True\n" * 9)
    _git(tmp_path, "add", "-A")
    _git(tmp_path, "commit", "-qm", "Bump version to 1.0 at last")
    after = "def wait_for(lock, seconds):\n    deadline = clock() + seconds\n    return lock.acquire(until=deadline)\n"
    (tmp_path / "locks.py").write_text(after)
    (tmp_path / "test_locks.py").write_text("def test_lock():\n    assert 1\n" * 9)
    _git(
        tmp_path,
        "commit",
        "-qam",
        "locks: give up waiting after some time (#12)\n\nSomebody who waits for ever is of no use.\n",
    )
    assert [each[1:] for each in commits_of(tmp_path / ".git")] == [
        ("give up waiting after some time", "Somebody who waits for ever is of no use")
    ]
    (row,) = rows_of(tmp_path / ".git")
    assert row["q"] == "give up waiting after some time"
    assert row["d"] == f"{row['q']} somebody who waits for ever is of no use"
    assert (row["p"], row["language"]) == ("locks", "python")
    assert row["c"].split()[:6] == ["def", "wait", "for", "lock", "seconds", "deadline"]
    assert row["c"].split().count("return") == 1


def test_a_commit_that_the_copy_lacks_a_file_of_is_left_out_alone(
    tmp_path: Path,
) -> None:
    _git(tmp_path, "init", "-q", "-b", "main")
    subjects = [
        "keep the first of two names",
        "write the second name again",
        "read the third name at once",
    ]
    for number, subject in enumerate(subjects):
        lines = "".join(
            f"value_{number}_{line} = compute(other_{line}, {line})\n"
            for line in range(9)
        )
        (tmp_path / "names.py").write_text(lines)
        _git(tmp_path, "add", "names.py")
        _git(tmp_path, "commit", "-qm", subject)
    lost = _git(tmp_path, "rev-parse", "HEAD:names.py").strip()
    (tmp_path / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    assert [row["q"] for row in rows_of(tmp_path / ".git")] == subjects[1::-1]


def test_every_other_subject_does_without_the_names_that_its_code_has(
    tmp_path: Path,
) -> None:
    _git(tmp_path, "init", "-q", "-b", "main")
    subject = "close_all stops every waiting thread at the end"
    for number in range(12):
        lines = "".join(
            f"    stop(thread_{number}, {line}, again)\n" for line in range(9)
        )
        (tmp_path / f"close{number}.py").write_text(f"def close_all():\n{lines}")
        _git(tmp_path, "add", f"close{number}.py")
        _git(tmp_path, "commit", "-qm", f"{subject} {'of it ' * number}")
    asked = {row["q"].split()[0] for row in rows_of(tmp_path / ".git")}
    assert asked == {"close", "stops"}
