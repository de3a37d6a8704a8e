"""``fgrep team serve`` as a client meets it: over HTTP, with a token."""

import json
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import closing

import pytest

from flashgrep.parts.team import access
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.guard import ATTEMPTS_AT_ONCE
from tests.support.git import git
from tests.support.http_request import send_request
from tests.support.postgres import Server
from tests.support.truth import ripgrep
from tests.team.conftest import Rig, lend
from tests.team.serving import Client, serve
from tests.team.test_jobs import count
from tests.team.test_store import draw_files

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def filled(module_rig: Rig) -> Rig:
    for number in range(3):
        module_rig.make_repository(f"r{number}", draw_files(number, 25))
    module_rig.sync()
    return module_rig


@pytest.fixture(scope="module")
def port(filled: Rig) -> Iterator[int]:
    with serve(filled) as port:
        yield port


@pytest.fixture
def served(filled: Rig, port: int) -> Iterator[tuple[Rig, Client]]:
    with lend(filled) as rig:
        with closing(connect(rig.dsn)) as connection:
            access.allow(connection, "ann", None)
            token = access.make_token(connection, "ann")
        yield rig, Client(port, token)


def test_random_questions_are_answered_as_ripgrep_answers_on_the_checkouts(
    served: tuple[Rig, Client],
) -> None:
    rig, client = served
    drawn = random.Random(5)
    words = [
        "alpha",
        "Beta",
        "gamma",
        "delta",
        "spin",
        "lock",
        "naïve",
        "return",
        "x",
        "if",
        "Alpha",
        "Ωmega",
        "zzz",
    ]
    asked = 0
    for _ in range(70):
        pattern = r".*".join(
            map(re.escape, drawn.choices(words, k=drawn.randint(1, 2)))
        )
        pattern = (
            drawn.choice(["", "(?i)", "^"]) + pattern + drawn.choice(["", "$", r"\b"])
        )
        name = f"r{drawn.randrange(3)}"
        params = {
            "query": pattern,
            "mode": "regex",
            "case": "sensitive",
            "limit": 5_000,
            "max_tokens": 1_000_000,
        }
        found = client.call("query", **params, project=name)
        assert found["coverage"]["complete"]
        hits = {
            (hit["file_path"].encode(), hit["start_line"]) for hit in found["results"]
        }
        assert hits == ripgrep(rig.folder / "trees" / name, pattern), pattern
        everywhere = client.call("query", **params, projects="*")
        of_all = {
            (hit["project"], hit["file_path"].encode(), hit["start_line"])
            for hit in everywhere["results"]
        }
        truth = {
            (f"r{number}", *hit)
            for number in range(3)
            for hit in ripgrep(rig.folder / "trees" / f"r{number}", pattern)
        }
        assert of_all == truth, pattern
        asked += 4
    assert asked >= 200


def test_methods_that_read_are_there_and_those_that_write_are_not(
    served: tuple[Rig, Client],
) -> None:
    _, client = served
    assert (
        client.call("get_symbol", symbol_name="gamma_delta", project="r0")["results"][
            0
        ]["role"]
        == "definition"
    )
    assert client.call("list_files", project="r0")["results"]
    assert client.call("glob", query="**/*.py", project="r0")["total"] == 4
    assert client.call(
        "get_slice", path="copy.py", start_line=1, end_line=1, project="r0"
    )["content"] == ("def gamma_delta(x):\n")
    assert client.call("outline", path="src/one.py", project="r0")
    place = {"path": "src/two.py", "line": 5, "column": 30, "project": "r0"}
    assert client.call("definition", **place)["results"][0]["file_path"] == "src/one.py"
    for method in (
        "write_code",
        "batch_write_code",
        "index_codebase",
        "fs_remove",
        "code_research",
    ):
        status, answer = client.send(f"/call/{method}", {})
        assert (status, answer["error"]["code"]) == (404, -32601), method
    for method in ("$/shutdown", "$/cli", "$/open", "auth"):
        _, answer = client.send(
            "/rpc", {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
        )
        assert answer["error"]["code"] == -32601, method
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    status, listed = client.send(
        "/mcp", listing, accept="application/json, text/event-stream"
    )
    assert status == 200, listed
    names = {tool["name"] for tool in listed["result"]["tools"]}
    assert {"query", "read_code"} <= names
    assert not names & {"write_code", "index_codebase"}


def test_a_model_calls_a_tool_of_the_server(served: tuple[Rig, Client]) -> None:
    _, client = served
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "read_code",
            "arguments": {"path": "copy.py", "project": "r0"},
        },
    }
    status, answer = client.send(
        "/mcp", call, accept="application/json, text/event-stream"
    )
    assert status == 200, answer
    assert not answer["result"]["isError"], answer
    assert "def gamma_delta(x):" in answer["result"]["content"][0]["text"]


def test_the_past_is_asked_of_the_clone_from_revisions_of_the_store(rig: Rig) -> None:
    root = rig.make_repository("one", {"a.py": "first\nlast\n"})
    first = git(root, "rev-parse", "HEAD").decode().strip()
    second = rig.write(root, {"a.py": "first\nsecond\nlast\n"})
    git(root, "checkout", "-q", "-b", "hidden")
    hidden = rig.write(root, {"a.py": "nobody sees this\n"})
    rig.push(root)
    git(rig.folder, "clone", "-q", "--mirror", str(root), "bare/away.git")
    rig.team.add(str(rig.folder / "bare" / "away.git"), "away")
    rig.team.remove("one")
    rig.team.add(str(rig.folder / "bare" / "one.git"), "one", ("main",))
    rig.sync()
    with closing(connect(rig.dsn)) as connection:
        access.allow(connection, "ann", None)
        token = access.make_token(connection, "ann")
    with serve(rig) as port:
        client = Client(port, token)
        found = client.call("history", path="a.py", project="one")["results"]
        assert [one["commit"] for one in found] == [second, first]
        runs = client.call("blame", path="a.py", project="one", rev="main")["results"]
        assert [(one["start_line"], one["commit"]) for one in runs] == [
            (1, first),
            (2, second),
            (3, first),
        ]
        past = {"project": "one", "rev": first}
        shown = client.call("get_slice", path="a.py", start_line=2, end_line=2, **past)
        assert shown["content"] == "last\n"
        assert client.call("query", query="second", **past)["total"] == 0
        assert client.call("query", query="last", **past)["total"] == 1
        assert client.call("glob", query="*", **past)["total"] == 1
        for method in ("history", "blame", "read_code"):
            for rev in ("hidden", hidden, first[:12]):
                status, answer = client.send(
                    f"/call/{method}", {"path": "a.py", "project": "one", "rev": rev}
                )
                assert (status, answer["error"]["data"]["reason"]) == (
                    404,
                    "revision_not_found",
                ), answer
        shutil.rmtree(rig.folder / "bare" / "away.git")
        status, answer = client.send(
            "/call/history", {"path": "a.py", "project": "away"}
        )
        assert (status, answer["error"]["data"]["reason"]) == (503, "clone_missing")
    shutil.rmtree(rig.folder / "bare" / "one.git")
    with serve(rig) as port:  # nothing here has a clone: the methods are not offered
        assert (
            Client(port, token).send("/call/blame", {"path": "a.py", "project": "one"})[
                0
            ]
            == 404
        )
        facts = send_request(
            port, "GET", "/static/server.json", {"Host": f"127.0.0.1:{port}"}
        )
        assert "blame" not in facts.json()["methods"]


def test_nobody_comes_in_without_a_token_nor_from_a_page(
    served: tuple[Rig, Client],
) -> None:
    _, client = served
    body = {"query": "alpha", "project": "r0"}
    for token in ("", "x", client.token[:-1]):
        assert Client(client.port, token).send("/call/query", body)[0] == 401
    assert client.send("/call/query", body, origin="https://example.org")[0] == 403
    assert client.send("/call/query", body, **{"content-type": "text/plain"})[0] == 415
    assert client.send("/call/query", body, **{"content-length": "999999999"})[0] == 413
    assert client.send("/call/query?read_only=0&projects=r0", body)[0] == 400


def test_wrong_tokens_are_looked_up_no_faster_than_a_bound_and_right_ones_always(
    filled: Rig,
) -> None:
    body = {"query": "alpha", "project": "r0"}
    # A server of its own: behind the guesses a new token of another test would wait.
    with lend(filled) as rig, serve(rig) as port:
        with closing(connect(rig.dsn)) as connection:
            access.allow(connection, "ann", None)
            client = Client(port, access.make_token(connection, "ann"))
        client.call("query", **body)
        guessed = [
            Client(port, f"guess-{number}").send("/call/query", body)[0]
            for number in range(2 * ATTEMPTS_AT_ONCE)
        ]
        assert guessed[:10] == [401] * 10
        assert set(guessed) == {401, 429}
        assert guessed.count(429) > ATTEMPTS_AT_ONCE / 4
        client.call("query", **body)


def test_whoever_signs_in_sends_little(served: tuple[Rig, Client]) -> None:
    _, client = served
    origin = f"http://127.0.0.1:{client.port}"
    named = {"origin": origin, "authorization": ""}
    # Over the bound, but all of it is read: behind a longer body the connection is reset,
    # and whether its sender sees the answer is a race.
    assert client.send("/login", {"token": "x" * 40_000}, **named)[0] == 413
    assert client.send("/login", {"token": "wrong"}, **named)[0] == 401


def test_each_call_leaves_a_line_in_the_audit_log(served: tuple[Rig, Client]) -> None:
    rig, client = served
    client.call("query", query="alpha", project="r1")
    client.send("/call/query", {"query": "alpha", "project": "nobody"})
    with closing(connect(rig.dsn)) as connection:
        rows = connection.execute(
            "SELECT subject, method, asked, outcome FROM flashgrep.audit ORDER BY at"
        ).fetchall()
    assert [(subject, method, outcome) for subject, method, _, outcome in rows] == [
        ("ann", "query", "answered"),
        ("ann", "query", "project_not_found"),
    ]
    assert json.loads(rows[0][2]) == {"query": "alpha", "project": "r1"}


def test_a_web_hook_has_a_repository_brought_up_to_date(
    served: tuple[Rig, Client],
) -> None:
    rig, client = served
    assert client.send("/hook/r1", {})[0] == 202
    assert client.send("/hook/nobody", {})[0] == 404
    assert count(rig, "job") == 1


def test_a_database_that_goes_and_comes_again_is_reported(
    served: tuple[Rig, Client], server: Server
) -> None:
    _, client = served
    server.stop()
    try:
        status, answer = client.send("/call/query", {"query": "alpha", "project": "r0"})
        assert status == 503
        assert "database" in answer["error"]["message"]
    finally:
        server.start()
    assert client.call("query", query="alpha", project="r0")["results"]
