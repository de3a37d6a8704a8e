"""The commands in a line of shell, found by tree-sitter's grammar of bash."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from tree_sitter import Node, Parser

from flashgrep.parts.symbols.parse.grammar import load_language

MOST_BYTES: Final = 64 * 1024
"""Of a command line; parsing takes 1 ms for 10 KB."""
_QUOTED: Final = frozenset({"raw_string", "string"})
_WORDS: Final = frozenset({"word", "number", "concatenation", *_QUOTED})
_PLAIN: Final = frozenset({"string_content", "word", "number"})
_DYNAMIC: Final = frozenset(
    {
        "command_substitution",
        "process_substitution",
        "simple_expansion",
        "expansion",
        "arithmetic_expansion",
    }
)
_ENVIRONMENT: Final = frozenset(
    {"variable_assignment", "declaration_command", "unset_command"}
)
_OPEN: Final = frozenset("-;*?[{")
"""Characters that a flag or the end of a command may come from."""
_CLOSING: Final = frozenset({"<&-", ">&-"})
_ESCAPE: Final = re.compile(r"\\([^\n])")
_QUOTED_ESCAPE: Final = re.compile(r'\\([$`"\\\n])')
"""Between double quotes any other backslash is itself."""
_UNREADABLE: Final = frozenset({"function_definition", "heredoc_redirect"})
"""A line with a function of its own, or a text in place of a file, is left alone as a whole."""


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: its words and where they begin; a word that the shell computes is None."""

    words: tuple[str | None, ...]
    starts: tuple[int, ...]
    """Byte offsets in the line."""
    reads_pipe: bool
    """Whether its standard input is a pipe, a file or a text of the line."""
    moves_errors: bool
    """Whether its standard error goes somewhere else."""
    may_hide_flags: bool = False
    """Whether a word that the shell computes may come to a flag, or end a command inside another's words."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of shell, and what else it does."""

    commands: tuple[Command, ...]
    writes_files: bool
    """Whether a redirection may write to a file."""
    is_plain: bool
    """Whether every command is among these as it is written: no expansions, no substitutions."""
    variables: tuple[str, ...] = ()
    """The names of those that it sets."""


@cache
def _parser() -> Parser:
    return Parser(load_language("bash"))


def read_line(text: bytes) -> Line | None:
    """Return what a line says; None: it is not understood."""
    if len(text) > MOST_BYTES:
        return None
    root = _parser().parse(text).root_node
    if root.has_error:
        return None
    commands: list[Command] = []
    writes_files = False
    is_plain = True
    variables: list[str] = []
    for node in _walk(root):
        if node.type in _UNREADABLE:
            return None
        if node.type == "command":
            command = _read_command(node)
            if command is None:
                is_plain = False
            else:
                commands.append(command)
        elif node.type == "file_redirect" and not _is_harmless(node):
            writes_files = True
        elif node.type in _ENVIRONMENT:
            variables += _read_names(node)
            is_plain &= node.type == "variable_assignment"
        elif node.type in _DYNAMIC:
            is_plain = False
    return Line(tuple(commands), writes_files, is_plain, tuple(variables))


def _read_names(node: Node) -> list[str]:
    """Return the names of the variables that a part of a line sets."""
    names: list[str] = []
    for child in node.named_children:
        if child.type == "variable_name":
            names.append((child.text or b"").decode(errors="surrogateescape"))
        elif child.type == "subscript":
            names += _read_names(child)
    return names


def _walk(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(node.children)


def _read_command(node: Node) -> Command | None:
    """Return a simple command, or None if its name is computed, or the grammar has lost a word of it."""
    words: list[str | None] = []
    starts: list[int] = []
    moves_errors = False
    reads_pipe = False
    hides = False
    text = node.text or b""
    end = node.start_byte
    for child in node.named_children:
        between = text[end - node.start_byte : child.start_byte - node.start_byte]
        blank = between.replace(b"\\\n", b"")
        if blank.strip():
            return None
        if child.type == "command_name":
            words.append(_read_word(child.named_children[0]))
            starts.append(child.start_byte)
        elif child.type in {"variable_assignment", "comment"}:
            pass
        elif child.type in {"file_redirect", "herestring_redirect"}:
            # ``grep x < file``: the grammar has it as a child of some commands.
            reads_pipe |= _is_input(child)
            moves_errors |= _is_of_errors(child)
        elif not blank:
            # The grammar cuts some words in two.
            words[-1] = None
            hides = True
        else:
            word = _read_word(child)
            hides |= word is None and _may_become_flag(child)
            words.append(word)
            starts.append(child.start_byte)
        end = child.end_byte
    if not words or words[0] is None:
        return None
    inner = node
    parent = node.parent
    while parent is not None:
        if parent.type == "pipeline":
            reads_pipe |= parent.named_children[0] != inner
            moves_errors |= any(child.type == "|&" for child in parent.children)
        elif parent.type == "redirected_statement":
            body = parent.named_children[0]
            for redirect in parent.named_children:
                if redirect.type in {"file_redirect", "herestring_redirect"}:
                    # What runs to make an input does not read it, but may read a pipe.
                    is_maker = redirect == inner and body.type != "pipeline"
                    reads_pipe |= not is_maker and _is_input(redirect)
                    moves_errors |= _is_of_errors(redirect)
        inner = parent
        parent = parent.parent
    return Command(tuple(words), tuple(starts), reads_pipe, moves_errors, hides)


def _read_word(node: Node) -> str | None:
    """Return the text of a word; None if the shell computes a part of it."""
    text = (node.text or b"").decode(errors="surrogateescape")
    if node.type == "raw_string":
        return text[1:-1]
    if text == "{}":
        return text
    if node.type in {"word", "number"}:
        # Wildcards and braces are the shell's to read, unless they are escaped.
        if any(char in _ESCAPE.sub("", text) for char in "*?[{~\\"):
            return None
        return _ESCAPE.sub(r"\1", text)
    if node.type == "string":
        if any(child.type not in _PLAIN for child in node.named_children):
            return None
        return _QUOTED_ESCAPE.sub(_unescape, text[1:-1])
    if node.type == "concatenation":
        parts = [_read_word(child) for child in node.children]
        known_parts = [part for part in parts if part is not None]
        if len(known_parts) == len(parts):
            return "".join(known_parts)
    return None


def _unescape(escape: re.Match[str]) -> str:
    """Return what an escape between double quotes comes to; with a line's end it is nothing."""
    return escape[1].removeprefix("\n")


def _may_become_flag(node: Node) -> bool:
    """Return whether a computed word may come to one that begins with a hyphen, or to a semicolon."""
    text = (node.text or b"").decode(errors="surrogateescape")
    if node.type == "concatenation":
        for child in node.children:
            part = _read_word(child)
            if part is None:
                return _may_become_flag(child)
            if part:
                return part[0] in _OPEN
    if node.type == "string":
        return text[1:].replace("\\\n", "")[:1] == "-"
    if node.type == "word":
        return text.removeprefix("\\")[:1] in _OPEN
    return True


def _is_input(redirect: Node) -> bool:
    return any(child.type in {"<", "<<<", "<&", "<&-"} for child in redirect.children)


def _is_of_errors(redirect: Node) -> bool:
    text = redirect.text or b""
    return text.startswith((b"2", b"&"))


def _is_harmless(redirect: Node) -> bool:
    """Return whether a redirection writes no file: it reads, it joins two streams, or it drops one."""
    kinds = {child.type for child in redirect.children if not child.is_named}
    # It closes a stream.
    if kinds <= _CLOSING:
        return True
    if kinds <= {"<", "<&", ">&"} and not (
        kinds == {">&"} and not _names_stream(redirect)
    ):
        return True
    return redirect.named_children[-1].text == b"/dev/null"


def _names_stream(redirect: Node) -> bool:
    """Return whether ``>&`` is followed by a stream's number; ``>&out2`` writes a file."""
    return (redirect.text or b"").rpartition(b"&")[2].strip().isdigit()
