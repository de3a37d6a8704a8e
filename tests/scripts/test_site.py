"""The documentation's site: every page is in its navigation, every link leads somewhere, and it builds strictly."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.tools.site import ROOT, SITE, write_sources

OTHER_HOSTS = re.compile(
    r"<(?:script|img|iframe|link rel=.?(?:stylesheet|preload))[^>]+https?://", re.ASCII
)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("site")
    write_sources(ROOT, build)
    return build


def test_every_page_is_in_the_navigation_once(sources: Path) -> None:
    settings = json.loads((sources / "mkdocs.yml").read_text("utf-8"))
    named = [
        page
        for section in settings["nav"]
        for names in section.values()
        for page in names
    ]
    pages = sources / "pages"
    there = [path.relative_to(pages).as_posix() for path in pages.rglob("*.md")]
    assert sorted(named) == sorted(there)


def test_what_models_are_told_to_read_is_there(sources: Path) -> None:
    told = (sources / "pages" / "llms.txt").read_text("utf-8")
    links = re.findall(r"- \[[^\]]+\]\((\S+)\)", told)
    assert len(links) > len(list((ROOT / "docs").glob("*.md")))
    for link in links:
        name = link.removeprefix(SITE).removesuffix("/")
        assert (sources / "pages" / f"{name}.md").is_file()


PICTURE = re.compile(r"!\[[^\]]+\]\(([^)\s]+)\)")


def test_every_picture_is_on_the_site_and_loads_nothing(sources: Path) -> None:
    pages = sources / "pages"
    shown = {
        (page.parent / picture).resolve()
        for page in pages.rglob("*.md")
        for picture in PICTURE.findall(page.read_text("utf-8"))
    }
    assert shown >= {path.resolve() for path in (pages / "pictures").iterdir()}
    for picture in shown:
        assert picture.stat().st_size <= 150_000
        if picture.suffix == ".svg":
            assert "url(http" not in picture.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="the extra docs is missing"
)
def test_it_builds_strictly_and_loads_nothing_from_elsewhere(
    sources: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q"]
    built = subprocess.run(
        [*command, "-f", str(sources / "mkdocs.yml"), "-d", str(tmp_path)],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stdout) == (0, ""), built.stderr
    for page in tmp_path.rglob("*.html"):
        assert not OTHER_HOSTS.search(page.read_text("utf-8")), page
