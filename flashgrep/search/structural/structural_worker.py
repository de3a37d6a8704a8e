"""The process that matches syntax, by ast-grep: it may crash, hang or grow without harm to its parent.

``structural_matcher`` starts it and speaks with it, by frames (``child_process``). First comes the question,
``{"pattern", "rewrite", "languages"}``, answered with what is known of the pattern in each language. Then come batches,
``[[language, size of the text], …]`` and the texts; each text is answered in order.

ast-grep's Python module finds matches and does not rewrite: templates and indentation are by the rules of its crate
``ast-grep-core`` (``replacer/template.rs``, ``replacer/indent.rs``).
"""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ast_grep_py import Config, Rule, SgNode, SgRoot

from flashgrep.child_process import limit_memory, make_frame, read_frame

MEMORY_BYTES: Final = 2 << 30
"""Address space; a file of 4 MB takes 150 MB, ten times that where each of its nodes matches."""
TEXT_SECONDS: Final = 10.0
"""Of processor time for one text: 20 times as much as parsing 4 MB takes. The signal ends the process."""
MOST_CHARS: Final = 2_000
"""Of a match's text, and of what a metavariable stands for; the rest is cut."""
LOOK_BACK: Final = 512
"""Characters before a place in which its line must begin; a longer line has no indentation."""
_VARIABLE: Final = re.compile(r"(\${1,3})([A-Z0-9_]+)")
_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_META: Final = re.compile(r"\$(?:\$\$)?([A-Z][A-Z0-9_]*)")
_EXPANDO: Final = {"c": "\U00010000", "cpp": "\U00010000", "css": "_", "nix": "_", "html": "z"} | dict.fromkeys(
    ("csharp", "elixir", "go", "haskell", "hcl", "kotlin", "php", "python", "ruby", "rust", "swift"), "\u00b5"
)
"""What ast-grep writes for the `$` of a metavariable where no identifier may have one."""
_BODY, _CLASS = "void z(){%;}", "class z {%}"
_CONTEXTS: Final = {
    **dict.fromkeys(("c", "cpp"), (_BODY, "")),
    "go": ("package z;func z(){%}", ""),
    **dict.fromkeys(("csharp", "javascript", "typescript", "tsx"), ("", _CLASS)),
}
"""Where a pattern may stand, too: always, and if it is not code, or broken, by itself. At the top level `free($A)` is a
macro in C and `fmt.Println($A)` a conversion in Go, and a method is nothing in JavaScript."""


class Template:
    """The text that a match becomes, with metavariables in it."""

    def __init__(self, text: str) -> None:
        self.parts: list[tuple[str, str, int]] = []
        """Each a text, the metavariable after it, and how far that is indented."""
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


def indent_at(text: str, at: int) -> int:
    """Return how many blanks begin the line of a place; 0 where it begins too far before."""
    low = max(0, at - LOOK_BACK)
    begin = text.rfind("\n", low, at) + 1
    if not begin and low:
        return 0
    line = text[begin:at]
    return len(line) - len(line.lstrip(" "))


def indent_lines(text: str, old: int, new: int) -> str:
    """Return a text whose lines after the first are indented by ``new`` instead of ``old`` blanks."""
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
    def of(cls, node: SgNode, expando: str) -> "Goal":
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


class Matcher:
    """One pattern, and what its matches become."""

    def __init__(self, pattern: str, rewrite: str | None) -> None:
        self.pattern = pattern
        self.names = list(dict.fromkeys(_META.findall(pattern)))
        self.template = None if rewrite is None else Template(rewrite)
        self.rules: dict[str, Config] = {}
        self.keeps_semicolon = not any(one.rstrip().endswith(";") for one in (pattern, rewrite or ""))

    def understand(self, language: str) -> tuple[str, bool, list[str]]:
        """Return what is known of the pattern in a language, as ``structural_matcher.Understood`` has it."""
        unknown = {name for _, name, _ in self.template.parts}.difference(self.names) if self.template else set()
        if unknown:
            return f"it has no ${min(unknown)}, which the rewrite has", False, []
        problem, is_broken = "", False
        rules: list[Rule] = []
        goals: list[Goal] = []
        expando = _EXPANDO.get(language, "$")
        written = replace_sigils(self.pattern, expando)
        try:
            root = SgRoot(written, language).root()
            root.find(pattern=self.pattern)
            goals.append(Goal.of(root, expando).descend())
            is_broken = goals[0].kind == "ERROR"
            rules.append({"pattern": self.pattern})
        except Exception as error:  # noqa: BLE001 - ast-grep has no classes of errors
            causes = str(error).partition("\n\nStack backtrace")[0].splitlines()
            problem = re.sub(r"^ *\d+: ", "", causes[-1]).replace(expando, "$")
        except BaseException as error:  # noqa: BLE001 - a panic of ast-grep is not an Exception: a grammar it lacks
            return f"ast-grep cannot read it ({type(error).__name__})", False, []
        within, without = _CONTEXTS.get(language, ("", ""))
        for context in filter(None, (within, without if problem or is_broken else "")):
            selected = select(context, written, language)
            if selected is None or [selected.kind()] == [goal.kind for goal in goals]:
                continue
            whole = context.replace("%", self.pattern)
            rule: Rule = {"pattern": {"context": whole, "selector": selected.kind(), "strictness": "smart"}}
            with contextlib.suppress(Exception):  # no pattern by itself there either, as `$$$A`
                selected.find({"rule": rule})
                if is_broken:  # read as written it would only be a guess
                    rules, goals = [], []
                rules.append(rule)
                goals.append(Goal.of(selected, expando))
                problem, is_broken = "", False
        if not problem:
            self.rules[language] = {"rule": rules[0] if len(rules) == 1 else {"any": rules}}
        literals = set.intersection(*(set(goal.literals()) for goal in goals)) if goals else set()
        return problem, is_broken, sorted(literals)

    def match(self, language: str, text: str, after: int, most: int) -> dict[str, Any]:
        """Return how many matches a text has, and those after the first ``after``, ``most`` at most."""
        root = SgRoot(text, language).root()
        found = root.find_all(self.rules[language])
        return {"count": len(found), "matches": [self.describe(text, one) for one in found[after:][:most]]}

    def describe(self, text: str, node: SgNode) -> dict[str, Any]:
        """Return a match: offsets in characters, lines and columns from 1, metavariables, what it becomes."""
        start, end = node.range().start, node.range().end
        spans = {name: span for name in self.names if (span := capture(node, name)) is not None}
        match: dict[str, Any] = {
            "start_line": start.line + 1,
            "end_line": end.line + 1,
            "column": start.column + 1,
            "text": text[start.index : min(end.index, start.index + MOST_CHARS)],
            "cut": end.index - start.index > MOST_CHARS,
            "metavariables": {name: text[first:last][:MOST_CHARS] for name, (first, last) in spans.items()},
        }
        if self.template is not None:
            # A statement's semicolon of which neither the pattern nor the rewrite says anything stays.
            stays = self.keeps_semicolon and text.endswith(";", start.index, end.index)
            stays = stays and all(last < end.index for _, last in spans.values())
            match["span"] = (start.index, end.index - stays)
            match["replacement"] = self.template.fill(text, start.index, spans)
        return match


def capture(node: SgNode, name: str) -> tuple[int, int] | None:
    """Return from where to where what a metavariable stands for is, in characters; None: it stands for nothing."""
    one = node.get_match(name)
    many = [one] if one is not None else node.get_multiple_matches(name)
    return (many[0].range().start.index, many[-1].range().end.index) if many else None


def select(context: str, written: str, language: str) -> SgNode | None:
    """Return the node that a pattern is within its context; None: it is none there, or not the first of its kind."""
    root = SgRoot(context.replace("%", written), language).root()
    if root.find(kind="ERROR") is not None:
        return None
    start = context.index("%")
    nodes = [root]
    while nodes:
        node = nodes.pop()
        span = node.range()
        if node.text() == written and span.start.index == start:
            while len(node.children()) == 1:
                node = node.children()[0]
            first = root.find(kind=node.kind()) if node.is_named() else None
            return node if first is not None and first.text() == written else None
        nodes += [child for child in node.children() if child.range().end.index > start]
    return None


def replace_sigils(pattern: str, expando: str) -> str:
    """Return a pattern as ast-grep has it parsed: the `$` of metavariables replaced, others kept."""
    return re.sub(r"\$+(?=[A-Z_])|(?<!\$)\$\$\$(?!\$)", lambda found: expando * len(found[0]), pattern)


def main() -> None:
    """Answer until standard input ends."""
    limit_memory(MEMORY_BYTES)
    os.nice(5)
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    question = read_frame(source)
    if question is None:
        return
    matcher = Matcher(question["pattern"], question["rewrite"])
    with bounded_time():
        sink.write(make_frame({language: matcher.understand(language) for language in question["languages"]}))
        sink.flush()
    while (batch := read_frame(source)) is not None:
        texts = [(language, source.read(size).decode(), after, most) for language, size, after, most in batch]
        for text in texts:
            with bounded_time():
                answer = matcher.match(*text)
            sink.write(make_frame(answer))
            sink.flush()


@contextlib.contextmanager
def bounded_time() -> Iterator[None]:
    """Have the system end this process where the block takes too long: nothing in it can be interrupted."""
    signal.setitimer(signal.ITIMER_PROF, TEXT_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main()
