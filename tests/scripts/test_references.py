"""References in documents and docstrings: those that lead somewhere pass, those that lead nowhere are reported."""

from pathlib import Path

import pytest

from scripts.tools.references import find_broken

ROOT = Path(__file__).parents[2]
MODULE = '''"""Finds lines; see ``search/exact.py`` and ``Searcher.run``."""


class Base:
    limit = 1


class Searcher(Base):
    def run(self) -> int:
        return self.limit
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a small checkout without broken references."""
    for folder in ("flashgrep/search", "flashgrep/cli", "docs", "scripts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "flashgrep" / "search" / "exact.py").write_text(MODULE)
    (tmp_path / "flashgrep" / "cli" / "commands.tsv").write_text(
        "query\treads\tFind lines.\t\nrg\tlocal\tRun ripgrep.\t\n"
    )
    (tmp_path / "flashgrep" / "cli" / "help.tsv").write_text(
        "=\tquery\t[OPTIONS] TEXT\nh\tOptions\n"
        "r\t-n, --line-number\tNumbers.\nr\t-i\tLetters.\nr\t--max VALUE\tMost.\n"
        "=\trg\t[OPTIONS]\nr\t--help\tShow this message.\n"
    )
    (tmp_path / ".flashgrep.example").write_text("[search]\n# limit = 3\n")
    (tmp_path / "docs" / "guide.md").write_text("# A guide\n\n## Two words\n")
    return tmp_path


def report(checkout: Path, text: str) -> list[str]:
    (checkout / "README.md").write_text(text)
    return [str(broken) for broken in find_broken(checkout)]


@pytest.mark.parametrize(
    "text",
    [
        "`search/exact.py`, `search/exact`, `flashgrep/search/*.py`, `exact.py`",
        "`Searcher.run`, `search/exact.Searcher`, `exact.Searcher.run()`, inherited: `Searcher.limit`",
        "`search.limit` is a setting, `fgrep query TEXT` a command",
        "`fgrep query -ni --max=3 --line-number TEXT`, `fgrep rg --json TEXT`",
        "[a page](docs/guide.md), [its part](docs/guide.md#two-words), [elsewhere](https://example.org/none.md)",
        "others' names: `os.scandir`, `package.json`, `src/main.py`, `*.py`, `tools/call`",
        "an example:\n\n```sh\nsearch/none.py `search/none.py`\n```\n",
    ],
)
def test_references_to_what_exists_pass(checkout: Path, text: str) -> None:
    assert report(checkout, text) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("see `search/gone.py`", "search/gone.py"),
        ("see `search/gone`", "search/gone"),
        ("see `gone.py`", "gone.py"),
        ("see `Searcher.walk`", "Searcher.walk"),
        ("see `search/exact.Finder`", "search/exact.Finder"),
        ("`find_nothing` does it", "find_nothing"),
        ("run `fgrep gone`", "fgrep gone"),
        ("run `fgrep query --gone TEXT`", "fgrep query --gone TEXT"),
        ("run `fgrep query -nx TEXT`", "fgrep query -nx TEXT"),
        ("[a page](docs/gone.md)", "docs/gone.md"),
        ("[a part](docs/guide.md#three-words)", "docs/guide.md#three-words"),
    ],
)
def test_a_reference_to_nothing_is_reported_with_its_line(
    checkout: Path, text: str, name: str
) -> None:
    assert report(checkout, f"# Title\n\n{text}\n") == [
        f"README.md:3: `{name}` does not exist"
    ]


@pytest.mark.parametrize(
    "name", ["search/gone.py", "Searcher.walk", "Finder", "find_all()", "MOST_LINES"]
)
def test_docstrings_are_checked_too_and_their_bare_names(
    checkout: Path, name: str
) -> None:
    (checkout / "flashgrep" / "other.py").write_text(
        f'"""Finds files.\n\nUses ``{name}``.\n"""\n'
    )
    assert report(checkout, "") == [f"flashgrep/other.py:3: `{name}` does not exist"]


def test_this_checkout_has_no_broken_reference() -> None:
    assert [str(broken) for broken in find_broken(ROOT)] == []
