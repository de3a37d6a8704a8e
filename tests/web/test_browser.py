"""The page in a real browser, by keys and clicks. Screenshots go where FLASHGREP_SCREENSHOTS says."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.conftest import DaemonAtHand
from tests.support.git import commit, git
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
    'def leave_out(lines):\n    """Count."""\n'
    + "".join(f"    value_{at} = {at}  # filler\n" for at in range(300))
    + "    rules = 'the rules of a zebra crossing'\n    return rules\n"
)
WHOLE_FUNCTION = (
    "def take_in(lines):\n"
    + "".join(f"    number_{at} = {at}\n" for at in range(99))
    + "    gauge = 'the gauge of a narrow railway'\n    return gauge\n"
)
ASIDES = """def aside_of_a_walrus(animal):
    weight = animal.weight

    # A walrus is heavy,
    # don't lift it,
    # don't feed it,
    # but greet it
    # and leave.
    return weight + len("walrus")
"""
LOCK = """/* A spin_lock that
   don't sleep, static struct hidden_lock
   for short sections. */
static int hidden_lock = 1;
"""
PAPER = """# How it isn't

It doesn't open a *string*, `needle` is code.

```python
return "needle"  # a comment
```
"""
SOURCES = {
    "src/asides.py": ASIDES,
    "src/lock.c": LOCK,
    "docs/paper.md": PAPER,
    "docs/page.html": '<p class="needle">It\'s not a string: "quoted"</p>\n',
    "src/app.py": "import os\n\n\ndef needle(size):\n    '''Say hello.'''\n    return os.sep * size\n\n\nneedle(3)\n",
    "src/web/page.js": "// needle in a comment\nexport function hay() {\n  return 'needle';\n}\n",
    "docs/read me.md": "# Needle\n\nA needle, twice: needle.\n",
    f"evil/{EVIL.replace('/', '')}.txt": EVIL_CODE,
    "src/parts.py": LONG_FUNCTION,
    "src/whole.py": WHOLE_FUNCTION,
    "odd/!a\\b[1]*.txt": "nadel one\nnadel two\n",
    "long.c": "".join(f"int needle_{at}; /* line {at} */\n" for at in range(1, 20_001)),
}


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand) -> Iterator[Path]:
    with repository() as root:
        for path, text in SOURCES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        names = ["-c", "user.name=A b", "-c", "user.email=a@b.c"]
        command = ["git", "-C", str(root), *names]
        subprocess.run([*command, "add", "."], check=True)
        subprocess.run([*command, "commit", "-qm", "first <i>commit</i>"], check=True)
        (root / "src/app.py").write_text(SOURCES["src/app.py"].replace("3", "4"))
        subprocess.run([*command, "commit", "-qam", "second"], check=True)
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


@pytest.mark.parametrize(
    ("question", "path", "answer"),
    [
        ("rules of a zebra crossing", "src/parts.py", 303),
        ("gauge of a narrow railway", "src/whole.py", 101),
        ("aside of a walrus", "src/asides.py", 1),
    ],
)
def test_a_piece_has_its_head_and_the_part_that_answers_by_their_numbers(
    tab: Tab, question: str, path: str, answer: int
) -> None:
    tab.search(question)
    tab.tab.keyboard.press("Alt+3")
    # Above a piece stands what it is; the lines of the text search have gaps too.
    tab.wait(".group .what")
    group = tab.wait(".group", path)
    group.locator(".gap").first.wait_for()
    rows = group.locator("a.line")
    lines = SOURCES[path].splitlines()
    numbers = [int(number) for number in rows.locator(".number").all_inner_texts()]
    assert [lines[number - 1] for number in numbers] == [
        text.rstrip("\n") for text in rows.locator("code").all_text_contents()
    ]
    assert numbers[0] == 1
    assert answer in numbers
    assert len(numbers) <= 12
    tab.show(f"piece-of-{answer}-lines")


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


@pytest.mark.parametrize("scope", ["", " repo:*"], ids=["one", "all"])
def test_a_misspelt_text_leads_to_the_name_and_the_file_that_may_be_meant(
    tab: Tab, scope: str
) -> None:
    tab.search(f"leaveout{scope}")
    tab.wait(".none", "Did you mean")
    tab.wait(".none a", "leave_out").click()
    tab.wait(".group h2", "src/parts.py")
    assert tab.tab.input_value("#q").strip() == f"leave_out{scope}".strip()
    tab.type(f"sym:leave_otu{scope}")
    tab.wait(".none a", "leave_out").click()
    tab.wait(".group h2", "src/parts.py")
    tab.type(f"src/asdies.py{scope}")
    tab.wait(".none a", "src/asides.py").click()
    tab.wait(".row", "def aside_of_a_walrus")


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


def test_a_search_is_saved_and_removed(tab: Tab) -> None:
    tab.search("needle file:app.py")
    save = tab.tab.get_by_role("button", name="Save")
    save.click()
    sync_api.expect(save).to_have_attribute("aria-pressed", "true")
    tab.type(" ")
    tab.wait(".saved a", "needle file:app.py").click()
    tab.wait(".group h2", "src/app.py")
    tab.type(" ")
    tab.wait(".saved .remove").click()
    sync_api.expect(tab.tab.locator(".saved a")).to_have_count(0)
    assert tab.tab.evaluate("localStorage.getItem('flashgrep.saved')") == "[]"


def test_the_empty_page_has_the_projects_with_their_figures(
    tab: Tab, root: Path
) -> None:
    row = tab.wait(".repositories li", root.name)
    sync_api.expect(row.locator(".none")).to_contain_text("files")
    tab.show("empty")
    row.locator("a").click()
    tab.wait(".entries a", "src/")


def test_what_is_typed_is_completed(tab: Tab) -> None:
    box = tab.tab.locator("#q")
    tab.type("needle lan")
    tab.wait("#suggestions button", "lang:")
    tab.tab.keyboard.press("Tab")
    tab.tab.keyboard.press("Enter")
    sync_api.expect(box).to_have_value("needle lang:")
    tab.tab.keyboard.type("py")
    tab.wait("#suggestions button", "lang:py").first.click()
    assert tab.tab.evaluate("document.activeElement.id") == "q"
    tab.wait(".group h2", "src/app.py")
    tab.type("file:web/pa")
    tab.wait("#suggestions button", "file:src/web/page.js").click()
    sync_api.expect(box).to_have_value("file:src/web/page.js ")
    tab.type("leave_")
    tab.wait("#suggestions button", "leave_out")
    tab.show("suggestions")
    tab.tab.keyboard.press("Tab")
    tab.tab.keyboard.press("Enter")
    sync_api.expect(box).to_have_value("leave_out")
    tab.type("asides")
    tab.wait("#suggestions a", "asides.py").click()
    tab.wait(".row", "def aside_of_a_walrus")


def test_suggestions_stay_text_and_never_hide_the_results(tab: Tab) -> None:
    tab.type("onerror")
    name = EVIL.replace("/", "")
    tab.wait("#suggestions a", name)
    assert not tab.tab.locator("header img").count()
    tab.wait(".group")
    box = tab.tab.locator("#suggestions").bounding_box()
    first = tab.tab.locator(".group").first.bounding_box()
    assert box is not None
    assert first is not None
    assert box["y"] + box["height"] <= first["y"]


def test_enter_opens_the_first_hit_not_the_top_of_its_file(tab: Tab) -> None:
    tab.search("needle(4)")
    tab.tab.keyboard.press("Enter")
    sync_api.expect(tab.tab.locator("a.hit.line:focus")).to_have_count(1)
    tab.tab.keyboard.press("Enter")
    tab.wait(".row.chosen", "needle(4)")


def kinds_of(row: sync_api.Locator) -> list[tuple[str, str]]:
    """Return a line's coloured texts, each with its kind; neighbours of one kind are one."""
    pieces: list[tuple[str, str]] = row.locator("code").evaluate(
        """code => [...code.childNodes].map((node) => [
            (node.className ?? "").split(" ").find((name) => name.startsWith("t-")) ?? "", node.textContent])"""
    )
    joined: list[tuple[str, str]] = []
    for kind, text in pieces:
        if joined and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined


def test_a_hit_has_the_colours_of_its_whole_file(tab: Tab) -> None:
    tab.search("hidden_lock file:lock.c")
    row = tab.wait("a.hit.line", "don't sleep")
    sync_api.expect(row.locator(".t-keyword, .t-string")).to_have_count(0)
    assert {kind for kind, _ in kinds_of(row)} == {"t-comment"}
    code = tab.wait("a.hit.line", "= 1;")
    assert ("t-keyword", "static") in kinds_of(code)


def test_prose_has_the_colours_of_prose(tab: Tab) -> None:
    open_file(tab, "docs/paper.md", 1)
    rows = tab.tab.locator(".row")
    assert kinds_of(rows.nth(0)) == [("t-keyword", "# How it isn't")]
    assert kinds_of(rows.nth(2)) == [
        ("", "It doesn't open a *string*, "),
        ("t-string", "`needle`"),
        ("", " is code."),
    ]
    assert ("t-keyword", "return") in kinds_of(rows.nth(5))
    assert ("t-comment", "# a comment") in kinds_of(rows.nth(5))
    assert kinds_of(rows.nth(6)) == [("t-comment", "```")]
    open_file(tab, "docs/page.html", 1)
    assert kinds_of(rows.nth(0))[-3:] == [
        ("", '>It\'s not a string: "quoted"'),
        ("t-keyword", "</p"),
        ("", ">"),
    ]


def test_a_line_far_down_has_the_colours_of_its_whole_file(
    tab: Tab, root: Path
) -> None:
    long = root / "long comment.c"
    long.write_text("/*\n" + "return 'it\n" * 9_000 + "*/\nreturn 1;\n")
    try:
        open_file(tab, long.name, 8_500)
        row = tab.tab.locator(".row.chosen")
        sync_api.expect(row.locator(".t-comment")).to_have_count(1)
        assert kinds_of(row) == [("t-comment", "return 'it")]
    finally:
        long.unlink()


IS_CUT_AT_THE_LEFT = """() => [...document.querySelectorAll(".facet .name")].some((name) => {
    const text = name.querySelector("bdi").getBoundingClientRect();
    const frame = name.getBoundingClientRect();
    return text.width > frame.width && Math.abs(text.right - frame.right) < 2;
})"""


def test_folders_are_cut_at_the_left(tab: Tab, root: Path) -> None:
    deep = "a_rather_long_folder_name/another_quite_long_one"
    files = [root / deep / last / "x.txt" for last in ("first", "second")]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("deepest\n")
    try:
        tab.search("deepest")
        tab.wait(".facet button", "/first")
        tab.tab.wait_for_function(IS_CUT_AT_THE_LEFT)
        tab.show("folders")
    finally:
        shutil.rmtree(root / "a_rather_long_folder_name")


def test_a_tree_of_the_files_stands_beside_the_file(tab: Tab) -> None:
    open_file(tab, "src/app.py", 4)
    current = tab.wait(".tree [aria-current]")
    assert current.inner_text() == "app.py"
    tab.show("tree")
    tab.tab.locator(".tree button", has_text="web").click()
    tab.wait(".tree a", "page.js").click()
    tab.wait(".row", "export function hay")
    sync_api.expect(tab.tab.locator(".tree [aria-current]")).to_have_text("page.js")
    tab.tab.locator(".tree a", has_text="app.py").focus()
    for key, focused in (
        ("ArrowLeft", "src"),
        ("ArrowLeft", "src"),
        ("ArrowUp", "odd"),
        ("ArrowRight", "odd"),
        ("ArrowRight", "!a\\b[1]*.txt"),
    ):
        tab.tab.keyboard.press(key)
        sync_api.expect(tab.tab.locator(":focus")).to_have_text(focused)
    tab.tab.keyboard.press("Enter")
    tab.wait(".row", "nadel one")
    tab.tab.keyboard.press("f")
    sync_api.expect(tab.tab.locator(".tree")).to_be_hidden()
    tab.tab.keyboard.press("f")
    sync_api.expect(tab.tab.locator(".tree [aria-current]")).to_be_focused()


GO = "async (place) => (await import('/static/address.js')).go(place)"
"""As a link on the page does, which keeps the tree."""


@pytest.mark.parametrize("path", ["src/made_since.py", "src/made/inner/since.py"])
def test_the_tree_has_files_that_were_made_since_and_not_those_that_are_gone(
    tab: Tab, root: Path, path: str
) -> None:
    made = root / path
    try:
        open_file(tab, "src/app.py", 4)
        tab.wait(".tree [aria-current]")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text("made = 1\n")
        tab.tab.evaluate(GO, {"view": "file", "project": project_of(tab), "path": path})
        current = tab.tab.locator(".tree [aria-current]")
        sync_api.expect(current).to_have_text(made.name)
        made.unlink()
        folder = tab.tab.locator(f".tree button[data-path='{path.rpartition('/')[0]}']")
        folder.click()
        folder.click()
        gone = tab.tab.locator(".tree a", has_text=made.name)
        sync_api.expect(gone).to_have_count(0)
    finally:
        made.unlink(missing_ok=True)
        shutil.rmtree(root / "src/made", ignore_errors=True)


def test_the_tree_is_that_of_the_revision_and_names_stay_text(tab: Tab) -> None:
    open_file(tab, f"evil/{EVIL.replace('/', '')}.txt", 1)
    sync_api.expect(tab.tab.locator(".tree [aria-current]")).to_have_text(
        f"{EVIL.replace('/', '')}.txt"
    )
    assert not tab.tab.locator(".tree img").count()
    tab.tab.get_by_label("Revision").fill("HEAD~1")
    tab.tab.keyboard.press("Enter")
    tab.tab.wait_for_url("**rev=HEAD*")
    tab.wait(".tree [aria-current][href*='rev=HEAD%7E1']")


def test_a_permanent_link_shows_the_same_line_after_the_file_has_changed(
    tab: Tab, root: Path
) -> None:
    file = root / "src/app.py"
    before = file.read_text()
    head = git(root, "rev-parse", "HEAD").decode().strip()
    try:
        file.write_text("# new\n" + before)
        open_file(tab, "src/app.py", 5)
        tab.wait(".row.chosen", "def needle")
        tab.tab.keyboard.press("y")
        link = tab.wait("#status", head).inner_text().partition("http")
        tab.tab.locator("a.number", has_text="1").first.click()
        tab.tab.get_by_role("button", name="Permanent link").click()
        tab.wait("#status.error", "line 1 is not committed")
        tab.tab.goto("".join(link[1:]))
        tab.wait(".row.chosen", "def needle")
        sync_api.expect(tab.tab.locator(".row.chosen .number")).to_have_text("4")
        open_file(tab, "src/app.py", 1)
        file.rename(root / "moved.py")
        open_file(tab, "moved.py", 1)
        tab.tab.keyboard.press("y")
        tab.wait("#status.error", "this file is not committed")
    finally:
        (root / "moved.py").unlink(missing_ok=True)
        file.write_text(before)
    tab.wrong.clear()


def test_a_difference_has_lines_around_it_the_files_colours_and_its_words(
    tab: Tab, root: Path
) -> None:
    notes = "".join(f"static note {at}\n" for at in range(20))
    before = f"/*\n{notes}*/\nint needle = 1;\nint end;\n"
    after = before.replace("static note", "static word", 3).replace("= 1", "= 27")
    after = after.replace("int end;\n", "")
    file = root / "words.c"
    file.write_text(before)
    commit(root, "words")
    file.write_text(after)
    try:
        here = tab.tab.url.partition("/?")[0]
        query = {"view": "changes", "path": "words.c", "project": project_of(tab)}
        tab.tab.goto(f"{here}/?{urlencode(query)}")
        tab.wait("button.skipped", "unchanged lines")
        marked = tab.tab.locator(".diff mark.word").all_inner_texts()
        assert marked == ["note", "note", "note", "word", "word", "word", "1", "27"]
        removed = tab.wait(".diff .removed", "static note").first
        assert kinds_of(removed)[1:] == [("t-comment", "static note 0")]
        tab.show("diff")
        rows = tab.tab.locator(".diff .line")
        tab.wait("button.skipped").click()
        old, now = [], []
        for row in rows.all():
            numbers = row.locator(".number").all_inner_texts()
            text = row.locator("code").inner_text()
            if numbers[0]:
                old.append((int(numbers[0]), text[1:]))
            if numbers[1]:
                now.append((int(numbers[1]), text[1:]))
        assert old == list(enumerate(before.splitlines(), 1))
        assert now == list(enumerate(after.splitlines(), 1))
    finally:
        git(root, "reset", "-q", "--hard", "HEAD~1")


def test_a_commit_stays_with_its_line_after_lines_were_deleted(
    tab: Tab, root: Path
) -> None:
    file = root / "src/app.py"
    before = file.read_text()
    try:
        file.write_text(before.replace("\n\n\nneedle(4)", "\nneedle(4)"))
        open_file(tab, "src/app.py", 1)
        tab.tab.keyboard.press("b")
        row = tab.wait(".row", "needle(4)")
        sync_api.expect(row.locator("a.blame")).to_have_attribute("title", "second")
        above = tab.wait(".row", "return os.sep")
        sync_api.expect(above.locator("a.blame")).to_have_count(0)
    finally:
        file.write_text(before)


def test_long_documentation_leaves_the_definition_in_view(tab: Tab, root: Path) -> None:
    file = root / "documented.py"
    lines = "".join(f"    Line {at} says `more`.\n" for at in range(30))
    file.write_text(
        f'def speak():\n    """Speak.\n\n    ```\n    speak()\n    ```\n{lines}    """\n\n\nspeak()\n'
    )
    try:
        open_file(tab, file.name, 40)
        tab.tab.locator(".row.chosen code").get_by_text("speak").click()
        defined = tab.wait(".panel h2", "Defined").bounding_box()
        assert defined is not None
        assert defined["y"] < 450
        assert "```" not in tab.wait(".panel .doc").inner_text()
        tab.wait(".panel .doc pre", "speak()")
        tab.wait(".panel .rest", "More").click()
        tab.wait(".panel .doc", "Line 29 says more.")
    finally:
        file.unlink()


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


def test_the_history_of_a_folder_leads_to_the_folder_then(tab: Tab) -> None:
    tab.tab.get_by_role("link", name="Browse").click()
    tab.wait(".entries a", "src/").click()
    tab.wait(".entries a", "app.py")
    tab.tab.get_by_role("link", name="History").click()
    tab.wait(".commits li", "second").locator("a.hit").click()
    tab.wait(".diff .added", "+needle(4)")
    tab.tab.go_back()
    tab.wait(".commits li", "first").get_by_role("link", name="the files then").click()
    tab.wait(".entries a", "app.py").click()
    tab.wait(".row", "needle(3)")


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
