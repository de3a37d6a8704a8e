"""The HTTP wire: what it answers, and whom it turns away."""

import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from flashgrep.daemon import lifecycle
from flashgrep.parts.http.wire import documents
from flashgrep.parts.http.wire.protocol import MOST_SILENT, Deadlines
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.support.http_request import Answer, send_request
from tests.support.interrupts import allow_interrupts
from tests.support.mcp_clients import INITIALIZE, open_http, token_of

PING = {"jsonrpc": "2.0", "id": 1, "method": "stats"}
MIB = 1024 * 1024
LEAST_DELAYED = 0.035
"""Seconds; Linux acknowledges after 40 ms what it has nothing to answer to."""


class Site:
    """The HTTP wire of a daemon."""

    def __init__(self, daemon: DaemonAtHand, root: Path) -> None:
        self.port = open_http(daemon)
        self.root = root
        self.good = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {token_of(daemon)}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def send(
        self, method: str, path: str, body: Any = None, **changed: str | None
    ) -> Answer:
        """Send a request with good headers, changed as said; None leaves one out."""
        headers = {
            **self.good,
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }
        return send_request(self.port, method, path, headers, body)

    def post(self, path: str, body: Any, **changed: str | None) -> Answer:
        return self.send("POST", path, body, **changed)

    def head(self) -> str:
        """Return good headers as they are sent."""
        return "".join(f"{name}: {value}\r\n" for name, value in self.good.items())

    def lives(self) -> bool:
        found = self.post(f"/rpc?project={self.root}", PING).json()
        return bool(found["result"]["root"] == str(self.root))


@pytest.fixture(scope="module")
def site(daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory) -> Site:
    root = tmp_path_factory.mktemp("http") / "web"
    (root / ".git").mkdir(parents=True)
    (root / "a.py").write_text("def needle():\n    pass\n")
    daemon.add(root)
    return Site(daemon, root)


# -- who may come in
# -------------------------------------------------------------------------------------------------

PATHS = ["/rpc", "/call/stats", "/mcp", "/search"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "https://evil.example",
        "http://localhost:1",
        "http://127.0.0.1",
        "file://",
        "",
    ],
)
def test_a_foreign_origin_is_refused(site: Site, path: str, origin: str) -> None:
    told = site.post(path, PING, Origin=origin)
    assert (told.status, told.json()["error"]["data"]["reason"]) == (
        403,
        "foreign_origin",
    )


@pytest.mark.parametrize("path", [*PATHS, "/healthz", "/docs"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost",
        "localhost:7778.evil.example",
        "127.0.0.1:1",
        "",
        "127.0.0.1:{port}.evil.example",
    ],
)
def test_a_foreign_host_is_refused(site: Site, path: str, host: str) -> None:
    told = site.post(path, PING, Host=host.format(port=site.port))
    assert (told.status, told.json()["error"]["data"]["reason"]) == (
        421,
        "foreign_host",
    )


def test_our_own_names_are_let_in(site: Site) -> None:
    for name in ("127.0.0.1", "localhost"):
        own = f"http://{name}:{site.port}"
        assert (
            site.post("/call/stats", {}, Host=f"{name}:{site.port}", Origin=own).status
            == 200
        )


def test_an_answer_does_not_wait_for_its_heads_acknowledgement(site: Site) -> None:
    """On a connection that stays open, each answer came 40 ms late: its head and its body are two writes."""
    body = json.dumps(PING)
    durations = []
    with closing(http.client.HTTPConnection("127.0.0.1", site.port)) as connection:
        # The first ones are acknowledged at once.
        for _ in range(60):
            started = time.perf_counter()
            connection.request("POST", f"/rpc?project={site.root}", body, site.good)
            assert connection.getresponse().read()
            durations.append(time.perf_counter() - started)
    assert min(durations[30:]) < LEAST_DELAYED


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "shown",
    [None, "", "Bearer", "Bearer wrong", "Basic {token}", "Bearer {token}x", "{token}"],
)
def test_without_the_token_nothing_runs(
    site: Site, daemon: DaemonAtHand, path: str, shown: str | None
) -> None:
    value = shown if shown is None else shown.format(token=token_of(daemon))
    told = site.post(path, PING, Authorization=value)
    assert told.status == 401
    assert told.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "text/json",
        "application/jsonp",
    ],
)
def test_only_json_is_taken(site: Site, path: str, kind: str | None) -> None:
    assert site.post(path, PING, Content_Type=kind).status == 415


@pytest.mark.parametrize("path", PATHS)
def test_a_body_over_the_limit_is_not_taken(site: Site, path: str) -> None:
    with socket.create_connection(("127.0.0.1", site.port), BOUND) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\n{site.head()}Content-Length: {8 * MIB + 1}\r\n\r\n".encode()
        )
        assert connection.recv(20).startswith(b"HTTP/1.1 413")
    assert site.lives()


def test_a_body_that_is_longer_than_it_says_is_cut_off(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), BOUND) as connection:
        connection.sendall(
            f"POST /rpc HTTP/1.1\r\n{site.head()}Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        chunk = b"%x\r\n%s\r\n" % (MIB, b" " * MIB)
        with suppress(ConnectionError):  # it may hang up before it has taken all
            for _ in range(10):
                connection.sendall(chunk)
            connection.sendall(b"0\r\n\r\n")
            assert connection.recv(20).startswith(b"HTTP/1.1 413")
    assert site.lives()


def test_a_header_shown_twice_is_not_judged_by_its_last(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), BOUND) as connection:
        evil, own = (
            "Origin: https://evil.example\r\n",
            f"Origin: http://localhost:{site.port}\r\n",
        )
        connection.sendall(
            f"GET /healthz HTTP/1.1\r\n{evil}{site.head()}{own}\r\n".encode()
        )
        assert b" 4" in connection.recv(20)


def test_a_browsers_post_to_the_json_rpc_port_runs_nothing(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a": "before\n"})
    write = {
        "project": str(root),
        "file_path": "a",
        "start_line": 1,
        "end_line": 1,
        "replacement": "after",
    }
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "write_code", "params": write}
    )
    port = daemon.status()["tcp"]["port"]
    with socket.create_connection(("127.0.0.1", port), BOUND) as connection:
        connection.sendall(
            f"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n\r\n{body}\n".encode()
        )
        with suppress(ConnectionResetError):
            assert connection.recv(100) == b""
    assert (root / "a").read_text() == "before\n"


# -- what must not bring it down
# ---------------------------------------------------------------------------------------


def test_depth_bombs_and_nonsense_are_errors(site: Site) -> None:
    for body in (
        b"[" * 90_000,
        b'{"a":' * 90_000,
        b"\xff\xfe",
        b"",
        b"NaN",
        b"{",
        b'"\\ud800"',
    ):
        told = site.post("/rpc", body)
        assert told.json()["error"]["code"] in {-32700, -32600}
        assert site.post("/call/query", body).status in {400, 200 if not body else 400}
        assert site.post("/mcp", body).status == 400
    assert site.lives()


def test_a_thousand_half_open_connections_leave_room_for_one_more(site: Site) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    held: list[socket.socket] = []
    try:
        for _ in range(1000):
            held.append(socket.create_connection(("127.0.0.1", site.port), BOUND))
            held[-1].sendall(b"POST /rpc HTTP/1.1\r\nHost: 12")
        assert site.lives()
    finally:
        for connection in held:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_client_that_never_reads_holds_up_nobody(site: Site) -> None:
    (site.root / "big.txt").write_text("needle\n" * 20_000)
    batch = json.dumps(
        [
            {
                "jsonrpc": "2.0",
                "id": at,
                "method": "get_slice",
                "params": {"file_path": "big.txt", "start_line": 1, "end_line": 20_000},
            }
            for at in range(50)
        ]
    ).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", site.port))
        connection.sendall(
            f"POST /rpc?project={site.root} HTTP/1.1\r\n{site.head()}Content-Length: {len(batch)}\r\n\r\n".encode()
            + batch
        )
        assert site.lives()
    (site.root / "big.txt").unlink()


# -- what it answers
# ---------------------------------------------------------------------------------------------------


def test_json_rpc_in_a_body_is_json_rpc(site: Site) -> None:
    batch = [
        PING,
        {"jsonrpc": "2.0", "method": "stats"},
        {"jsonrpc": "2.0", "id": 2, "method": "nope"},
        1,
    ]
    told = site.post(f"/rpc?project={site.root}", batch).json()
    assert [one["id"] for one in told] == [1, 2, None]
    assert [one.get("error", {}).get("code") for one in told] == [None, -32601, -32600]
    silent = site.post("/rpc", {"jsonrpc": "2.0", "method": "stats"})
    assert (silent.status, silent.body) == (204, b"")


def test_every_method_has_a_route(site: Site) -> None:
    found = site.post("/call/query?project=web", {"text": "needle"}).json()
    assert found["results"][0]["file_path"] == "a.py"
    refused = site.post("/call/query", {})
    assert (refused.status, refused.json()["error"]["data"]["field"]) == (400, "query")
    assert site.post("/call/nope", {}).status == 404
    assert (
        site.post(
            "/call/get_slice?project=web",
            {"file_path": "x", "start_line": 1, "end_line": 1},
        ).status
        == 404
    )
    assert site.post("/call/query?project=/no/such", {"text": "x"}).status == 404
    assert site.send("GET", "/call/query").status == 405


def test_a_request_is_bound_by_its_url(
    site: Site, daemon: DaemonAtHand, project: MakeProject
) -> None:
    other = project({"b.py": "needle"}, name="another")
    daemon.add(other)
    found = site.post("/call/query?collection=another", {"text": "needle"}).json()[
        "results"
    ]
    assert [hit["file_path"] for hit in found] == ["b.py"]
    assert (
        site.post(
            "/call/query?collections=web", {"text": "needle", "project": "another"}
        ).status
        == 403
    )
    write = {"file_path": "b.py", "start_line": 1, "end_line": 1, "replacement": "x"}
    assert (
        site.post("/call/write_code?project=another&read_only=1", write).status == 403
    )
    assert (other / "b.py").read_text() == "needle"


def test_a_misspelt_parameter_of_the_address_is_refused(site: Site) -> None:
    for address in (
        "/call/query?project=web&readonly=1",
        "/rpc?project=web&Read_only=1",
    ):
        told = site.post(address, {"text": "needle"})
        assert told.json()["error"]["data"]["allowed"] == list(documents.PARAMETERS)


def test_searches_wait_for_their_methods(site: Site) -> None:
    for path, name in documents.SEARCHES.items():
        told = site.post(path, {})
        assert told.status == 501 or told.status in {400, 500}, name
        if told.status == 501:
            assert told.json()["error"]["data"]["method"] == name


def test_it_describes_itself(site: Site) -> None:
    health = site.send("GET", "/healthz", Authorization=None)
    assert health.json()["status"] == "ok"
    assert (
        abs(parsedate_to_datetime(health.headers["date"]).timestamp() - time.time())
        < 60
    )
    document = site.send("GET", "/openapi.json", Authorization=None).json()
    assert document["openapi"].startswith("3.1")
    assert {"/rpc", "/healthz", "/call/query", "/call/write_code"} <= set(
        document["paths"]
    )
    schema = document["paths"]["/call/query"]["post"]["requestBody"]["content"][
        "application/json"
    ]["schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    page = site.send("GET", "/docs", Authorization=None)
    assert b"POST /call/query" in page.body
    assert b"<script" not in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
def test_a_document_is_built_once_and_not_sent_to_who_has_it(
    site: Site, path: str
) -> None:
    answer = site.send("GET", path)
    tag = answer.headers["etag"]
    assert tag.startswith('"')
    for tags in (tag, f'"other", {tag}', f"W/{tag}"):
        again = site.send("GET", path, If_None_Match=tags)
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert site.send("GET", path, If_None_Match='"other"').body == answer.body

    def measure_seconds(of: str) -> float:
        started = time.monotonic()
        for _ in range(20):
            assert site.send("GET", of).status == 200
        return time.monotonic() - started

    assert measure_seconds(path) < 10 * measure_seconds("/healthz")


def test_requests_that_are_no_http_write_nothing_to_the_disk(
    site: Site, daemon: DaemonAtHand
) -> None:
    written = (
        Path(daemon.paths.crash_log).read_bytes(),
        Path(daemon.paths.log).read_bytes(),
    )
    upgrade = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    for wrong in (
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01" * 50 + b"\n\n",
        upgrade.encode(),
    ):
        for _ in range(20):
            with socket.create_connection(
                ("127.0.0.1", site.port), BOUND
            ) as connection:
                connection.sendall(wrong)
                assert connection.recv(20).startswith(b"HTTP/1.1 ")
    assert (
        Path(daemon.paths.crash_log).read_bytes(),
        Path(daemon.paths.log).read_bytes(),
    ) == written


def test_mcp_keeps_no_session(site: Site) -> None:
    told = site.post(
        "/mcp?project=web",
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
    )
    assert told.status == 200
    assert "mcp-session-id" not in told.headers
    for method in ("GET", "DELETE"):
        assert site.send(method, "/mcp").status == 405


# -- the command
# -----------------------------------------------------------------------------------------------------


def test_of_those_who_say_nothing_the_oldest_gives_way(site: Site) -> None:
    crowd = [
        socket.create_connection(("127.0.0.1", site.port), BOUND)
        for _ in range(MOST_SILENT + 8)
    ]
    for one in crowd[:8]:
        one.settimeout(Deadlines().head / 3)  # not because its time is over
        assert one.recv(1) == b""
    assert site.lives()
    for one in crowd:
        one.close()


def test_what_is_open_to_everybody_keeps_no_connection(site: Site) -> None:
    assert (
        site.send("GET", "/healthz", Authorization=None).headers["connection"]
        == "close"
    )
    assert "connection" not in site.send("GET", "/healthz").headers


@pytest.mark.parametrize("path", ["/rpc", "/call/query", "/mcp"])
def test_a_body_that_would_hold_everybody_up_is_refused_unparsed(
    site: Site, path: str
) -> None:
    lists = b"[" + b",".join([b"[]"] * 2_000_000) + b"]"
    long = json.dumps({"text": "x" * 2_000_000}).encode()
    for params in (lists, long):
        call = b'{"jsonrpc":"2.0","id":1,"method":"query","params":%s}' % params
        told = site.post(path, params if path == "/call/query" else call).json()
        assert told["error"]["data"]["reason"] == "payload_too_large"
    assert site.lives()


@contextmanager
def serve(daemon: DaemonAtHand) -> Iterator[subprocess.Popen[str]]:
    """Run ``fgrep serve``; it starts the daemon if needed."""
    process = subprocess.Popen(
        [FGREP, "serve", "--port", "0"],
        env=daemon.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def serving(spare_daemon: DaemonAtHand) -> Iterator[subprocess.Popen[str]]:
    with serve(spare_daemon) as process:
        yield process


@pytest.fixture
def serving_first(cold_daemon: DaemonAtHand) -> Iterator[subprocess.Popen[str]]:
    """Serve by a daemon of the test's own, which the command starts."""
    with serve(cold_daemon) as process:
        yield process


def test_serve_listens_as_long_as_it_runs(
    serving: subprocess.Popen[str], spare_daemon: DaemonAtHand
) -> None:
    assert serving.stdout
    port = int(serving.stdout.readline().rpartition(":")[2])
    socket.create_connection(("127.0.0.1", port), BOUND).close()
    serving.terminate()
    assert serving.wait(BOUND) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), BOUND)
    assert spare_daemon.status()["version"]


def test_serve_goes_on_at_its_port_when_the_daemon_is_killed_or_restarted(
    serving_first: subprocess.Popen[str], cold_daemon: DaemonAtHand
) -> None:
    assert serving_first.stdout
    assert serving_first.stderr
    port = int(serving_first.stdout.readline().rpartition(":")[2])
    assert "press Ctrl+C to stop" in serving_first.stderr.readline()
    pid = lifecycle.find_holder(cold_daemon.paths)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert (
        serving_first.stderr.readline()
        == "fgrep: the daemon exited; a new one is serving\n"
    )
    socket.create_connection(("127.0.0.1", port), BOUND).close()
    assert cold_daemon.run("daemon", "restart").returncode == 0
    assert (
        serving_first.stderr.readline()
        == "fgrep: the daemon exited; a new one is serving\n"
    )
    socket.create_connection(("127.0.0.1", port), BOUND).close()
    serving_first.terminate()
    assert serving_first.wait(BOUND) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), BOUND)


def test_the_last_to_end_closes_it(
    serving: subprocess.Popen[str], spare_daemon: DaemonAtHand
) -> None:
    assert serving.stdout
    port = int(serving.stdout.readline().rpartition(":")[2])
    wire = spare_daemon.wire("unix")
    assert wire.call("$/serve", port=0) == {"port": port}
    serving.terminate()
    assert serving.wait(BOUND) == 0
    socket.create_connection(("127.0.0.1", port), BOUND).close()
    assert wire.call("$/serve", stop=True) == {"port": None}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), BOUND)
    for wrong in (-1, 70_000, "80"):
        assert wire.fail("$/serve", port=wrong)["data"]["field"] == "port"
    wire.close()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=str
)
@pytest.mark.parametrize("command", [("serve",), ("web", "--no-browser")], ids=" ".join)
def test_the_port_closes_with_the_command_however_it_ends(
    spare_daemon: DaemonAtHand, command: tuple[str, ...], number: signal.Signals
) -> None:
    running = _start_command(spare_daemon, *command)
    port = _read_port(running)
    with socket.create_connection(("127.0.0.1", port), BOUND):
        running.send_signal(number)
        _end(running)
        _wait_until_closed(port)
    assert spare_daemon.status()["version"]


def test_the_port_stays_until_the_last_of_two_commands_is_killed(
    spare_daemon: DaemonAtHand,
) -> None:
    first, second = (
        _start_command(spare_daemon, "web", "--no-browser"),
        _start_command(spare_daemon, "serve"),
    )
    port = _read_port(first)
    assert _read_port(second) == port
    first.kill()
    _end(first)
    # Its connection has ended for the daemon, too: no client is left but the other
    # command and this question.
    while spare_daemon.status()["clients"] > 2:
        pass
    socket.create_connection(("127.0.0.1", port), BOUND).close()
    second.kill()
    _end(second)
    _wait_until_closed(port)


def test_a_connection_that_asks_twice_holds_the_port_once(
    spare_daemon: DaemonAtHand,
) -> None:
    wire = spare_daemon.wire("unix")
    port = wire.call("$/serve", port=0)["port"]
    assert wire.call("$/serve", port=0)["port"] == port
    assert wire.call("$/serve", stop=True) == {"port": None}
    again = wire.call("$/serve", port=0)["port"]
    with socket.create_connection(("127.0.0.1", again), BOUND):
        wire.close()
        _wait_until_closed(again)


def test_a_connection_that_ends_while_the_port_opens_leaves_none(
    spare_daemon: DaemonAtHand,
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    wire = spare_daemon.wire("unix")
    wire.send(
        {"jsonrpc": "2.0", "id": 1, "method": "$/serve", "params": {"port": port}}
    )
    wire.close()
    while spare_daemon.status()["clients"] > 1:
        pass
    _wait_until_closed(port)


def _start_command(daemon: DaemonAtHand, *command: str) -> subprocess.Popen[str]:
    arguments = [FGREP, *command, "--port", "0"]
    allow_interrupts()
    # Tests that run under nohup ignore the signal, and a child would inherit that.
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        return subprocess.Popen(
            arguments,
            env=daemon.environ,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    finally:
        signal.signal(signal.SIGHUP, inherited)


def _read_port(running: subprocess.Popen[str]) -> int:
    assert running.stdout
    return int(running.stdout.readline().split("/")[2].rpartition(":")[2])


def _end(running: subprocess.Popen[str]) -> None:
    running.wait(BOUND)
    assert running.stdout
    running.stdout.close()


def _wait_until_closed(port: int) -> None:
    until = time.monotonic() + BOUND
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), BOUND).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:  # it closes just now
            continue
    pytest.fail("it listens still")


def test_a_request_in_flight_is_answered_before_the_end(
    serving_first: subprocess.Popen[str],
    cold_daemon: DaemonAtHand,
    project: MakeProject,
) -> None:
    assert serving_first.stdout
    port = int(serving_first.stdout.readline().rpartition(":")[2])
    body = b'{"filter": "a"}'
    lines = [
        f"POST /call/list_files?project={project({'a.py': ''})} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Authorization: Bearer {token_of(cold_daemon)}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Expect: 100-continue",
    ]
    with socket.create_connection(("127.0.0.1", port), BOUND) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        stopping = threading.Thread(target=cold_daemon.run, args=("daemon", "stop"))
        stopping.start()
        _wait_until_refused(port, stopping)
        connection.sendall(body)
        assert b"a.py" in connection.recv(65536) + connection.recv(65536)
    stopping.join(BOUND)
    assert serving_first.wait(BOUND) == 2
    assert "the daemon has ended" in serving_first.communicate()[1]


def _wait_until_refused(port: int, stopping: threading.Thread) -> None:
    with suppress(ConnectionRefusedError):
        while stopping.is_alive():
            socket.create_connection(("127.0.0.1", port), BOUND).close()
            stopping.join(0.01)  # asked without a pause, the daemon has no time to end
        pytest.fail("it listens still")


def test_a_port_that_is_taken_is_reported(spare_daemon: DaemonAtHand) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = spare_daemon.run("serve", "--port", str(taken.getsockname()[1]))
    assert ended.returncode == 2
    assert "no HTTP on port" in ended.stderr


def test_the_daemon_serves_http_by_its_settings(cold_daemon: DaemonAtHand) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cold_daemon.environ.update(
        {
            "FLASHGREP_HTTP_ENABLED": "true",
            "FLASHGREP_HTTP_PORT": str(port),
            "MCP_ENABLED": "false",
        }
    )
    cold_daemon.start()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
    connection.request(
        "POST",
        "/mcp",
        "{}",
        {
            "Authorization": f"Bearer {token_of(cold_daemon)}",
            "Content-Type": "application/json",
        },
    )
    assert connection.getresponse().status == 404
    connection.close()
