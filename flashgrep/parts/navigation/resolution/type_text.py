"""Where declarations write a type: before or behind a name, in a comment, or by the value that follows."""

import re
from typing import Final

from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import (
    CALLABLE_KINDS,
    END,
    NAME,
    NAME_END,
    START,
    TYPE_KINDS,
)

FIELDS: Final = frozenset({"field", "property", "constant", "variable", "enumerator"})
_MOST_HEAD: Final = 2_000
"""Most bytes of a declaration that are read for its type."""
_PATH: Final = rb"\\?[A-Za-z_]\w*(?:(?:\.|::|\\)[A-Za-z_]\w*)*"


def _nest(depth: int) -> bytes:
    """Return a pattern of type arguments that have others inside, to a depth."""
    plain = rb"[^;(){}=<>]"
    if not depth:
        return rb"<%s{0,200}>" % plain
    return rb"<(?:%s|%s){0,200}>" % (plain, _nest(depth - 1))


_ARGUMENTS: Final = rb"(?:\s*%s)?" % _nest(3)
"""Arguments end where they are closed, not before the next parameter's name."""


Binding = tuple[int, re.Match[bytes]]
"""How a name is bound: 0, its type is written; 1, a value follows it; 2, neither; and where."""


def _compile(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(_fill(pattern))


def _fill(pattern: bytes) -> bytes:
    """Return a pattern with PATH and ARGUMENTS as what they stand for: a type's name, and its arguments."""
    pattern = pattern.replace(b"PATH", _PATH)
    return pattern.replace(b"ARGUMENTS", _ARGUMENTS)


_BEFORE_NAME: Final = _compile(
    rb"(?<![\w.])(PATH)ARGUMENTS(\s*\[[\s,]*\])*\??(?:\s*\.\.\.)?\s+\Z"
)
"""A type directly before the name that it is the type of."""
_BEHIND: Final = {
    "kotlin": _compile(rb"\s*:\s*(PATH)ARGUMENTS\s*(\[\])?"),
    "php": _compile(
        rb"\s*:\s*(?:null\s*\|\s*)?\??(PATH)(?:\s*\|\s*null)?(?=\s*[{;|]()?)"
    ),
    "rust": _compile(
        rb"\s*(?:->|:)\s*(?:&\s*(?:'\w+\s+)?)?(?:mut\s+)?(?:(?:dyn|impl)\s+)?(PATH)(\s*<)?"
    ),
}
"""A type behind the list of parameters, or behind a name."""
_DOCUMENTED: Final = _compile(
    rb"@(?:psalm-|phpstan-)?(?:return|var)\s+(?:null\|)?\??(\$?PATH)(?:\|null)?(?=[\s*])"
)
_LAST_STATEMENT: Final = re.compile(rb"[;{}]")
_IN_LIST: Final = re.compile(rb"\bnew\s+[\w.]+\s?<[\w\s,.?<>\[\]]*\Z")
"""The arguments of a type that is constructed, whose commas end nothing."""
_LISTS_BEFORE: Final = frozenset({"java", "kotlin"})
_LIST_BEFORE: Final = re.compile(rb"(?<![\w.])<")
_ANGLES: Final = re.compile(rb"(?<![-=])[<>(),\[\]]")
_OPENING: Final = frozenset({b"<", b"(", b"["})
_MOST_LIST: Final = 1_000
"""Bytes of a list of type parameters or arguments."""
_PARAMETER: Final = re.compile(
    rb"(?:(?:in|out|reified|const)\s+|@\w+\s+|\[[^\]]*\]\s*)*([A-Za-z_]\w*)"
)
_BOUND: Final = rb"[<,\s]%s\s*(?::|\bextends\b)\s*(PATH)ARGUMENTS(?!\s*[+&\w<])"
"""What a type parameter must be, if that is one type."""
_NO_TYPES: Final = re.compile(
    rb"return|new|throw|else|case|in|is|as|await|yield|instanceof|void|goto|package|import|using|out|ref|mut|echo|static"
    rb"|final|public|private|protected|readonly|var|val|auto|let"
)
"""Words before a name that are no type."""
_TYPED: Final = {
    "java": (rb"(?<![\w.])(PATH)ARGUMENTS(\s*\[\])*(?:\s*\.\.\.)?\s+\Z", rb"\s*(?=[=;,):&])"),
    "csharp": (rb"(?<![\w.])(PATH)ARGUMENTS(\s*\[[\s,]*\])*\??\s+\Z", rb"\s*(?=[=;,)]|in\b)"),
    "kotlin": (rb"", rb"\s*:\s*(PATH)ARGUMENTS()"),
    "php": (rb"(?<![\w|])\??(PATH)(?:\s*\|\s*null)?()\s+(?:\.\.\.\s*)?&?\Z", rb"\s*(?=[=,)])"),
    "rust": (
        rb"",
        rb"\s*:\s*(?:&\s*(?:'\w+\s+)?)?(?:mut\s+)?(?:(?:dyn|impl)\s+)?[\[(]{0,2}(PATH)(\s*<)?",
    ),
}  # fmt: skip
"""What stands before and behind a local name where its type is written: the type, and what makes it another one.

Where nothing has to stand before it, the type stands behind.
"""
_ASSIGNED: Final = {
    "java": (rb"\bvar\s+\Z", rb"\s*=(?!=)"),
    "csharp": (rb"\bvar\s+\Z", rb"\s*=(?![=>])"),
    "kotlin": (rb"\b(?:val|var)\s+\Z", rb"\s*=(?!=)"),
    "php": (rb"(?<![\w>:])\Z", rb"\s*=(?![=>])"),
    "rust": (rb"\blet\s+(?:mut\s+)?\Z", rb"\s*=(?!=)"),
}
_DECLARED: Final = {
    language: [
        (_compile(before), _compile(behind), bool(before))
        for before, behind in (_TYPED[language], _ASSIGNED[language])
    ]
    for language in _TYPED
}
"""The patterns of both, by language."""
_MOST_BEFORE: Final = 600
"""Bytes before a name in which its type begins."""
_BEFORE_NAMES: Final = re.compile(rb"[\w$]")
_BEHIND_NAMES: Final = re.compile(rb"\w")
_BINDS: Final = {
    "java": rb"(?<![\w.])(?:%s\s*->|\(\s*(?:\w+\s*,\s*)*%s\s*(?:,\s*\w+\s*)*\)\s*->|\bvar\s+%s\b\s*:)",
    "csharp": rb"(?<![\w.])(?:%s\s*=>|\bfrom\s+%s\s+in\b"
    rb"|\bvar\s*\(\s*(?:\w+\s*,\s*)?%s\s*(?:,\s*\w+\s*)?\)\s*in\b|\(\s*(?:\w+\s*,\s*)*%s\s*(?:,\s*\w+\s*)*\)\s*=>|\bvar\s+%s\b(?!\s*=))",
    "kotlin": rb"(?:\{\s*\(?(?:[\w:<>?.]+\s*,\s*)*%s\b(?:\s*+,[\w:<>?.\s]++)*+\)?\s*+->|\bfor\s*\(\s*%s\s+in\b"
    rb"|\bfor\s*\(\s*\(\s*(?:\w+\s*,\s*)?%s\s*(?:,\s*\w+\s*)?\)\s*in\b)",
    "php": rb"\bas\s+(?:\$\w+\s*=>\s*)?&?%s\b|(?:\[|\blist\s*\()[^;=]{0,200}%s\b[^;=]{0,200}[\])]\s*=|,?&%s\b",
    "rust": rb"\|[^|;{}]{0,100}\b%s\b[^|;{}]{0,100}\||\bfor\s+[^;{}]{0,100}\b%s\b[^;{}]{0,100}\bin\b"
    rb"|\w\s?[({][^;={}]{0,100}\b%s\b[^;={}]{0,100}[)}]\s*(?:=(?!=)|=>)",
}  # fmt: skip
"""Where a name is bound to what no declaration says the type of."""


def match_type(member: Definition) -> re.Match[bytes] | None:
    """Return where a member's type is written: the type, and what makes it another one."""
    symbols = member.symbols
    data = symbols.data
    row = symbols.row(member.index)
    behind = _BEHIND.get(symbols.language)
    if behind is not None:
        at = find_name_end(member)
        match = behind.match(data, at, min(row[END], at + _MOST_HEAD) + 1)
        if match is not None or symbols.language != "php":
            return match
        documented = _find_comment_type(data, row[START])
        if documented is not None or member.kind in CALLABLE_KINDS:
            return documented
    end = row[NAME]
    if data[end - 1 : end] == b"$":
        end -= 1
    # A field begins behind its type.
    head = data[max(0, end - _MOST_HEAD) : end]
    match = _BEFORE_NAME.search(_LAST_STATEMENT.split(head)[-1])
    if match is None or _NO_TYPES.fullmatch(match[1]):
        return None
    return match


def _find_comment_type(
    data: bytes,
    start: int,
) -> re.Match[bytes] | None:
    """Return the type that the comment right above a definition writes."""
    # Of PHP's comments only those with two stars have types, and only the one
    # right above belongs to the definition.
    above = data[max(0, start - _MOST_HEAD) : start]
    opened = above.rfind(b"/**")
    closed = above.rfind(b"*/")
    if opened < 0 or above[closed + 2 :].strip():
        return None
    return _DOCUMENTED.search(above, opened)


def is_type_parameter(
    member: Definition,
    written: str,
) -> bool:
    """Whether a type's name is that of a type parameter of a member or of the type around it."""
    at = member.index
    while at >= 0:
        if written in read_parameters(Definition(member.path, member.symbols, at)):
            return True
        at = member.symbols.parent(at)
    return False


def read_parameters(definition: Definition) -> list[str]:
    """Return the names of the type parameters of a type or a function, in order."""
    symbols = definition.symbols
    row = symbols.row(definition.index)
    start = row[NAME_END]
    # Java and Kotlin write those of functions before the name.
    if symbols.language in _LISTS_BEFORE and definition.kind not in TYPE_KINDS:
        head = _LIST_BEFORE.search(symbols.data, row[START], row[NAME])
        start = head.end() - 1 if head is not None else start
    parameters = list[str]()
    for part in split_list(symbols.data, start):
        match = _PARAMETER.match(part)
        # A lifetime is none.
        if match is not None:
            parameters.append(match[1].decode())
    return parameters


def split_list(
    data: bytes,
    start: int,
) -> list[bytes]:
    """Return what stands in the angles that begin at an offset, divided at its commas; empty: there are none."""
    if data[start : start + 1] != b"<":
        return []
    parts = list[bytes]()
    depth = 0
    begin = start + 1
    for match in _ANGLES.finditer(data, start, start + _MOST_LIST):
        sign = match[0]
        if sign in _OPENING:
            depth += 1
        elif sign != b",":
            depth -= 1
        is_end = depth == 0
        if is_end or (sign == b"," and depth == 1):
            parts.append(data[begin : match.start()].strip())
            begin = match.end()
        if is_end:
            return parts
    return []


def read_bound(
    member: Definition,
    parameter: str,
) -> tuple[Definition, str] | None:
    """Return the only type that a type parameter must be of, as it is written, and whose head writes it; None: unknown."""
    symbols = member.symbols
    bound = _compile(_BOUND.replace(b"%s", re.escape(parameter.encode())))
    at = member.index
    while at >= 0:
        row = symbols.row(at)
        head = symbols.data[row[START] : row[START] + _MOST_HEAD]
        match = bound.search(head.partition(b"{")[0])
        if match is not None:
            return Definition(member.path, symbols, at), match[1].decode()
        at = symbols.parent(at)
    return None


def find_binding(
    symbols: FileSymbols,
    name: str,
    start: int,
    end: int,
) -> Binding | None:
    """Return the last binding of a name in a text."""
    language = symbols.language
    word = name.encode()
    if symbols.data.find(word, start, end) < 0:
        return None
    last, last_end = _find_declaration(symbols, word, start, end)
    # The last one before the use is in force, of whichever form; a name in a
    # comment binds nothing.
    pattern = _BINDS[language].replace(b"%s", re.escape(word))
    for match in re.compile(pattern).finditer(symbols.data, start, end):
        if match.end() > last_end and symbols.role(match.start()) is not None:
            last = (2, match)
            last_end = match.end()
    return last


def _find_declaration(
    symbols: FileSymbols,
    word: bytes,
    start: int,
    end: int,
) -> tuple[Binding | None, int]:
    """Return the last place in a text where a name's type or value is written, and where the name ends there."""
    data = symbols.data
    at = data.rfind(word, start, end)
    # Looked for from the end, since only the last one counts.
    while at >= 0:
        behind = at + len(word)
        is_part = _BEHIND_NAMES.match(data, behind) is not None
        is_word = not is_part and not _BEFORE_NAMES.match(data, at - 1, at)
        binding = None
        if is_word and symbols.role(at) is not None:
            binding = _match_declaration(symbols, at, behind, start)
        if binding is not None:
            return binding, behind
        at = data.rfind(word, start, behind - 1)
    return None, -1


def _match_declaration(
    symbols: FileSymbols,
    at: int,
    end: int,
    start: int,
) -> Binding | None:
    """Return how the name between two offsets is declared there; None: it is not."""
    data = symbols.data
    for form, (before, behind, is_before) in enumerate(_DECLARED[symbols.language]):
        match = behind.match(data, end)
        if match is None:
            continue
        if not is_before and data[at - 1 : at] != b".":
            return form, match
        if not is_before:
            continue
        head = before.search(data, max(start, at - _MOST_BEFORE), at)
        if head is None:
            continue
        if form:
            return form, match
        # A word in a comment above is no type.
        is_code = symbols.role(head.start()) is not None
        if is_code and not _NO_TYPES.fullmatch(head[1]):
            return form, head
    return None


def find_name_end(member: Definition) -> int:
    """Return the offset behind a declaration's name, and behind the parameters of what can be called."""
    row = member.symbols.row(member.index)
    end = row[NAME_END]
    if member.kind in CALLABLE_KINDS:
        return _find_list_end(member.symbols.data, end, row[END])
    return end


def _find_list_end(
    data: bytes,
    start: int,
    end: int,
) -> int:
    """Return the offset behind the list of parameters that follows a name."""
    # Commas and ends of lines inside of brackets end nothing.
    depth = 0
    for match in re.compile(rb"[()]").finditer(
        data, start, min(end, start + _MOST_HEAD)
    ):
        depth += 1 if match[0] == b"(" else -1
        if not depth:
            return match.end()
    return start


def find_statement_end(
    symbols: FileSymbols,
    start: int,
) -> int:
    """Return where a statement ends: at a semicolon, in Kotlin at a line that no operator goes on from."""
    data = symbols.data
    depth = 0
    for match in re.compile(rb"[()\[\]{};,\n]").finditer(
        data, start, start + _MOST_HEAD
    ):
        at = match.start()
        if symbols.is_text(at):
            continue
        sign = match[0]
        if sign in b"([{":
            depth += 1
        elif sign in b")]}":
            if not depth:
                return at
            depth -= 1
        elif depth or (sign == b"," and _IN_LIST.search(data, start, at)):
            continue
        elif sign == b";" or (sign == b"," and symbols.language != "kotlin"):
            return at
        elif sign == b"\n" and symbols.language == "kotlin":
            following = data[at : at + _MOST_HEAD].lstrip()
            if not following.startswith((b".", b"?.")):
                return at
    return start
