"""The methods on specifications, asked of a running daemon over a bare socket and the Model Context Protocol."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.own_folders import make_store
from tests.conftest import DaemonAtHand, MakeProject, short_folder
from tests.scenarios.ways import Way, ways

SAMPLES = Path(__file__).parent / "samples"
AUTH = """\
# Sign-in

## Purpose
People sign in with one name everywhere.

## Requirements

### Requirement: One session
A person SHALL have one session.

#### Scenario: Second device
- **GIVEN** a phone
- **WHEN** the laptop signs in
- **THEN** the phone is asked
- **AND** the laptop waits

#### Scenario: Forgotten password
- **WHEN** the password is forgotten
- **THEN** a letter is sent

### Requirement: Sign out
Leaving MUST end the session.

#### Scenario: Leaving
- **WHEN** a person leaves
- **THEN** the session is over
"""
BILLING = """\
# Billing

## Purpose
Customers pay what they used.

## Requirements

### Requirement: Monthly invoices
The system SHALL write an invoice each month.

#### Scenario: End of month
- **WHEN** a month ends
- **THEN** an invoice is written
"""
DELTA = """\
## ADDED Requirements
### Requirement: Passkeys
The system SHALL take passkeys.
#### Scenario: First passkey
- **WHEN** a key is shown
- **THEN** it is stored

## REMOVED Requirements
### Requirement: Sign out
**Reason**: nobody leaves

## RENAMED Requirements
- FROM: `### Requirement: One session`
- TO: `### Requirement: Single session`
"""
FILES: dict[str, str | bytes] = {
    "openspec/specs/auth/spec.md": AUTH,
    "specs/money/billing/spec.md": BILLING.replace("\n", "\r\n"),
    "openspec/changes/add-passkeys/specs/auth/spec.md": DELTA,
    "openspec/changes/archive/2020-old/specs/auth/spec.md": AUTH,
    "openspec/specs/auth/design.md": "# No specification\n",
    "main.py": "print()\n",
}
Reach = Callable[..., Way]


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand) -> Iterator[Path]:
    """Return a project that is indexed and that no test changes."""
    base = short_folder()
    for path, content in FILES.items():
        save(base / "project", path, content)
    assert daemon.run("index", str(base / "project")).returncode == 0
    yield base / "project"
    shutil.rmtree(base)


@pytest.fixture(scope="module", params=["unix", "mcp stdio"])
def way(
    request: pytest.FixtureRequest, daemon: DaemonAtHand, root: Path
) -> Iterator[Way]:
    """Connect to it."""
    with ways(daemon, root, [request.param]) as (connected,):
        yield connected


@pytest.fixture
def reach(daemon: DaemonAtHand) -> Iterator[Reach]:
    """Return a function that connects to another project."""
    with ExitStack() as opened:

        def connect(root: Path, *, indexed: bool = False) -> Way:
            if indexed:
                assert daemon.run("index", str(root)).returncode == 0
            (connected,) = opened.enter_context(ways(daemon, root, ["unix"]))
            return connected

        yield connect


def prevent_index(daemon: DaemonAtHand, root: Path) -> None:
    """Make sure that the project never gets an index: something else has its name."""
    make_store(daemon.index(root).parent, os.fsencode(root))
    (daemon.index(root) / "taken").mkdir(parents=True)


def ids(way: Way) -> list[str]:
    return [one["id"] for one in way.result("list_specs")["results"]]


def save(root: Path, path: str, content: str | bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content.encode() if isinstance(content, str) else content)


def test_specs_are_listed_by_id_title_and_purpose_alone(way: Way) -> None:
    assert way.result("list_specs")["results"] == [
        {
            "id": "money/billing",
            "title": "Billing",
            "purpose": "Customers pay what they used.",
        },
        {
            "id": "auth",
            "title": "Sign-in",
            "purpose": "People sign in with one name everywhere.",
        },
        {"id": "add-passkeys/auth", "title": "auth", "purpose": ""},
    ]


def test_no_specs_are_an_empty_list_that_says_where_they_are_looked_for(
    reach: Reach, project: MakeProject
) -> None:
    way = reach(project({"main.py": "x\n"}), indexed=True)
    listed = way.result("list_specs")
    searched = way.result("search_specs", query="anything")
    for result in (listed, searched):
        assert result["results"] == []
        assert result["reason"] == "no_specs"
        assert "openspec/specs" in result["detail"]
    assert way.result("validate_specs") == {"valid": True, "files": 0, "problems": []}
    error = way.error("get_spec_requirements", spec_id="auth")
    assert error["message"] == "spec not found: auth; there is no spec"


def test_requirements_come_without_the_bodies_of_their_scenarios(way: Way) -> None:
    result = way.result("get_spec_requirements", spec_id="auth")
    assert result["requirements"] == [
        {
            "name": "One session",
            "scenario_count": 2,
            "scenarios": ["Second device", "Forgotten password"],
        },
        {"name": "Sign out", "scenario_count": 1, "scenarios": ["Leaving"]},
    ]
    assert "laptop" not in json.dumps(result)
    assert (
        way.result("get_spec_requirements", spec_id="openspec/specs/auth/spec.md")
        == result
    )


def test_a_delta_tells_its_operations(way: Way) -> None:
    found = way.result("get_spec_requirements", spec_id="add-passkeys/auth")[
        "requirements"
    ]
    assert [
        (one["operation"], one["name"], one.get("renamed_from")) for one in found
    ] == [
        ("ADDED", "Passkeys", None),
        ("REMOVED", "Sign out", None),
        ("RENAMED", "Single session", "One session"),
    ]


def test_a_scenario_comes_in_full_by_name_or_the_first(way: Way) -> None:
    first = way.result("get_scenario", spec_id="auth", requirement="One session")
    assert first["description"] == "A person SHALL have one session."
    assert (first["name"], first["given"], first["when"]) == (
        "Second device",
        ["a phone"],
        "the laptop signs in",
    )
    assert first["then"] == ["the phone is asked", "the laptop waits"]
    assert (first["file_path"], first["start_line"]) == (
        "openspec/specs/auth/spec.md",
        11,
    )
    assert [step["keyword"] for step in first["steps"]] == [
        "GIVEN",
        "WHEN",
        "THEN",
        "AND",
    ]
    other = way.result(
        "get_scenario",
        spec_id="auth",
        requirement="one  SESSION",
        scenario="forgotten password",
    )
    assert other["name"] == "Forgotten password"
    windows = way.result(
        "get_scenario", spec_id="money/billing", requirement="Monthly invoices"
    )
    assert windows["then"] == ["an invoice is written"]


def test_an_unknown_name_is_an_error_that_knows_the_nearest(way: Way) -> None:
    asked: list[tuple[str, dict[str, Any], str, str]] = [
        ("get_spec_requirements", {"spec_id": "aut"}, "spec", "auth"),
        ("validate_specs", {"spec_id": "money"}, "spec", "money/billing"),
        (
            "get_scenario",
            {"spec_id": "auth", "requirement": "two sessions"},
            "requirement",
            "One session",
        ),
        (
            "get_scenario",
            {
                "spec_id": "auth",
                "requirement": "One session",
                "scenario": "second devices",
            },
            "scenario",
            "Second device",
        ),
    ]
    for method, params, kind, nearest in asked:
        error = way.error(method, **params)
        assert error["code"] == -32001
        assert error["data"]["reason"] == f"{kind}_not_found"
        assert error["data"]["nearest"][0] == nearest
        assert f"did you mean {nearest}?" in error["message"]
    none = way.error(
        "get_scenario", spec_id="add-passkeys/auth", requirement="Sign out"
    )
    assert none["message"] == "scenario not found; there is no scenario"


def test_requirements_are_found_by_what_they_and_their_scenarios_say(way: Way) -> None:
    results = way.result(
        "search_specs", query="forgotten password letter", threshold=0
    )["results"]
    best = results[0]
    assert (best["spec_id"], best["requirement"], best["scenario"]) == (
        "auth",
        "One session",
        "Forgotten password",
    )
    assert "a letter is sent" in best["snippet"]
    assert (best["file_path"], best["start_line"]) == (
        "openspec/specs/auth/spec.md",
        17,
    )
    scores = [one["score"] for one in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert (
        len({(one["spec_id"], one["requirement"]) for one in results})
        == len(results)
        == 6
    )
    assert (
        way.result(
            "search_specs", query="forgotten password letter", threshold=0, limit=2
        )["results"]
        == results[:2]
    )
    at = scores[1]
    above = way.result("search_specs", query="forgotten password letter", threshold=at)[
        "results"
    ]
    assert [one["score"] for one in above] == [score for score in scores if score >= at]


def test_a_purpose_stands_for_its_specification(way: Way) -> None:
    best = way.result("search_specs", query="customers pay what they used")["results"][
        0
    ]
    assert (best["kind"], best["spec_id"], best["requirement"]) == (
        "purpose",
        "money/billing",
        "Monthly invoices",
    )
    assert best["snippet"] == "Billing Customers pay what they used."
    assert best["start_line"] == 3


def test_nothing_near_is_an_empty_list(way: Way) -> None:
    found = way.result("search_specs", query="chocolate cake recipe")
    assert found["results"] == []
    assert found["coverage"]["files_searched"] == 3
    assert (
        way.result("search_specs", query="forgotten password", threshold=1)["results"]
        == []
    )


def test_without_an_index_only_searching_fails_and_says_how_to_build_one(
    daemon: DaemonAtHand, reach: Reach, project: MakeProject
) -> None:
    root = project(FILES)
    prevent_index(daemon, root)
    way = reach(root)
    error = way.error("search_specs", query="session")
    assert (error["code"], error["data"]["reason"], error["data"]["path"]) == (
        -32000,
        "index_not_found",
        str(root),
    )
    assert "index_codebase" in error["data"]["suggestion"]
    assert ids(way) == ["money/billing", "auth", "add-passkeys/auth"]
    assert way.result("get_spec_requirements", spec_id="auth")["requirements"]
    assert (
        way.result("get_scenario", spec_id="auth", requirement="Sign out")["when"]
        == "a person leaves"
    )
    assert way.result("validate_specs")["files"] == 3


def test_every_answer_is_of_the_files_as_they_are_saved(
    reach: Reach, project: MakeProject
) -> None:
    root = project(FILES)
    way = reach(root, indexed=True)
    for turn in range(3):
        save(
            root,
            f"specs/new{turn}/spec.md",
            BILLING.replace("invoice", f"quittance{turn}"),
        )
        assert f"new{turn}" in ids(way)
        found = way.result(
            "search_specs", query=f"quittance{turn}", threshold=0, limit=1
        )["results"]
        assert found[0]["spec_id"] == f"new{turn}"
        save(
            root,
            f"specs/new{turn}/spec.md",
            AUTH.replace("One session", f"Session {turn}"),
        )
        assert (
            way.result(
                "get_scenario", spec_id=f"new{turn}", requirement=f"Session {turn}"
            )["name"]
            == "Second device"
        )
        gone = way.result(
            "search_specs", query=f"quittance{turn}", threshold=0, limit=50
        )["results"]
        assert f"quittance{turn}" not in json.dumps(gone)
    shutil.rmtree(root / "specs")
    assert ids(way) == ["auth", "add-passkeys/auth"]


def test_a_project_says_itself_where_its_specs_are(
    reach: Reach, project: MakeProject
) -> None:
    root = project(
        {
            ".flashgrep/config.toml": '[specs]\nfolders = ["docs/*/contracts/", "."]\n',
            "docs/api/contracts/users/spec.md": AUTH,
            "docs/api/contracts/spec.md": BILLING,
            "docs/web/other/users/spec.md": AUTH,
            "api/users/spec.md": BILLING,
            "spec.md": BILLING,
            "docs/notaspec.md": BILLING,
        }
    )
    way = reach(root)
    assert way.result("list_specs")["results"] == [
        {"id": "api", "title": "Billing", "purpose": "Customers pay what they used."},
        {
            "id": "api/users",
            "title": "Sign-in",
            "purpose": "People sign in with one name everywhere.",
        },
        {
            "id": "api/users/spec.md",
            "title": "Billing",
            "purpose": "Customers pay what they used.",
        },
        {
            "id": "docs/web/other/users",
            "title": "Sign-in",
            "purpose": "People sign in with one name everywhere.",
        },
        {"id": "spec", "title": "Billing", "purpose": "Customers pay what they used."},
    ]


def test_malformed_files_are_reported_by_file_and_line(
    reach: Reach, project: MakeProject
) -> None:
    root = project(
        {
            **FILES,
            "specs/bad/spec.md": "# B\n## Purpose\nx\n## Requirements\n### Scenario: a\n### Requirement: b\nSHALL\n",
            "specs/binary/spec.md": b"\0\1\2",
            "specs/large/spec.md": b"# Large\n" + b"x" * (1 << 20),
            "specs/latin/spec.md": AUTH.replace("everywhere", "\u00fcberall").encode(
                "latin-1"
            ),
            "specs/stray/spec.md": AUTH.replace("everywhere", "\u00fcberall").encode()
            + b"\xff\n",
            "specs/wide/spec.md": b"\xff\xfe" + AUTH.encode("utf-16-le"),
        }
    )
    way = reach(root)
    result = way.result("validate_specs")
    told = [
        (one["file_path"], one["line"], one["message"], one["severity"])
        for one in result["problems"]
    ]
    assert told == [
        ("specs/bad/spec.md", 5, "scenario 'a' is outside a requirement", "error"),
        ("specs/bad/spec.md", 5, "scenario heading has 3 #, must have 4", "error"),
        ("specs/bad/spec.md", 6, "requirement 'b' has no scenario", "error"),
        ("specs/binary/spec.md", 1, "cannot be read: binary", "error"),
        (
            "specs/large/spec.md",
            1,
            "cannot be read: too large: 1048584 bytes, 1048576 at most",
            "error",
        ),
        ("specs/latin/spec.md", 1, "not UTF-8: read as latin-1", "warning"),
        (
            "specs/stray/spec.md",
            AUTH.count("\n") + 1,
            "invalid UTF-8 is shown as U+FFFD",
            "warning",
        ),
    ]
    assert (result["valid"], result["files"]) == (False, 9)
    only = way.result("validate_specs", spec_id="latin")
    assert (only["valid"], only["files"], len(only["problems"])) == (True, 1, 1)
    listed = {one["id"]: one for one in way.result("list_specs")["results"]}
    assert listed["binary"] == {
        "id": "binary",
        "title": "binary",
        "purpose": "",
        "problem": "cannot be read: binary",
    }
    assert listed["latin"]["purpose"] == "People sign in with one name \u00fcberall."
    assert listed["wide"]["title"] == "Sign-in"


def test_what_lies_outside_is_never_read(reach: Reach, project: MakeProject) -> None:
    secret = project({"spec.md": AUTH}, name="outside")
    root = project({"specs/real/spec.md": BILLING})
    (root / "specs" / "linked").mkdir()
    (root / "specs" / "linked" / "spec.md").symlink_to(secret / "spec.md")
    (root / "specs" / "folder").symlink_to(secret)
    os.mkfifo(root / "specs" / "linked" / "pipe")
    way = reach(root)
    assert ids(way) == ["real"]
    for spec_id in (
        "linked",
        "folder",
        "../outside/spec.md",
        str(secret / "spec.md"),
        "specs/linked/spec.md",
    ):
        assert (
            way.error("get_spec_requirements", spec_id=spec_id)["data"]["reason"]
            == "spec_not_found"
        )
    shutil.rmtree(root / "specs" / "real")
    (root / "specs" / "real").symlink_to(secret)
    assert ids(way) == []


def test_bad_parameters_are_refused(way: Way) -> None:
    asked: list[tuple[str, dict[str, Any], str]] = [
        ("get_spec_requirements", {}, "spec_id"),
        ("get_scenario", {"spec_id": "auth"}, "requirement"),
        ("search_specs", {}, "query"),
        ("search_specs", {"query": ""}, "query"),
        ("search_specs", {"query": "x" * 1001}, "query"),
        ("search_specs", {"query": "x", "limit": 0}, "limit"),
        ("search_specs", {"query": "x", "threshold": 1.5}, "threshold"),
    ]
    for method, params, field in asked:
        error = way.error(method, **params)
        assert (error["code"], error["data"]["field"]) == (-32602, field)


def test_the_commands_print_what_is_found(daemon: DaemonAtHand, root: Path) -> None:
    listed = daemon.run("list-specs", "--project", str(root))
    assert "\n\nid: auth\ntitle: " in listed.stdout
    found = daemon.run(
        "search-specs", "forgotten password", "--limit", "1", "--project", str(root)
    )
    assert (
        "openspec/specs/auth/spec.md:17:scenario: One session: Forgotten password WHEN"
        in found.stdout
    )
    read = daemon.run("get-scenario", "auth", "Sign out", "--project", str(root))
    assert "\nthen: the session is over\nsteps:\n  - keyword: " in read.stdout
    assert (
        daemon.run("get-spec-requirements", "nope", "--project", str(root)).returncode
        == 2
    )
    assert (
        daemon.run("search-specs", "chocolate cake", "--project", str(root)).returncode
        == 1
    )


def test_real_documents_can_be_read_through(reach: Reach, project: MakeProject) -> None:
    texts = {
        file.stem: file.read_text(encoding="utf-8") for file in SAMPLES.glob("0*.md")
    }
    way = reach(
        project(
            {
                f"openspec/changes/c{number}/specs/server/spec.md": text
                for number, text in texts.items()
            }
        )
    )
    assert way.result("validate_specs") == {
        "valid": True,
        "files": len(texts),
        "problems": [],
    }
    for number, text in texts.items():
        spec_id = f"c{number}/server"
        requirements = way.result("get_spec_requirements", spec_id=spec_id)[
            "requirements"
        ]
        assert (
            sum(one["scenario_count"] for one in requirements)
            == text.count("\n#### Scenario:")
            > 0
        )
        for one in requirements:
            for name in one["scenarios"]:
                found = way.result(
                    "get_scenario",
                    spec_id=spec_id,
                    requirement=one["name"],
                    scenario=name,
                )
                assert (found["requirement"], found["name"]) == (one["name"], name)
                assert found["when"]
                assert found["then"]
