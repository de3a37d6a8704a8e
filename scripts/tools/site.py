"""Builds the documentation's site from ``docs/`` and the papers beside it: ``scripts/site [--sources-only]``.

The pages are written for a checkout, where links lead from one file to another. Here the papers outside ``docs/`` become
pages as well, links follow them, and a link to any other file leads to the repository.
"""

import json
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from flashgrep.base.installation import REPOSITORY

ROOT = Path(__file__).parents[2]
SITE: Final = "https://flashgrep.github.io/flashgrep/"
PAPERS: Final = {
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
    "skills/reference.md": "reference.md",
    "clients/typescript/README.md": "typescript.md",
}
"""Papers outside ``docs/`` that are pages, each with the page's name."""
PICTURES: Final = "docs/pictures"
"""Made by ``scripts/pictures``."""
SECTIONS: Final = {
    "Start": ("index", "first-steps", "coming-from", "how-it-works", "comparison"),
    "Use": ("terminal", "agents", "editors", "web", "python", "typescript", "scripts", "team", "servers"),
    "Look up": ("reference", "settings", "all-settings", "languages", "errors", "troubleshooting", "limits"),
    "About": ("security", "changelog", "contributing", "architecture", "decisions", "packaging/README"),
}  # fmt: skip
"""The pages in the order of the navigation; those of ``design/`` follow."""
LINK: Final = re.compile(r"(?<=\]\()(?!https?:|#|mailto:)(?P<path>[^)\s#]+)")
HEADING: Final = re.compile(r"^# (.+)$", re.MULTILINE)
LLMS_HEAD: Final = """# flashgrep

> Code search by a local daemon: exact text, symbols and meaning, over JSON-RPC, MCP and LSP. Agents start with
> `flashgrep mcp`; what each method takes is in the reference.
"""


def main(arguments: list[str]) -> int:
    """Write the pages, and build the site from them unless only these are wanted."""
    build = ROOT / "build" / "site-sources"
    shutil.rmtree(build, ignore_errors=True)
    write_sources(ROOT, build)
    if "--sources-only" in arguments:
        return 0
    site = ROOT / "build" / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    return subprocess.run(
        [*command, "-f", str(build / "mkdocs.yml"), "-d", str(site)], check=False
    ).returncode


def write_sources(root: Path, build: Path) -> None:
    """Write the pages, the settings of mkdocs and ``llms.txt`` into an empty folder."""
    pages = build / "pages"
    papers = {f"docs/{page}": page for page in list_docs(root)} | PAPERS
    charts = {
        f"docs/{chart.name}": chart.name for chart in (root / "docs").glob("*.svg")
    }
    moved = papers | charts
    for source, page in papers.items():
        text = (root / source).read_text("utf-8")
        (pages / page).parent.mkdir(parents=True, exist_ok=True)
        (pages / page).write_text(move_links(text, source, page, moved), "utf-8")
    for source, name in charts.items():
        shutil.copy(root / source, pages / name)
    shutil.copytree(root / PICTURES, pages / "pictures")
    example = (root / ".flashgrep.example").read_text("utf-8")
    settings = f"# All settings\n\n```toml\n{example}```\n"
    (pages / "all-settings.md").write_text(settings, "utf-8")
    (pages / "llms.txt").write_text(format_llms(pages), "utf-8")
    # JSON is YAML.
    settings = json.dumps(make_settings(pages), indent=1)
    (build / "mkdocs.yml").write_text(settings, "utf-8")


def list_docs(root: Path) -> list[str]:
    """Return the pages below ``docs/``, by path."""
    docs = root / "docs"
    return sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))


def move_links(text: str, source: str, page: str, moved: dict[str, str]) -> str:
    """Return a paper's text with links that hold where the page is."""
    here = posixpath.dirname(source)
    there = posixpath.dirname(page)

    def follow(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, link["path"]))
        if posixpath.dirname(target) == PICTURES:
            picture = posixpath.relpath(target, "docs")
            return posixpath.relpath(picture, there or ".")
        if target in moved:
            return posixpath.relpath(moved[target], there or ".")
        return f"{REPOSITORY}/blob/main/{target}"

    return LINK.sub(follow, text)


def list_sections(pages: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each section of the navigation with its pages."""
    for title, names in SECTIONS.items():
        yield title, [f"{name}.md" for name in names]
    design = sorted(path.name for path in (pages / "design").glob("*.md"))
    yield "Design", [f"design/{name}" for name in design]


def make_settings(pages: Path) -> dict[str, object]:
    """Return the settings of mkdocs: nothing is fetched from another host."""
    return {
        "site_name": "flashgrep",
        "site_url": SITE,
        "repo_url": REPOSITORY,
        "docs_dir": str(pages),
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.indexes", "content.code.copy", "search.suggest"],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
        },
        "plugins": ["search"],
        "markdown_extensions": ["admonition", "tables", "pymdownx.superfences"],
        "validation": {"anchors": "warn", "omitted_files": "warn"},
        "nav": [{title: names} for title, names in list_sections(pages)],
    }


def format_llms(pages: Path) -> str:
    """Return ``llms.txt``: what there is to read, for models."""
    lines = [LLMS_HEAD]
    for title, names in list_sections(pages):
        lines += [f"## {title}", ""]
        for name in names:
            heading = HEADING.search((pages / name).read_text("utf-8"))
            shown = heading[1] if heading else name
            lines.append(f"- [{shown}]({SITE}{name.removesuffix('.md')}/)")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
