"""CODEOWNERS: whose a file is, and searches among the files of an owner."""

import os
from pathlib import Path

import pytest

from flashgrep.base.checkpoint import Expired, expiring
from flashgrep.base.config import Settings
from flashgrep.base.path_text import PathText
from flashgrep.files.globs import PathFilter
from flashgrep.files.owners import CodeOwners
from flashgrep.methods.common import read_owners
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.project.catalogue import Catalogue
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.git import git
from tests.support.workspace import opened, put

OF_GITHUB = """\
# The examples of GitHub's documentation.
*       @global-owner1 @global-owner2
*.js    @js-owner #This is an inline comment.
*.go docs@example.com
*.txt @octo-org/octocats
/build/logs/ @doctocat
docs/*  docs@example.com
apps/ @octocat
/docs/ @doctocat
/scripts/ @doctocat @octocat
**/logs @octocat
/apps/ @octocat
/apps/github
!negated @nobody
[a-z].x @nobody
a\\ b.c @Blank
"""


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("main.py", {"@global-owner1", "@global-owner2"}),
        ("src/a.js", {"@js-owner"}),
        ("a.go", {"docs@example.com"}),
        ("x/y/a.txt", {"@octo-org/octocats"}),
        ("build/logs/a/b.c", {"@octocat"}),
        ("other/build/logs.c", {"@global-owner1", "@global-owner2"}),
        ("docs/a/b.md", {"@doctocat"}),
        ("x/apps/y.c", {"@octocat"}),
        ("scripts/run", {"@doctocat", "@octocat"}),
        ("deep/logs/x", {"@octocat"}),
        ("apps/github", set()),
        ("apps/github/x.c", set()),
        ("negated", {"@global-owner1", "@global-owner2"}),
        ("a b.c", {"@blank"}),
    ],
)
def test_the_last_pattern_that_matches_names_the_owners(
    path: str, owners: set[str]
) -> None:
    assert CodeOwners(OF_GITHUB).find_owners(path.encode()) == owners


def test_a_search_among_the_files_of_an_owner_ends_with_its_deadline() -> None:
    owned = PathFilter([], [], owned=lambda _path: True)
    with expiring(0.0), pytest.raises(Expired):
        owned.mask(PathText([b"a.py"]))


def test_thousands_of_patterns_name_the_owners_of_each_file() -> None:
    rules = [f"/area{at}/deeper/folder_{at}/ @team{at}\n" for at in range(5_000)]
    owners = CodeOwners("* @all\n" + "".join(rules) + "*" * 5_000 + "x @long\n")
    assert owners.find_owners(b"x") == {"@all"}
    for at in (0, 2_500, 4_999):
        path = f"area{at}/deeper/folder_{at}/x.py".encode()
        assert owners.find_owners(path) == {f"@team{at}"}


def test_docs_star_is_not_what_lies_below_its_folders() -> None:
    owners = CodeOwners("docs/* @here\n")
    assert owners.find_owners(b"docs/start.md") == {"@here"}
    assert owners.find_owners(b"docs/build/start.md") == set()


def test_each_section_names_an_owner_and_has_a_default() -> None:
    owners = CodeOwners(
        "* @all\n[Docs][2] @writers\n*.md\nREADME.md @boss\n^[Data]\ndata/ @dba\n"
    )
    assert owners.find_owners(b"a.md") == {"@all", "@writers"}
    assert owners.find_owners(b"README.md") == {"@all", "@boss"}
    assert owners.find_owners(b"data/x.md") == {"@all", "@writers", "@dba"}


def test_gitlab_takes_files_out_of_a_section() -> None:
    owners = CodeOwners(
        "* @all\n!*.lock\n[Docs] @writers\n!docs/generated/\ndocs/\n*.lock\n"
    )
    assert owners.find_owners(b"a.py") == {"@all"}
    assert owners.find_owners(b"uv.lock") == {"@writers"}
    assert owners.find_owners(b"docs/a.md") == {"@all", "@writers"}
    assert owners.find_owners(b"docs/generated/a.md") == {"@all"}
    assert owners.names == {"@all", "@writers"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#\f* @a",
        "\0\n",
        "[\n",
        "\\\n",
        "a\\",
        "#",
        "* nobody",
        "[x",
        "***/[ @a\n" * 50,
    ],
)
def test_what_is_malformed_names_nobody(text: str) -> None:
    assert CodeOwners(text).find_owners(b"a") == set()


def make_owned(project: MakeProject) -> Path:
    files = {
        ".github/CODEOWNERS": "*.py @Py/core\nweb/ @web\n",
        "a.py": "needle = 1\n",
        "web/b.py": "needle = 2\n",
        "c.md": "needle three\n",
    }
    return project(files)


async def test_something_else_of_that_name_is_no_codeowners(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".github" / "CODEOWNERS").mkdir(parents=True)
    os.mkfifo(tmp_path / "CODEOWNERS")
    put(tmp_path, {"docs/CODEOWNERS": b"* @docs\n"})
    async with opened(tmp_path) as workspace:
        owners = await read_owners(workspace)
        assert owners is not None
        assert owners.find_owners(b"a") == {"@docs"}
        # Read and compiled once for all pages.
        assert await read_owners(workspace) is owners
        put(tmp_path, {"docs/CODEOWNERS": b"* @others\n"})
        others = await read_owners(workspace)
        assert others is not None
        assert others.find_owners(b"a") == {"@others"}


async def test_compiled_owners_are_forgotten_once_there_is_nothing_to_do(
    project: MakeProject, tmp_path: Path
) -> None:
    root = make_owned(project)
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings(), indexes=False
    ) as catalogue:
        workspace = await catalogue.open(str(root))
        owners = await read_owners(workspace)
        assert owners is not None
        catalogue._drop_caches()
        assert await read_owners(workspace) is not owners


def test_an_owner_is_a_filter_of_text_and_files(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = make_owned(project)
    for owner, paths in (("@py/CORE", {"a.py"}), ("web", {"web/b.py"})):
        lines = daemon.run("query", "needle", "--owner", owner, cwd=root).stdout
        assert {line.partition(":")[0] for line in lines.splitlines()} == paths
        files = daemon.run("files", "--owner", owner, cwd=root).stdout
        assert set(files.split()) == paths
    both = daemon.run("files", "--owner", "web", "--owner", "@py/core", cwd=root)
    assert set(both.stdout.split()) == {"a.py", "web/b.py"}


def test_an_owner_that_nobody_named_is_an_error_with_a_near_one(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = make_owned(project)
    answer = daemon.run("files", "--owner", "@webb", cwd=root)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "does not name @webb" in answer.stderr
    assert "did you mean @web?" in answer.stderr
    bare = daemon.run(
        "files", "--owner", "@web", cwd=project({"a": "x\n"}, name="bare")
    )
    assert "has no CODEOWNERS" in bare.stderr


def test_of_several_projects_those_answer_that_name_the_owner(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = make_owned(project)
    bare = project({"d.py": "needle = 4\n"}, name="bare")
    both = ("--project", str(root), "--project", str(bare))
    for command in (("query", "needle"), ("files",)):
        answer = daemon.run(*command, "--owner", "@web", *both, cwd=root)
        assert answer.returncode == 0, answer.stderr
        assert "web/b.py" in answer.stdout
        assert "d.py" not in answer.stdout
        assert "bare" in answer.stderr
        assert "has no CODEOWNERS" in answer.stderr


def test_changes_say_whose_files_differ(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = make_owned(project)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "first")
    Path(root, "web/b.py").write_text("needle = 3\n")
    Path(root, "c.md").write_text("other\n")
    shown = daemon.run("changes", cwd=root).stdout
    assert "web/b.py modified +1 -1 @web\n" in shown
    assert "c.md modified +1 -1\n" in shown
    assert "c.md" not in daemon.run("changes", "--owner", "@web", cwd=root).stdout
