"""Tests the page in a real browser, with screenshots in build/web; measures the time from keystroke to first result."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

ROOT: Final = Path(__file__).resolve().parents[2]
WORK: Final = ROOT / "build" / "web"
FGREP: Final = Path(sys.executable).with_name("flashgrep")
AXE: Final = WORK / "node_modules" / "axe-core" / "axe.min.js"
TYPED: Final = (
    "spin_lock_irqsave",
    "static int probe",
    "EXPORT_SYMBOL_GPL(",
    "container_of(",
    "no_such_name_anywhere",
    "TODO",
)
ROUNDS: Final = 3
WATCH: Final = """() => {
  const view = document.getElementById("view");
  let [began, tell] = [0, () => {}];
  addEventListener("input", () => {
    began = performance.now();
    window.answered = new Promise((resolve) => { tell = resolve; });
  }, true);
  new MutationObserver(() => {
    if (view.querySelector(".results")) requestAnimationFrame(() => tell(performance.now() - began));
  }).observe(view, { childList: true });
}"""


def main() -> None:
    """Run the tests, or measure; exit with the status of the tests."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--latency",
        type=Path,
        metavar="TREE",
        help="measure keystrokes in this tree instead",
    )
    parser.add_argument("--offline", action="store_true", help="install nothing")
    arguments = parser.parse_args()
    if arguments.latency:
        measure_keys(arguments.latency.resolve())
        return
    shots = WORK / "screenshots"
    shots.mkdir(parents=True, exist_ok=True)
    npm = shutil.which("npm")
    if not AXE.exists() and npm and not arguments.offline:
        subprocess.run(
            [
                npm,
                "install",
                "--silent",
                "--no-save",
                "--prefix",
                str(WORK),
                "axe-core@4",
            ],
            check=False,
        )
    environ = {
        **os.environ,
        "FLASHGREP_SCREENSHOTS": str(shots),
        "FLASHGREP_AXE": str(AXE),
    }
    tests = ["tests/web", "tests/team/test_page_browser.py"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        *tests,
    ]
    sys.exit(subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode)


@contextmanager
def serve_page(tree: Path) -> Iterator[str]:
    """Serve the page from the user's daemon; yield a link to it."""
    command = [str(FGREP), "web", "--no-browser", "--port", "0", str(tree)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield (process.stdout.readline() if process.stdout else "").strip()
        finally:
            process.send_signal(signal.SIGINT)


def find_chromium() -> str | None:
    """Return the system's Chromium, as tests/web/browser.py finds it."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def measure_keys(tree: Path) -> None:
    """Print the times from each keystroke to the first results on the screen, including the debounce delay."""
    times: dict[int, list[float]] = {}
    with serve_page(tree) as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox"]
        )
        tab = browser.new_page()
        tab.goto(link)
        tab.wait_for_url("**/?*")
        tab.wait_for_selector("#kinds label")
        tab.evaluate(WATCH)
        for _ in range(ROUNDS):
            for text in TYPED:
                tab.locator("#q").fill("")
                tab.wait_for_selector(".notice")
                for at, key in enumerate(text, 1):
                    tab.keyboard.type(key)
                    times.setdefault(at, []).append(
                        tab.evaluate("() => window.answered")
                    )
        browser.close()
    for name, first, last in (
        ("first two keys", 1, 2),
        ("third key on", 3, 99),
        ("all keys", 1, 99),
    ):
        found = sorted(
            one
            for at, several in times.items()
            if first <= at <= last
            for one in several
        )
        p50, p95, p99 = (found[int(len(found) * share)] for share in (0.5, 0.95, 0.99))
        figures = f"p50 {p50:6.0f} ms  p95 {p95:6.0f} ms  p99 {p99:6.0f} ms  most {found[-1]:6.0f} ms"
        print(f"{name:<16} {len(found):4} keys  {figures}")
    print("load:", " ".join(f"{one:.1f}" for one in os.getloadavg()))


if __name__ == "__main__":
    main()
