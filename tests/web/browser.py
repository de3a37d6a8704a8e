"""The system's Chromium, and a tab of it on our page. Screenshots go where FLASHGREP_SCREENSHOTS says."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright import sync_api

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
SCREENSHOTS = os.environ.get("FLASHGREP_SCREENSHOTS", "")
MILLISECONDS = 30_000
IS_ANSWERED = """text => {
    const link = document.querySelector(".as button");
    return link !== null && new URL(link.title).searchParams.get("q") === text;
}"""
"""With an answer comes a link to its question."""


@contextmanager
def launch() -> Iterator[sync_api.Browser]:
    """Run the browser."""
    with sync_api.sync_playwright() as playwright:
        # In a container Chromium's own sandbox cannot start; what it shows here is
        # ours.
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


class Tab:
    """A tab of the browser on the page, and what went wrong in it."""

    def __init__(self, tab: sync_api.Page) -> None:
        self.tab = tab
        self.wrong: list[str] = []
        self.hosts: set[str] = set()
        self.referrers: set[str] = set()
        self.requests = 0
        tab.set_default_timeout(MILLISECONDS)
        tab.on("pageerror", lambda error: self.wrong.append(str(error)))
        tab.on("dialog", self._refuse)
        tab.on(
            "console",
            lambda said: self.wrong.append(said.text) if said.type == "error" else None,
        )
        tab.on("request", self._note)

    def _refuse(self, dialog: sync_api.Dialog) -> None:
        self.wrong.append(f"a script ran: {dialog.message}")
        dialog.dismiss()

    def _note(self, request: sync_api.Request) -> None:
        self.requests += 1
        self.hosts.add(request.url.partition("//")[2].partition("/")[0])
        self.referrers.add(request.headers.get("referer", ""))

    def type(self, text: str) -> None:
        """Type into the search box, in place of what is there."""
        self.tab.locator("#q").focus()
        self.tab.keyboard.press("ControlOrMeta+a")
        self.tab.keyboard.type(text)

    def search(self, text: str) -> None:
        """Type into the search box, and wait for the answer to all of it: what is half typed is answered, too."""
        self.type(text)
        self.tab.wait_for_function(IS_ANSWERED, arg=text)

    def wait(self, selector: str, text: str | None = None) -> sync_api.Locator:
        """Wait until something is on the page, with a text; return it."""
        found = self.tab.locator(selector)
        found = found if text is None else found.filter(has_text=text)
        found.first.wait_for()
        return found

    def show(self, name: str) -> None:
        """Keep a screenshot."""
        if SCREENSHOTS:
            self.tab.screenshot(path=str(Path(SCREENSHOTS) / f"{name}.png"))
