"""The page on a team's server: who is let in by what, and who is not, tried by attack."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from flashgrep.parts.http.wire.admission import TOO_MANY
from flashgrep.parts.team import access
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.guard import hash_browser, hash_secret
from flashgrep.parts.team.team_catalogue import MOST_BROWSERS
from tests.conftest import BOUND
from tests.support.http_request import Answer, send_request
from tests.team.conftest import Rig, lend
from tests.team.serving import serve

pytestmark = pytest.mark.slow
PUBLIC = "https://code.example.org"


class Browser:
    """A browser on the page, as far as the server can tell."""

    def __init__(self, port: int, origin: str = "") -> None:
        self.port = port
        self.origin = origin or f"http://127.0.0.1:{port}"
        self.cookie = self.key = ""

    def send(
        self, method: str, path: str, body: Any = None, **headers: str | None
    ) -> Answer:
        """Send a request as our page would, with headers changed as said; None leaves one out."""
        usual: dict[str, str | None] = {
            "Host": self.origin.partition("://")[2],
            "Origin": self.origin if method == "POST" else None,
            "Sec-Fetch-Site": "same-origin",
            "Cookie": self.cookie or None,
            "X-Flashgrep-Key": self.key or None,
            "Content-Type": "application/json" if body is not None else None,
        }
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        until = time.monotonic() + BOUND
        while True:
            answer = send_request(self.port, method, path, usual | changed, body)
            # Strangers together have fifty requests a second, and the tests of a module
            # are quicker.
            if answer.status != TOO_MANY.status or time.monotonic() > until:
                return answer

    def sign_in(self, token: str, **headers: str | None) -> Answer:
        """Show a token, and keep what it gives."""
        answer = self.send("POST", "/login", {"token": token}, **headers)
        if answer.status == 200:
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
            self.key = answer.json()["key"]
        return answer

    def ask(
        self,
        method: str,
        headers: Mapping[str, str | None] | None = None,
        **params: Any,
    ) -> Answer:
        """Send one JSON-RPC request."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.send("POST", "/rpc", body, **(headers or {}))

    def find(self) -> list[str]:
        """Return the repositories in which a text is found that all have."""
        hits = self.ask("query", query="def", projects="*").json()["result"]["results"]
        return sorted({hit["project"] for hit in hits})


def make_token(
    rig: Rig, subject: str, repositories: list[str] | None, **more: Any
) -> str:
    """Return a token of a subject, which is given repositories; None: all."""
    with closing(connect(rig.dsn)) as connection:
        access.allow(connection, subject, repositories)
        return access.make_token(connection, subject, **more)


@pytest.fixture(scope="module")
def filled(module_rig: Rig) -> Rig:
    module_rig.make_repository(
        "open",
        {"a.py": "def shared(): pass\n", "evil.html": "<script>alert(1)</script>"},
    )
    module_rig.make_repository("closed", {"b.py": "def secret(): pass\n"})
    module_rig.sync()
    return module_rig


@pytest.fixture(scope="module")
def port(filled: Rig) -> Iterator[int]:
    with serve(filled) as port:
        yield port


@pytest.fixture
def two(filled: Rig) -> Iterator[Rig]:
    with lend(filled) as rig:
        yield rig


@pytest.fixture
def served(two: Rig, port: int) -> tuple[Rig, int]:
    return two, port


def test_a_browser_signs_in_reads_and_signs_out(served: tuple[Rig, int]) -> None:
    rig, port = served
    token = make_token(rig, "ann", ["open"])
    browser = Browser(port)
    assert browser.send("GET", "/").status == 200
    assert browser.ask("stats").status == 401
    told = browser.sign_in(token)
    parts = {part.strip().lower() for part in told.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=strict", "path=/"} <= parts
    assert told.headers["cache-control"] == "no-store"
    assert token not in str(told)
    assert browser.ask("stats").json()["result"]["projects"] == ["open"]
    assert browser.find() == ["open"]
    figures = browser.ask("stats", project="open").json()["result"]
    assert (figures["total_files"], figures["stage"]) == (2, "ready")
    names = browser.ask("list_revisions", project="open").json()["result"]["results"]
    assert [(one["name"], one["kind"]) for one in names] == [("main", "branch")]
    raw = browser.send("GET", "/raw?project=open&path=evil.html")
    assert (raw.status, raw.headers["content-type"]) == (
        200,
        "text/plain; charset=utf-8",
    )
    assert "sandbox" in raw.headers["content-security-policy"]
    assert raw.body == b"<script>alert(1)</script>"
    with closing(connect(rig.dsn)) as connection:
        rows = connection.execute(
            "SELECT subject, method FROM flashgrep.audit ORDER BY at"
        ).fetchall()
        assert rows[-1] == ("ann", "raw")
        hashes = connection.execute("SELECT count(*) FROM flashgrep.token").fetchone()
    assert hashes == (2,)
    cookie = browser.cookie
    assert browser.send("POST", "/logout", {}).status == 200
    browser.cookie = cookie
    assert browser.ask("stats").status == 401
    assert Browser(port).sign_in(token).status == 200


def test_what_is_not_to_be_seen_is_as_what_is_not_there(
    served: tuple[Rig, int],
) -> None:
    rig, port = served
    browser = Browser(port)
    browser.sign_in(make_token(rig, "ann", ["open"]))
    asked: list[tuple[str, dict[str, Any]]] = [
        ("query", {"query": "def"}),
        ("read_code", {"path": "b.py"}),
        ("stats", {}),
    ]
    for method, more in asked:
        hidden = browser.ask(method, project="closed", **more)
        absent = browser.ask(method, project="nowhere", **more)
        assert hidden.json()["error"] == {
            **absent.json()["error"],
            "message": absent.json()["error"]["message"].replace("nowhere", "closed"),
        }
    hidden = browser.send("GET", "/raw?project=closed&path=b.py")
    absent = browser.send("GET", "/raw?project=nowhere&path=b.py")
    assert hidden.status == absent.status == 404
    assert hidden.body == absent.body.replace(b"nowhere", b"closed")


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"],
)
def test_foreign_pages_get_nothing(served: tuple[Rig, int], origin: str) -> None:
    rig, port = served
    token = make_token(rig, "ann", None)
    browser = Browser(port)
    browser.sign_in(token)
    foreign = origin.format(port=port)
    assert browser.ask("stats", {"Origin": foreign}).status == 403
    assert (
        browser.ask(
            "stats", {"Origin": foreign, "Authorization": f"Bearer {token}"}
        ).status
        == 403
    )
    assert Browser(port).sign_in(token, Origin=foreign).status == 403
    assert Browser(port).sign_in(token, Origin=None).status == 403
    for site in ("cross-site", "same-site"):
        assert (
            browser.send(
                "GET", "/raw?project=open&path=a.py", Sec_Fetch_Site=site
            ).status
            == 403
        )
        for path in ("/", "/static/app.js", "/openapi.json", "/docs", "/healthz"):
            assert browser.send("GET", path, Sec_Fetch_Site=site).status == 403, path
        link = {
            "Sec_Fetch_Site": site,
            "Sec_Fetch_Mode": "navigate",
            "Sec_Fetch_Dest": "document",
        }
        assert browser.send("GET", "/", **link).status == 200
        assert browser.send("GET", "/openapi.json", **link).status == 403


def test_a_name_that_an_attacker_controls_shows_no_page_and_reads_nothing(
    served: tuple[Rig, int],
) -> None:
    rig, port = served
    token = make_token(rig, "ann", None)
    browser = Browser(port)
    browser.sign_in(token)
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1.evil.example:{port}",
        "",
    ):
        assert browser.send("GET", "/", Host=host).status == 421, host
        assert browser.send("GET", "/static/app.js", Host=host).status == 421, host
        assert Browser(port).sign_in(token, Host=host).status == 421, host
        assert browser.ask("stats", {"Host": host}).status == 421, host
        for path in ("/openapi.json", "/docs"):
            assert browser.send("GET", path, Host=host).status == 421, host
            assert (
                browser.send(
                    "GET", path, Host=host, Authorization="Bearer guessed"
                ).status
                == 421
            ), host
    assert (
        browser.ask(
            "stats", {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}
        ).status
        == 200
    )


def test_a_cookie_or_a_key_alone_or_of_another_is_worth_nothing(
    served: tuple[Rig, int],
) -> None:
    rig, port = served
    ann, bob = Browser(port), Browser(port)
    ann.sign_in(make_token(rig, "ann", ["closed"]))
    bob.sign_in(make_token(rig, "bob", ["open"]))
    assert (ann.find(), bob.find()) == (["closed"], ["open"])
    for cookie, key in (
        (ann.cookie, None),
        (None, ann.key),
        (ann.cookie, bob.key),
        (bob.cookie, ann.key),
    ):
        assert (
            bob.ask("stats", {"Cookie": cookie, "X-Flashgrep-Key": key}).status == 401
        )
    both = f"{ann.cookie}; {bob.cookie}"
    assert bob.ask("stats", {"Cookie": both}).status == 401
    own = ann.cookie.partition("=")[2]
    for token in (own, ann.key, f"browser {own} {ann.key}"):
        sent = {
            "Cookie": None,
            "X-Flashgrep-Key": None,
            "Authorization": f"Bearer {token}",
        }
        assert bob.ask("stats", sent).status == (
            200 if token.startswith("browser ") else 401
        )


def test_a_sign_in_ends_with_its_token_and_makes_no_other(
    served: tuple[Rig, int],
) -> None:
    rig, port = served
    browser = Browser(port)
    browser.sign_in(make_token(rig, "ann", None, days=1))
    own = browser.cookie.partition("=")[2]
    assert Browser(port).sign_in(f"browser {own} {browser.key}").status == 401
    with closing(connect(rig.dsn)) as connection:
        row = connection.execute(
            "SELECT max(expires) - now() <= '12 hours' FROM flashgrep.token WHERE kind = 'browser'"
        )
        assert row.fetchone() == (True,)
        connection.execute(
            "UPDATE flashgrep.token SET expires = now() + '1 minute' WHERE kind = 'own'"
        )
        token = access.make_token(connection, "bob", 1)
        connection.execute(
            "UPDATE flashgrep.token SET expires = now() + '1 minute' WHERE subject = 'bob'"
        )
        Browser(port).sign_in(token)
        row = connection.execute(
            "SELECT max(expires) - now() <= '1 minute' FROM flashgrep.token WHERE subject = 'bob'"
        )
        assert row.fetchone() == (True,)
        access.revoke_tokens(connection, "ann")
    assert browser.ask("stats").status == 401
    refused: list[Any] = [
        {},
        {"token": 5},
        {"token": ""},
        {"token": "x" * 5000},
        {"token": "x", "more": 1},
        [],
        "x",
    ]
    for wrong in refused:
        assert browser.send("POST", "/login", wrong).status == 400, wrong
    assert Browser(port).sign_in("'; DROP TABLE flashgrep.token; --").status == 401


def test_browsers_of_one_subject_are_bounded(two: Rig) -> None:
    catalogue, token = two.open_catalogue(), make_token(two, "ann", None)
    for at in range(MOST_BROWSERS + 3):
        assert (
            catalogue.sign_in(hash_secret(token), hash_browser(f"c{at}", "key"))
            == "ann"
        )
    with closing(connect(two.dsn)) as connection:
        row = connection.execute(
            "SELECT count(*) FROM flashgrep.token WHERE kind = 'browser'"
        ).fetchone()
    assert row == (MOST_BROWSERS,)
    assert (
        catalogue.find_access(hash_browser(f"c{MOST_BROWSERS + 2}", "key")).subject
        == "ann"
    )


def test_behind_tls_the_page_has_its_public_address(two: Rig) -> None:
    with serve(two, "--public", PUBLIC) as port:
        browser = Browser(port, PUBLIC)
        told = browser.sign_in(make_token(two, "ann", None))
        assert told.headers["set-cookie"].startswith("__Host-flashgrep=")
        assert "secure" in told.headers["set-cookie"].lower()
        assert browser.find() == ["closed", "open"]
        assert (
            f'template="{PUBLIC}/'.encode()
            in browser.send("GET", "/opensearch.xml").body
        )
        assert browser.ask("stats", {"Origin": "http://code.example.org"}).status == 403
        assert (
            browser.ask("stats", {"Host": f"127.0.0.1:{port}"}).status == 200
        )  # a proxy that names us by our port


# -- a proxy that says who asks
# ----------------------------------------------------------------------------------------

PROXY = ("--proxy-header", "X-Forwarded-User", "--groups-header", "X-Forwarded-Groups")


def test_a_proxy_with_its_token_says_who_asks(two: Rig) -> None:
    secret = make_token(two, "sso", [], kind="proxy")
    make_token(two, "ann", ["open"])
    with closing(connect(two.dsn)) as connection:
        access.allow(connection, "group:devs", ["closed"])
    with serve(two, *PROXY) as port:
        browser = Browser(port)

        def see(**headers: str | None) -> list[str] | int:
            answer = browser.ask(
                "stats", {"X-Flashgrep-Proxy-Token": secret, **headers}
            )
            return (
                answer.json()["result"]["projects"]
                if answer.status == 200
                else answer.status
            )

        assert see(X_Forwarded_User="ann") == ["open"]
        assert see(X_Forwarded_User="ann", X_Forwarded_Groups="other, devs") == [
            "closed",
            "open",
        ]
        assert see(X_Forwarded_User="eve") == []
        assert see(X_Forwarded_User="eve", X_Forwarded_Groups="devs") == ["closed"]
        assert see(X_Forwarded_User="eve", X_Forwarded_Groups="ann,group:devs") == []
        assert see(X_Forwarded_User="ann") == [
            "open"
        ]  # the pool's connection has forgotten the groups
        assert browser.send("GET", "/").status == 200
        with closing(connect(two.dsn)) as connection:
            rows = connection.execute(
                "SELECT DISTINCT subject FROM flashgrep.audit"
            ).fetchall()
        assert {row[0] for row in rows} == {"ann", "eve"}


def test_nobody_else_says_who_asks(two: Rig) -> None:
    secret, own = (
        make_token(two, "sso", None, kind="proxy"),
        make_token(two, "bob", ["open"]),
    )
    make_token(two, "ann", None)
    make_token(two, "devs", None)
    with closing(connect(two.dsn)) as connection:
        access.join(connection, "ann", "devs")
    with serve(two, *PROXY) as port:
        browser = Browser(port)

        def see(**headers: str | None) -> list[str] | int:
            answer = browser.ask("stats", headers)
            return (
                answer.json()["result"]["projects"]
                if answer.status == 200
                else answer.status
            )

        ann = {"X_Forwarded_User": "ann"}
        assert see(**ann) == 401
        assert see(**ann, X_Flashgrep_Proxy_Token=secret[:-1]) == 401
        assert see(**ann, X_Flashgrep_Proxy_Token=own) == [
            "open"
        ]  # bob is bob, whomever he names
        assert see(**ann, X_Flashgrep_Proxy_Token=own, X_Forwarded_Groups="devs") == [
            "open"
        ]
        assert see(**ann, Authorization=f"Bearer {own}") == ["open"]
        for nobody in ("", "devs", "group:devs", "x" * 300):
            assert (
                see(X_Forwarded_User=nobody, X_Flashgrep_Proxy_Token=secret) == 401
            ), nobody
        assert see(X_Flashgrep_Proxy_Token=secret) == 401
        assert see(Authorization=f"Bearer {secret}") == 401
        assert Browser(port).sign_in(secret).status == 401
        twice = {
            "x-forwarded-user": "ann",
            "X-Forwarded-User": "bob",
            "X-Flashgrep-Proxy-Token": secret,
        }
        assert browser.ask("stats", twice).status == 400
        with closing(connect(two.dsn)) as connection:
            access.revoke_tokens(connection, "sso")
        assert see(**ann, X_Flashgrep_Proxy_Token=secret) == 401
    with serve(two) as port:  # told of no proxy, a server believes none
        browser = Browser(port)
        headers = {
            "X_Forwarded_User": "ann",
            "X_Flashgrep_Proxy_Token": make_token(two, "sso", None, kind="proxy"),
        }
        assert browser.ask("stats", headers).status == 401
