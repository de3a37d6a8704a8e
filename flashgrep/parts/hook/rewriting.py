"""Which commands of a shell line are searches that flashgrep runs, and the line with these in its own words.

Only ``flashgrep hook`` is put in front of a command: its arguments stay as they are written, for the shell to read. What
they come to is looked at again when the command runs, and whatever is not understood then runs as the program itself.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from flashgrep.parts.hook import find_plan, git_plan, grep_arguments
from flashgrep.parts.hook.client import name_program
from flashgrep.parts.hook.costs import SearchedTree, is_small
from flashgrep.parts.hook.prefixes import (
    are_harmless,
    find_hazard,
    is_prefix,
    read_prefix,
)
from flashgrep.parts.hook.shell import Command, Line, read_line
from flashgrep.parts.ripgrep import arguments as ripgrep_arguments
from flashgrep.parts.ripgrep.arguments import Unplannable

_COMPUTED: Final = "x"
"""Stands for a word that the shell computes."""
_XARGS_FLAGS: Final = frozenset(
    {"-0", "--null", "-r", "-0r", "-r0", "--no-run-if-empty"}
)
_OWN_RULES: Final = "what it searches is decided by rules of its own"
_SOONER: Final = "it lists a tree sooner than a plan is made"
_UNPLANNED: Final[Mapping[str, str]] = {
    "ack": _OWN_RULES,
    "ag": _OWN_RULES,
    "fd": _SOONER,
    "fdfind": _SOONER,
}
"""Searches that are left alone, each with the reason."""
_ONE_LETTER: Final = len("-n")
_MOST_EXPLAINED: Final = 40
"""Words of a call whose flags are left out one by one: each time it is parsed anew."""
_SEVERAL: Final = "nothing is planned with some of its flags"
_NOT_PLANNED: Final = {
    "find": "a test or an action that is not planned",
    "git": "it is no git grep",
}
"""Why nothing is planned, where it may be no flag."""
_READING: Final = "cat cd cut echo false head ls nl pwd tail tr true wc printf"
_READERS: Final = frozenset(_READING.split())
"""Commands that change nothing, whatever their arguments are."""
_ELSEWHERE: Final = re.compile(
    r"""~|\.\.|(?:^|[\s"'`=:(){},;|&<>\\])/(?!dev/null(?!\S))|(?:^|\s)-[^\s=]*/"""
)
"""What a line has that names a file outside its folder, and much that does not: then the host asks, as it always does."""


class Verdict(NamedTuple):
    """What is done with one command: its name, where it begins, and why it is left alone; no cause: it is run by us."""

    name: str
    start: int
    cause: str
    notes: bool
    """Whether what was left out may be told on its standard error."""
    refused: bool = False
    """Whether it would take memory without measure, and is not run at all."""
    unplanned: tuple[str, ...] = ()
    """The words after its name, if nothing is planned with one of them."""

    @property
    def is_served(self) -> bool:
        """Whether it is run by us, or refused."""
        return not self.cause

    @property
    def reason(self) -> str:
        """Why it is left alone, with the flag that is not planned: sought only where people read it."""
        return _find_flag(self) or self.cause


class Rewriting(NamedTuple):
    """A line as it is run, what is done with its commands, and whether it only reads, below its folder."""

    text: str
    verdicts: tuple[Verdict, ...]
    only_reads: bool


def rewrite(
    text: str, program: str, folder: str = "", tree: SearchedTree | None = None
) -> Rewriting:
    """Return a line in which ``program`` runs the searches; the same line if there are none.

    ``program``: flashgrep, as the shell finds it. ``folder``: where the line runs, if that is known. ``tree``: the
    project there, in whose small parts commands stay as they are.
    """
    data = text.encode(errors="surrogateescape")
    line = read_line(data)
    if line is None:
        verdict = Verdict("", 0, "the line is not understood", notes=False)
        return Rewriting(text, (verdict,), only_reads=False)
    # It may go to a larger project.
    if any(command.words[0] == "cd" for command in line.commands):
        tree = None
    verdicts = [judge(command, tree, line.variables) for command in line.commands]
    served = [verdict for verdict in verdicts if verdict.is_served]
    for verdict in sorted(served, key=lambda verdict: verdict.start, reverse=True):
        inserted = f"{program} hook "
        # Nothing may be said on an error stream that other commands read.
        if verdict.name == "rg" and not verdict.notes:
            inserted = f"{program} "
        data = data[: verdict.start] + inserted.encode() + data[verdict.start :]
    return Rewriting(
        data.decode(errors="surrogateescape"),
        tuple(verdicts),
        _only_reads(line) and _stays_below(line, text, folder),
    )


def judge(
    command: Command,
    tree: SearchedTree | None = None,
    variables: Sequence[str] = (),
) -> Verdict:
    """Return what is done with a command; ``variables``: the names that its line sets."""
    prefix = read_prefix(command.words)
    at = prefix.length
    inner = _find_inner_grep(command.words[at:])
    at += inner
    name = _name_program(command.words[at] or "")
    start = command.starts[at]
    words = [word or _COMPUTED for word in command.words[at + 1 :]]
    check = _PROGRAMS.get(name)
    if inner:
        check = _check_inner_grep
    unplanned: tuple[str, ...] = ()
    # Also where it is not recursive, or reads a pipe.
    refused = is_refused(name, words)
    hazard = find_hazard((*variables, *prefix.variables))
    if check is None:
        cause = _explain_unknown(name, words)
    elif refused:
        cause = ""
    elif hazard:
        cause = f"with {hazard} another program might run, or other rules hold"
    elif command.reads_pipe and not inner:
        cause = "it reads its standard input"
    else:
        try:
            cause = check(words)
        except Unplannable:
            cause = _NOT_PLANNED.get(name, _SEVERAL)
            unplanned = tuple(words)
    notes = not command.moves_errors
    # What ripgrep leaves out is said whatever that costs.
    is_ours = not cause and not refused
    if tree is not None and is_ours and not (name == "rg" and notes):
        rest = command.words[at + 1 :]
        if is_small(name, rest, tree):
            cause = "it searches so little that it takes less by itself"
    return Verdict(name, start, cause, notes, refused, unplanned)


def _find_inner_grep(words: Sequence[str | None]) -> int:
    """Return where the grep is that ``xargs`` or ``find -exec … +`` runs on files; 0: there is none."""
    if words[0] == "xargs":
        at = 1
        while at < len(words) and words[at] in _XARGS_FLAGS:
            at += 1
    elif words[0] == "find" and words[-1] == "+" and "-exec" in words:
        at = words.index("-exec") + 1
        # It ends there, and another action may follow.
        if not {"{}", ";"}.isdisjoint(words[at:-2]):
            return 0
        try:
            # Any other action would come before it.
            find_plan.parse([word or _COMPUTED for word in words[1 : at - 1]])
        except Unplannable:
            return 0
    else:
        return 0
    if at < len(words) and words[at] == "grep":
        return at
    return 0


def _name_program(word: str) -> str:
    """Return the name of a program, also of one that is given by its path in a folder of the system."""
    name = name_program(word)
    # ripgrep is run as the one whose flags are known here.
    if name == "rg":
        return word
    return name


def _explain_unknown(name: str, words: Sequence[str]) -> str:
    """Return why a program is left alone that is none of ours."""
    if words and is_prefix(name):
        return "a flag that is not known comes before what it runs"
    return _UNPLANNED.get(name, "no search")


def is_refused(name: str, words: list[str]) -> bool:
    """Return whether a program would take memory without measure for its pattern."""
    try:
        if name == "grep":
            arguments = grep_arguments.parse(words, grep_arguments.GREP_AT_ALL)
        elif name == "git":
            arguments = git_plan.read_arguments(words)
        else:
            return False
    except Unplannable:
        return False
    return grep_arguments.has_heavy_pattern(arguments)


def _find_flag(verdict: Verdict) -> str:
    """Tell which word keeps a call from being planned: without it, and its value, the rest would be; empty: none."""
    words = list(verdict.unplanned)
    check = _PROGRAMS.get(verdict.name)
    if check is None or len(words) > _MOST_EXPLAINED:
        return ""
    for flag, rest in _leave_out_each(words):
        try:
            check(rest)
        except Unplannable:
            continue
        return f"nothing is planned with {flag}"
    return ""


def _leave_out_each(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each flag of a call with what is left without it: one letter of several, a word, or a word and its value."""
    for at, word in enumerate(words):
        if word[:1] != "-":
            continue
        before = words[:at]
        after = words[at + 1 :]
        if word[:2] != "--" and len(word) > _ONE_LETTER:
            for letter in word[1:]:
                fewer = word.replace(letter, "", 1)
                yield f"-{letter}", [*before, fewer, *after]
        flag = word.partition("=")[0]
        yield flag, [*before, *after]
        if after and after[0][:1] != "-":
            yield flag, [*before, *after[1:]]


# Each returns why its call is left alone, or raises Unplannable.


def _check_grep(words: list[str]) -> str:
    arguments = grep_arguments.parse(words)
    if arguments.is_recursive:
        return ""
    return "it is not recursive"


def _check_inner_grep(words: list[str]) -> str:
    grep_arguments.parse(words)
    return ""


def _check_ripgrep(words: list[str]) -> str:
    arguments = ripgrep_arguments.parse(words)
    ripgrep_arguments.check_flags(arguments)
    # Decompressing runs programs.
    if any(flag.name == "search-zip" for flag in arguments.flags):
        return "it decompresses"
    return ""


def _check_git(words: list[str]) -> str:
    git_plan.read_arguments(words)
    return ""


def _check_find(words: list[str]) -> str:
    arguments = find_plan.parse(words)
    if find_plan.finds_files_alone(arguments):
        return ""
    return "folders may match, which are not in the index"


_PROGRAMS: Final[Mapping[str, Callable[[list[str]], str]]] = {
    "grep": _check_grep,
    "rg": _check_ripgrep,
    "git": _check_git,
    "find": _check_find,
}
"""The programs that are run by us, each with a function that says why a call is left alone."""


def _only_reads(line: Line) -> bool:
    """Return whether nothing in a line can change a file: a host then need not ask for it."""
    if line.writes_files or not line.is_plain or not are_harmless(line.variables):
        return False
    return all(_is_reader(command) for command in line.commands)


def _stays_below(line: Line, text: str, folder: str) -> bool:
    """Return whether a line names no file outside its folder, as far as one can see: a key is not read unasked."""
    if folder:
        text = text.replace(f"{folder.rstrip('/')}/", "./")
    if _ELSEWHERE.search(text) is not None:
        return False
    # Without a folder, and with a hyphen, it goes somewhere else.
    return all(
        len(command.words[1:]) == 1 and (command.words[1] or "-")[0] != "-"
        for command in line.commands
        if command.words[0] == "cd"
    )


def _is_reader(command: Command) -> bool:
    name = command.words[0] or ""
    if name in _READERS:
        return True
    # Their output file is an argument.
    if name in {"sort", "uniq"}:
        operands = [
            word for word in command.words[1:] if word is None or word[:1] != "-"
        ]
        flags = [word for word in command.words[1:] if word and word[:1] == "-"]
        return not operands and not any("o" in flag or "T" in flag for flag in flags)
    # A file may be called like a flag.
    if command.may_hide_flags and name != "grep":
        return False
    if not are_harmless(read_prefix(command.words).variables):
        return False
    verdict = judge(command)
    # Some flags of the others run programs; grep has none.
    is_safe = verdict.name in {"rg", "find", "git"} and verdict.is_served
    if verdict.name == "grep":
        return not _may_follow_links(command)
    return is_safe


def _may_follow_links(command: Command) -> bool:
    """Return whether a grep may follow links, which lead out of its folder."""
    for word in command.words:
        text = word or ""
        if text.startswith("--d") or (text.startswith("-") and "R" in text):
            return True
    return False
