"""Completions for bash, zsh and fish, and the manual page, derived from the commands' own declarations."""

import re
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.core import TyperOption

from flashgrep import __version__
from flashgrep.base.languages import LANGUAGES
from flashgrep.base.paths import bundled_ripgrep
from flashgrep.cli import help_pages
from flashgrep.cli.app import HELP
from flashgrep.cli.commands import load_command
from flashgrep.cli.grep_options import ALL, LETTERS, PLAIN, WITH_VALUE
from flashgrep.cli.help_pages import PageMark
from flashgrep.cli.launcher import STDIO
from flashgrep.parts.shells.completion import FILES, FOLDER

QUERY = "query"
PATHS = frozenset({"--path", "--file", "--ignore-file"})
"""Options whose value is a file or a folder."""
LANGUAGE_OPTIONS = frozenset({"--language", "--type", "--type-not"})
HELP_OPTION_TEXT = "Show this message and exit."
MANUAL_COLUMNS = 100
MOST_CHOICES = 8
"""Values of an option that its help lists."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command: its names, with the dashes, and what it takes."""

    names: tuple[str, ...]
    help: str = ""
    takes_value: bool = False
    choices: tuple[str, ...] = ()
    repeats: bool = False
    heading: str = "Options"
    """Of the table that it is in, in the help."""

    @property
    def is_path(self) -> bool:
        """Whether its value is a file or a folder."""
        return not PATHS.isdisjoint(self.names)


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its options; a group has commands of its own."""

    name: str
    summary: str
    usage: str = ""
    options: tuple[Option, ...] = ()
    arguments: tuple[Option, ...] = ()
    more: tuple[str, ...] = ()
    """What is said after the summary, a paragraph each."""
    children: tuple["Command", ...] = ()


OF_LETTERS = "Letters of grep and rg"
OF_RIPGREP = "Long names of rg"
OF_FLASHGREP = "Only here"
OF_GREP = {
    "basic-regexp": "PATTERN is one of grep's basic regular expressions.",
    "binary-without-match": "Pass over binary files, as is always done without -a.",
    "exclude": "Leave out file paths that match a glob.",
    "extended-regexp": "PATTERN is a regular expression.",
    "include": "Search only file paths that match a glob.",
    "no-column": "Do not show column numbers.",
    "no-heading": "Print the path on each line.",
    "no-hidden": "Do not search hidden files and directories.",
    "no-ignore": "Search what ignore files leave out, too.",
    "recursive": "Search folders, as is always done.",
}
"""What ripgrep does not describe, or lacks."""
SAID_BY_LETTERS = frozenset(
    {"after", "before", "case", "dotall", "language", "line", "mode", "output", "path"}
    | {"word"}
)
"""Options of the method ``query`` for which the command has grep's."""
GREP_ARGUMENTS = (
    Option(("PATTERN",), "A text; with -e, -E or -P a regular expression."),
    Option(("PATH",), "A file or a folder; default: the whole project."),
)


def format_shell_files(table: str) -> dict[Path, str]:
    """Return the files of the part ``shells``, each with its text; ``table``: that of the commands."""
    commands = [*_read_commands(table)]
    pages = _format_pages(commands)
    texts = {
        "bash": _format_bash(commands),
        "zsh": _format_zsh(commands),
        "fish": _format_fish(commands),
        "man": _format_manual(commands),
    }
    files = {FOLDER / FILES[kind]: text for kind, text in texts.items()}
    return {**files, Path(help_pages.TABLE): pages}


def _read_commands(table: str) -> Iterator[Command]:
    for line in table.splitlines():
        name, safety, summary, target = line.split("\t")
        if safety == STDIO:
            yield Command(name, summary)
            continue
        declared = load_command(name, target)
        children = []
        for child, inner in sorted(getattr(declared, "commands", {}).items()):
            children.append(_read_command(child, inner))
        command = replace(_read_command(name, declared), children=tuple(children))
        if name == QUERY:
            own = tuple(_without_letters(command.options))
            command = replace(
                command,
                usage="PATTERN [PATH]...",
                options=(*_read_grep_options(), *own),
                arguments=GREP_ARGUMENTS,
            )
        elif children:
            command = replace(command, usage="COMMAND [ARGUMENTS]...")
        yield command


def _read_command(name: str, declared: Any) -> Command:
    usage = []
    options = []
    arguments = []
    for parameter in declared.params:
        if isinstance(parameter, TyperOption):
            options.append(_read_option(parameter))
            continue
        word = (parameter.metavar or parameter.name).upper()
        arguments.append(Option((word,), " ".join((parameter.help or "").split())))
        if parameter.nargs != 1:
            word = f"{word}..."
        usage.append(word if parameter.required else f"[{word}]")
    options.append(Option(("--help",), HELP_OPTION_TEXT))
    summary, *more = (
        " ".join(paragraph.split()) for paragraph in (declared.help or "").split("\n\n")
    )
    return Command(
        name, summary, " ".join(usage), tuple(options), tuple(arguments), tuple(more)
    )


def _read_option(parameter: TyperOption) -> Option:
    annotation: Any = parameter.type_descriptor.annotation
    choices: tuple[str, ...] = ()
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
    if not LANGUAGE_OPTIONS.isdisjoint(parameter.opts):
        choices = tuple(sorted(LANGUAGES))
    return Option(
        names=(*parameter.opts, *parameter.secondary_opts),
        help=" ".join((parameter.help or "").split()),
        takes_value=not (parameter.is_flag or parameter.count),
        choices=choices,
        repeats=bool(parameter.multiple),
    )


def _read_grep_options() -> Iterator[Option]:
    """Yield the options that ``query`` shares with grep and ripgrep, with ripgrep's own descriptions."""
    program = bundled_ripgrep() or "rg"
    fish = subprocess.run(
        [program, "--generate", "complete-fish"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    described = dict(
        re.findall(
            r"^complete -c rg .*?-l ([a-z0-9-]+) -d '((?:[^'\\]|\\.)*)'",
            fish,
            re.MULTILINE,
        )
    )
    letters: dict[str, list[str]] = {}
    for letter, name in LETTERS.items():
        letters.setdefault(name, []).append(f"-{letter}")
    ordered = sorted(PLAIN | WITH_VALUE, key=lambda name: (name not in letters, name))
    for name in ordered:
        names = (f"--{name}", *letters.get(name, ()))
        choices: tuple[str, ...] = ()
        if not LANGUAGE_OPTIONS.isdisjoint(names):
            choices = tuple(sorted(LANGUAGES))
        said = OF_GREP.get(name) or described[name].replace("\\'", "'")
        heading = OF_LETTERS if len(names) > 1 else OF_RIPGREP
        yield Option(names, said, name in WITH_VALUE, choices, heading=heading)
    said = "Print everything on a terminal, too."
    yield Option((f"--{ALL}",), said, heading=OF_FLASHGREP)


def _without_letters(options: tuple[Option, ...]) -> Iterator[Option]:
    """Yield the options that only the method has, by their long names: the letters of ``query`` are grep's."""
    taken = PLAIN | WITH_VALUE | SAID_BY_LETTERS | {ALL}
    for option in options:
        names = []
        for name in option.names:
            if name.startswith("--") and name.removeprefix("--") not in taken:
                names.append(name)
        if names:
            yield Option(
                tuple(names),
                option.help,
                option.takes_value,
                option.choices,
                option.repeats,
                OF_FLASHGREP,
            )


def _keys(commands: list[Command]) -> Iterator[tuple[str, Command]]:
    """Yield every command with its words: ``daemon logs``."""
    for command in commands:
        yield command.name, command
        for child in command.children:
            yield f"{command.name} {child.name}", child


BASH = """\
# Completion of fgrep and flashgrep for bash; generated by scripts/generate.
_fgrep() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} key words values
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        words="{commands} --help --version"
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
        return
    fi
    key=${{COMP_WORDS[1]}}
    case $key in
{groups}
    esac
    case "$key $prev" in
{values}
    esac
    if [[ -n $values ]]; then
        COMPREPLY=($(compgen -W "$values" -- "$cur"))
        return
    fi
    [[ $cur == -* ]] || return
    case $key in
{options}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _fgrep fgrep flashgrep
"""


def _format_bash(commands: list[Command]) -> str:
    """Return the completion for bash; what it does not complete is completed as a file."""
    groups = []
    for command in commands:
        if command.children:
            names = " ".join(child.name for child in command.children)
            groups += [
                f"        {command.name})",
                "            if (( COMP_CWORD == 2 )); then",
                f'                COMPREPLY=($(compgen -W "{names} --help" -- "$cur"))',
                "                return",
                "            fi",
                '            key="$key ${COMP_WORDS[2]}" ;;',
            ]
    values = []
    options = []
    for key, command in _keys(commands):
        if command.children:
            continue
        words: list[str] = []
        for option in command.options:
            words += option.names
            if option.choices:
                cases = "|".join(f'"{key} {name}"' for name in option.names)
                values.append(
                    f'        {cases}) values="{" ".join(option.choices)}" ;;'
                )
        options.append(f'        "{key}") words="{" ".join(words)}" ;;')
    return BASH.format(
        commands=" ".join(command.name for command in commands),
        groups="\n".join(groups),
        values="\n".join(values),
        options="\n".join(options),
    )


ZSH = """\
#compdef fgrep flashgrep
# Completion of fgrep and flashgrep for zsh; generated by scripts/generate.

_fgrep() {{
    local -a commands
    if (( CURRENT == 2 )); then
        commands=(
{commands}
        )
        _describe -t commands command commands
        return
    fi
    local key=$words[2]
    case $key in
{groups}
    esac
    shift words
    (( CURRENT-- ))
    case $key in
{options}
        *) _files ;;
    esac
}}

_fgrep "$@"
"""


def _format_zsh(commands: list[Command]) -> str:
    """Return the completion for zsh."""
    rows = [f"            {_quote(_describe(command))}" for command in commands]
    groups = []
    for command in commands:
        if not command.children:
            continue
        children = " ".join(_quote(_describe(child)) for child in command.children)
        groups += [
            f"        {command.name})",
            "            if (( CURRENT == 3 )); then",
            f"                commands=({children})",
            "                _describe -t commands command commands",
            "                return",
            "            fi",
            '            key="$key $words[3]"',
            "            shift words",
            "            (( CURRENT-- )) ;;",
        ]
    options = []
    for key, command in _keys(commands):
        if command.children or not command.options:
            continue
        specs: list[str] = []
        for option in command.options:
            specs += _specify(option)
        lines = " \\\n                ".join([*specs, "'*:file:_files'"])
        options.append(f"        {_quote(key)})")
        options.append(f"            _arguments -s \\\n                {lines} ;;")
    return ZSH.format(
        commands="\n".join(rows), groups="\n".join(groups), options="\n".join(options)
    )


def _describe(command: Command) -> str:
    said = command.summary.replace(":", r"\:")
    return f"{command.name}:{said}"


def _specify(option: Option) -> Iterator[str]:
    """Yield the specifications of an option for ``_arguments``, one for each of its names."""
    said = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    others = "*"
    if not option.repeats:
        others = f"({' '.join(option.names)})"
    value = ""
    if option.choices:
        value = f":value:({' '.join(option.choices)})"
    elif option.is_path:
        value = ":path:_files"
    elif option.takes_value:
        value = ":value: "
    for name in option.names:
        yield _quote(f"{others}{name}[{said}]{value}")


def _quote(text: str) -> str:
    return "'" + text.replace("'", r"'\''") + "'"


FISH = """\
# Completion of fgrep and flashgrep for fish; generated by scripts/generate.
function __fgrep_at
    set -l tokens (commandline -opc)
    test (count $tokens) -gt (count $argv); or return 1
    for at in (seq (count $argv))
        set -l next (math $at + 1)
        test "$tokens[$next]" = "$argv[$at]"; or return 1
    end
end

function __fgrep_next
    set -l tokens (commandline -opc)
    test (count $tokens) -eq (math (count $argv) + 1); and __fgrep_at $argv
end

"""


def _format_fish(commands: list[Command]) -> str:
    """Return the completion for fish."""
    lines = []
    for command in commands:
        lines.append(_suggest("test (count (commandline -opc)) -eq 1", command))
        for child in command.children:
            lines.append(_suggest(f"__fgrep_next {command.name}", child))
    for key, command in _keys(commands):
        if command.children:
            continue
        for option in command.options:
            words = [f"complete -c fgrep -n {_quote_fish(f'__fgrep_at {key}')}"]
            for name in option.names:
                if name.startswith("--"):
                    words.append(f"-l {name.removeprefix('--')}")
                else:
                    words.append(f"-s {name.removeprefix('-')}")
            if option.choices:
                words.append(f"-x -a {_quote_fish(' '.join(option.choices))}")
            elif option.is_path:
                words.append("-r -F")
            elif option.takes_value:
                words.append("-x")
            if option.help:
                words.append(f"-d {_quote_fish(option.help)}")
            lines.append(" ".join(words))
    return FISH + "\n".join([*lines, "complete -c flashgrep -w fgrep", ""])


def _suggest(condition: str, command: Command) -> str:
    said = _quote_fish(command.summary)
    return f"complete -c fgrep -n {_quote_fish(condition)} -a {command.name} -d {said}"


def _quote_fish(text: str) -> str:
    return "'" + text.replace("\\", r"\\").replace("'", r"\'") + "'"


def _format_manual(commands: list[Command]) -> str:
    """Return the manual page, in the macros of man(7)."""
    lines = [
        f'.TH FGREP 1 "" "flashgrep {__version__}" "User Commands"',
        ".SH NAME",
        r"fgrep, flashgrep \- code search by a local daemon: exact text, symbols and meaning",
        ".SH SYNOPSIS",
        r".B fgrep",
        r".I COMMAND",
        r"[\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
    ]
    for paragraph in HELP.split("\n\n"):
        lines += [".PP", *_fold(paragraph)]
    lines.append(".SH COMMANDS")
    for key, command in _keys(commands):
        if command.children:
            continue
        lines += [f".SS fgrep {_roff(key)} {_roff(command.usage)}".rstrip()]
        lines += _fold(command.summary)
        for option in command.options:
            names = ", ".join(rf"\fB{_roff(name)}\fR" for name in option.names)
            if option.choices and len(option.choices) <= len(LANGUAGES) // 2:
                names += rf" \fI{_roff('|'.join(option.choices))}\fR"
            elif option.takes_value:
                names += r" \fIVALUE\fR"
            lines += [".TP", names, *_fold(option.help)]
    lines += [
        ".SH EXIT STATUS",
        "0: found; 1: nothing found; 2: error.",
        ".SH SEE ALSO",
        r"\fBrg\fR(1), \fBgrep\fR(1)",
        "",
    ]
    return "\n".join(lines)


def _fold(text: str) -> list[str]:
    """Return a text as lines of a manual, none of which is a request."""
    folded = []
    for line in textwrap.wrap(_roff(text), MANUAL_COLUMNS):
        is_request = line.startswith((".", "'"))
        folded.append(rf"\&{line}" if is_request else line)
    return folded


def _roff(text: str) -> str:
    return text.replace("\\", r"\e").replace("-", r"\-")


def _format_pages(commands: list[Command]) -> str:
    """Return the table of the commands' help."""
    lines = []
    for key, command in _keys(commands):
        if not command.options:
            continue
        usage = f"[OPTIONS] {command.usage}".rstrip()
        lines.append(f"{PageMark.PAGE}\t{key}\t{usage}")
        for paragraph in (command.summary, *command.more):
            lines.append(f"{PageMark.PARAGRAPH}\t{paragraph}")
        lines += _format_rows("Arguments", command.arguments)
        for heading in dict.fromkeys(option.heading for option in command.options):
            options = [
                option for option in command.options if option.heading == heading
            ]
            lines += _format_rows(heading, options)
        if command.children:
            lines.append(f"{PageMark.TABLE}\tCommands")
        for child in command.children:
            lines.append(f"{PageMark.ROW}\t{child.name}\t{child.summary}")
    return "\n".join([*lines, ""])


def _format_rows(title: str, options: Sequence[Option]) -> Iterator[str]:
    if options:
        yield f"{PageMark.TABLE}\t{title}"
    for option in options:
        names = ", ".join(sorted(option.names, key=len))
        if option.choices and len(option.choices) <= MOST_CHOICES:
            names += f" {'|'.join(option.choices)}"
        elif option.takes_value:
            names += " VALUE"
        yield f"{PageMark.ROW}\t{names}\t{option.help}"
