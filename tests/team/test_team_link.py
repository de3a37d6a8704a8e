"""The local daemon asks a team's server about projects that are not here: what goes there, and what never does."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from flashgrep.base import config
from flashgrep.base.errors import BadSetting, Unavailable
from flashgrep.base.project_settings import with_project
from flashgrep.parts.team.team_link import TeamLink
from tests.conftest import DaemonAtHand, MakeProject, Wire
from tests.support.git import git
from tests.team.conftest import Rig
from tests.team.serving import serve
from tests.team.test_page import make_token

pytestmark = pytest.mark.slow


def join(daemon: DaemonAtHand, url: str, token: str) -> None:
    """Have a daemon that is not started ask a team's server."""
    daemon.environ.update(
        FLASHGREP_TEAM_URL=url,
        FLASHGREP_TEAM_TOKEN=token,
        FLASHGREP_TEAM_TIMEOUT_SECONDS="5",
    )
    daemon.start()


@contextmanager
def answering(answer: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """Run what is no team's server, and sends these bytes, or never any; yield its address, and what it was sent."""
    heard: list[bytes] = []
    held: list[socket.socket] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def take() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            heard.append(connection.recv(65536))
            if answer is not None:
                connection.sendall(answer)
                connection.close()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for connection in held:
        connection.close()
    thread.join(5)


def check_same_repository(wire: Wire, url: str) -> None:
    """See that of a repository that is here under another name what is here wins, but for what only the team has."""
    here = wire.call("query", query="def", project="origin")
    assert "newest" in here["results"][0]["text"]
    assert "origin is called-otherwise" in here["coverage"]["detail"]
    there = wire.call("query", query="def", project="origin", rev="main")
    assert "stale" in there["results"][0]["text"]
    assert there["answered_by"] == url


def test_a_project_that_is_not_here_is_asked_there(
    rig: Rig, cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    rig.make_repository("there", {"a.py": "def shared():\n    pass\n"})
    rig.make_repository("both", {"a.py": "def stale(): pass\n"})
    rig.make_repository("origin", {"a.py": "def stale(): pass\n"})
    address = "https://git.example.org/team/origin.git"
    git(rig.folder / "bare" / "origin.git", "config", "remote.origin.url", address)
    rig.make_repository("hidden", {"a.py": "def secret(): pass\n"})
    rig.sync()
    token = make_token(rig, "ann", ["there", "both", "origin"])
    cold_daemon.environ["FLASHGREP_LOG_LEVEL"] = "debug"
    root = project({"a.py": "def fresh(): pass\n"}, name="both")
    work = project({"a.py": "def newest(): pass\n"}, name="called-otherwise")
    git(work, "init", "-q")
    git(work, "remote", "add", "origin", "git@git.example.org:team/origin.git")
    with serve(rig) as port:
        url = f"http://127.0.0.1:{port}"
        join(cold_daemon, url, token)
        cold_daemon.add(root)
        cold_daemon.add(work)
        with closing(cold_daemon.wire("unix")) as wire:
            found = wire.call("query", query="def", project="there")
            assert [hit["file_path"] for hit in found["results"]] == ["a.py"]
            assert found["answered_by"] == url
            assert f"answered by {url}" in found["coverage"]["detail"]
            assert wire.call("read_code", path="a.py", project="there", rev="main")[
                "content"
            ].startswith("def shared")
            assert wire.call("get_symbol", symbol_name="shared", project="there")[
                "results"
            ]
            assert wire.call("list_files", project="there")["results"]
            assert [
                one["name"]
                for one in wire.call("list_revisions", project="there")["results"]
            ] == ["main"]
            # What is here is asked here, as it is now.
            own = wire.call("query", query="def", project="both")
            assert "fresh" in own["results"][0]["text"]
            assert "answered_by" not in own
            # What the token may not see is as what is nowhere; what writes is not asked
            # there at all.
            for name in ("hidden", "nowhere"):
                error = wire.fail("query", query="def", project=name)
                assert error["data"]["reason"] == "project_not_found"
            assert (
                wire.fail("read_code", path="b.py", project="there")["data"]["reason"]
                == "file_not_found"
            )
            assert (
                wire.fail("query", query="(", mode="regex", project="there")["data"][
                    "reason"
                ]
                == "invalid_pattern"
            )
            refused = wire.fail("write_code", path="a.py", content="x", project="there")
            assert refused["data"]["reason"] == "project_not_found"
            everywhere = wire.call("query", query="def", projects="*")
            assert {hit["project"] for hit in everywhere["results"]} == {
                "both",
                "called-otherwise",
            }
            check_same_repository(wire, url)
        with closing(cold_daemon.wire("unix", root)) as bound:
            assert (
                bound.fail("query", query="def", project="there")["data"]["reason"]
                == "outside_root"
            )
        with closing(cold_daemon.wire("unix")) as host:  # as `fgrep mcp` in a folder
            host.call("$/bind", project=str(root))
            assert (
                host.call("query", query="def", project="there")["answered_by"] == url
            )
            assert (
                host.call("query", query="def", project="origin")["answered_by"] == url
            )
            assert (
                host.fail("query", query="def", project="called-otherwise")["data"][
                    "reason"
                ]
                == "outside_root"
            )
        shown = cold_daemon.run("query", "shared", "--project", "there")
        assert "a.py" in shown.stdout, shown
    assert token not in Path(cold_daemon.paths.log).read_text()


def test_a_server_that_is_away_is_said_and_left_alone(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "def fresh(): pass\n"})
    with answering(None) as (url, heard):
        join(cold_daemon, url, "secret-token")
        cold_daemon.add(root)
        with closing(cold_daemon.wire("unix")) as wire:
            began = time.monotonic()
            error = wire.fail("query", query="def", project="there")
            assert time.monotonic() - began < 20
            assert error["data"]["reason"] == "team_away"
            assert "no response within" in error["message"]
            assert (
                wire.fail("query", query="def", project="there")["data"]["reason"]
                == "team_away"
            )
            assert len(heard) == 1
            assert wire.call("query", query="def", project=root.name)["results"]
        assert b"Bearer secret-token" in heard[0]


def http(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode()
        + body
    )


@pytest.mark.parametrize(
    "answer",
    [
        http(b"{}"),
        http(b"[]"),
        http(b"null"),
        http(b"no json"),
        http(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"),
        http(b"", "401 Unauthorized"),
        http(b"", "500 Oops"),
        http(json.dumps({"error": {"code": [], "message": {}}}).encode()),
        http(
            json.dumps(
                {
                    "error": {
                        "code": {},
                        "message": "m",
                        "data": {"reason": 5, "message": "x"},
                    }
                }
            ).encode()
        ),
        b"",
        b"SSH-2.0-x\r\n",
    ],
)
def test_what_a_strange_server_answers_is_no_fault_of_ours(answer: bytes) -> None:
    with answering(answer) as (url, heard):
        settings = config.load(flags={"team.url": url}).settings
        link = TeamLink(settings, {"FLASHGREP_TEAM_TOKEN": "secret-token"})

        async def ask() -> Any:
            return await link.ask("query", {"query": "x"}, None)

        with pytest.raises(Unavailable) as raised:
            anyio.run(ask)
        assert "secret-token" not in str(raised.value.to_object())
        assert len(heard) == 1


def test_a_token_file_that_is_none_is_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "token")
    flags = {"team.url": "http://127.0.0.1:1", "team.token_file": f"{tmp_path}/token"}
    link = TeamLink(config.load(flags=flags).settings, {})

    async def ask() -> Any:
        return await link.ask("query", {"query": "x"}, None)

    with pytest.raises(Unavailable, match=r"not a file: .*token"):
        anyio.run(ask)


def test_a_token_goes_by_tls_or_stays_on_this_machine_and_a_repository_sets_nothing(
    tmp_path: Path,
) -> None:
    for url in (
        "https://code.example.org",
        "http://127.0.0.1:7780",
        "http://localhost/",
        "https://a:8443/",
        "",
    ):
        assert config.load(flags={"team.url": url}).settings.team.url == url
    for url in (
        "http://code.example.org", "http://127.0.0.1.example.org", "http://localhost@example.org", "ftp://x",
        "https://me:secret@example.org", "https://example.org/x?y", "/", "http://127.0.0.1:x",
    ):  # fmt: skip
        with pytest.raises(BadSetting):
            config.load(flags={"team.url": url})
    own = tmp_path / ".flashgrep"
    own.mkdir()
    (own / "config.toml").write_text(
        '[team]\nurl = "https://evil.example"\ntoken_file = "/etc/passwd"\n'
    )
    loaded = with_project(config.load(), tmp_path)
    assert (loaded.settings.team.url, loaded.settings.team.token_file) == ("", "")
    assert len(loaded.warnings) == 2
