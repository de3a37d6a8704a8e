"""The command lines by which editors and agents call ripgrep print the same from ``fgrep rg``.

Read from their sources in 2026, as they are with their default settings.
"""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import FGREP, DaemonAtHand
from tests.support.rg_tree import make_tree, ripgrep, run_to_end

VSCODE = (
    "-g '!**/.git' -g '!**/.svn' -g '!**/.hg' -g '!**/.DS_Store' -g '!**/node_modules'"
)
CLAUDE_CODE = "--hidden --glob !.git --glob !.svn --glob !.hg --glob !.bzr --glob !.jj --glob !.sl --max-columns 500"
GEMINI = "--glob '!**/node_modules/**' --glob '!**/.git/**' --glob '!*.log' --glob '!*.tmp' --threads 4"
SNACKS = (
    "--color=never --no-heading --with-filename --line-number --replace '<${0}>' --column --smart-case"
    " --max-columns=500 --max-columns-preview --glob=!.bare --glob=!.git -0"
)
RG_EL = (
    "--color=always --colors=match:fg:red --colors=path:fg:magenta --colors=line:fg:green --colors=column:none -n"
    " --column --type-add=gyp:*.gyp --type-add=gyp:*.gypi --heading --no-config"
)
TELESCOPE = (
    "--color=never --no-heading --with-filename --line-number --column --smart-case"
)
CONSULT = (
    "--null --line-buffered --color=never --max-columns=1000 --path-separator / --smart-case --no-heading"
    " --with-filename --line-number --search-zip"
)
FZF_LUA = (
    "--column --line-number --no-heading --color=always --smart-case --max-columns=4096"
)
DEADGREP = "--color=ansi --line-number --no-heading --no-column --with-filename"
OPENCODE_1 = "-nH --hidden --no-messages '--field-match-separator=|' --regexp needle"

CALLS = {
    # microsoft/vscode src/vs/workbench/services/search/node/ripgrepTextSearchEngine.ts,
    # ripgrepFileSearch.ts
    "vscode text": f"--hidden --no-require-git --ignore-case {VSCODE} --no-ignore-parent --follow --crlf"
    " --fixed-strings --no-config --no-ignore-global --json -- needle .",
    "vscode regex": f"--hidden --no-require-git --case-sensitive -g '!*' -g /sub -g '/sub/**' {VSCODE}"
    " --no-ignore-parent --follow --crlf --engine auto --regexp 'need.e' --no-config --no-ignore-global --json"
    " --before-context 1 --after-context 1 -- .",
    "vscode files": f"--files --hidden --case-sensitive --no-require-git {VSCODE} --no-ignore-parent --follow"
    " --no-config --no-ignore-global",
    # anomalyco/opencode packages/core/src/ripgrep.ts; before that
    # packages/opencode/src/tool/grep.ts
    "opencode": "--no-config --json --hidden --no-messages --glob=*.c '--glob=!**/.git/**' -- needle .",
    "opencode files": "--no-config --files --hidden '--glob=**/*.py' '--glob=!**/.git/**' .",
    "opencode 1": f"{OPENCODE_1} --glob '*.{{c,py}}' {{root}}",
    # Claude Code: the Grep and Glob tools of its npm package
    "claude code": f"{CLAUDE_CODE} -l needle {{root}}",
    "claude code content": f"{CLAUDE_CODE} -i -n -C 2 'Need.e' --type py {{root}}",
    "claude code count": f"{CLAUDE_CODE} -c -H needle --glob '*.txt' --glob '*.{{c,h}}' {{root}}/sub",
    "claude code multiline": f"{CLAUDE_CODE} -U --multiline-dotall -n 'foo.*needle' {{root}}",
    "claude code glob": "--files --glob '**/*.py' --sort=modified --no-ignore --hidden {root}",
    # openai/codex codex-rs/core/src/tools/handlers/grep_files.rs
    "codex": "--files-with-matches --sortr=modified --regexp needle --no-messages --glob '*.txt' -- {root}",
    # cline/cline src/services/ripgrep/index.ts
    "cline": "--json -e 'need[l]e' --glob '*' --context 1 {root}",
    # google-gemini/gemini-cli packages/core/src/tools/ripGrep.ts
    "gemini-cli": f"--json --hidden --ignore-case --regexp needle --max-count 5 --glob '*.py' {GEMINI} {{root}}",
    # nvim-telescope/telescope.nvim lua/telescope/config.lua, builtin/__files.lua
    "telescope": f"{TELESCOPE} -- needle .",
    "telescope filtered": f"{TELESCOPE} --type=c '--glob=!sub-y/**' --hidden -- needle sub .",
    "telescope files": "--files --color never",
    # ibhagwan/fzf-lua lua/fzf-lua/defaults.lua, make_entry.lua
    "fzf-lua": f"{FZF_LUA} -e needle",
    "fzf-lua glob": f"{FZF_LUA} --fixed-strings --iglob '*.PY' --iglob '!sub/**' -e needle",
    # folke/snacks.nvim lua/snacks/picker/source/grep.lua
    "snacks": f"{SNACKS} --no-hidden -- needle",
    "snacks filtered": f"{SNACKS} --hidden -g '!*.log' -t c -t py --fixed-strings -g '*.c' -- needle {{root}}/sub",
    # minad/consult consult.el
    "consult": f"{CONSULT} -e needle .",
    "consult words": f"{CONSULT} -P -e '^(?=.*needle)(?=.*it)' sub .",
    # Wilfred/deadgrep deadgrep.el
    "deadgrep": f"{DEADGREP} --fixed-strings --smart-case --glob=!/.git --hidden -- needle .",
    "deadgrep context": f"{DEADGREP} --case-sensitive --type=c --before-context=1 --after-context=2 --glob=!/.git"
    " -- needle .",
    # dajva/rg.el rg.el
    "rg.el": f"{RG_EL} --fixed-strings -e needle",
    "rg.el type": f"{RG_EL} -i '--type-add=custom:*.c' --type=custom -e need.e",
}


@pytest.fixture(scope="module")
def root(
    daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("callers") / "tree"
    root.mkdir()
    make_tree(root)
    for name in (
        "a.txt",
        "b.py",
        ".hidden.py",
        ".hid/inner.txt",
        "sub/one.c",
        "sub/deep/er/five.py",
        "ignored.log",
    ):
        path = root / name
        path.write_bytes(
            path.read_bytes() + b"\n  a needle in it\nNeedle other_words\n"
        )
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    added = daemon.run("index", str(root))
    assert added.returncode == 0, added.stderr
    yield root
    assert daemon.run("projects", "remove", str(root)).returncode == 0


@pytest.mark.parametrize("name", CALLS)
def test_it_prints_what_ripgrep_prints_to_its_callers(
    daemon: DaemonAtHand, root: Path, name: str
) -> None:
    arguments = [word.replace("{root}", str(root)) for word in shlex.split(CALLS[name])]
    ours = run_to_end([FGREP, "rg", *arguments], root, daemon.environ)
    theirs = ripgrep(arguments, root)
    # Files come in any order, each with its lines together; all else is equal.
    assert sorted(ours.stdout.splitlines(), key=repr) == sorted(
        theirs.stdout.splitlines(), key=repr
    )
    assert (ours.stderr, ours.status) == (theirs.stderr, theirs.status)
    assert theirs.stdout
    in_order = ["--sort=path", *arguments]
    assert run_to_end([FGREP, "rg", *in_order], root, daemon.environ) == ripgrep(
        in_order, root
    )
