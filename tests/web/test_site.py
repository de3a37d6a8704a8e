"""The page's routes: who is let in by what, what a browser may ask, and which files it gets."""

import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import pytest
from starlette.applications import Starlette

from flashgrep.base.registry import Registry
from flashgrep.parts.built_in import REGISTRY
from flashgrep.parts.http import site
from flashgrep.parts.http.site import MOST_LINKS, MOST_VISITS, Visitors
from flashgrep.parts.http.wire.admission import VISITOR
from flashgrep.parts.http.wire.routes import Routes, Sessions
from flashgrep.rpc.dispatch import Dispatcher
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.rpc.harness import HANDLERS, Gates, Notes
from tests.support.workspace import repository
from tests.web.harness import Page

STATIC = Path(site.__file__).with_name("static")
MOST_BYTES = 150_000
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand) -> Iterator[Path]:
    with repository() as root:
        (root / "a.py").write_text("def needle():\n    pass\n")
        (root / "evil.html").write_text(SCRIPT)
        (root / "bytes.bin").write_bytes(bytes(range(256)))
        daemon.add(root)
        yield root


@pytest.fixture
def page(daemon: DaemonAtHand, root: Path) -> Page:
    page = Page(daemon, "/?" + urlencode({"project": str(root)}))
    page.sign_in()
    return page


# -- the way in
# --------------------------------------------------------------------------------------------------------


def test_a_link_lets_one_browser_in_and_no_other(
    daemon: DaemonAtHand, root: Path
) -> None:
    page = Page(daemon, "/?q=%22%3E%3Cscript%3E")
    told = page.sign_in()
    cookie = told.headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/"} <= {
        part.strip() for part in cookie.split(";")
    }
    assert told.headers["cache-control"] == "no-store"
    assert told.headers["referrer-policy"] == "no-referrer"
    assert page.ask("query", project=str(root), query="needle").json()["result"][
        "results"
    ]
    again = page.send("GET", page.link)
    assert again.status == 403
    assert "set-cookie" not in again.headers


def test_whoever_only_looks_ahead_does_not_use_a_link_up(daemon: DaemonAtHand) -> None:
    page = Page(daemon)
    assert page.send("HEAD", page.link).status == 503
    assert page.send("GET", page.link, Sec_Purpose="prefetch;prerender").status == 503
    page.sign_in()


def test_links_and_browsers_are_bounded_and_links_grow_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Visitors()
    links = [known.invite("/").removeprefix("/login/") for _ in range(MOST_LINKS + 1)]
    assert known.admit(links[0]) is None
    first = known.admit(links[1])
    assert first is not None
    for _ in range(MOST_VISITS):
        visit = known.admit(known.invite("/").removeprefix("/login/"))
        assert visit is not None
        assert known.is_known(visit.cookie, visit.key)
    assert not known.is_known(first.cookie, first.key)
    monkeypatch.setattr(site, "LINK_SECONDS", 0.0)
    assert known.admit(known.invite("/").removeprefix("/login/")) is None


def test_both_secrets_are_needed_and_belong_together(
    daemon: DaemonAtHand, page: Page, root: Path
) -> None:
    other = Page(daemon)
    other.sign_in()
    for headers in (
        {"Cookie": None},
        {
            "X-Flashgrep-Key": None
        },  # what another port of this host gets to see is the cookie alone
        {"X-Flashgrep-Key": other.key},
        {"X-Flashgrep-Key": page.key[:-1]},
        {"X-Flashgrep-Key": "\xe9"},
        {"Cookie": f"flashgrep_1={page.cookie}"},
        {"Cookie": f"flashgrep_{page.port}={page.key}"},
    ):
        assert (
            page.ask("query", headers, project=str(root), query="needle").status == 401
        ), headers
        assert (
            page.send("GET", f"/raw?project={root}&path=a.py", **headers).status == 401
        )
    assert (
        page.ask(
            "query",
            {"Cookie": f"a=b; flashgrep_{page.port}={page.cookie}"},
            project=str(root),
            query="n",
        ).status
        == 200
    )


def test_the_cookie_ends_with_the_server(cold_daemon: DaemonAtHand) -> None:
    cold_daemon.start()
    before = Page(cold_daemon)
    before.sign_in()
    assert before.ask("stats").status == 200
    cold_daemon.stop()
    cold_daemon.start()
    after = Page(cold_daemon)
    after.cookie, after.key = before.cookie, before.key
    assert after.ask("stats").status == 401


def test_a_foreign_page_gets_nothing_by_a_browser_that_is_signed_in(
    page: Page, root: Path
) -> None:
    asked = {"project": str(root), "query": "needle"}
    for headers, status in (
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://127.0.0.1:{page.port + 1}"}, 403),
        ({"Host": f"evil.example:{page.port}"}, 421),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ):
        told = page.ask("query", headers, **asked)
        assert told.status == status, headers
        assert not [name for name in told.headers if name.startswith("access-control")]
    preflight = page.send(
        "OPTIONS",
        "/rpc",
        Origin="https://evil.example",
        Access_Control_Request_Method="POST",
    )
    assert preflight.status == 403
    assert (
        page.ask("query", {"Origin": f"http://127.0.0.1:{page.port}"}, **asked).status
        == 200
    )


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense", ""])
def test_no_path_answers_what_another_page_makes_a_browser_load(
    page: Page, site: str
) -> None:
    for path in (
        "/openapi.json",
        "/docs",
        "/healthz",
        "/",
        "/static/app.js",
        "/opensearch.xml",
        page.invite(),
        "/raw",
    ):
        for destination in ("image", "iframe", "script", "empty"):
            told = page.send(
                "GET",
                path,
                Sec_Fetch_Site=site,
                Sec_Fetch_Mode="no-cors",
                Sec_Fetch_Dest=destination,
            )
            assert (told.status, told.json()["error"]["data"]["reason"]) == (
                403,
                "foreign_origin",
            ), path


def test_a_link_from_elsewhere_opens_the_page_and_nothing_else(page: Page) -> None:
    link = {
        "Sec_Fetch_Site": "cross-site",
        "Sec_Fetch_Mode": "navigate",
        "Sec_Fetch_Dest": "document",
    }
    assert page.send("GET", "/", **link).status == 200
    assert page.send("GET", page.invite(), **link).status == 200
    for path in ("/openapi.json", "/docs", "/static/app.js", "/raw"):
        assert page.send("GET", path, **link).status == 403, path
    assert page.send("POST", "/rpc", {}, **link).status == 403


# -- what a browser may ask
# ----------------------------------------------------------------------------------------


def test_only_methods_that_read_are_answered(page: Page, root: Path) -> None:
    changing = [method.name for method in REGISTRY if method.safety != "reads"]
    assert {"write_code", "fs_remove", "index_codebase", "watch_codebase"} <= set(
        changing
    )
    for name in (
        *changing,
        "auth",
        "$/status",
        "$/shutdown",
        "$/subscribe",
        "$/serve",
        "tools/call",
        "initialize",
    ):
        told = page.ask(name, project=str(root), path="a.py", token="x")  # noqa: S106 - a wrong one
        assert told.json()["error"]["code"] in {-32006, -32601}, name
    assert (root / "a.py").read_text() == "def needle():\n    pass\n"


def test_other_routes_need_the_token(page: Page) -> None:
    for path in ("/call/query", "/mcp", "/search"):
        assert page.send("POST", path, {"query": "x"}).status == 401


def test_no_folder_becomes_a_project_by_a_browsers_question(
    page: Page, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "secret").write_text("needle")
    for params in ({"project": str(tmp_path)}, {"projects": [str(tmp_path)]}):
        assert (
            page.ask("query", query="needle", **params).json()["error"]["data"][
                "reason"
            ]
            == "project_not_found"
        )
    assert page.send("GET", f"/raw?project={tmp_path}&path=secret").status == 404
    assert str(tmp_path) not in str(page.ask("stats").json())


def test_the_address_of_a_browsers_question_widens_nothing(
    page: Page, root: Path
) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "fs_remove",
        "params": {"project": str(root), "path": "a.py"},
    }
    told = page.send(
        "POST", f"/rpc?project={root}&read_only=0&toolsets=all", [body, body]
    )
    assert [one["error"]["code"] for one in told.json()] == [-32006, -32006]


# -- files
# ---------------------------------------------------------------------------------------------------------


def test_static_files_are_distinguished_by_their_tags(page: Page) -> None:
    for name, kind in (
        ("app.js", "text/javascript"),
        ("style.css", "text/css"),
        ("languages.json", "application/json"),
    ):
        told = page.send("GET", f"/static/{name}", Cookie=None, X_Flashgrep_Key=None)
        assert (told.status, told.headers["content-type"].partition(";")[0]) == (
            200,
            kind,
        )
        assert told.headers["x-content-type-options"] == "nosniff"
        again = page.send("GET", f"/static/{name}", If_None_Match=told.headers["etag"])
        assert (again.status, again.body) == (304, b"")


def test_a_browser_asks_once_for_the_files_of_an_edition_of_the_page(
    page: Page,
) -> None:
    shown = page.send("GET", "/").body.decode()
    script = shown.partition('<script type="module" src="')[2].partition('"')[0]
    folder = script.removesuffix("app.js")
    for name in ("app.js", "dom.js", "languages.json"):
        kept = page.send("GET", f"{folder}{name}")
        assert "immutable" in kept.headers["cache-control"]
        assert kept.body == page.send("GET", f"/static/{name}").body
    for path in ("/", "/static/app.js", "/static/another/app.js"):
        assert page.send("GET", path).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path",
    [
        "../site.py",
        "..%2fsite.py",
        "%2e%2e/site.py",
        "..%5csite.py",
        "%00",
        "app.js%00.css",
        "/etc/passwd",
        ".",
        "",
    ],
)
def test_no_other_file_is_sent(page: Page, path: str) -> None:
    told = page.send("GET", f"/static/{path}")
    assert told.status == 404
    assert b"import" not in told.body


def test_every_answer_of_the_page_has_its_policy(page: Page) -> None:
    for path in (
        "/",
        "/?q=x",
        "/static/app.js",
        "/static/none",
        "/opensearch.xml",
        "/login/none",
    ):
        headers = page.send("GET", path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"


def test_the_page_holds_no_script_and_nothing_from_elsewhere() -> None:
    for file in STATIC.iterdir():
        text = file.read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function",
            text,
        ), file
        hosts = set(re.findall(r"https?://([\w.-]+)", text))
        assert hosts <= {"www.w3.org"}, file  # the name of a namespace
    assert not re.search(
        r"<script(?! type=\"module\" src=\"/static/)|\son\w+=|style=",
        (STATIC / "index.html").read_text(),
    )


def test_script_and_style_are_small() -> None:
    assert sum(file.stat().st_size for file in STATIC.iterdir()) <= MOST_BYTES


def test_the_search_is_described_to_browsers_by_the_host_they_asked(page: Page) -> None:
    told = page.send("GET", "/opensearch.xml", Host=f"localhost:{page.port}")
    assert (
        f'template="http://localhost:{page.port}/?q={{searchTerms}}"'.encode()
        in told.body
    )


def test_a_raw_file_is_its_bytes_and_text_to_look_at(page: Page, root: Path) -> None:
    told = page.send("GET", f"/raw?project={root}&path=evil.html")
    assert told.body == SCRIPT.encode()
    assert told.headers["content-type"].startswith("text/plain")
    assert told.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in told.headers["content-security-policy"]
    assert told.headers["content-disposition"] == "inline; filename*=UTF-8''evil.html"
    assert page.send("GET", f"/raw?project={root}&path=bytes.bin").body == bytes(
        range(256)
    )


@pytest.mark.parametrize(
    "path",
    [
        "../outside",
        "/etc/passwd",
        "link",
        "a.py/../../outside",
        ".git/../../outside",
        "%00",
        "",
    ],
)
def test_a_raw_path_does_not_leave_the_project(
    page: Page, root: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "outside").write_text("secret")
    link = root / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "outside")
    told = page.send("GET", f"/raw?project={root}&path={path}")
    assert told.status in {400, 403, 404}
    assert b"secret" not in told.body


def test_a_raw_name_ends_no_header(page: Page, root: Path) -> None:
    name = 'a"\r\nX-Evil: 1'
    (root / name).write_text("x")
    told = page.send("GET", f"/raw?{urlencode({'project': str(root), 'path': name})}")
    assert told.status == 200
    assert "x-evil" not in told.headers


# -- hanging up
# ----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_question_ends_when_its_browser_hangs_up() -> None:
    gates = Gates()
    on = Dispatcher(Registry(HANDLERS), gates, log=Notes())
    routes = Routes(on, Sessions(None, may_write=False))  # type: ignore[arg-type]  # a browser's session needs none
    body = b'{"jsonrpc":"2.0","id":1,"method":"hold","params":{"name":"never"}}'
    hung_up, sent = anyio.Event(), list[Any]()
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        for part in parts:
            return part
        await hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/rpc",
        "headers": [],
        "query_string": b"",
        VISITOR: True,
    }
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Starlette(routes=routes.all()), scope, receive, send)
            while not gates.running:
                await gates.changed.wait()
            hung_up.set()
    assert gates.ended == ["never"]


# -- the command
# ---------------------------------------------------------------------------------------------------


def test_fgrep_web_prints_a_link_and_leads_a_browser_there_by_a_private_file(
    cold_daemon: DaemonAtHand, project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.py": "needle"})
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {seen}.part; mv {seen}.part {seen}\n'
    )
    browser.chmod(0o700)
    process = subprocess.Popen(
        [FGREP, "web", str(root), "--port", "0"],
        env={**cold_daemon.environ, "BROWSER": str(browser)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout
        link = process.stdout.readline().strip()
        opener = Path(cold_daemon.paths.state) / "web.html"
        assert stat.S_IMODE(opener.stat().st_mode) == 0o600
        assert link in opener.read_text()
        while not seen.exists():
            assert process.poll() is None
        assert (
            seen.read_text().strip() == opener.as_uri()
        )  # a link there could be read by every user
        page = Page(cold_daemon)
        page.link = link.partition(str(page.port))[2]
        assert f"project={root.name}" in page.sign_in().body.decode()
    finally:
        process.terminate()
        process.communicate(timeout=BOUND)
    assert process.returncode == 0
    assert not opener.exists()
