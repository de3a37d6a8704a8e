"""What may stand before a program in a command: ``env NAME=value``, ``timeout 10``, ``nice -n 5``, ``command`` and others.

Each runs the rest of its words, so our name goes between. A flag that is not listed may mean anything, also a folder to
run in, and then the command stays as it is.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_VARIABLE: Final = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)
_PRIORITIES: Final = frozenset(f"-{number}" for number in range(1, 20))
_HAZARDS: Final = ("PATH", "HOME", "XDG_", "LD_", "DYLD_", "PYTHON", "FLASHGREP_")
"""How names of variables begin that say which programs run, how ours runs, or which settings and rules it would know."""
_SHOWN: Final = ("LANG", "LC_", "GREP_COLOR", "NO_COLOR", "TERM")
"""How names of variables begin that change no more than how text is read and shown."""


class _Grammar(NamedTuple):
    """The flags of a program that runs the rest of its words."""

    alone: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    """Flags with a value: the next word, or what follows in the same."""
    operands: int = 0
    sets_variables: bool = False


_PREFIXES: Final[Mapping[str, _Grammar]] = {
    "command": _Grammar(),
    "env": _Grammar(sets_variables=True),
    "exec": _Grammar(),
    "ionice": _Grammar(valued=frozenset({"-c", "-n", "--class", "--classdata"})),
    "nice": _Grammar(_PRIORITIES, frozenset({"-n", "--adjustment"})),
    "nohup": _Grammar(),
    "stdbuf": _Grammar(valued=frozenset({"-i", "-o", "-e", "--output", "--error"})),
    "time": _Grammar(frozenset({"-p"})),
    "timeout": _Grammar(
        frozenset({"-v", "--verbose", "--foreground", "--preserve-status"}),
        frozenset({"-k", "-s", "--kill-after", "--signal"}),
        operands=1,
    ),
}


class Prefix(NamedTuple):
    """What stands before a program: how many words, and the variables that it sets."""

    length: int
    variables: tuple[str, ...]


def read_prefix(words: Sequence[str | None]) -> Prefix:
    """Return what stands before the program that a command runs; ``None``: a word that the shell computes."""
    variables: list[str] = []
    length = 0
    while length < len(words):
        grammar = _PREFIXES.get(words[length] or "")
        if grammar is None:
            break
        at = _skip_flags(words, length + 1, grammar) + grammar.operands
        while grammar.sets_variables and at < len(words):
            name = _VARIABLE.match(words[at] or "")
            if name is None:
                break
            variables.append(name[1])
            at += 1
        # What is left is a flag of its own, or computed, or nothing.
        if at >= len(words) or (words[at] or "-").startswith("-"):
            break
        length = at
    return Prefix(length, tuple(variables))


def _skip_flags(words: Sequence[str | None], at: int, grammar: _Grammar) -> int:
    while at < len(words):
        word = words[at] or ""
        if word in grammar.valued:
            at += 2
        elif word in grammar.alone or _has_value(word, grammar):
            at += 1
        else:
            break
    return at


def _has_value(word: str, grammar: _Grammar) -> bool:
    """Return whether a word is a flag together with its value."""
    name, equals, _ = word.partition("=")
    if word.startswith("--"):
        return bool(equals) and name in grammar.valued
    return word[:2] in grammar.valued


def is_prefix(name: str) -> bool:
    """Return whether a program runs the rest of its words."""
    return name in _PREFIXES


def find_hazard(variables: Sequence[str]) -> str:
    """Return the first variable with which another program would run, or ours otherwise; empty: none is."""
    for name in variables:
        if name.startswith(_HAZARDS):
            return name
    return ""


def are_harmless(variables: Sequence[str]) -> bool:
    """Return whether variables change no more than how a program reads and shows text."""
    return all(name.startswith(_SHOWN) for name in variables)
