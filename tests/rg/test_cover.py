"""``-g``, ``-t``, ``--hidden``: planned calls search what ripgrep's walk would, ignored and hidden files included."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashgrep.files.walk import Walker
from flashgrep.parts.ripgrep.plan import MOST_ADDED_BYTES
from flashgrep.project import Workspace
from tests.rg.project import Project, check
from tests.support.rg_tree import commands
from tests.support.workspace import opened, put

_FILES = """
a.py b.c Makefile src/a.py src/deep/a.py src/deep/b.C lib/src/a.py .hid.py src/.h/a.py src/.h/.in.py ign.log out/a.py
src/x.tsx README Dockerfile.dev [a].py .github/flows/ci.yml .github/out/x.py src/out/late.log .env.json src/.dot.c
src/gen.py/inner.txt src/gen.py/ign.log kept/ign.log kept/.seen
"""
FILES = _FILES.split()
_GLOBS = """
*.py *.PY src/*.py src/**/*.py **/*.py /a.py src src/ src/** *.{py,c} [ab].* [!a].* **/deep/* * /* ?.c *.log .h/ out/**
{src,lib}/** [[]a].py src/{deep,x}* .github .git .github/** .* out
"""
GLOBS = _GLOBS.split()
TYPES = "-tpy -Tpy -tc -Tc -tmake -treadme -ttypescript -tall -Tall -tyaml --type-add=x:*.log -tx --type-add=py:*.c"
FLAGS = [
    *TYPES.split(),
    "--hidden",
    "--hidden",
    "--no-hidden",
    "-d1",
    "-d2",
    "-l",
    "-c",
    "-n",
    "-z",
    "--sortr=path",
]
PATHS = [
    "",
    "",
    "",
    "src",
    "./",
    ".",
    "src/",
    "src a.py",
    "lib ./src",
    "src/../lib",
    ".github",
    "out",
    "{root}",
    "{root}/src",
]
AGENTS = r"""
--hidden --glob !.git --glob !.svn --max-columns 500 -l needle | --hidden --glob !.git -n needle --glob *.py
--hidden --glob !.git -c -H needle --type py | -nH --hidden --no-messages --field-match-separator=| --regexp needle
-nH --hidden --no-messages --field-match-separator=| --regexp needle --glob *.{py,c} {root} | -t py needle
--files-with-matches --sortr=modified --regexp needle --no-messages --glob *.py -- {root} | -g *.tsx needle src
--null --color=never --max-columns=1000 --path-separator / -S --no-heading -Hn --search-zip -e needle | -tc -Tpy needle
--color=always --type-add=gyp:*.gyp --type-add=gyp:*.gypi --no-heading --type=py -e needle | --hidden needle
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    root = tmp_path_factory.mktemp("cover")
    put(root, {name: f"needle in {name}\nother\n".encode() for name in FILES})
    put(
        root,
        {
            ".ignore": b"*.log\nout/\n",
            "kept/.ignore": b"!*.log\n!.seen\n",
            "plain.txt": b"nothing\n",
        },
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opened(root)) as workspace,
    ):
        portal.call(workspace.wait_indexed)
        put(
            root,
            {
                "src/fresh.py": b"needle\n",
                "fresh.log": b"needle\n",
                "src/.fresh/a.py": b"needle\n",
            },
        )
        (root / ".env.json").rename(root / "src" / ".env2.json")
        assert portal.call(workspace.refresh)
        yield Project(root, workspace.snapshot(), workspace.walker)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", commands(AGENTS.replace("separator=|", "separator=%")), ids=" ".join
)
def test_calls_of_agents_and_editors_spare_files(
    project: Project, arguments: list[str]
) -> None:
    placed = [word.replace("{root}", str(project.root)) for word in arguments]
    assert check(project, placed, project.root)
    check(project, placed, project.root / "src")


signed = st.builds(
    "{}{}{}".format,
    st.sampled_from(["-g", "-g", "--iglob="]),
    st.sampled_from(["", "!"]),
    st.sampled_from(GLOBS),
)


def test_globs_below_a_whole_path_around_the_current_folder_are_ripgreps_to_match(
    project: Project,
) -> None:
    arguments, cwd = ["-g", "!/a.py", "needle", str(project.root)], project.root / "src"
    assert project.plan(arguments, cwd) is None
    assert not check(project, arguments, cwd)


@pytest.mark.slow
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    globs=st.lists(signed, max_size=3),
    flags=st.lists(st.sampled_from(FLAGS), max_size=3),
    paths=st.sampled_from(PATHS),
    below=st.booleans(),
)
def test_drawn_filters_search_what_ripgreps_walk_does(
    *, project: Project, globs: list[str], flags: list[str], paths: str, below: bool
) -> None:
    given = paths.format(root=project.root).split()
    check(
        project,
        [*globs, *flags, "needle", *given],
        project.root / "src" if below else project.root,
    )


async def test_what_rules_take_out_is_known_as_it_is_now(root: Path) -> None:
    put(root, dict.fromkeys(FILES, b"x\n"))
    put(root, {".ignore": b"*.log\nout/\n"})
    rng = random.Random(3)
    names = ["a.log", ".dot", "out", "src", "b.py", ".h"]

    def draw() -> Path:
        return root.joinpath(*rng.choices(names, k=rng.randint(1, 3)))

    async with opened(root) as workspace:
        await workspace.wait_indexed()
        for _ in range(40):
            for _ in range(rng.randint(1, 6)):
                path = draw()
                try:
                    match rng.randrange(5):
                        case 0:
                            path.mkdir(parents=True)
                        case 1:
                            shutil.rmtree(path)
                        case 2:
                            path.rename(draw())
                        case 3:
                            path.unlink()
                        case _:
                            path.parent.mkdir(parents=True, exist_ok=True)
                            path.write_bytes(b"x\n")
                except OSError:
                    continue
            assert await workspace.refresh()
            found: dict[bytes, bool] = {}
            list(Walker(os.fsencode(root)).walk(excluded=found))
            assert workspace.snapshot().excluded == found


async def test_of_too_many_entries_that_rules_take_out_none_are_kept(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    put(root, {".ignore": b"*.log\n", "a.txt": b"needle\n", "a.log": b"needle\n"})

    def plan(workspace: Workspace, *arguments: str) -> list[bytes] | None:
        return Project(root, workspace.snapshot(), workspace.walker).plan(arguments)

    async with opened(root) as workspace:
        await workspace.wait_indexed()
        assert workspace.snapshot().excluded == {
            b".git": True,
            b".ignore": False,
            b"a.log": False,
        }
        monkeypatch.setattr("flashgrep.project.file_tree.MOST_EXCLUDED", 4)
        put(root, {f"{number}.log": b"needle\n" for number in range(3)})
        assert await workspace.refresh()
        assert workspace.snapshot().excluded is None
        assert plan(workspace, "-g", "*.log", "needle") is None
        assert plan(workspace, "needle") is not None
        for number in range(3):
            (root / f"{number}.log").unlink()
        (root / ".ignore").write_bytes(
            b"*.log\n\n"
        )  # rules that change have the tree walked anew
        assert await workspace.refresh()
        planned = plan(workspace, "-g", "*.log", "needle")
        assert planned is not None
        assert planned[-1] == b"a.log"


async def test_large_files_that_are_not_indexed_are_ripgreps_to_read(
    root: Path,
) -> None:
    put(
        root,
        {
            ".ignore": b"*.log\n",
            "a.txt": b"needle\n",
            "a.log": b"needle\n" * (MOST_ADDED_BYTES // 7),
        },
    )
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        assert (
            Project(root, workspace.snapshot(), workspace.walker).plan(
                ["-g", "*.{txt,log}", "needle"]
            )
            is not None
        )
        put(root, {"b.log": b"needle\n" * 2})
        assert await workspace.refresh()
        assert (
            Project(root, workspace.snapshot(), workspace.walker).plan(
                ["-g", "*.{txt,log}", "needle"]
            )
            is None
        )
