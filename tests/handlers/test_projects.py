"""Several projects in one question: one order, one budget, one cursor, and coverage that names who is missing."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from flashgrep.base.config import Settings
from flashgrep.base.errors import Forbidden, InvalidParams, NotFound
from flashgrep.base.registry import Call, Session
from flashgrep.methods.common import encode_cursor
from flashgrep.methods.query import QueryParams
from flashgrep.methods.text import render_text
from flashgrep.parts.built_in import BUILT_IN, REGISTRY
from flashgrep.project.catalogue import Catalogue
from tests.conftest import DaemonAtHand, short_folder

COUNT, MANY = 5, 20


def make(root: Path, files: dict[str, str]) -> Path:
    root.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def roots() -> Iterator[list[Path]]:
    """Return projects that use a name; the third defines it, and has a test of it."""
    base, made = short_folder(), []
    for number in range(COUNT):
        uses = "".join(f"x{at} = spin({at})  # use {at}\n" for at in range(number + 3))
        files = {
            "src/uses.py": uses,
            f"src/only{number}.py": "pass\n",
            "README.md": f"# Number {number}\n",
        }
        if number == 2:
            files |= {
                "src/spin.py": "def spin(count):\n    return count\n",
                "tests/test_spin.py": "spin(1)\n",
            }
        made.append(make(base / f"p{number}", files))
    yield made
    shutil.rmtree(base)


@pytest.fixture
async def catalogue(tmp_path: Path, roots: list[Path]) -> AsyncIterator[Catalogue]:
    """Return a catalogue that scans; it knows the projects that are named to it."""
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path / "state", settings=Settings(), indexes=False
    ) as host:
        for root in roots[:2]:
            await host.open(str(root))
        yield host


async def ask(
    host: Catalogue, method: str, session: Session | None = None, /, **params: Any
) -> Any:
    return await REGISTRY.get(method).call(Call(host, session or Session()), params)


async def every_page(
    host: Catalogue, method: str, **params: Any
) -> list[dict[str, Any]]:
    """Return the items of all pages; each tells the same total."""
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] | None = {}
    totals = set()
    while cursor is not None:
        page = await ask(host, method, **params, **cursor)
        assert page["results"]
        assert page["coverage"]["complete"], page["coverage"]
        totals.add(page["total"])
        items += page["results"]
        cursor = {"cursor": page["next"]} if page["next"] else None
    assert totals == {len(items)}
    return items


async def test_changes_of_several_projects_are_listed_one_project_after_the_other(
    catalogue: Catalogue, roots: list[Path]
) -> None:
    params: dict[str, Any] = {"rev": ":index", "projects": list(map(str, roots))}
    whole = await every_page(catalogue, "changes", **params, max_tokens=100_000)
    assert len(whole) == 17
    names = [item["project"] for item in whole]
    assert list(dict.fromkeys(names)) == [root.name for root in roots]
    for limit in (1, 4):
        assert await every_page(catalogue, "changes", **params, limit=limit) == whole
    # A page's first file is cut to the budget, and none is lost.
    cut = await every_page(catalogue, "changes", **params, max_tokens=60)
    assert [item["file_path"] for item in cut] == [item["file_path"] for item in whole]
    session = Session(projects=tuple(map(str, roots[:2])))
    both = await ask(catalogue, "changes", session, rev=":index")
    assert {item["project"] for item in both["results"]} == {"p0", "p1"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "params", "count"),
    [
        ("query", {"text": "spin"}, 27),
        ("query", {"text": "spin", "mode": "literal", "order": "path"}, 27),
        ("query", {"text": "spin", "output": "files"}, 7),
        ("get_symbol", {"symbol_name": "spin"}, 27),
        ("list_files", {}, 17),
        ("list_files", {"filter": "src .py"}, 11),
        ("glob", {"pattern": "*.py", "sort_by": "name", "sort_order": "desc"}, 12),
        ("glob", {"pattern": "*.py", "sort_by": "size"}, 12),
    ],
)
async def test_pages_of_any_size_make_the_whole_answer(
    catalogue: Catalogue,
    roots: list[Path],
    method: str,
    params: dict[str, Any],
    count: int,
) -> None:
    params = {**params, "projects": list(map(str, roots))}
    whole = await every_page(
        catalogue, method, **params, limit=1000, max_tokens=100_000
    )
    assert len(whole) == count
    assert {item["project"] for item in whole} == {root.name for root in roots}
    for limit in (1, 4):
        assert await every_page(catalogue, method, **params, limit=limit) == whole
    assert (
        await every_page(catalogue, method, **params, limit=1000, max_tokens=60)
        == whole
    )


async def test_what_is_best_leads_whichever_project_has_it(
    catalogue: Catalogue, roots: list[Path]
) -> None:
    projects = list(map(str, roots))
    found = await ask(catalogue, "query", text="spin", projects=projects, limit=100)
    places = [(hit["project"], hit["file_path"]) for hit in found["results"]]
    assert [places[0], places[1], places[-1]] == [
        ("p2", "src/spin.py"),
        ("p0", "src/uses.py"),
        ("p2", "tests/test_spin.py"),
    ]
    symbols = (
        await ask(catalogue, "get_symbol", symbol_name="spin", projects=projects)
    )["results"]
    assert (symbols[0]["project"], symbols[0]["role"], symbols[-1]["file_path"]) == (
        "p2",
        "definition",
        "tests/test_spin.py",
    )
    sizes = await ask(
        catalogue, "glob", projects=projects, sort_by="size", sort_order="desc"
    )
    assert [one["size"] for one in sizes["results"]] == sorted(
        (one["size"] for one in sizes["results"]), reverse=True
    )
    names = await ask(
        catalogue, "glob", projects=projects, sort_by="name", sort_order="desc"
    )
    assert [one["name"] for one in names["results"]] == sorted(
        (one["name"] for one in names["results"]), reverse=True
    )


async def test_where_one_project_has_what_was_meant_others_do_not_guess(
    catalogue: Catalogue, roots: list[Path]
) -> None:
    projects = list(map(str, roots))
    found = await ask(catalogue, "query", text="def spin(count):", projects=projects)
    assert (found["mode"], found["total"], len(found["results"])) == ("literal", 1, 1)
    guessed = await ask(catalogue, "query", text="number of spins", projects=projects)
    assert guessed["mode"] == "words"
    assert len({hit["project"] for hit in guessed["results"]}) > 1
    nothing = await ask(catalogue, "query", text="used.py", projects=projects[1:3])
    assert nothing["results"] == []
    assert nothing["suggestions"][:2] == [
        f"{root}/src/uses.py" for root in projects[1:3]
    ]
    files = await ask(catalogue, "list_files", filter="only3", projects=projects)
    assert [(one["project"], one["file_path"]) for one in files["results"]] == [
        ("p3", "src/only3.py")
    ]
    assert files["files"] == ["p3/src/only3.py"]
    assert files["fuzzy"] is False


async def test_no_file_is_answered_twice(catalogue: Catalogue, tmp_path: Path) -> None:
    """A project may be named twice, by a link, and lie in another, under a name that is a wildcard."""
    files = {
        "a.txt": "needle",
        "in[n]er/b.txt": "needle",
        "in[n]er/deep/c.txt": "needle",
        "inner/d.txt": "needle",
    }
    outer = make(tmp_path / "outer", files)
    inner = outer / "in[n]er"
    (inner / ".git").mkdir()
    link = tmp_path / "link"
    link.symlink_to(outer)
    for method, params in (
        ("query", {"text": "needle"}),
        ("query", {"text": "needle", "output": "count"}),
        ("list_files", {}),
        ("glob", {"pattern": "*.txt"}),
        ("glob", {"pattern": "*.txt", "include_hidden": True, "exclude": [".git"]}),
    ):
        found = await ask(
            catalogue,
            method,
            projects=[str(outer), str(inner), str(link), str(outer)],
            **params,
        )
        assert [(hit["project"], hit["file_path"]) for hit in found["results"]] == [
            ("outer", "a.txt"),
            ("outer", "inner/d.txt"),
            ("in[n]er", "b.txt"),
            ("in[n]er", "deep/c.txt"),
        ]
        assert found["total"] == 4
        assert found["coverage"]["projects"] == {
            "outer": str(outer),
            "in[n]er": str(inner),
        }
    below = await ask(
        catalogue,
        "glob",
        projects=[str(outer), str(inner)],
        path="inner",
        pattern="*.txt",
    )
    assert [hit["file_path"] for hit in below["results"]] == ["inner/d.txt"]


async def test_twenty_projects_of_one_name_are_distinguished(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    twins = [
        make(tmp_path / str(number) / "twin", {"a.txt": f"needle {number}\n"})
        for number in range(MANY)
    ]
    found = await ask(
        catalogue, "query", text="needle", projects=list(map(str, twins)), limit=100
    )
    assert [hit["text"] for hit in found["results"]] == [
        f"needle {number}" for number in range(MANY)
    ]
    assert (
        len({hit["project"] for hit in found["results"]})
        == found["coverage"]["files_searched"]
        == MANY
    )
    by_name = await ask(
        catalogue,
        "query",
        text="needle",
        projects=list(found["coverage"]["projects"]),
        limit=100,
    )
    assert by_name["results"] == found["results"]
    everywhere = await ask(catalogue, "query", text="needle", projects="*", limit=100)
    assert {hit["text"] for hit in everywhere["results"]} == {
        hit["text"] for hit in found["results"]
    }
    assert len(everywhere["coverage"]["projects"]) == MANY + 2


async def test_behind_a_full_page_projects_together_count_no_further_than_one(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    files = {f"{at}.txt": "needle\n" for at in range(60)}
    several = [str(make(tmp_path / f"dense{number}", files)) for number in range(COUNT)]
    params: dict[str, Any] = {
        "text": "needle",
        "mode": "literal",
        "limit": 3,
        "explain": True,
    }
    alone = await ask(catalogue, "query", project=several[0], **params)
    assert (alone["total"], alone["explained"]["files_read"]) == (60, 60)
    found = await ask(catalogue, "query", projects=several, **params)
    assert (found["total"], found["explained"]["files_read"]) == (None, COUNT * 4)
    assert found["next"]


async def test_who_is_missing_is_named_and_the_others_answer(
    catalogue: Catalogue, roots: list[Path]
) -> None:
    found = await ask(
        catalogue, "query", text="spin(0)", projects=["p0", "nobody", "/not/there"]
    )
    assert [hit["project"] for hit in found["results"]] == ["p0"]
    assert found["coverage"]["projects"] == {"p0": str(roots[0])}
    assert found["coverage"]["complete"] is False
    assert "nobody: no such project" in found["coverage"]["detail"]
    assert "no such folder: /not/there" in found["coverage"]["detail"]
    with pytest.raises(NotFound, match="no such project: nobody"):
        await ask(catalogue, "query", text="x", projects=["nobody"])
    with pytest.raises(
        NotFound, match=r"none of 2 projects answered: nobody: .*; no one: no such"
    ):
        await ask(catalogue, "query", text="x", projects=["nobody", "no one"])


async def test_a_project_that_vanishes_between_two_pages_is_named(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    pair = [
        make(tmp_path / name, {"a.txt": "needle\n" * 3}) for name in ("stays", "goes")
    ]
    params: dict[str, Any] = {"text": "needle", "projects": list(map(str, pair))}
    early = await ask(catalogue, "query", **params, limit=2)
    late = await ask(catalogue, "query", **params, limit=4)
    assert [hit["project"] for hit in late["results"]] == [
        "stays",
        "stays",
        "stays",
        "goes",
    ]
    shutil.rmtree(pair[1])
    with pytest.raises(
        NotFound, match="no such folder"
    ):  # it was the only one with more
        await ask(catalogue, "query", **params, limit=4, cursor=late["next"])
    then = await ask(catalogue, "query", **params, limit=2, cursor=early["next"])
    assert ([hit["project"] for hit in then["results"]], then["next"]) == (
        ["stays"],
        None,
    )
    assert "goes: no such folder" in then["coverage"]["detail"]
    assert then["coverage"]["complete"] is False


async def test_a_bound_connection_reaches_no_other(
    catalogue: Catalogue, roots: list[Path]
) -> None:
    bound = Session(projects=(str(roots[0]),))
    for several in (
        ["p1"],
        ["p0", "p1"],
        [str(roots[1])],
        [str(roots[0]), str(roots[1].parent)],
        ["p0", "nobody"],
    ):
        with pytest.raises(Forbidden):
            await ask(catalogue, "query", bound, text="spin", projects=several)
    own = await ask(catalogue, "query", bound, text="spin", projects="*", limit=100)
    assert own["coverage"]["projects"] == {"p0": str(roots[0])}
    assert {hit["project"] for hit in own["results"]} == {"p0"}


async def test_contradictions_are_refused(catalogue: Catalogue) -> None:
    for field, params in (
        ("project", {"project": "p0", "projects": ["p1"]}),
        ("projects", {"projects": []}),
        ("projects", {"projects": ["p0"] * 101}),
    ):
        with pytest.raises(InvalidParams) as refused:
            await ask(catalogue, "query", text="x", **params)
        assert refused.value.data["field"].startswith(field)
    with pytest.raises(InvalidParams, match=r"\("):
        await ask(catalogue, "query", text="(", mode="regex", projects=["p0", "p1"])
    with pytest.raises(InvalidParams, match="offset"):
        await ask(catalogue, "glob", offset=1, projects=["p0", "p1"])
    backwards = encode_cursor(
        QueryParams(query="spin", projects=["p0"]), 1, "p0", None, -5
    )
    with pytest.raises(InvalidParams, match="not one of ours"):
        await ask(catalogue, "query", text="spin", projects=["p0"], cursor=backwards)
    page = await ask(catalogue, "query", text="spin", projects=["p0", "p1"], limit=1)
    with pytest.raises(InvalidParams, match="another question"):
        await ask(catalogue, "query", text="spin", projects=["p0"], cursor=page["next"])


async def test_a_cancelled_question_ends_and_a_deadline_leaves_what_was_found(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    text = "".join(f"needle {at}\n" for at in range(1_000))
    large = [
        make(tmp_path / f"large{number}", {f"{at}.txt": text for at in range(10)})
        for number in range(6)
    ]
    params = {
        "text": "ne+dle [0-9]*9$",
        "mode": "regex",
        "projects": list(map(str, large)),
        "output": "count",
    }
    with anyio.move_on_after(0.01) as scope:
        await ask(catalogue, "query", **params)
    assert scope.cancelled_caught
    cut = await ask(catalogue, "query", **params, deadline_ms=1)
    assert cut["coverage"]["complete"] is False
    assert cut["coverage"]["detail"]
    whole = await ask(catalogue, "query", **params, limit=1000)
    assert whole["coverage"]["complete"]
    assert (
        whole["total"] == sum(hit["count"] for hit in whole["results"]) == 6 * 10 * 100
    )


async def test_research_of_several_projects_says_whose_each_symbol_is(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    using = make(tmp_path / "using", {"use.py": "x = spin(0)\n"})
    tested = "from spin import spin\nspin(1)\n"
    defined = "def spin(count):\n    pass\ndef two():\n    spin(2)\n"
    defining = make(
        tmp_path / "defining", {"spin.py": defined, "tests/test_spin.py": tested}
    )
    projects = [str(using), str(defining)]
    answer = await ask(
        catalogue, "code_research", query="who calls spin", projects=projects
    )
    named = {node["id"]: (node["project"], node["name"]) for node in answer["results"]}
    assert len(named) == len(answer["results"])
    sites = [
        (edge["project"], named[edge["source"]], named.get(edge.get("target")))
        for edge in answer["edges"]
    ]
    # Where it is not defined it may be the same.
    assert sites == [
        ("using", ("using", "use.py"), None),
        ("defining", ("defining", "two"), ("defining", "spin")),
    ]
    assert answer["in_tests"] == {"uses": 1, "files": 1}
    assert answer["coverage"]["projects"] == {
        "using": str(using),
        "defining": str(defining),
    }
    handler = REGISTRY.get("code_research")
    assert render_text(answer, handler.render).splitlines() == [
        "defining: spin.py:1-2 function spin",
        "defining: spin.py:4 two: spin(2)",
        "using: use.py:1 perhaps x = spin(0)",
        "[tests: 1 in 1 file; tests=true]",
    ]
    nothing = await ask(
        catalogue, "code_research", query="who calls nobody", projects=projects
    )
    assert nothing["results"] == []
    assert nothing["summary"].count("nothing found") == 1


async def test_research_of_several_projects_goes_on_in_each(
    catalogue: Catalogue, roots: list[Path]
) -> None:
    params: dict[str, Any] = {"query": "who calls spin", "max_tokens": 200}
    projects = list(map(str, roots[2:4]))
    cut = await ask(catalogue, "code_research", **params, projects=projects)
    assert cut["next"] is None
    assert cut["continued"] == ["p3"]
    alone = await ask(catalogue, "code_research", **params, project=projects[1])
    with pytest.raises(InvalidParams, match="name it by `project`"):
        await ask(
            catalogue,
            "code_research",
            **params,
            projects=projects,
            cursor=alone["next"],
        )


async def test_unused_code_below_a_path_is_sought_where_the_path_is(
    catalogue: Catalogue, roots: list[Path]
) -> None:
    both = Session(projects=tuple(map(str, roots[1:3])))
    query = "unused code in src"
    answer = await ask(catalogue, "code_research", both, query=query)
    assert set(answer["coverage"]["projects"]) == {"p1", "p2"}
    alone = await ask(catalogue, "code_research", both, query=f"{query}/spin.py")
    assert "projects" not in alone["coverage"]


@pytest.mark.parametrize("method", ["outline", "repo_map"])
async def test_an_outline_of_several_projects_says_whose_each_file_is(
    catalogue: Catalogue, roots: list[Path], method: str
) -> None:
    both = Session(projects=tuple(map(str, roots[1:3])))
    whole = await ask(catalogue, method, both)
    assert [(file["project"], file["file_path"]) for file in whole["results"]] == [
        ("p2", "src/spin.py")
    ]
    assert set(whole["coverage"]["projects"]) == {"p1", "p2"}
    named = await ask(catalogue, method, projects=["p1", "p0"], path="src")
    assert named["coverage"]["complete"]
    # A path that one alone has is that one's.
    alone = await ask(catalogue, method, both, path="src/spin.py")
    assert "projects" not in alone["coverage"]
    # Of three, the one without it is not missing.
    three = await ask(
        catalogue, method, projects=list(map(str, roots[1:4])), path="src/only1.py"
    )
    assert three["coverage"]["projects"] == {"p1": str(roots[1])}
    assert three["coverage"]["complete"]
    with pytest.raises(NotFound, match=r"none of 2 projects answered: p1: .*near: "):
        await ask(catalogue, method, both, path="src/spinn.py")


@pytest.mark.parametrize("method", ["code_research", "outline"])
async def test_a_project_that_cannot_be_opened_is_said(
    catalogue: Catalogue, method: str
) -> None:
    params: dict[str, Any] = {"projects": ["p0", "nobody"]}
    if method == "code_research":
        params["query"] = "who calls spin"
    answer = await ask(catalogue, method, **params)
    assert answer["coverage"]["complete"] is False
    assert answer["coverage"]["detail"].startswith("nobody: no such project")


def test_every_wire_and_the_command_line_take_several_projects(
    daemon: DaemonAtHand, roots: list[Path]
) -> None:
    for root in roots[:3]:
        daemon.add(root)
    wire = daemon.wire("tcp")
    assert wire.call("list_files", projects="*", limit=1)["total"] == 11
    for root in roots[:3]:
        wire.call("index_codebase", path=str(root))
    code = wire.call(
        "search_code", query="spin count", projects=["p0", "p1", "p2"], limit=3
    )
    assert code["results"][0]["project"] == "p2"
    scores = [one["score"] for one in code["results"]]
    assert scores == sorted(scores, reverse=True)
    wire.close()
    found = daemon.run(
        "query", "spin(0)", "-p", "p0", "-p", str(roots[1]), cwd=roots[0]
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        "src/uses.py:1:x0 = spin(0)  # use 0",
        f"{roots[1]}/src/uses.py:1:x0 = spin(0)  # use 0",
    ]
    everywhere = daemon.run("files", "only2", "--all-projects", cwd=Path("/"))
    assert everywhere.stdout.splitlines() == [f"{roots[2]}/src/only2.py"]
    assert daemon.run("slice", "a", "1", "2", "-p", "p0", "-p", "p1").returncode == 2
    assert daemon.run("query", "x", "-p", "p0", "--all-projects").returncode == 2
    missing = daemon.run("query", "spin(0)", "-p", "p0", "-p", "nobody", cwd=roots[0])
    assert missing.returncode == 0
    assert "nobody: no such project" in missing.stderr
