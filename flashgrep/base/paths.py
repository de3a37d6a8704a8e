"""The state, cache and configuration folders of one user, and their files. Standard library only."""

import os
import stat
import sys

TYPE_CHECKING = False
"""As in ``typing``: it and the ABCs of collections take 3 ms to import, of 11 that a command has."""
if TYPE_CHECKING:
    from collections.abc import Mapping

APP = "flashgrep"
PACKAGE = os.path.dirname(os.path.dirname(__file__))
STATE_OVERRIDE = "FLASHGREP_STATE_DIR"
CACHE_OVERRIDE = "FLASHGREP_CACHE_DIR"
CACHE_FOLDER = "cache"
"""Below a state folder set explicitly: a second daemon with its own state folder has its own index."""
GRAMMARS_FOLDER = "grammars"
"""Below the state folder, to which only the user may write: grammar libraries, unpacked on first use."""
MODELS_FOLDER = "models"
"""Below the state folder: the models that the user has added."""
PATH_MAP_VARIABLE = "FLASHGREP_PATH_MAP"
"""Path map of a client that sees other paths than the daemon: ``theirs=ours``, separated by commas."""
TEAM_TOKEN_VARIABLE = "FLASHGREP_TEAM_TOKEN"  # noqa: S105 - a variable's name
"""Token for the team's server."""
TEAM_DATABASE_VARIABLE = "FLASHGREP_TEAM_DATABASE"
"""Address of a team's store; it may contain a password, which other processes cannot see here."""
GRAMMARS_VARIABLE = "SEMBLE_GRAMMARS_CACHE_DIR"
"""Tells the package of grammars where to unpack them."""
PROJECT_FOLDER = ".flashgrep"
PROJECT_SOCKET = "mcp.sock"
PROJECT_CONFIG = "config.toml"
RIPGREP = "rg.exe" if sys.platform == "win32" else "rg"
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


class Paths:
    """The files of one state folder, as strings, because the client cannot afford to import pathlib."""

    __slots__ = (
        "cache",
        "crash_log",
        "lock",
        "log",
        "socket",
        "start_lock",
        "state",
        "token",
    )

    def __init__(self, state: str, cache: str | None = None) -> None:
        """``cache``: the folder of the indexes (``cache_folder``), by default one below the state folder."""
        self.state = state
        self.cache = cache or os.path.join(state, CACHE_FOLDER)
        self.socket = os.path.join(state, "daemon.sock")
        self.lock = os.path.join(state, "daemon.lock")
        self.start_lock = os.path.join(state, "start.lock")
        self.token = os.path.join(state, "token")
        self.log = os.path.join(state, "daemon.log")
        self.crash_log = os.path.join(state, "crash.log")


def state_folder(environ: "Mapping[str, str]") -> str:
    """Return the user's state folder: the override, or the platform's default (like platformdirs)."""
    override = environ.get(STATE_OVERRIDE)
    if override:
        return os.path.abspath(override)
    return _user_folder(environ, "XDG_STATE_HOME", "~/.local/state")


def cache_folder(environ: "Mapping[str, str]") -> str:
    """Return the user's cache folder: the override, one below an overridden state folder, or the platform's default."""
    override = environ.get(CACHE_OVERRIDE)
    if override:
        return os.path.abspath(override)
    if environ.get(STATE_OVERRIDE):
        return os.path.join(state_folder(environ), CACHE_FOLDER)
    named = os.path.isabs(environ.get("XDG_CACHE_HOME", ""))
    # Like platformdirs: on macOS caches are separate from application support, on
    # Windows in a subfolder.
    if sys.platform == "darwin" and not named:
        return os.path.join(_expand("~/Library/Caches", environ), APP)
    folder = _user_folder(environ, "XDG_CACHE_HOME", "~/.cache")
    if sys.platform == "win32" and not named:
        return os.path.join(folder, "Cache")
    return folder


def config_file(environ: "Mapping[str, str]") -> str:
    """Return the path of the user's config.toml, in the folder that platformdirs would use."""
    folder = _user_folder(environ, "XDG_CONFIG_HOME", "~/.config")
    return os.path.join(folder, PROJECT_CONFIG)


def private_folders(environ: "Mapping[str, str]") -> list[str]:
    """Return flashgrep's own folders of one user: no project may be one of them, or be inside one.

    The default ones count even if the environment names others: another daemon of the same user may use them.
    """
    usual = {
        name: value
        for name, value in environ.items()
        if name not in {STATE_OVERRIDE, CACHE_OVERRIDE}
    }
    both = [
        folder(where)
        for folder in (state_folder, cache_folder)
        for where in (environ, usual)
    ]
    return [*both, os.path.dirname(config_file(environ))]


def project_socket(root: str) -> str:
    """Return the path of the Unix socket of the project at ``root``."""
    return os.path.join(root, PROJECT_FOLDER, PROJECT_SOCKET)


class UnusableFolder(OSError):
    """One of flashgrep's own folders cannot be made; said without the system's number."""

    def __str__(self) -> str:
        """Return which folder, and why."""
        return f"cannot make the folder {self.filename}: {self.strerror}"


def make_private(folder: str) -> None:
    """Create ``folder`` (0700) unless it exists, and refuse it if others could plant files in it.

    Raises:
        UnusableFolder: it cannot be made.
        PermissionError: it belongs to another user, or its group or the world may write to it.

    """
    try:
        os.makedirs(folder, mode=PRIVATE_FOLDER, exist_ok=True)
    except OSError as error:
        reason = error.strerror
        if os.path.lexists(folder):
            reason = "it exists, and is no folder"
        raise UnusableFolder(error.errno, reason, folder) from error
    check_private(folder)


def describe_failure(error: Exception) -> str:
    """Return what a person is told of a failure of the system."""
    if not isinstance(error, OSError) or isinstance(error, UnusableFolder):
        return str(error)
    if error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, FileNotFoundError) and not _has_current_folder():
        return "the current folder is gone; cd to another one"
    return error.strerror or str(error)


def _has_current_folder() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def check_private(folder: str) -> None:
    """Refuse a folder in which others could plant files.

    Raises:
        PermissionError: it belongs to another user, or its group or the world may write to it.
        OSError: it does not exist.

    """
    status = os.stat(folder)
    for owner in (
        os.lstat(folder).st_uid,
        status.st_uid,
    ):  # another user could redirect their link at any time
        if owner != os.geteuid():
            raise PermissionError(
                f"{folder} belongs to user {owner}, not to you ({os.geteuid()})"
            )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"{folder} is writable by others (mode {status.st_mode & 0o777:o}); chmod 700 it"
        )


def find_ripgrep(environ: "Mapping[str, str]") -> str | None:
    """Return the path of ripgrep: the one installed with us, else the first on PATH, else None."""
    return bundled_ripgrep() or find_program(RIPGREP, environ)


def find_program(name: str, environ: "Mapping[str, str]") -> str | None:
    """Return the path of the first program of this name on PATH, or None."""
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.join(folder, name)
        # Relative folders are skipped: they may belong to a repository.
        if (
            os.path.isabs(folder)
            and os.path.isfile(program)
            and os.access(program, os.X_OK)
        ):
            return program
    return None


def bundled_ripgrep() -> str | None:
    """Return the ripgrep installed next to our interpreter, whose version our tables were made for, if there is one."""
    beside = os.path.join(os.path.dirname(sys.executable), RIPGREP)
    if os.access(beside, os.X_OK):
        return beside
    return None


HEADROOM = 8_192
"""Bytes of arguments that are left free, for what a program that is run adds to its environment."""
WORD_OVERHEAD = 9
"""Bytes that an argument takes beside its own: the NUL byte behind it and its address."""


def measure_room() -> int:
    """Return how many bytes of arguments a program that this process runs may be given, ``WORD_OVERHEAD`` for each."""
    taken = sum(
        len(name) + len(value) + WORD_OVERHEAD + 1
        for name, value in os.environb.items()
    )
    return os.sysconf("SC_ARG_MAX") - taken - HEADROOM


def as_latin1(text: str) -> str:
    """Return a path or an argument in a form for JSON: its bytes, each as one character."""
    return os.fsencode(text).decode("latin-1")


def from_latin1(text: str, errors: str = "strict") -> str:
    """Return the path or argument that ``as_latin1`` was given."""
    return os.fsdecode(text.encode("latin-1", errors))


def _user_folder(environ: "Mapping[str, str]", variable: str, fallback: str) -> str:
    named = environ.get(variable, "")
    # The XDG specification requires relative paths to be ignored.
    if os.path.isabs(named):
        base = named
    elif sys.platform == "darwin":
        base = _expand("~/Library/Application Support", environ)
    elif sys.platform == "win32":
        base = environ.get("LOCALAPPDATA") or _expand("~/AppData/Local", environ)
    else:
        base = _expand(fallback, environ)
    return os.path.join(base, APP)


def _expand(path: str, environ: "Mapping[str, str]") -> str:
    home = environ.get("HOME", "")
    # HOME of the environment that was given, which need not be this process's.
    if os.path.isabs(home):
        return home.rstrip("/") + path[1:]
    return os.path.expanduser(path)
