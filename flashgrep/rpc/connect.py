"""Connect to the daemon, and start it if none answers; if that fails, a process of our own answers instead.

Standard library only, and little of that: every hot command pays for what is imported here.
"""

import fcntl
import json
import os
import select
import socket
import sys
import time
from collections.abc import Mapping

from flashgrep import __version__
from flashgrep.base.paths import (
    CACHE_OVERRIDE,
    PACKAGE,
    STATE_OVERRIDE,
    Paths,
    UnusableFolder,
    as_latin1,
    make_private,
)
from flashgrep.base.plain_files import open_plain_file
from flashgrep.base.program_name import tell
from flashgrep.rpc.light import CONNECT_SECONDS, PIECE_BYTES, Answer
from flashgrep.rpc.longpath import use_short_name

READY_SECONDS = 30.0
"""A daemon waits up to 15 s for its predecessor to exit; importing and opening sockets takes well under 1 s."""
LAST_BYTES = 2000
"""Of the crash log, looked at for why a daemon ended."""
NO_SUCH_METHOD = "-32601"
DIGITS = "0123456789"
PRERELEASES = {"dev": -4, "a": -3, "b": -2, "rc": -1}
"""What comes before a release, the earliest first."""
DAEMON_MODULE = "flashgrep.cli.daemon_process"
WRONG_SETTINGS = "settings: "
"""What a daemon puts before its reason if its settings prevent the start."""
SOURCES = (".py", ".scm", ".js", ".css", ".html")
"""Endings of the package's files whose change means other code."""
DETACH = os.path.join(PACKAGE, "daemon", "detach.py")
"""A separate program, run by path."""
NUMPY_DISABLE = "NPY_DISABLE_CPU_FEATURES"
NUMPY_ENABLE = "NPY_ENABLE_CPU_FEATURES"
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
CPUINFO_BYTES = 8192
"""The entry of the first processor has about 1,500 bytes."""


class StartFailed(OSError):
    """No daemon answers and none could be started; the message says why, and where to look."""


class WrongSettings(StartFailed):
    """No daemon could be started because of the user's settings, which a process of our own would reject as well."""


def connect(paths: Paths, environ: Mapping[str, str], path: str = "") -> socket.socket:
    """Return a connection to the daemon at ``path`` (default: its control socket), starting the daemon if need be.

    A daemon that runs older code than this is replaced unless calls are in flight.

    Raises:
        StartFailed: the daemon could not be started.
        PermissionError: the state folder is not safe to use.

    """
    connection = try_connect(path or paths.socket)
    # Only for the control socket: a project's socket does not report its version.
    if connection is not None and not path:
        try:
            is_older = _is_older(connection)
        except ConnectionError:
            connection.close()
            raise
        if is_older:
            connection.close()
            connection = None
    if connection is None:
        start_daemon(paths, environ)
        connection = try_connect(path or paths.socket)
    if connection is None:
        raise StartFailed(
            f"the daemon is running but does not answer at {path or paths.socket}"
        )
    return connection


def connect_or_alone(paths: Paths, environ: Mapping[str, str]) -> socket.socket:
    """Return a connection to the daemon or, if none can be started, to a process that answers this client alone.

    An unwritable state folder, a full disk or a sandbox must not prevent reading: that process scans. The reason is
    printed on standard error.

    Raises:
        ConnectionError: the daemon exited while we connected; the next one will answer.
        WrongSettings: the user's settings are wrong.
        OSError: not even that process can be started.

    """
    try:
        return connect(paths, environ)
    except (ConnectionError, WrongSettings):
        raise
    except OSError as error:
        note = f"fgrep: {error}; answering without the daemon, by scanning\n"
        tell(note)
    connection, matching_connection = socket.socketpair()
    with matching_connection:
        # Kept across exec; our own end is close-on-exec, so that it ends with this
        # process.
        os.set_inheritable(matching_connection.fileno(), True)
        command = [
            sys.executable,
            "-P",
            "-m",
            DAEMON_MODULE,
            "--alone-fd",
            str(matching_connection.fileno()),
        ]
        # Its output must not get between the lines of a protocol.
        os.posix_spawn(
            sys.executable,
            command,
            tune_numpy(environ),
            file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)],
        )
    connection.settimeout(READY_SECONDS)
    # Its answer shows that the process is up; otherwise a failed start would hang the
    # caller's first request.
    send_request(connection, "$/version", {})
    connection.settimeout(None)
    return connection


def try_connect(path: str, seconds: float = CONNECT_SECONDS) -> socket.socket | None:
    """Return a connection to the Unix socket at ``path``, or None if nothing listens there."""
    try:
        connection = connect_unix(path, seconds)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        return None
    connection.settimeout(None)
    return connection


def connect_unix(path: str | bytes, timeout: float | None = None) -> socket.socket:
    """Return a socket connected to the one at ``path``; ``timeout`` in seconds stays set on it.

    Raises:
        OSError: nobody listens there.

    """
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connected.settimeout(timeout)
        use_short_name(os.fsencode(path), connected.connect)
    except BaseException:
        connected.close()
        raise
    return connected


def send_request(
    connection: socket.socket, method: str, params: dict[str, object]
) -> Answer:
    """Send one request and return its response.

    Raises:
        ConnectionError: the daemon exited first.

    """
    connection.sendall(encode_request(method, params))
    answer: Answer = json.loads(receive_answer(connection))
    return answer


def encode_request(method: str, params: Mapping[str, object]) -> bytes:
    """Return the only request in flight on a connection, as a line."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return json.dumps(request).encode() + b"\n"


def receive_answer(connection: socket.socket) -> bytes:
    """Return the answer to the only request in flight: a line; raise ConnectionError if the daemon exited first."""
    pieces: list[bytes] = []
    # One request is in flight, so the first line end ends the answer.
    while not pieces or not pieces[-1].endswith(b"\n"):
        piece = connection.recv(PIECE_BYTES)
        if not piece:
            raise ConnectionResetError(
                "the daemon ended before it answered; its log: fgrep daemon logs"
            )
        pieces.append(piece)
    return b"".join(pieces)


def has_input(connection: socket.socket) -> bool:
    """Return whether something waits to be received, the end of input included."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def connect_folder(
    control: socket.socket,
    paths: Paths,
    environ: Mapping[str, str],
    folder: str,
    *,
    adopt: bool,
) -> socket.socket:
    """Return a connection bound to the project around ``folder``, or to none if there is none.

    ``control``: a connection to the control socket, which is closed or returned. ``adopt``: make the folder a project
    if it is in none.

    Raises:
        StartFailed: the folder cannot be a project.

    """
    answer = send_request(
        control, "$/open", {"folder": as_latin1(folder), "adopt": adopt}
    )
    if "error" in answer:
        control.close()
        raise StartFailed(answer["error"]["message"])
    path = answer["result"]["socket"]
    if (
        path is None
    ):  # no project, or a folder that cannot hold a socket: the daemon has bound this connection
        return control
    control.close()
    return connect(paths, environ, os.fsdecode(path.encode("latin-1")))


def start_daemon(paths: Paths, environ: Mapping[str, str]) -> None:
    """Start the daemon unless one answers meanwhile; of many concurrent callers one starts it and the others wait.

    A daemon with older code than ours is asked to exit first, and stays if it has calls in flight.

    Raises:
        StartFailed: it did not become ready.

    """
    try:
        make_private(paths.state)
    except UnusableFolder as error:
        raise StartFailed(f"{error}; {STATE_OVERRIDE} names another one") from error
    lock = open_plain_file(paths.start_lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(
            lock, fcntl.LOCK_EX
        )  # its holder releases it after READY_SECONDS at the latest
        connection = try_connect(paths.socket)
        try:
            # The previous holder of the lock may have started a daemon that answers
            # now: ask again.
            is_gone = connection is None or _retire(connection)
        except ConnectionError:  # it exited while it was asked
            is_gone = True
        if is_gone:
            _spawn(paths, environ)
    finally:
        os.close(lock)


def is_starting(paths: Paths) -> bool:
    """Return whether another process is starting a daemon."""
    try:
        lock = open_plain_file(paths.start_lock, os.O_RDWR)
    except OSError:
        return False
    try:
        # A shared lock: two concurrent checks must not take each other for a start.
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _is_older(connection: socket.socket) -> bool:
    """Return whether the daemon runs older code than ours.

    Only the newer one replaces the other, so that two installations do not take turns restarting it.
    """
    answer = send_request(connection, "$/version", {})
    if "error" in answer:
        if str(answer["error"]["code"]) == NO_SUCH_METHOD:  # it is too old to be asked
            return True
        raise StartFailed(answer["error"]["message"])
    daemon = answer["result"]
    version = parse_version(daemon["version"])
    known_version = parse_version(__version__)
    if version != known_version:
        return version < known_version
    # An upgrade may keep the version: a reinstallation, or a pull into an editable
    # installation.
    if daemon["folder"] == PACKAGE:
        return bool(daemon["changed"])
    # What it has not imported yet is gone: its installation was removed.
    if daemon["changed"] and not os.path.isdir(str(daemon["folder"])):
        return True
    # Two installations of one version: the newer code answers for both. The order is
    # total, so they take no turns.
    if "newest_source" not in daemon:
        return False
    running = int(daemon["newest_source"]), int(daemon["source_files"])
    return running < find_newest_source(PACKAGE)


def find_newest_source(folder: str) -> tuple[int, int]:
    """Return the time of the newest source file below a folder in nanoseconds, and how many there are.

    What vanishes meanwhile, or cannot be read, is passed over: an upgrade or an editor may be at work in the folder.
    """
    newest = 0
    count = 0
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as listing:
                entries = list(listing)
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    folders.append(entry.path)
            elif entry.name.endswith(SOURCES):
                try:
                    changed = entry.stat().st_mtime_ns
                except OSError:
                    continue
                newest = max(newest, changed)
                count += 1
    return newest, count


def parse_version(version: str) -> list[int]:
    """Return the numbers of a version, in the order of Python's versions: 1.0.0rc1 is older than 1.0.0.

    What follows a plus sign is ignored.
    """
    numbers: list[int] = []
    for part in version.partition("+")[0].split("."):
        letters = part.strip(DIGITS)
        if not letters:
            numbers.append(int(part or 0))
            continue
        first, _, last = part.partition(letters)
        if first:
            numbers.append(int(first))
        numbers.append(PRERELEASES.get(letters, 0))
        if last:
            numbers.append(int(last))
    # A release is newer than what comes before it and has more parts.
    numbers.append(0)
    return numbers


def _retire(connection: socket.socket) -> bool:
    """Ask a daemon with older code to exit, and report it on standard error; return whether it exits now. Closes."""
    with connection:
        if not _is_older(connection):
            return False
        answer = send_request(connection, "$/retire", {})
        if (
            "error" in answer
        ):  # it cannot tell calls from connections: if ours is the only one, it has no calls
            ending = (
                str(send_request(connection, "$/status", {})["result"]["clients"])
                == "1"
            )
            if ending:
                send_request(connection, "$/shutdown", {})
        else:
            ending = bool(answer["result"]["ending"])
    if ending:
        what = f"replaced by {__version__}"
    else:
        what = "still busy; it exits when its calls are done"
    note = f"fgrep: the daemon runs older code: {what}\n"
    tell(note)
    return ending


def _spawn(paths: Paths, environ: Mapping[str, str]) -> None:
    """Start a detached daemon and wait until it reports through a pipe that it listens, or why it cannot."""
    reader, writer = os.pipe()
    output = -1
    try:
        os.set_inheritable(writer, True)
        # -P: the current folder must not be importable, since a repository may contain
        # a json.py.
        daemon = [sys.executable, "-P", "-m", DAEMON_MODULE, "--ready-fd", str(writer)]
        command = [sys.executable, "-I", "-S", DETACH, str(writer), *daemon]
        output = _open_crash_log(paths)
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        # The daemon leaves the current folder, from which our own folders may have been
        # named.
        folders = {
            name: os.path.abspath(environ[name])
            for name in (STATE_OVERRIDE, CACHE_OVERRIDE)
            if environ.get(name)
        }
        environ = tune_numpy({**environ, **folders})
        child = os.posix_spawn(
            sys.executable, command, environ, file_actions=actions, setsid=True
        )
        os.close(writer)  # else the pipe would stay open after the daemon exits
        writer = -1
        line = _read_line(reader, time.monotonic() + READY_SECONDS)
        os.waitpid(
            child, 0
        )  # detach forks the daemon away from this child, which exits at once
    finally:
        for end in (reader, writer, output):
            if end >= 0:
                os.close(end)
    if line != b"ready\n":
        reason = line.decode(errors="replace").strip()
        if reason.startswith(WRONG_SETTINGS):
            raise WrongSettings(reason.removeprefix(WRONG_SETTINGS))
        if (
            not reason
        ):  # it died before it could say why: the interpreter's message is in the log
            reason = f"{_read_last_crash(paths)} (see {paths.crash_log})"
        raise StartFailed(f"the daemon could not be started: {reason}")


def _open_crash_log(paths: Paths) -> int:
    try:
        return open_plain_file(paths.crash_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except OSError as error:
        tell(f"fgrep: {error}; what a crash would print is lost\n")
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def _read_last_crash(paths: Paths) -> str:
    try:
        with os.fdopen(open_plain_file(paths.crash_log, os.O_RDONLY), "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - LAST_BYTES))
            lines = log.read(LAST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        lines = []
    if lines:
        return lines[-1]
    return "it gave no reason"


def _read_line(reader: int, until: float) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select(
            [reader], [], [], max(0.0, until - time.monotonic())
        )
        if not ready:
            return f"not ready after {READY_SECONDS:.0f} s".encode()
        piece = os.read(reader, 4096)
        if not piece:
            break
        line += piece
    return line


def tune_numpy(
    environ: Mapping[str, str], cpuinfo: str = "/proc/cpuinfo"
) -> dict[str, str]:
    """Return the environment for processes that use numpy; an explicit choice by the user is kept.

    Without threads of BLAS: we multiply nothing large, and each new thread spins for 30 ms before it sleeps, on every
    other core, at every start of a process. And without AVX-512 where it is slower: Zen 4 implements compressed vector
    stores in microcode, so numpy sorts 25,000 numbers at 18 ns each with AVX-512, 4 ns without.
    """
    environment = {BLAS_THREADS: "1", **environ}
    try:
        number = os.open(cpuinfo, os.O_RDONLY | os.O_CLOEXEC)
        try:
            processor = os.read(number, CPUINFO_BYTES).partition(b"\n\n")[0]
        finally:
            os.close(number)
    except OSError:  # no Linux
        return environment
    zen_3_or_4 = b"AuthenticAMD\ncpu family\t: 25\n" in processor
    if (
        zen_3_or_4
        and b" avx512f " in processor
        and NUMPY_DISABLE not in environ
        and NUMPY_ENABLE not in environ
    ):
        environment[NUMPY_DISABLE] = "X86_V4 AVX512_SKX"  # its name in numpy up to 2.4
    return environment
