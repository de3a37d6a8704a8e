"""The settings that the page for editors prints, read by what they are for as far as it is here."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from flashgrep.cli.launcher import read_commands
from tests.conftest import DaemonAtHand
from tests.lsp.editor import Editor
from tests.support.examples import find_example

pytestmark = pytest.mark.slow
PAGE = "docs/editors.md"
FILL_QUICKFIX = """\
source settings.vim
silent grep! spin_lock
let places = map(getqflist(), {_, place -> [bufname(place.bufnr), place.lnum, place.col, place.text]})
call writefile([json_encode(places)], 'places.json')
quitall!
"""


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
def test_grep_in_vim_fills_the_quickfix_list(
    daemon: DaemonAtHand, linux: Path, tmp_path: Path
) -> None:
    settings = find_example(PAGE, "set grepprg").text
    script = FILL_QUICKFIX.replace("settings.vim", str(tmp_path / "settings.vim"))
    script = script.replace("places.json", str(tmp_path / "places.json"))
    (tmp_path / "settings.vim").write_text(settings)
    (tmp_path / "script.vim").write_text(script)
    daemon.shell(f"vim -es -u NONE -i NONE -S {tmp_path / 'script.vim'}", linux)
    places = json.loads((tmp_path / "places.json").read_text())
    assert places == [["mm/page.c", 2, 5, "int spin_lock(void)"]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_keys_of_a_shell_are_bound(
    daemon: DaemonAtHand, linux: Path, tmp_path: Path, shell: str
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (line,) = [
        line
        for line in find_example(PAGE, 'eval "$(flashgrep').commands
        if f"--keys {shell}" in line
    ]
    script = tmp_path / "keys"
    script.write_text(line)
    ran = daemon.shell(f"{program} -i {script}", linux)
    assert ran.returncode == 0, ran.stderr
    assert "not found" not in ran.stderr


def test_what_is_disabled_the_language_server_does_not_offer(
    daemon: DaemonAtHand, linux: Path
) -> None:
    options = json.loads(find_example(PAGE, '{"disabled"').text)
    editor = Editor(daemon, linux, options=options)
    for name in options["disabled"]:
        assert not getattr(editor.offered, f"{name}_provider")
    assert editor.offered.references_provider
    assert editor.close() == 0


def test_what_settings_of_other_editors_call_is_a_command() -> None:
    helix = tomllib.loads(find_example(PAGE, "[language-server").text)
    server = helix["language-server"]["flashgrep"]
    assert (server["command"], server["args"]) == ("flashgrep", ["lsp"])
    assert "flashgrep" in helix["language"][0]["language-servers"]
    (task,) = json.loads(find_example(PAGE, '[{"label"').text)
    program, command = task["command"].split()
    assert program == "flashgrep"
    assert {command, *server["args"]} <= read_commands().keys()
