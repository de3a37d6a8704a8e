"""The page in a real browser, by keys and clicks. Screenshots go where FLASHGREP_SCREENSHOTS says."""

import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.conftest import DaemonAtHand
from tests.support.workspace import repository
from tests.web.harness import Page

pytest.importorskip("playwright", reason="playwright is not installed")
from playwright import sync_api

from tests.web.browser import CHROMIUM, Tab, launch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.xdist_group("browser"),
]
EVIL = "<img src=x onerror=alert(1)>"
EVIL_CODE = f"needle {EVIL}</code></main><script>alert(2)</script> \u202e\n"
LONG_FUNCTION = (
    'def leave_out(lines):\n    """Say what is left out in a long function."""\n'
    + "".join(f"    value_{at} = {at}  # filler\n" for at in range(120))
    + "    what_is_left = 'what is left out in a long function'\n    return what_is_left\n"
)
SOURCES = {
    "src/app.py": "import os\n\n\ndef needle(size):\n    '''Say hello.'''\n    return os.sep * size\n\n\nneedle(3)\n",
    "src/web/page.js": "// needle in a comment\nexport function hay() {\n  return 'needle';\n}\n",
    "docs/read me.md": "# Needle\n\nA needle, twice: needle.\n",
    f"evil/{EVIL.replace('/', '')}.txt": EVIL_CODE,
    "src/parts.py": LONG_FUNCTION,
    "odd/!a\\b[1]*.txt": "nadel one\nnadel two\n",
    "long.c": "".join(f"int needle_{at}; /* line {at} */\n" for at in range(1, 20_001)),
}


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand) -> Iterator[Path]:
    with repository() as root:
        for path, text in SOURCES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        git = ["git", "-C", str(root), "-c", "user.name=A b", "-c", "user.email=a@b.c"]
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", "first <i>commit</i>"], check=True)
        (root / "src/app.py").write_text(SOURCES["src/app.py"].replace("3", "4"))
        subprocess.run([*git, "commit", "-qam", "second"], check=True)
        assert daemon.run("index", str(root)).returncode == 0
        yield root


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with launch() as browser:
        yield browser


@pytest.fixture
def open_tab(
    browser: sync_api.Browser, daemon: DaemonAtHand, root: Path
) -> Iterator[Callable[..., Tab]]:
    contexts = []

    def open_page(**options: Any) -> Tab:
        served = Page(daemon, "/?" + urlencode({"project": root.name}))
        shape: Any = {"viewport": {"width": 1300, "height": 900}, **options}
        contexts.append(browser.new_context(**shape))
        tab = Tab(contexts[-1].new_page())
        tab.tab.goto(f"http://127.0.0.1:{served.port}{served.link}")
        tab.tab.wait_for_url(f"**/?project={root.name}")
        return tab

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def tab(open_tab: Callable[..., Tab]) -> Iterator[Tab]:
    tab = open_tab()
    yield tab
    assert not tab.wrong
    assert len(tab.hosts) == 1
    assert tab.referrers <= {""}


def test_results_come_while_typing_and_lead_to_the_line(tab: Tab) -> None:
    tab.search("needle file:src/")
    tab.wait(".group h2", "src/app.py")
    sync_api.expect(tab.tab.locator(".group")).to_have_count(2)
    assert "needle" in tab.tab.locator(".line mark").first.inner_text()
    tab.wait(".facet button", "python")
    tab.show("search")
    for _ in range(3):
        tab.tab.keyboard.press("ArrowDown")
    tab.tab.keyboard.press("Enter")
    chosen = tab.wait(".row.chosen")
    assert "needle" in chosen.inner_text()
    tab.show("file")
    tab.tab.go_back()
    tab.wait(".group h2", "src/app.py")
    assert tab.tab.input_value("#q").strip() == "needle file:src/"


def test_a_file_keeps_the_question_marks_it_and_leads_back(tab: Tab) -> None:
    tab.search("needle case:yes")
    tab.wait(".group", "src/app.py").locator("a.hit.line").first.click()
    tab.wait(".row.chosen")
    assert tab.tab.input_value("#q") == "needle case:yes"
    marks = tab.tab.locator(".row mark.match")
    sync_api.expect(marks).to_have_count(2)
    assert set(marks.all_inner_texts()) == {"needle"}
    tab.show("file-matches")
    for line in ("9", "4", "9"):
        tab.tab.keyboard.press("n")
        sync_api.expect(tab.tab.locator(".row.chosen .number")).to_have_text(line)
    tab.tab.keyboard.press("N")
    sync_api.expect(tab.tab.locator(".row.chosen .number")).to_have_text("4")
    tab.wait(".back", "Results").click()
    tab.wait(".group h2", "src/app.py")
    assert tab.tab.input_value("#q") == "needle case:yes"


def test_matches_are_marked_whatever_the_file_is_called(tab: Tab) -> None:
    tab.search("nadel")
    tab.wait("a.hit.line", "nadel one").click()
    marks = tab.tab.locator(".row mark.match")
    sync_api.expect(marks).to_have_count(2)


def test_a_long_file_says_how_many_of_its_matches_are_marked(tab: Tab) -> None:
    tab.search("needle file:long.c")
    tab.wait(".group", "long.c").locator("a.hit.path").click()
    tab.wait("#status", "20,000 lines")
    tab.wait("#status", "only the first 1,000 matching lines are marked")
    tab.tab.keyboard.press("N")
    sync_api.expect(tab.tab.locator(".row.chosen .number")).to_have_text("1000")


def test_every_line_of_a_piece_of_code_has_its_number_in_the_file(tab: Tab) -> None:
    tab.search("what is left out in a long function")
    tab.tab.keyboard.press("Alt+3")
    group = tab.wait(".group", "parts.py")
    rows = group.locator("a.line")
    lines = SOURCES["src/parts.py"].splitlines()
    numbers = [int(number) for number in rows.locator(".number").all_inner_texts()]
    assert [lines[number - 1] for number in numbers] == [
        text.rstrip("\n") for text in rows.locator("code").all_text_contents()
    ]
    assert group.locator(".gap").count()
    tab.show("pieces")


def test_a_file_with_many_hits_shows_some_and_the_others_on_request(tab: Tab) -> None:
    tab.search("needle file:long.c")
    hits = tab.wait(".group", "long.c").locator("a.hit.line")
    sync_api.expect(hits).to_have_count(6)
    tab.wait(".rest", "34 more in this file").click()
    sync_api.expect(hits).to_have_count(40)


def test_what_finds_nothing_or_cannot_be_says_what_to_do_next(tab: Tab) -> None:
    tab.search("needle( file:src/web/")
    tab.wait(".none", "Nothing found.")
    tab.tab.keyboard.press("Alt+2")
    tab.wait(".problem-page h1", "This cannot be searched")
    tab.show("problem")
    tab.type("needle() file:src/app.py")
    tab.wait(".group h2", "src/app.py")
    tab.type("hay( zzz")
    tab.wait(".ways a", "Symbols").click()
    tab.wait(".none", "Nothing found.")


def test_the_empty_page_offers_what_was_asked_before(tab: Tab) -> None:
    tab.search("needle file:app.py")
    tab.tab.wait_for_function("() => localStorage.getItem('flashgrep.recent') !== null")
    tab.type(" ")
    tab.wait(".recent a", "needle file:app.py").click()
    tab.wait(".group h2", "src/app.py")


def test_what_is_typed_over_is_not_kept(tab: Tab) -> None:
    tab.tab.clock.install()
    tab.search("needle file:app.py")
    tab.type("needle of none")
    tab.wait(".none", "Nothing found.")
    tab.tab.clock.fast_forward(10_000)
    assert tab.tab.evaluate("localStorage.getItem('flashgrep.recent')") is None


def test_a_count_narrows_by_a_click_and_a_chip_widens(tab: Tab) -> None:
    tab.search("needle -file:long.c")
    tab.wait(".facet button", "js").click()
    tab.wait(".chip", "lang:")
    sync_api.expect(tab.tab.locator(".group")).to_have_count(1)
    assert "page.js" in tab.wait(".group h2").inner_text()
    tab.wait(".chip", "lang:").click()
    tab.wait(".group h2", "src/app.py")
    assert "lang" not in tab.tab.input_value("#q")


def test_every_kind_of_search_has_its_key(tab: Tab) -> None:
    for key, typed, found in (
        ("2", "need(le|les) file:app.py", "app.py"),
        ("3", "say hello", "app.py"),
        ("4", "need", "app.py"),
        ("5", "web page", "page.js"),
        ("1", "Needle, twice", "read me.md"),
    ):
        tab.type(typed)
        tab.tab.keyboard.press(f"Alt+{key}")
        tab.wait(".group h2", found)
    tab.type("sym:needle")
    tab.wait(".line.symbol", "def needle(size):")
    tab.type("size os return")
    tab.wait("#status", "most of its words")
    tab.wait(".group h2", "app.py")
    tab.search("needle(3) rev:HEAD~1 repo:*")
    tab.wait("a.hit.line", "needle(3)").click()
    tab.wait(".row.chosen", "needle(3)")


def test_names_and_contents_of_files_stay_text(tab: Tab) -> None:
    tab.search("needle file:evil")
    tab.wait(".group h2", EVIL.replace("/", ""))
    tab.wait("a.hit.line", EVIL).click()
    assert EVIL in tab.wait(".row.chosen").inner_text()
    assert not tab.tab.locator("main img, main script").count()
    tab.search(f'{EVIL} file:"{EVIL}"')
    tab.wait(".chip")
    assert not tab.tab.locator("img").count()


def test_a_long_file_is_read_where_it_is_looked_at(tab: Tab) -> None:
    tab.search("needle_15000;")
    tab.wait("a.hit.line", "needle_15000;").click()
    assert "needle_15000" in tab.wait(".row.chosen").inner_text()
    assert tab.tab.locator(".row").count() < 500
    tab.tab.locator(".code").evaluate(
        "element => { element.scrollTop = element.scrollHeight }"
    )
    tab.wait(".row", "needle_20000;")
    tab.tab.locator("a.number", has_text="19999").click()
    tab.tab.wait_for_url("**#L19999")
    tab.tab.locator("a.number", has_text="20000").click(modifiers=["Shift"])
    tab.tab.wait_for_url("**#L19999-20000")


def test_a_browser_that_is_not_signed_in_learns_what_to_do(tab: Tab) -> None:
    tab.tab.evaluate("localStorage.clear()")
    tab.tab.locator("#q").fill("needle")  # at once, so one request is refused
    tab.wait(".notice h1", "Not signed in")
    tab.wrong.clear()  # the browser reports it


def test_the_link_does_not_stay_in_the_tabs_history(tab: Tab) -> None:
    tab.tab.go_back()
    assert "login" not in tab.tab.url
    tab.tab.go_forward()
    assert "login" not in tab.tab.url


def open_file(tab: Tab, path: str, line: int) -> None:
    """Open a file of the project at a line, by its address."""
    here = tab.tab.url.partition("/?")[0]
    tab.tab.goto(
        f"{here}/?{urlencode({'view': 'file', 'project': project_of(tab), 'path': path})}#L{line}"
    )
    tab.wait(".row.chosen")


def project_of(tab: Tab) -> str:
    """Return the name of the project that the tab is about."""
    return str(tab.tab.evaluate("new URL(location.href).searchParams.get('project')"))


def test_a_name_leads_to_its_definition_uses_and_callers_by_click_and_by_keys(
    tab: Tab,
) -> None:
    open_file(tab, "src/app.py", 9)
    tab.tab.locator(".row.chosen code").get_by_text("needle").click()
    tab.wait(".panel pre", "def needle(size):")
    tab.wait(".panel .doc", "Say hello.")
    tab.wait(".places h2", "Uses (2)")
    tab.show("names")
    tab.tab.locator("button[data-step=callers]").click()
    tab.wait(".places h2", "Callers (")
    tab.tab.locator(".panel a.hit", has_text="def needle").first.click()
    tab.wait(".row.chosen", "def needle(size):")
    tab.tab.keyboard.press("Escape")
    tab.tab.locator(".code").focus()
    for key in (*("ArrowDown",) * 3, *("ArrowRight",) * 4):
        tab.tab.keyboard.press(key)
    tab.wait("mark.cursor", "size")
    tab.tab.keyboard.press("Enter")
    tab.wait(".panel h2.name", "size")
    tab.tab.keyboard.press("d")
    tab.wait(".row.chosen", "def needle(size):")


def test_a_file_has_its_outline_blame_and_history(tab: Tab) -> None:
    open_file(tab, "src/app.py", 4)
    tab.tab.keyboard.press("o")
    tab.wait(".panel li", "needle").locator("a").click()
    tab.tab.locator(".code").focus()
    tab.tab.keyboard.press("b")
    tab.wait("a.blame", "A b")
    sync_api.expect(tab.tab.locator("a.blame")).to_have_count(2)
    tab.show("blame")
    tab.tab.keyboard.press("h")
    tab.wait(".commits li", "first <i>commit</i>")
    tab.show("history")
    tab.tab.locator(".commits a.hit").first.click()
    tab.wait(".diff .added", "+needle(4)")
    tab.wait(".diff .removed", "-needle(3)")
    tab.show("changes")


def test_revisions_are_chosen_by_name_and_folders_are_walked(tab: Tab) -> None:
    tab.tab.get_by_role("link", name="Browse").click()
    tab.wait(".entries a", "src/").click()
    tab.wait(".entries a", "app.py").click()
    tab.wait(".row", "needle(4)")
    tab.tab.get_by_label("Revision").fill("HEAD~1")
    tab.tab.keyboard.press("Enter")
    tab.wait(".row", "needle(3)")
    tab.tab.locator(".code").focus()
    tab.tab.keyboard.press("u")
    tab.wait(".entries a", "web/")
    assert "rev=HEAD%7E1" in tab.tab.url


def test_a_question_is_a_link_a_command_and_a_request(
    tab: Tab, daemon: DaemonAtHand, root: Path
) -> None:
    tab.search("needle file:src/ -lang:js case:yes")
    titles = {
        one.inner_text(): one.get_attribute("title") or ""
        for one in tab.tab.locator(".as button").all()
    }
    command = shlex.split(titles["Copy as fgrep"])[1:]
    assert "src/app.py" in daemon.run(*command, cwd=root).stdout
    with closing(daemon.wire("unix")) as wire:
        wire.send(titles["Copy as JSON-RPC"].encode() + b"\n")
        assert {one["file_path"] for one in wire.receive()["result"]["results"]} == {
            "src/app.py"
        }
    tab.tab.goto(titles["Copy link"])
    sync_api.expect(tab.tab.locator(".group")).to_have_count(1)
    sync_api.expect(tab.tab.locator(".chip")).to_have_count(3)


def test_very_long_lines_and_a_file_that_shrinks_are_shown_as_far_as_they_are_there(
    tab: Tab, root: Path
) -> None:
    long, shrinks = root / "one line.txt", root / "shrinks.txt"
    long.write_text("x" * 5_000_000 + "\nlast line\n")
    shrinks.write_text("".join(f"line {at}\n" for at in range(1, 8_001)))
    try:
        open_file(tab, "one line.txt", 1)
        tab.wait(".row", "characters more")
        open_file(tab, "shrinks.txt", 1)
        shrinks.write_text("line 1\n")
        asked = tab.requests
        tab.tab.locator(".code").evaluate(
            "element => { element.scrollTop = element.scrollHeight }"
        )
        tab.wait(".row a.number[data-line='8000']")
        tab.tab.keyboard.press("/")
        tab.search("line 1")
        tab.wait("a.hit.line", "line 1")
        assert tab.requests - asked < 20
    finally:
        long.unlink()
        shrinks.unlink()


def test_numbers_are_drawn(tab: Tab) -> None:
    tab.search("needle")
    tab.wait(".group")
    tab.tab.get_by_role("link", name="Numbers").click()
    tab.wait("svg.plot rect")
    tab.wait("svg.plot circle")
    tab.show("numbers")


def test_keys_lead_everywhere(tab: Tab) -> None:
    tab.search("needle")
    tab.wait("a.hit").first.focus()
    tab.tab.keyboard.press("j")
    tab.tab.keyboard.press("?")
    tab.wait("dialog[open]")
    tab.tab.keyboard.press("Escape")
    tab.tab.keyboard.press("t")
    theme = tab.tab.evaluate("document.documentElement.dataset.theme")
    assert theme in {"dark", "light"}
    tab.tab.keyboard.press("/")
    assert tab.tab.evaluate("document.activeElement.id") == "q"


def test_an_unsafe_raw_file_opens_as_text(tab: Tab) -> None:
    open_file(tab, f"evil/{EVIL.replace('/', '')}.txt", 1)
    with tab.tab.context.expect_page() as opened:
        tab.tab.get_by_role("button", name="Raw").click()
    shown = opened.value
    shown.wait_for_load_state()
    assert EVIL in shown.locator("pre").inner_text()
    assert not shown.locator("img").count()


def test_the_page_fits_a_phone(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(viewport={"width": 380, "height": 760}, color_scheme="dark")
    tab.search("needle")
    tab.wait("a.hit.line")
    for view in ("search", "file"):
        if view == "file":
            tab.tab.locator("a.hit.line").first.click()
            tab.wait(".row")
        assert tab.tab.evaluate("document.documentElement.scrollWidth") <= 380, view
        tab.show(f"phone-{view}")
    assert not tab.wrong


AXE = Path(
    os.environ.get("FLASHGREP_AXE", "build/web/node_modules/axe-core/axe.min.js")
)
JUDGE = """async () => (await axe.run()).violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => [one.id, one.nodes.map((node) => node.html)])"""


@pytest.mark.skipif(
    not AXE.exists(), reason="axe-core is not installed; scripts/web has it"
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_tab: Callable[..., Tab], scheme: str) -> None:
    tab = open_tab(color_scheme=scheme)
    name = project_of(tab)
    here = tab.tab.url.partition("/?")[0]
    for query, shown in (
        ({}, ".notice"),
        ({"q": "needle -file:long.c"}, ".facet button"),
        ({"q": "sym:needle"}, "a.hit.line"),
        ({"view": "file", "path": "src/app.py"}, ".row"),
        ({"view": "folder"}, ".entries li"),
        ({"view": "history", "path": "src/app.py"}, ".commits li"),
        ({"view": "changes", "rev": "HEAD~1..HEAD"}, ".diff .line"),
        ({"view": "numbers"}, "svg.plot"),
    ):
        tab.tab.goto(f"{here}/?{urlencode({**query, 'project': name})}")
        tab.wait(shown)
        if query.get("view") == "file":
            tab.tab.keyboard.press("o")
            tab.wait(".panel li")
        tab.tab.evaluate(AXE.read_text())
        assert tab.tab.evaluate(JUDGE) == [], query
