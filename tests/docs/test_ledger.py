"""Every fenced block of a document is run by a test, or named here with the reason why it is not."""

import re
import subprocess
from pathlib import Path

from tests.support.examples import ROOT, Example, read_examples

FENCE = re.compile(r"^ *(?:```|~~~)", re.MULTILINE)
DOCS = "tests/docs/test_"
RUN = {
    "README.md": {
        "pipx install": f"{DOCS}terminal.py",
        "$ fgrep query": f"{DOCS}terminal.py",
        "flashgrep install": f"{DOCS}agents.py",
        '{"mcpServers"': f"{DOCS}agents.py",
        "echo": f"{DOCS}terminal.py",
    },
    "CONTRIBUTING.md": {"scripts/metrics --tree": f"{DOCS}contributing.py"},
    "clients/typescript/README.md": {"import": "tests/client/test_typescript.py"},
    "docs/agents.md": {
        "flashgrep install ": f"{DOCS}agents.py",
        '{"mcpServers"': f"{DOCS}agents.py",
        "flashgrep install-hook": f"{DOCS}agents.py",
        "[[hooks]]": f"{DOCS}agents.py",
        "flashgrep gain": f"{DOCS}agents.py",
    },
    "docs/editors.md": {
        '{"disabled"': f"{DOCS}editors.py",
        "eval": f"{DOCS}editors.py",
        "set grepprg": f"{DOCS}editors.py",
        "[language-server": f"{DOCS}editors.py",
        '[{"label"': f"{DOCS}editors.py",
        '"""Live grep': "tests/editors/test_editors.py",
    },
    "docs/first-steps.md": {"$ ": f"{DOCS}first_steps.py"},
    "docs/index.md": {"pipx install": f"{DOCS}terminal.py"},
    "docs/python.md": {"": f"{DOCS}python.py"},
    "docs/scripts.md": {"echo": f"{DOCS}terminal.py"},
    "docs/servers.md": {"[servers]": f"{DOCS}settings.py"},
    "docs/settings.md": {
        "[embedding]": f"{DOCS}settings.py",
        "pip install": f"{DOCS}settings.py",
    },
    "docs/team.md": {
        "pip install": "tests/team/test_page_examples.py",
        "curl": "tests/team/test_page_examples.py",
        "# config.toml": f"{DOCS}settings.py",
        "fgrep query": "tests/team/test_page_examples.py",
        "fgrep team token": "tests/team/test_page_examples.py",
        "fgrep team init --shard": "tests/team/test_page_examples.py",
    },
    "docs/terminal.md": {
        "fgrep query": f"{DOCS}terminal.py",
        "mkdir": f"{DOCS}terminal.py",
    },
}
"""By page, then by how a block begins: the test that runs it."""
NOT_RUN = {
    "README.md": {"scripts/start": "a run of all tests; the first one is tests/cli/test_first_run.py"},
    "CONTRIBUTING.md": {"scripts/test": "it would run all tests inside one"},
    "docs/agents.md": {"claude plugin": "the hosts' own programs; tests/hook/test_plugins.py reads the plugins"},
    "docs/editors.md": {
        "{ dir": "a manager of Neovim's plugins; tests/editors runs the plugin, where Neovim is",
        "vim.opt": "Neovim; tests/editors",
        "vim.lsp": "Neovim; scripts/editors",
        "╭": "a picture",
        "FLASHGREP": "a picture",
        "text>": "a picture; tests/editors picks in a terminal",
        "cd editors/vscode": "Visual Studio Code; scripts/editors builds the extension",
        "(with-eval-after-load": "Emacs; tests/editors runs eglot, where it is",
        "set-option": "Kakoune",
    },
    "docs/how-it-works.md": {" terminal": "a picture"},
    "docs/team.md": {
        "# Caddyfile": "Caddy and nginx",
        "# nginx": "nginx; what it sends is sent in tests/team/test_page_examples.py",
    },
}  # fmt: skip
"""By page, then by how a block begins: why no test runs it."""


def list_pages() -> list[str]:
    """Return the documents for readers; those below tests and plugins are data."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        page
        for page in listed.stdout.splitlines()
        if not page.startswith(("tests/", "plugins/"))
    ]


def name(example: Example) -> str:
    return f"{example.page}: {example.text.partition(chr(10))[0]}"


def test_every_block_is_run_or_named_with_a_reason_and_nothing_else_is() -> None:
    unnamed: list[str] = []
    used: set[tuple[str, str]] = set()
    for page in list_pages():
        fences = FENCE.findall((ROOT / page).read_text("utf-8"))
        assert len(fences) == 2 * len(read_examples(page)), page
        starts = [*RUN.get(page, {}), *NOT_RUN.get(page, {})]
        for example in read_examples(page):
            matching = [start for start in starts if example.text.startswith(start)]
            used.update((page, start) for start in matching)
            if not matching:
                unnamed.append(name(example))
    assert unnamed == []
    named = {
        (page, start)
        for table in (RUN, NOT_RUN)
        for page in table
        for start in table[page]
    }
    assert named - used == set()


def test_each_block_that_is_run_is_read_by_its_test() -> None:
    for page, blocks in RUN.items():
        for test in blocks.values():
            program = (ROOT / test).read_text("utf-8")
            assert page in program or Path(page).name in program, (page, test)
            assert re.search(r"(find_example|read_examples)\(", program), test
