"""What .gitattributes declares generated, vendored or documentation: read as git reads it, and ranked last."""

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flashgrep.base.config import Settings
from flashgrep.files.attributes import KINDS, DeclaredKinds, parse_attributes
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.project.catalogue import Catalogue
from tests.conftest import DaemonAtHand, MakeProject

PATHS = [
    "a.py", "api/a.py", "api/b/a.py", "api/b/c.js", "docs/a.md", "docs/b/a.py", "lib.js", "a b.py", "api/docs/x.c",
]  # fmt: skip
GLOBS = [
    "*.py", "a.py", "/a.py", "api", "api/", "api/*", "api/**", "/api/**", "**/b/**", "api/**/a.py", "*", "**", "docs/*.md",
    "lib.?s", "[ab].py", "!a.py", '"a b.py"', "docs/**", "b/*", "#x", "  a.py", "[z-a].py", "[a",
]  # fmt: skip
WORDS = [
    "linguist-generated", "-linguist-generated", "linguist-generated=true", "linguist-generated=false", "linguist-vendored",
    "!linguist-vendored", "linguist-documentation", "linguist-documentation=false", "text", "eol=lf", "linguist-language=C",
]  # fmt: skip
LINES = st.builds(
    lambda glob, words: f"{glob} {' '.join(words)}",
    st.sampled_from(GLOBS),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def ask_git(root: Path, text: str) -> dict[str, str | None]:
    """Return what git says of each path, the first kind that is set."""
    (root / ".gitattributes").write_text(text)
    attributes = [f"linguist-{kind}" for kind in KINDS]
    said = subprocess.run(
        ["git", "-C", str(root), "check-attr", "-z", *attributes, "--", *PATHS],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")[:-1]
    kinds: dict[str, str | None] = dict.fromkeys(PATHS)
    for path, attribute, value in zip(said[::3], said[1::3], said[2::3], strict=True):
        is_set = value not in {"unset", "unspecified", "false"}
        if is_set and kinds[path] is None:
            kinds[path] = attribute.removeprefix("linguist-")
    return kinds


@given(lines=st.lists(LINES, max_size=5))
@example(lines=["api linguist-generated", "api/** linguist-vendored"])
@example(lines=["[z-a].py linguist-generated", "  a.py linguist-vendored"])
@example(lines=["* linguist-generated", "a.py -linguist-generated text"])
@example(lines=['"a b.py" linguist-documentation', "!a.py linguist-vendored"])
def test_attributes_are_read_as_git_reads_them(
    repository: Path, lines: list[str]
) -> None:
    text = "\n".join(lines)
    kinds = DeclaredKinds(text)
    found = {path: kinds.find_kind(path.encode()) for path in PATHS}
    assert found == ask_git(repository, text)


def test_what_is_malformed_declares_nothing() -> None:
    for text in ("\0\n", "*.py", '"a linguist-generated', "a" * 5_000 + " linguist-x"):
        assert not DeclaredKinds(text)
    endless = "*a" * 400 + " linguist-generated\n"
    assert DeclaredKinds(endless * 2_000).find_kind(b"b" * 4_000) is None


CODE = "def count_strangers(limit):\n    return limit\n"
FILES = {
    "alpha/wire.py": CODE,
    "beta/copied.py": CODE,
    "manual/example.py": CODE,
    "zeta/own.py": CODE,
    ".gitattributes": "",
}
DECLARED = """\
alpha/** linguist-generated
beta/** linguist-vendored=true
manual/** linguist-documentation
"""


def order(answer: Any) -> list[str]:
    """Return the files of an answer, in order."""
    return [*dict.fromkeys(hit["file_path"] for hit in answer["results"])]


def test_what_is_declared_ranks_last_at_once(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({**FILES, **{f"zeta/use{n}.py": "print(limit)\n" for n in range(9)}})
    assert daemon.run("index", "--wait", "all", ".", cwd=root).returncode == 0
    asked = {"query": "limit", "mode": "literal", "order": "relevance", "limit": 100}
    with closing(daemon.wire("unix", root)) as wire:
        by_path = order(wire.call("query", **asked))
        assert by_path[:3] == ["alpha/wire.py", "beta/copied.py", "manual/example.py"]
        (root / ".gitattributes").write_text(DECLARED)
        ranked = order(wire.call("query", **asked))
        assert set(ranked[-3:]) == set(by_path[:3])
        assert ranked[0] == "zeta/own.py"
        pages = list[str]()
        paged = {**asked, "limit": 2}
        page = wire.call("query", **paged)
        while page["next"]:
            pages += order(page)
            page = wire.call("query", **paged, cursor=page["next"])
        assert [*dict.fromkeys(pages + order(page))] == ranked
        defined = order(wire.call("query", query="count_strangers"))
        assert defined[0] == "zeta/own.py"
        by_meaning = order(wire.call("search_code", query="count the strangers"))
        assert by_meaning[0] == "zeta/own.py"
        mapped = wire.call("repo_map")
        assert order(mapped) == ["zeta/own.py"]
        (root / ".gitattributes").write_text("")
        assert order(wire.call("query", **asked)) == by_path


async def test_what_is_compiled_is_forgotten_once_there_is_nothing_to_do(
    tmp_path: Path,
) -> None:
    text = b"*.py linguist-generated\n"
    kinds = parse_attributes(text)
    assert parse_attributes(text) is kinds
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings(), indexes=False
    ) as catalogue:
        catalogue._drop_caches()
    assert parse_attributes(text) is not kinds
