"""A pattern's tree, and what its matches become, as ast-grep's command has it.

ast-grep's Python module finds matches and does not rewrite: templates and indentation are by the rules of its crate
``ast-grep-core`` (``replacer/template.rs``, ``replacer/indent.rs``).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ast_grep_py import SgNode

LOOK_BACK: Final = 512
"""Characters before a place in which its line must begin; a longer line has no indentation."""
_VARIABLE: Final = re.compile(r"(\${1,3})([A-Z0-9_]+)")
_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


class Template:
    """The text that a match becomes, with metavariables in it."""

    def __init__(self, text: str) -> None:
        self.parts: list[tuple[str, str, int]] = []
        """Each a text, the metavariable behind it, and how far that is indented."""
        at = 0
        for found in _VARIABLE.finditer(text):
            self.parts.append((text[at : found.start()], found[2], indent_at(text, found.start())))
            at = found.end()
        self.rest = text[at:]

    def fill(self, text: str, start: int, spans: Mapping[str, tuple[int, int]]) -> str:
        """Return what the match at ``start`` becomes; ``spans``: where what the metavariables stand for is."""
        filled = []
        for before, name, indent in self.parts:
            filled.append(before)
            if name in spans:  # one for any number of nodes may stand for none
                first, last = spans[name]
                filled.append(indent_lines(text[first:last], indent_at(text, first), indent))
        return indent_lines("".join([*filled, self.rest]), 0, indent_at(text, start))


def variables_in(text: str) -> set[str]:
    """Return the names of the metavariables in a pattern or a template."""
    return {found[2] for found in _VARIABLE.finditer(text)}


def indent_at(text: str, at: int) -> int:
    """Return how many blanks begin the line of a place; 0 where it begins too far before."""
    low = max(0, at - LOOK_BACK)
    begin = text.rfind("\n", low, at) + 1
    if not begin and low:
        return 0
    line = text[begin:at]
    return len(line) - len(line.lstrip(" "))


def indent_lines(text: str, old: int, new: int) -> str:
    """Return a text whose lines behind the first are indented by ``new`` instead of ``old`` blanks."""
    if "\n" not in text or old == new:
        return text
    if old < new:
        return text.replace("\n", "\n" + " " * (new - old))
    return text.replace("\n" + " " * (old - new), "\n")


@dataclass(slots=True)
class Goal:
    """A node of a pattern."""

    kind: str
    text: str
    is_named: bool
    is_leaf: bool
    is_variable: bool
    children: list["Goal"] = field(default_factory=list)

    @classmethod
    def of(cls, node: "SgNode", expando: str) -> "Goal":
        """Return a pattern's tree; ``expando`` stands for the sigil of metavariables."""
        text = node.text()
        goal = cls(node.kind(), text, node.is_named(), node.is_leaf(), is_variable(text, expando))
        if not goal.is_variable:
            goal.children = [cls.of(child, expando) for child in node.children() if child.text()]
        return goal

    def descend(self) -> "Goal":
        """Return the innermost node that is all of this one."""
        return self.children[0].descend() if len(self.children) == 1 else self

    def literals(self) -> Iterator[str]:
        """Yield the texts of named leaves: a match has a node of just that text for each.

        Of other leaves only the kind is compared, which a grammar may find where the text is not.
        """
        if self.is_variable:
            return
        if self.is_leaf and self.is_named and self.text.isascii():
            yield from filter(str.strip, self.text.split("\n"))
        for child in self.children:
            yield from child.literals()


def is_variable(text: str, expando: str) -> bool:
    """Return whether a node's text is a metavariable."""
    bare = text.removeprefix(expando).removeprefix(expando)
    return bare != text and (bare == expando or _NAME.fullmatch(bare.removeprefix(expando)) is not None)
