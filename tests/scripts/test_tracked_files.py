"""What git tracks: only what belongs in the repository, and nothing large."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP_LEVEL = {
    ".ci", ".editorconfig", ".gitattributes", ".flashgrep.example", ".github", ".gitignore", ".pre-commit-config.yaml",
    "AGENTS.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "RELEASING.md",
    "SECURITY.md", "clients", "docs", "editors", "flashgrep", "plugins", "pyproject.toml", "scripts", "server.json", "skills",
    "tests",
}  # fmt: skip
EMPTY = {"flashgrep/py.typed"}
DATA = {
    "docs/pictures/page.png": 150_000,
    "flashgrep/parts/meaning/embed/data/static.npz": 10_000_000,
}
"""The files that may be larger than the others, and how large."""

MOST_BYTES = 150_000
MOST_BINARY_BYTES = 30_000
"""An icon has less; a wheel, a database or a recording has more."""


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """Return the files in git's index, which a commit is made of."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [path for path in listed.split("\0") if (ROOT / path).is_file()]


def test_nothing_stands_at_the_top_level_by_accident(tracked: list[str]) -> None:
    assert {path.split("/")[0] for path in tracked} <= TOP_LEVEL


def test_no_file_is_empty_or_large(tracked: list[str]) -> None:
    sizes = {path: (ROOT / path).stat().st_size for path in tracked}
    assert {path for path, size in sizes.items() if not size} <= EMPTY
    assert not {
        path for path, size in sizes.items() if size > DATA.get(path, MOST_BYTES)
    }
    larger = [
        path
        for path, size in sizes.items()
        if size > MOST_BINARY_BYTES and path not in DATA
    ]
    assert not [path for path in larger if b"\0" in (ROOT / path).read_bytes()]
