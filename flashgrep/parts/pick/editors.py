"""How editors are told to open a file at a place: each has options of its own."""

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from flashgrep.cli.daemon_client import fail

AT_LINE: Final = ("+{line}", "{path}")
"""What every vi understands, and most editors that descend from others."""
AT_CURSOR: Final = ("+call cursor({line},{column})", "{path}")
AT_COLON: Final = ("+{line}:{column}", "{path}")
AT_COMMA: Final = ("+{line},{column}", "{path}")
BEHIND_PATH: Final = ("{path}:{line}:{column}",)
GOTO: Final = ("--goto", "{path}:{line}:{column}")
LINE_COLUMN: Final = ("--line", "{line}", "--column", "{column}", "{path}")
GOTO_FLAGS: Final = frozenset({"-g", "--goto"})
FORMS: Final = {
    "vim": AT_CURSOR,
    "nvim": AT_CURSOR,
    "gvim": AT_CURSOR,
    "mvim": AT_CURSOR,
    "emacs": AT_COLON,
    "emacsclient": AT_COLON,
    "kak": AT_COLON,
    "micro": AT_COLON,
    "gedit": AT_COLON,
    "nano": AT_COMMA,
    "hx": BEHIND_PATH,
    "helix": BEHIND_PATH,
    "subl": BEHIND_PATH,
    "zed": BEHIND_PATH,
    "zeditor": BEHIND_PATH,
    "code": GOTO,
    "code-insiders": GOTO,
    "code-oss": GOTO,
    "codium": GOTO,
    "cursor": GOTO,
    "windsurf": GOTO,
    "kate": LINE_COLUMN,
    "idea": LINE_COLUMN,
    "pycharm": LINE_COLUMN,
    "goland": LINE_COLUMN,
    "clion": LINE_COLUMN,
    "webstorm": LINE_COLUMN,
    "rustrover": LINE_COLUMN,
}
"""The words after the command, by the name of the program; others get ``AT_LINE``."""
VARIABLES: Final = ("VISUAL", "EDITOR")
USUAL: Final = ("vi", "nano")
"""Tried in this order where no variable names an editor."""


def make_editor_command(
    environ: Mapping[str, str], path: str, line: int, column: int
) -> list[str]:
    """Return the command that opens a place in the user's editor; end this command if there is none."""
    words = find_editor(environ)
    form = FORMS.get(Path(words[0]).name, AT_LINE)
    # A path that begins with a dash or a plus would be an option.
    if not path.startswith(("/", "./", "../")):
        path = f"./{path}"
    values = {"path": path, "line": line, "column": column}
    arguments = [word.format_map(values) for word in form]
    if form is GOTO and not GOTO_FLAGS.isdisjoint(words):
        del arguments[0]
    return [*words, *arguments]


def find_editor(environ: Mapping[str, str]) -> list[str]:
    """Return the words of the user's editor: VISUAL or EDITOR, which may have arguments, or a usual one."""
    folders = environ.get("PATH", os.defpath)
    for variable in VARIABLES:
        editor = environ.get(variable, "").strip()
        if editor:
            words = _split(editor, folders)
            if not words:
                fail(f"{variable} has a quote that is not closed: {editor}")
            if not shutil.which(words[0], path=folders):
                fail(f"{variable} names an editor that is not there: {words[0]}")
            return words
    for name in USUAL:
        if shutil.which(name, path=folders):
            return [name]
    fail("no editor: set VISUAL or EDITOR to yours, or print the place with --print")
    return None


def _split(editor: str, folders: str) -> list[str]:
    """Return the words of a command as a shell reads them, none if it cannot; a program's path may have blanks."""
    if shutil.which(editor, path=folders):
        return [editor]
    try:
        return shlex.split(editor)
    except ValueError:
        return []
