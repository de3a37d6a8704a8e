"""``flashgrep hook``: what a host's hook runs before a shell command, and the searches that it puts in its place.

    flashgrep hook [HOST]               read a host's payload, print what it is to run instead
    flashgrep hook --explain 'COMMAND'  say what would happen to a command, and why
    flashgrep hook grep|rg|find|git ARGUMENTS  run that program, on the files that the index does not rule out

It fails open: without a daemon, or with one that is slow, of another version or wrong, a payload is answered with
nothing and a program runs as it was called. Only a pattern that would take all memory is refused. Standard library only,
and little of it: each call of a host pays for it.
"""

import os
import stat
import sys

from flashgrep.base.paths import (
    PATH_MAP_VARIABLE,
    Paths,
    as_latin1,
    describe_failure,
    find_program,
    find_ripgrep,
    measure_room,
    state_folder,
)
from flashgrep.base.program_name import tell
from flashgrep.cli import launcher
from flashgrep.rpc import light

HOOK = "hook"
PAYLOAD = "payload"
EXPLAIN = "--explain"
PROGRAMS = ("find", "git", "grep", "rg")
"""What runs in place of a search that was typed."""
SECONDS = 0.25
"""To wait for a plan: after that the program alone is faster."""
HOST_SECONDS = 2.0
"""To wait for the answer to a payload; hosts wait for 30 to 60 seconds."""
HARMLESS_TO_GIT = (
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_TERMINAL_PROMPT",
    "GIT_ASKPASS",
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_HTTP_",
    "GIT_SSH",
    "GIT_SSL_",
)
"""Of git's variables, those that a search does not heed, by what their names begin with."""
NO_MONITOR = (b"-c", b"core.fsmonitor=false")
"""git runs the program that this setting names, which a repository may bring along, before it searches."""
EVERY_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
"""Folders that login shells search on every system."""
ERROR = 2
USAGE = """usage: flashgrep hook [HOST] < PAYLOAD
       flashgrep hook --explain COMMAND
       flashgrep hook grep|rg|find|git ARGUMENTS
"""


def main(arguments: list[str]) -> int:
    """Run one call, and return its exit status; a program that is run takes this one's place."""
    if arguments:
        first = arguments[0]
    else:
        first = ""
    name = name_program(first)
    if name in PROGRAMS:
        return become(name, first, arguments[1:])
    if first == EXPLAIN and len(arguments) > 1:
        return explain(" ".join(arguments[1:]))
    if len(arguments) > 1 or first.startswith("-"):
        if first in {"--help", "-h"}:
            os.write(1, USAGE.encode())
            return 0
        os.write(2, USAGE.encode())
        return ERROR
    return answer_payload(first)


def answer_payload(host: str) -> int:
    """Print what a host is to run instead of the command in the payload on standard input."""
    text = sys.stdin.buffer.read().decode(errors="replace")
    try:
        result = ask([PAYLOAD, host], HOST_SECONDS, payload=text)
        message = result["stdout"]
    except (OSError, ValueError, KeyError, TypeError):
        message = ""
    # Cursor wants an object, whatever happens.
    if host == "cursor" and not message:
        message = "{}"
    os.write(1, message.encode())
    return 0


def explain(command: str) -> int:
    """Print what would happen to a command."""
    try:
        explained = ask([EXPLAIN, as_latin1(command)], HOST_SECONDS)["stdout"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = describe_failure(error)
        note = f"fgrep: every command runs as it is typed: {reason}\n"
        tell(note)
        return ERROR
    os.write(1, explained.encode(errors="surrogateescape"))
    return 0


def name_program(word: str) -> str:
    """Return the name of a program that is given by its path in a folder of the system, else the word itself."""
    folder, _, name = word.rpartition("/")
    if folder in EVERY_PATH:
        return name
    return word


def become(name: str, typed: str, arguments: list[str]) -> int:
    """Exec a program on the files that may match, if a daemon knows them at once, else as it was called.

    ``typed``: its name, or its path.
    """
    program: str | None
    if typed != name:
        program = typed
    elif name == "rg":
        program = find_ripgrep(os.environ)
    else:
        program = find_program(name, os.environ)
    if program is None:
        os.write(2, f"{name}: command not found\n".encode())
        return 127
    calls = [[os.fsencode(word) for word in arguments]]
    if is_usual(name):
        try:
            result = ask(
                [name, *map(as_latin1, arguments)],
                SECONDS,
                program=as_latin1(program),
                home=as_latin1(os.environ.get("HOME", "")),
                settings=as_latin1(os.environ.get("XDG_CONFIG_HOME", "")),
            )
            if result.get("refusal"):
                os.write(2, f"flashgrep: {result['refusal']}\n".encode())
                return ERROR
            # A list of words; None: as it was called.
            if result["plan"] is not None:
                calls.insert(0, [word.encode("latin-1") for word in result["plan"]])
            if result.get("note"):
                os.write(2, f"flashgrep: {result['note']}\n".encode())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
    if name == "git":
        calls = [[*NO_MONITOR, *call] for call in calls]
    launcher.restore_signals()
    return launcher.become(program, typed, calls, launcher.restore_environment())


def is_usual(name: str) -> bool:
    """Return whether no variable changes what a program's arguments mean, or what it searches."""
    # getopt reads flags after operands in another way; a plan has the daemon's paths.
    if os.environ.get("POSIXLY_CORRECT") or os.environ.get(PATH_MAP_VARIABLE):
        return False
    if name != "git":
        return True
    variables = [word for word in os.environ if word.startswith("GIT_")]
    return all(word.startswith(HARMLESS_TO_GIT) for word in variables)


def ask(argv: list[str], seconds: float, **more: str) -> dict[str, str]:
    """Return what the running daemon answers.

    Raises:
        OSError, ValueError, KeyError: none runs, or it does not answer in time, or not this.

    """
    request: dict[str, object] = {
        "argv": [HOOK, *argv],
        "cwd": as_latin1(os.getcwd()),
        "flashgrep": find_own_name(),
        "config": as_latin1(os.environ.get("RIPGREP_CONFIG_PATH", "")),
        "readable_input": has_readable_input(),
        "room": measure_room(),
        **more,
    }
    try:
        connection = light.connect(Paths(state_folder(os.environ)).socket, seconds)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        # The system's words would name a file that nobody has typed.
        raise OSError("no daemon runs; fgrep daemon start") from error
    try:
        return light.send(connection, "$/cli", request)["result"]
    finally:
        connection.close()


def find_own_name() -> str:
    """Return how any shell finds this program: by its name in a folder that is on every PATH, else by its path, quoted.

    A host may run commands in a login shell, as Codex does, and the system's profile sets its PATH anew.
    """
    path = os.path.abspath(sys.argv[0])
    if os.path.dirname(path) in EVERY_PATH:
        return os.path.basename(path)
    if path.isascii() and path.replace("/", "").replace(".", "").isalnum():
        return path
    # As shlex.quote, whose import takes 5 ms.
    return "'" + path.replace("'", "'\"'\"'") + "'"


def has_readable_input() -> bool:
    """Return whether standard input is what ripgrep searches if it is given no path."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:  # closed
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
