"""A team's page in a real browser: signing in, choosing a repository, reading."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.git import git
from tests.team.conftest import Rig
from tests.team.serving import serve
from tests.team.test_page import make_token

pytest.importorskip("playwright", reason="playwright is not installed")
from playwright import sync_api

from tests.web.browser import CHROMIUM, Tab, launch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.xdist_group("browser"),
]
AXE = Path(
    os.environ.get("FLASHGREP_AXE", "build/web/node_modules/axe-core/axe.min.js")
)
JUDGE = """async () => (await axe.run()).violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => [one.id, one.nodes.map((node) => node.html)])"""


@pytest.fixture
def served(rig: Rig) -> Iterator[tuple[Rig, int]]:
    for name in ("kernel", "tools", "secret"):
        rig.make_repository(
            name,
            {
                "src/a.py": f"def needle_{name}(size):\n    return size\n",
                "b.c": "int needle;\n",
            },
        )
    rig.sync()
    with serve(rig) as port:
        yield rig, port


def test_a_team_member_signs_in_searches_reads_and_signs_out(
    served: tuple[Rig, int],
) -> None:
    rig, port = served
    token = make_token(rig, "ann", ["kernel", "tools"])
    with launch() as browser:
        tab = Tab(
            browser.new_context(viewport={"width": 1300, "height": 900}).new_page()
        )
        tab.tab.goto(f"http://127.0.0.1:{port}/")
        tab.wait(".notice h1", "Not signed in")
        judge(tab)
        tab.show("team-sign-in")
        tab.tab.get_by_label("Token").fill("wrong")
        tab.tab.keyboard.press("Enter")
        tab.wait(".problem", "unknown token")
        tab.tab.get_by_label("Token").fill(token)
        tab.tab.keyboard.press("Enter")
        tab.wait(".notice h1", "Search code")
        tab.wrong.clear()  # the browser reports the refused requests
        labels = tab.wait("#kinds label").all_inner_texts()
        assert {"Text", "Regex", "Symbols", "Files"} <= set(labels)
        assert ("Meaning" in labels) == offers(tab, "search_code")
        assert not tab.tab.get_by_role("link", name="Changes").count()
        tab.search("needle")
        tab.wait(".facet button[data-facet=repo]", "kernel")
        sync_api.expect(tab.tab.locator(".group")).to_have_count(4)
        judge(tab)
        tab.show("team-search")
        tab.wait(".facet button[data-facet=repo]", "tools").click()
        tab.wait(".chip", "repo:tools")
        sync_api.expect(tab.tab.locator(".group")).to_have_count(2)
        tab.tab.get_by_label("Repository").fill("kernel")
        tab.tab.keyboard.press("Enter")
        tab.search("needle_k")
        tab.wait("a.hit.line", "needle_kernel").click()
        tab.wait(".row.chosen", "def needle_kernel")
        assert "project=kernel" in tab.tab.url
        tab.tab.get_by_role("button", name="Blame").click()
        tab.wait(
            ".blame",
            git(rig.folder / "trees" / "kernel", "rev-parse", "--short=8", "HEAD")
            .decode()
            .strip(),
        )
        tab.tab.locator(".row code").first.get_by_text("needle_kernel").click()
        tab.wait(".panel pre", "def needle_kernel(size)")
        tab.tab.get_by_role("link", name="Numbers").click()
        tab.wait("svg.plot rect")
        tab.show("team-numbers")
        for secret in (
            token,
            *(one.get("value", "") for one in tab.tab.context.cookies()),
        ):
            assert secret not in tab.tab.evaluate(
                "JSON.stringify([{...localStorage}, document.cookie, location.href])"
            )
        tab.tab.evaluate(
            "['recent', 'saved'].forEach((name) => localStorage.setItem('flashgrep.' + name, '[{\"q\": \"mine\"}]'))"
        )
        tab.tab.get_by_role("button", name="Sign out").click()
        tab.wait(".notice h1", "Not signed in")
        assert "mine" not in tab.tab.evaluate("JSON.stringify({...localStorage})")
        assert not tab.tab.context.cookies()
        assert tab.hosts == {f"127.0.0.1:{port}"}
        assert tab.referrers <= {""}


def test_a_permanent_link_lasts_longer_than_the_head_it_was_made_at(
    served: tuple[Rig, int],
) -> None:
    rig, port = served
    token = make_token(rig, "ann", ["kernel"])
    root = rig.folder / "trees" / "kernel"
    with launch() as browser:
        tab = Tab(browser.new_page())
        tab.tab.goto(f"http://127.0.0.1:{port}/")
        tab.wait(".notice h1", "Not signed in")
        tab.tab.get_by_label("Token").fill(token)
        tab.tab.keyboard.press("Enter")
        tab.wait(".notice h1", "Search code")
        tab.search("needle_kernel")
        tab.wait("a.hit.line", "def needle_kernel").click()
        tab.wait(".row.chosen", "def needle_kernel")
        tab.tab.keyboard.press("y")
        copied = tab.wait("#status", "view=file").inner_text()
        rig.write(root, {"src/a.py": "# rewritten\n"})
        rig.push(root)
        rig.sync()
        tab.tab.reload()
        tab.wait(".row", "# rewritten")
        tab.tab.goto("http" + copied.partition("http")[2])
        tab.wait(".row.chosen", "def needle_kernel")
        tab.tab.get_by_label("Revision").fill("main")
        tab.tab.keyboard.press("Enter")
        tab.wait(".row", "# rewritten")
        tab.tab.get_by_role("link", name="History").click()
        tab.wait(".commits li")
        tab.tab.locator(".commits a.hit").last.click()
        tab.wait(".row", "def needle_kernel")


def offers(tab: Tab, method: str) -> bool:
    """Return whether the server has a method."""
    script = "async (method) => (await (await fetch('/static/server.json')).json()).methods.includes(method)"
    return bool(tab.tab.evaluate(script, method))


def judge(tab: Tab) -> None:
    """See that axe-core finds nothing serious, where it is installed."""
    if AXE.exists():
        tab.tab.evaluate(AXE.read_text())
        assert tab.tab.evaluate(JUDGE) == []
