"""The process that runs ast-grep: it may crash, hang or grow without harm to its parent.

``structural_matcher`` starts it and exchanges frames with it (``child_process``). The first frame is the question,
``{"pattern", "rewrite", "languages"}``; the reply describes the pattern in each language. Then come batches,
``[[language, size of the text, matches to skip, most matches], …]`` and the texts; each text is answered in order.

ast-grep's Python module finds matches but does not rewrite. Templates and indentation follow the rules of its crate
``ast-grep-core`` (``replacer/template.rs``, ``replacer/indent.rs``).
"""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ast_grep_py import Config, Rule, SgNode, SgRoot

from flashgrep.base.child_process import limit_memory, make_frame, read_frame

MEMORY_BYTES: Final = 2 << 30
"""Limit of the address space; a file of 4 MB takes 150 MB, or ten times that if every node matches."""
TEXT_SECONDS: Final = 10.0
"""Most processor time for one text: 20 times as long as parsing 4 MB. The signal ends the process."""
MOST_CHARS: Final = 2_000
"""Most characters of a match's text and of a metavariable's value; the rest is cut."""
LOOK_BACK: Final = 512
"""Most characters searched backwards for the start of a line; a longer line counts as not indented."""
_VARIABLE: Final = re.compile(r"(\${1,3})([A-Z0-9_]+)")
_NAME: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_META: Final = re.compile(r"\$(?:\$\$)?([A-Z][A-Z0-9_]*)")
_EXPANDO: Final = {
    "c": "\U00010000",
    "cpp": "\U00010000",
    "css": "_",
    "nix": "_",
    "html": "z",
} | dict.fromkeys(
    (
        "csharp",
        "elixir",
        "go",
        "haskell",
        "hcl",
        "kotlin",
        "php",
        "python",
        "ruby",
        "rust",
        "swift",
    ),
    "\u00b5",
)
"""What ast-grep substitutes for the `$` of a metavariable where identifiers cannot contain it."""
_BODY = "void z(){%;}"
_CLASS = "class z {%}"
_CONTEXTS: Final = {
    **dict.fromkeys(("c", "cpp"), (_BODY, "")),
    "go": ("package z;func z(){%}", ""),
    **dict.fromkeys(("csharp", "javascript", "typescript", "tsx"), ("", _CLASS)),
}
"""Contexts in which a pattern is also parsed: the first always, the second if the pattern alone is broken or no code.
At the top level `free($A)` is a macro in C, `fmt.Println($A)` a conversion in Go, a method no code in JavaScript."""


class Template:
    """The replacement for a match, with metavariables."""

    def __init__(self, text: str) -> None:
        self.parts: list[tuple[str, str, int]] = []
        """Each a text, the metavariable after it, and that metavariable's indentation."""
        at = 0
        for match in _VARIABLE.finditer(text):
            self.parts.append(
                (text[at : match.start()], match[2], indent_at(text, match.start()))
            )
            at = match.end()
        self.rest = text[at:]

    def fill(self, text: str, start: int, spans: Mapping[str, tuple[int, int]]) -> str:
        """Return the replacement for the match at ``start``; ``spans``: the positions of the metavariables' values."""
        filled = []
        for before, name, indent in self.parts:
            filled.append(before)
            if name in spans:  # a metavariable for any number of nodes may match none
                first, last = spans[name]
                filled.append(
                    indent_lines(text[first:last], indent_at(text, first), indent)
                )
        return indent_lines("".join([*filled, self.rest]), 0, indent_at(text, start))


def indent_at(text: str, at: int) -> int:
    """Return the indentation of a position's line; 0 if the line begins too far before."""
    low = max(0, at - LOOK_BACK)
    begin = text.rfind("\n", low, at) + 1
    if not begin and low:
        return 0
    line = text[begin:at]
    return len(line) - len(line.lstrip(" "))


def indent_lines(text: str, old: int, new: int) -> str:
    """Return a text with the indentation of all lines but the first changed from ``old`` to ``new`` blanks."""
    if "\n" not in text or old == new:
        return text
    if old < new:
        return text.replace("\n", "\n" + " " * (new - old))
    return text.replace("\n" + " " * (old - new), "\n")


@dataclass(slots=True)
class PatternNode:
    """A node of a pattern."""

    kind: str
    text: str
    is_named: bool
    is_leaf: bool
    is_variable: bool
    children: list["PatternNode"] = field(default_factory=list)

    @classmethod
    def of(cls, node: SgNode, expando: str) -> "PatternNode":
        """Return a pattern's tree; ``expando`` replaces the sigil of metavariables."""
        text = node.text()
        result = cls(
            node.kind(),
            text,
            node.is_named(),
            node.is_leaf(),
            is_variable(text, expando),
        )
        if not result.is_variable:
            result.children = [
                cls.of(child, expando) for child in node.children() if child.text()
            ]
        return result

    def descend(self) -> "PatternNode":
        """Return the innermost node with the same extent."""
        if len(self.children) == 1:
            return self.children[0].descend()
        return self

    def literals(self) -> Iterator[str]:
        """Yield the texts of named leaves: a match has a node with exactly this text for each.

        Of other leaves only the kind is compared, and a grammar may accept another text for the kind.
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
    return bare != text and (
        bare == expando or _NAME.fullmatch(bare.removeprefix(expando)) is not None
    )


def _find_common_literals(nodes: Iterable[PatternNode]) -> list[str]:
    literals = [set(node.literals()) for node in nodes]
    if literals:
        return sorted(set.intersection(*literals))
    return []


class Matcher:
    """A pattern with its optional rewrite."""

    def __init__(self, pattern: str, rewrite: str | None) -> None:
        self.pattern = pattern
        self.names = list(dict.fromkeys(_META.findall(pattern)))
        if rewrite is None:
            self.template = None
        else:
            self.template = Template(rewrite)
        self.rules: dict[str, Config] = {}
        self.keeps_semicolon = not any(
            source.rstrip().endswith(";") for source in (pattern, rewrite or "")
        )

    def _find_unknown_names(self) -> set[str]:
        if not self.template:
            return set()
        return {name for _, name, _ in self.template.parts}.difference(self.names)

    def parse(self, language: str) -> tuple[str, bool, list[str]]:
        """Return the properties of the pattern in a language, in the form of ``structural_matcher.ParsedPattern``."""
        unknown = self._find_unknown_names()
        if unknown:
            return f"it has no ${min(unknown)}, which the rewrite has", False, []
        problem = ""
        is_broken = False
        rules: list[Rule] = []
        nodes: list[PatternNode] = []
        expando = _EXPANDO.get(language, "$")
        written = replace_sigils(self.pattern, expando)
        try:
            root = SgRoot(written, language).root()
            root.find(pattern=self.pattern)
            nodes.append(PatternNode.of(root, expando).descend())
            is_broken = nodes[0].kind == "ERROR"
            rules.append({"pattern": self.pattern})
        except Exception as error:  # noqa: BLE001 - ast-grep has no error classes of its own
            causes = str(error).partition("\n\nStack backtrace")[0].splitlines()
            problem = re.sub(r"^ *\d+: ", "", causes[-1]).replace(expando, "$")
        except BaseException as error:  # noqa: BLE001 - a panic in ast-grep is no Exception; unknown grammars cause one
            return f"ast-grep cannot read it ({type(error).__name__})", False, []
        within, without = _CONTEXTS.get(language, ("", ""))
        for context in filter(None, (within, without if problem or is_broken else "")):
            selected = select(context, written, language)
            if selected is None or [selected.kind()] == [node.kind for node in nodes]:
                continue
            whole = context.replace("%", self.pattern)
            rule: Rule = {
                "pattern": {
                    "context": whole,
                    "selector": selected.kind(),
                    "strictness": "smart",
                }
            }
            with contextlib.suppress(
                Exception
            ):  # not a pattern there either, for example `$$$A`
                selected.find({"rule": rule})
                if is_broken:  # the pattern parsed alone would only be a guess
                    rules = []
                    nodes = []
                rules.append(rule)
                nodes.append(PatternNode.of(selected, expando))
                problem = ""
                is_broken = False
        if not problem:
            self.rules[language] = {
                "rule": rules[0] if len(rules) == 1 else {"any": rules}
            }
        return problem, is_broken, _find_common_literals(nodes)

    def match(self, language: str, text: str, after: int, most: int) -> dict[str, Any]:
        """Return the number of matches in a text, and the matches after the first ``after``, at most ``most``."""
        root = SgRoot(text, language).root()
        nodes = root.find_all(self.rules[language])
        return {
            "count": len(nodes),
            "matches": [self.describe(text, node) for node in nodes[after:][:most]],
        }

    def describe(self, text: str, node: SgNode) -> dict[str, Any]:
        """Return a match: offsets in characters, lines and columns from 1, metavariables and the replacement."""
        start = node.range().start
        end = node.range().end
        spans = {
            name: span
            for name in self.names
            if (span := capture(node, name)) is not None
        }
        match: dict[str, Any] = {
            "start_line": start.line + 1,
            "end_line": end.line + 1,
            "column": start.column + 1,
            "text": text[start.index : min(end.index, start.index + MOST_CHARS)],
            "cut": end.index - start.index > MOST_CHARS,
            "metavariables": {
                name: text[first:last][:MOST_CHARS]
                for name, (first, last) in spans.items()
            },
        }
        if self.template is not None:
            # The semicolon of a statement is kept if neither the pattern nor the
            # rewrite has one.
            ends = text.endswith(";", start.index, end.index)
            stays = self.keeps_semicolon and ends
            stays = stays and all(last < end.index for _, last in spans.values())
            match["span"] = (start.index, end.index - stays)
            match["replacement"] = self.template.fill(text, start.index, spans)
        return match


def capture(node: SgNode, name: str) -> tuple[int, int] | None:
    """Return the span of a metavariable's value in characters; None: it has no value."""
    match = node.get_match(name)
    if match is not None:
        many = [match]
    else:
        many = node.get_multiple_matches(name)
    if not many:
        return None
    # What is between several nodes, such as commas, belongs to the value.
    first = many[0].range()
    last = many[-1].range()
    return first.start.index, last.end.index


def select(context: str, written: str, language: str) -> SgNode | None:
    """Return the pattern's node in its context; None: it is not a node there, or not the first of its kind."""
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
            if node.is_named():
                first = root.find(kind=node.kind())
            else:
                first = None
            if first is not None and first.text() == written:
                return node
            return None
        for child in node.children():
            if child.range().end.index > start:
                nodes.append(child)
    return None


def replace_sigils(pattern: str, expando: str) -> str:
    """Return a pattern in the form that ast-grep parses: the `$` of metavariables replaced, others kept."""
    return re.sub(
        r"\$+(?=[A-Z_])|(?<!\$)\$\$\$(?!\$)",
        lambda found: expando * len(found[0]),
        pattern,
    )


def main() -> None:
    """Answer requests until standard input ends."""
    limit_memory(MEMORY_BYTES)
    os.nice(5)
    source = sys.stdin.buffer
    sink = sys.stdout.buffer
    question = read_frame(source)
    if question is None:
        return
    matcher = Matcher(question["pattern"], question["rewrite"])
    with bounded_time():
        sink.write(
            make_frame(
                {
                    language: matcher.parse(language)
                    for language in question["languages"]
                }
            )
        )
        sink.flush()
    while (batch := read_frame(source)) is not None:
        texts = [
            (language, source.read(size).decode(), after, most)
            for language, size, after, most in batch
        ]
        for text in texts:
            with bounded_time():
                answer = matcher.match(*text)
            sink.write(make_frame(answer))
            sink.flush()


@contextlib.contextmanager
def bounded_time() -> Iterator[None]:
    """Make the system kill this process if the block takes too long: nothing in it can be interrupted."""
    signal.setitimer(signal.ITIMER_PROF, TEXT_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


if __name__ == "__main__":
    main()
