"""``fgrep pick``: search as you type and open what you select; uses fzf if it is on PATH, else our own picker.

fzf runs one of our commands at each key and ends the previous one. Its bindings are shell commands, so we choose the
shell; fzf quotes the typed text itself.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from flashgrep.base.places import find_places
from flashgrep.cli.daemon_client import fail, failing_cleanly
from flashgrep.parts.pick.editors import make_editor_command

Kind = Literal["text", "files", "symbols", "meaning"]
NOTHING_CHOSEN: Final = 1
AROUND: Final = 40
"""Lines of preview before and after the one found."""
COMMANDS: Final[dict[Kind, str]] = {
    "text": "query --smart-case --column --limit 500 --max-tokens 100000",
    "files": "files --limit 1000",
    "symbols": "symbol --match fuzzy --limit 200",
    "meaning": "search-code --limit 30",
}
KEYS: Final = {
    "bash": """\
# Alt-G: search and edit; Alt-P: put the path of a file into the command line
_flashgrep_path() {
  local found; found=$(flashgrep pick --kind files --print) || return
  found=${found@Q}
  READLINE_LINE="${READLINE_LINE:0:READLINE_POINT}$found${READLINE_LINE:READLINE_POINT}"
  READLINE_POINT=$((READLINE_POINT + ${#found}))
}
bind -x '"\\eg": flashgrep pick'
bind -x '"\\ep": _flashgrep_path'
""",
    "zsh": """\
# Alt-G: search and edit; Alt-P: put the path of a file into the command line
_flashgrep_pick() { flashgrep pick </dev/tty; zle reset-prompt }
_flashgrep_path() {
  local found
  found=$(flashgrep pick --kind files --print </dev/tty) && LBUFFER+=${(q)found}
  zle reset-prompt
}
zle -N _flashgrep_pick
zle -N _flashgrep_path
bindkey '\\eg' _flashgrep_pick
bindkey '\\ep' _flashgrep_path
""",
    "fish": """\
# Alt-G: search and edit; Alt-P: put the path of a file into the command line
function _flashgrep_path
    set -l found (flashgrep pick --kind files --print); and commandline -i -- (string escape -- $found)
    commandline -f repaint
end
bind \\eg 'flashgrep pick; commandline -f repaint'
bind \\ep _flashgrep_path
""",
}


def pick(
    text: Annotated[str, typer.Argument(help="Text to begin with.")] = "",
    *,
    kind: Annotated[
        Kind, typer.Option("--kind", "-k", help="What to look for.")
    ] = "text",
    show: Annotated[
        bool,
        typer.Option(
            "--print", help="Print the place instead of opening it in $EDITOR."
        ),
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Do not use fzf.")] = False,
    keys: Annotated[
        Literal["bash", "zsh", "fish"] | None,
        typer.Option(help="Print key bindings for a shell and exit."),
    ] = None,
) -> None:
    """Search as you type, and open what you select; uses fzf if it is installed."""
    if keys is not None:
        sys.stdout.write(KEYS[keys])
        return
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        fail(
            "pick needs a terminal, and there is none; fgrep query and fgrep files need none"
        )
    if plain:
        program = None
    else:
        program = shutil.which("fzf")
    try:
        with failing_cleanly():
            if program:
                chosen = pick_by_fzf(program, find_own_command(), kind, text)
            else:
                chosen = pick_plainly(kind, text)
    except KeyboardInterrupt:
        chosen = ""
    if not chosen:
        raise typer.Exit(NOTHING_CHOSEN)
    path, line, column = split_place(chosen, kind)
    if show:
        if kind == "files":
            place = path
        else:
            place = f"{path}:{line}:{column}"
        # As bytes: a name on disk need not be text.
        typer.echo(os.fsencode(place))
        return
    command = make_editor_command(os.environ, path, line, column)
    # Its exit status is ours.
    os.execvp(command[0], command)  # noqa: S606 - the user's own editor


def find_own_command() -> list[str]:
    """Return the command by which a shell started by fzf runs us: never the name that may mean grep."""
    beside = Path(sys.argv[0]).with_name("flashgrep")
    if beside.is_absolute() and beside.exists():
        return [str(beside)]
    return [sys.executable, "-m", "flashgrep"]


def pick_plainly(kind: Kind, text: str) -> str:
    """Return what is chosen in our own picker, or nothing."""
    # curses, and the connection it keeps, are used only without fzf.
    return str(import_module("flashgrep.parts.pick.plain_picker").pick(kind, text))


def pick_by_fzf(fzf: str, own: Sequence[str], kind: Kind, text: str) -> str:
    """Return the line that is chosen in fzf, or nothing."""
    own_command = shlex.join(own)
    # "|| true": nothing found is status 1, which fzf shows as a failed command.
    ask = f"{own_command} {COMMANDS[kind]} -- {{q}} 2>/dev/null || true"
    if kind == "files":
        ask = f"if [ -n {{q}} ]; then {ask}; else {own_command} {COMMANDS[kind]}; fi"
    arguments = [
        fzf,
        "--disabled",
        "--query",
        text,
        "--bind",
        f"start:reload:{ask}",
        "--bind",
        f"change:reload:{ask}",
    ]
    arguments += [
        "--delimiter",
        ":",
        "--layout",
        "reverse",
        "--info",
        "inline",
        "--prompt",
        f"{kind}> ",
    ]
    if kind == "files":
        preview = f"{own_command} slice -- {{}} 1 {2 * AROUND}"
    else:
        first = f"l={{2}}; f=$((l > {AROUND} ? l - {AROUND} : 1))"
        # Empty lines in place of those before: fzf scrolls to the number of the line.
        before = "yes '' | head -n $((f - 1))"
        lines = f'{own_command} slice -- {{1}} "$f" $((l + {AROUND})) | nl -ba -w1 -s" " -v"$f"'
        preview = f"{first}; {before}; {lines}"
        # The matching line is in the middle, except near the start of a file.
        arguments += ["--preview-window", "up,50%,+{2}-/2"]
    process = subprocess.run(
        [*arguments, "--preview", preview],
        # fzf runs bindings by $SHELL; in fish or csh ours would be syntax errors.
        env={**os.environ, "SHELL": "/bin/sh"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
    )
    return process.stdout.decode(errors="surrogateescape").rstrip("\n")


def split_place(chosen: str, kind: Kind) -> tuple[str, int, int]:
    """Return the path, line and column of a line of results."""
    if kind == "files":
        return chosen, 1, 1
    places = list(find_places(chosen))
    if not places:
        return chosen, 1, 1
    # A file's name may have colons and numbers itself.
    place = places[0]
    for reading in places:
        if Path(reading.path).exists():
            place = reading
            break
    return place.path, place.first, place.column or 1
