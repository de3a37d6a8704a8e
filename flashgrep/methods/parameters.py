"""The parameters of a signature by their names alone, for a line in which their types do not fit."""

from collections.abc import Sequence
from typing import Final

CUT: Final = "…"
OPENS: Final = frozenset("([{<")
CLOSES: Final = frozenset(")]}>")
ARROWS: Final = ("->", "=>")
PATH: Final = "::"


def name_parameters(signature: str) -> str:
    """Return a signature with parameters as ``name`` that are written as ``name: type`` or ``name = value``.

    Others stay as they are. The signature may be cut within its parameters.
    """
    head, opening, rest = signature.partition("(")
    names = list[str]()
    start = 0
    for at in _find_marks(rest, ",)"):
        name = _name(rest[start:at])
        names.append(name)
        start = at + 1
        if rest[at] == ")":
            return head + opening + _join(names) + rest[at:]
    last = _name(rest[start:])
    names.append(last)
    if signature.endswith(CUT) and not last.endswith(CUT):
        names.append(CUT)
    return head + opening + _join(names)


def _join(names: Sequence[str]) -> str:
    return ", ".join(filter(None, names))


def _name(parameter: str) -> str:
    """Return the name of a parameter, or all of it if nothing follows the name."""
    # ``a::b`` is a path, not a name and a type.
    plain = parameter.replace(PATH, "  ")
    for at in _find_marks(plain, ":="):
        name = parameter[:at]
        return name.strip().removesuffix("?")
    return parameter.strip()


def _find_marks(text: str, marks: str) -> list[int]:
    """Return where some characters are outside of brackets; a bracket that closes more than was opened is the last."""
    # Blanks in place of what is no bracket keep all places.
    for arrow in ARROWS:
        text = text.replace(arrow, "  ")
    places = list[int]()
    depth = 0
    for at, character in enumerate(text):
        if depth == 0 and character in marks:
            places.append(at)
        if character in OPENS:
            depth += 1
        if character in CLOSES:
            depth -= 1
        if depth < 0:
            break
    return places
