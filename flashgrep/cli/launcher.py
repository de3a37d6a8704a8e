"""Entry point: tells our commands from calls of the classic ``fgrep``, which is ``grep -F``.

Scripts have called a program of this name for fifty years, and some of our commands are English words: ``... | fgrep
index`` filters. Standard library only, and little of it: a call that goes to grep pays for what is imported here on top
of starting the interpreter.

    standard input           arguments after ``fgrep``                     what happens
    any                      a command of ours and more words              ours
    any                      ``help`` and a command or a topic; no file    ours
    terminal or other        ``help``                                      ours
    pipe or file             one word, also with grep's own flags          grep -F
    terminal or other        a command of ours                             ours
    terminal                 no command, but nearly one; no file named     "did you mean", status 2
    other                    nearly a command, and files that are missing  "did you mean", then grep -F
    any                      anything else, the empty pattern included     grep -F

``lsp``, ``mcp``, ``rpc``, ``--help`` and ``--version`` are always ours. Called as ``flashgrep`` everything is.
"""

import os
import stat
import sys

PROTOCOLS = frozenset({"lsp", "mcp", "rpc"})
"""Commands that speak a protocol over standard input, which is usually a pipe."""
OPTIONS = frozenset({"--help", "--version"})
HELP = "help"
ALL = "all"
"""Every command, as a subject of the help."""
TABLE = "commands.tsv"
"""The table of commands: next to this module, and the daemon's in the state folder for parts of other packages."""
LOCAL = "local"
"""Marks, in the table, commands that run in the client's process."""
STDIO = "stdio"
"""Marks commands that speak a protocol over standard input and output, in the client's process."""
ALIASED = frozenset({"--color=auto", "--colour=auto"})
"""The alias that shells of most Linux distributions define for ``fgrep``; also our default."""
GREP_SHORT = frozenset("EFGPiyvwxchLlnbHoqsZzTUaIrRu0123456789")
GREP_SHORT_WITH_VALUE = frozenset("ABCmdD")
GREP_LONG = frozenset(
    {
        "extended-regexp",
        "fixed-strings",
        "basic-regexp",
        "perl-regexp",
        "ignore-case",
        "no-ignore-case",
        "null-data",
    }
    | {
        "invert-match",
        "word-regexp",
        "line-regexp",
        "count",
        "color",
        "colour",
        "files-without-match",
        "text",
        "null",
    }
    | {
        "files-with-matches",
        "only-matching",
        "quiet",
        "silent",
        "no-messages",
        "byte-offset",
        "with-filename",
    }
    | {
        "no-filename",
        "line-number",
        "initial-tab",
        "unix-byte-offsets",
        "recursive",
        "dereference-recursive",
    }
    | {"line-buffered", "binary", "no-group-separator"}
)
GREP_LONG_WITH_VALUE = frozenset(
    {
        "max-count",
        "after-context",
        "before-context",
        "context",
        "binary-files",
        "devices",
        "directories",
        "exclude",
    }
    | {"exclude-from", "exclude-dir", "include", "label", "group-separator"}
)
"""grep's flags except for ``-e`` and ``-f``: with these the word is a file and standard input is not read."""
STANDARD_INPUT = frozenset({"-", "/dev/stdin"})
LONGEST_TYPO = 40
SHORTEST_HEAD = 6
ERROR = 2
signals = __import__("_signal")
"""The module ``signal`` makes enumerations of them, which takes 5 ms."""


def read_commands(path: str = "") -> dict[str, tuple[str, str, str]]:
    """Return every command in the order of the help: what its method may do (or LOCAL, STDIO), its summary, its target.

    The target is the ``module:name`` of a function or a group, and the module of a protocol; empty for a method.
    ``path``: another table than that of what comes with flashgrep; raises OSError if it is not there.

    The table is generated from the declarations, since the methods and all they stand on take 0.3 s to import.
    """
    with open(path or os.path.join(os.path.dirname(__file__), TABLE), "rb") as table:
        rows = (line.split("\t") for line in table.read().decode().splitlines())
        return {
            name: (safety, summary, target) for name, safety, summary, target in rows
        }


def take_options(arguments: list[str]) -> list[str]:
    """Return the words that may be options: those before ``--``."""
    if "--" in arguments:
        return arguments[: arguments.index("--")]
    return arguments


def main() -> int:
    """Exec ``grep -F`` if the call is meant for it, else run the command and return its exit status."""
    arguments = sys.argv[1:]
    if not is_for_grep(arguments):
        if arguments[:1] and arguments[0] in ALIASED:
            del sys.argv[1]
        # By name, and only now: importing what our commands need costs more than all of
        # grep.
        return int(__import__("flashgrep.cli.client", fromlist=["run"]).run())
    is_terminal = os.isatty(0)
    if is_terminal or names_more(arguments):
        command = guess_command(arguments)
    else:
        command = ""
    if command:
        unknown = f"no command {arguments[0]!r}"
        if arguments[0] == HELP:
            unknown = f"no command or topic {' '.join(arguments[1:])!r}"
        lines = [f"fgrep: {unknown}; did you mean: fgrep {command}"]
        if is_terminal:
            lines.append(
                f"fgrep: to search what you type for that text: grep -F {arguments[0]}"
            )
        os.write(
            2, "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
        )
        if is_terminal:
            return ERROR
    return become_grep(arguments)


def is_for_grep(arguments: list[str]) -> bool:
    """Return whether these arguments, with this standard input, are meant for the classic ``fgrep``."""
    name = os.path.basename(sys.argv[0])
    if name not in {"fgrep", "fgrep.exe"} or not arguments:
        return False
    if arguments[0] in ALIASED:
        words = arguments[1:]
    else:
        words = arguments
    if not words:
        return True
    if words[0] in PROTOCOLS or words[0] in OPTIONS:
        return False
    if words[0] == HELP:
        return not asks_for_help(words[1:])
    # Read only here: for the classic fgrep of a script the table is one small file.
    if words[0] not in read_commands():
        return True
    return is_pipe_or_file(0) and is_filter(words)


def asks_for_help(subject: list[str]) -> bool:
    """Return whether ``fgrep help`` with these words is ours: what comes next is no file, but something to explain."""
    if not subject:
        return not is_pipe_or_file(0)
    if os.path.exists(subject[0]):
        return False
    topics = __import__("flashgrep.cli.help_topics", fromlist=["TOPICS"]).TOPICS
    return subject[0] in {ALL, *topics, *read_commands()}


def is_filter(arguments: list[str]) -> bool:
    """Return whether grep would read standard input: one word, the pattern, and otherwise only flags of grep."""
    operands = split_operands(arguments)
    return (
        operands is not None
        and len([word for word in operands if word not in STANDARD_INPUT]) == 1
    )


def names_more(arguments: list[str]) -> bool:
    """Return whether there is more than a pattern, which grep would take for files, or a flag that grep lacks."""
    operands = split_operands(arguments)
    return operands is None or len(operands) > 1


def split_operands(arguments: list[str]) -> list[str] | None:
    """Return the arguments that are not flags, or None if there is a flag that grep lacks."""
    operands: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            operands += rest
        elif argument.startswith("--"):
            name, value_text, _ = argument[2:].partition("=")
            if name in GREP_LONG_WITH_VALUE:
                if not value_text:
                    next(rest, None)
            elif name not in GREP_LONG:
                return None
        elif argument.startswith("-") and argument != "-":
            # The rest begins with the first letter that takes a value, or that grep
            # lacks.
            flags = argument[1:].lstrip("".join(GREP_SHORT))
            if flags and flags[0] not in GREP_SHORT_WITH_VALUE:
                return None
            # Its value is the next word; otherwise it follows in the same word.
            if len(flags) == 1:
                next(rest, None)
        else:
            operands.append(argument)
    return operands


def is_pipe_or_file(descriptor: int) -> bool:
    """Return whether a descriptor is a pipe or a file, not a terminal, ``/dev/null`` or a socket."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def guess_command(arguments: list[str]) -> str:
    """Return the command similar to the first word, or nothing; an existing file among the words means grep."""
    word = arguments[0]
    if (
        not word
        or word.startswith("-")
        or len(word) > LONGEST_TYPO
        or any(map(os.path.exists, arguments[1:]))
    ):
        return ""
    if word == HELP:
        # Only the first word says what is to be explained.
        subject = arguments[1:2]
        if subject in ([], [HELP]):
            return f"{HELP} {ALL}"
        return f"{HELP} {guess_command(subject) or ALL}"
    commands = sorted(read_commands())
    heads: dict[str, str] = {}
    for command in commands:
        head = command.partition("-")[0]
        # "serach" is near to "search", which only begins a command.
        if len(head) >= SHORTEST_HEAD:
            heads.setdefault(head, command)
    find_close = __import__("difflib").get_close_matches
    typed = word.replace("_", "-")
    whole: list[str] = find_close(typed, commands, 1, 0.7)
    if whole:
        return whole[0]
    begun: list[str] = find_close(typed, heads, 1, 0.7)
    if begun:
        return heads[begun[0]]
    return ""


def become_grep(arguments: list[str]) -> int:
    """Exec the ``grep -F`` on PATH with the environment it would have without us; return only if there is none."""
    folder = os.path.dirname(sys.argv[0])
    # A link named grep that points back to us would call itself for ever.
    own_programs = {
        os.path.realpath(sys.argv[0]),
        os.path.realpath(os.path.join(folder, "flashgrep")),
    }
    for place in os.get_exec_path():
        grep = os.path.join(place, "grep")
        if (
            os.access(grep, os.X_OK)
            and not os.path.isdir(grep)
            and os.path.realpath(grep) not in own_programs
        ):
            restore_signals()
            os.execve(grep, ["grep", "-F", *arguments], restore_environment())  # noqa: S606 - no shell in between
    os.write(
        2,
        b"fgrep: no grep on PATH to hand the arguments to; 'fgrep --help' lists flashgrep's commands\n",
    )
    return ERROR


def become(
    program: str, name: str, calls: list[list[bytes]], environ: dict[str, str]
) -> int:
    """Exec a program with the first of these lists of arguments that the system takes: a plan may be too long.

    Raises:
        OSError: it takes none.

    """
    failure = OSError("no arguments")
    for words in calls:
        try:
            os.execve(program, [name.encode(), *words], environ)  # noqa: S606 - no shell in between
        except OSError as error:
            failure = error
    raise failure


def restore_signals() -> None:
    """Undo the interpreter's signal setup: ``fgrep x file | head`` must end by SIGPIPE, not with an error."""
    signals.signal(signals.SIGPIPE, signals.SIG_DFL)
    if hasattr(signals, "SIGXFSZ"):
        signals.signal(signals.SIGXFSZ, signals.SIG_DFL)


def restore_environment() -> dict[str, str]:
    """Return the environment without the LC_CTYPE that the interpreter sets in a C locale (PEP 538).

    In UTF-8 grep treats a file with other bytes as binary, in C it does not.
    """
    environ = dict(os.environ)
    if environ.get("LC_CTYPE", "") in {"C.UTF-8", "C.utf8", "UTF-8"}:
        try:
            with open("/proc/self/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            return environ
        del environ["LC_CTYPE"]
        for variable in variables:
            name, _, value = variable.partition(b"=")
            if name == b"LC_CTYPE":
                environ["LC_CTYPE"] = os.fsdecode(value)
    return environ
