"""What a member is accessed on, read backwards from its name: a chain of names, calls and constructions.

``shop.open().tables(4).first`` is read without a tree, since only the end of the expression is known.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from flashgrep.parts.symbols.parse.lookup import FileSymbols

Form = Literal["name", "call", "new", "cast", "reference"]
DIALECTS: Final = frozenset({"java", "csharp", "kotlin", "php", "rust"})
"""Languages whose declarations write types, and whose expressions are read here."""
_MOST_CHAIN: Final = 100
"""Most steps of one chain."""
_FAR: Final = (250, 8_000)
"""Bytes in which a bracket's partner is looked for: it is near nearly always, and no further than the last."""
_MOST_BEFORE: Final = 300
"""Most bytes of one name or operator with the blanks around it."""
HELD: Final = "unwrap"
"""The method that does what Rust's ``?`` and an index do."""
PART: Final = "as_slice"
"""The method that stands for a range of a slice."""
_INDEXED: Final = {"java": "[]", "csharp": "[]", "kotlin": "get"}
"""Languages in which an index reads a member, and what that is called."""
_VALUE_END: Final = re.compile(rb"[\w)\]?!]")
_BEFORE_ARRAY: Final = re.compile(rb"\bnew\s+\Z")
_WAITED: Final = re.compile(rb"[\s(]*\bawait\s+\Z")
_FAR_AROUND: Final = (500, 20_000)
"""Bytes before a place that are read for the bracket around it: most are near."""
_BRACKETS: Final = re.compile(rb"[()\[\]{}]")
_ANGLES: Final = re.compile(rb"[<>]")
_OPERATOR: Final = re.compile(rb"(?:\?\.|!!?\.|\?->|->|\.|::)\Z")
_LAST_WORD: Final = re.compile(
    rb"(?<![\w$])(\$?[A-Za-z_]\w*(?:!(?=\Z))?|(?<=[A-Za-z_)\]?]\.)\d)\Z"
)
_MADE: Final = re.compile(rb"\bnew\s+(\\?[A-Za-z_]\w*(?:\s*[.\\]\s*\w+)*)\Z")
_CAST: Final = re.compile(rb"\(\s*([A-Za-z_][\w.]*)(?:<[^()]*>)?\s*\)\s*[\w(\"]")
_AS: Final = re.compile(rb"\bas\??\s+([A-Za-z_][\w.]*)(?:<[^()]*>)?\s*\Z")
_ARROWED: Final = frozenset({"php"})
_HEADS: Final = re.compile(
    rb"if|while|for|switch|catch|match|when|using|lock|synchronized"
)
"""Words whose parentheses are no expression of their own."""
_KEYWORDS: Final = re.compile(
    rb"return|throw|else|in|case|await|yield|do|try|assert|typeof|sizeof|nameof|move|unsafe|echo|print|and|or|not|is|as"
)
"""Words before a parenthesis that call nothing."""
_INFIX: Final = frozenset({"kotlin"})
"""Languages in which a method may be called without a dot: ``crane lift 3``."""
_BEFORE_INFIX: Final = re.compile(rb"[\w)\]}\"'`][ \t]+\Z")
_BEHIND_INFIX: Final = re.compile(rb"\w*`?[ \t]+[^\s=.,;)}]|\w*`?[ \t]*\n")
_LITERAL: Final = re.compile(rb"(?:(?<!\w)\d[\w.]*|\"[^\"\n]*\")\s*\Z")
_NO_OPERAND: Final = re.compile(
    rb"\b(?:return|throw|else|in|is|as|by|do|try|finally|fun|val|var|class|object|interface|get|set|suspend|if|when|while)"
    rb"[ \t]+\Z"
)
"""Words before a name that are no operand."""
_BINDS_CLOSER: Final = frozenset({b"+", b"-", b"*", b"/", b"%", b".", b"!"})
"""Operators whose result is what a method without a dot is called on."""


@dataclass(frozen=True, slots=True)
class Step:
    """One name of a chain; ``offset``: of the name. ``base``: what it is a member of."""

    form: Form
    name: str
    offset: int
    end: int
    base: "Step | None" = None


def read_receiver(
    symbols: FileSymbols,
    offset: int,
) -> Step | None:
    """Return what the member at an offset is accessed on; None: nothing, or what is not understood."""
    operator = _find_operator(symbols, offset)
    if operator is not None:
        return read_expression(symbols, operator)
    if is_infix(symbols, offset):
        return _read_operand(symbols, offset, 0)
    return None


def is_infix(
    symbols: FileSymbols,
    offset: int,
) -> bool:
    """Whether a method is called between its receiver and its argument, without a dot."""
    if symbols.language not in _INFIX or symbols.role(offset) != "call":
        return False
    before = symbols.data[max(0, offset - _MOST_BEFORE) : offset]
    if _BEFORE_INFIX.search(before) is None or _NO_OPERAND.search(before):
        return False
    # What a parenthesis follows at once is called as any other function.
    if _BEHIND_INFIX.match(symbols.data, offset) is None:
        return False
    # The parentheses of a statement's head are no operand.
    end = _skip_blanks(symbols, offset)
    if symbols.data[end - 1 : end] != b")":
        return True
    opening = _find_opening(symbols, end - 1)
    name_end = _skip_blanks(symbols, opening)
    word = _LAST_WORD.search(symbols.data, max(0, name_end - _MOST_BEFORE), name_end)
    return word is None or _HEADS.fullmatch(word[1]) is None


def _read_operand(
    symbols: FileSymbols,
    offset: int,
    depth: int,
) -> Step | None:
    """Return what a method without a dot is called on, which may be the result of another."""
    if depth > _MOST_CHAIN:
        return None
    operand = read_expression(symbols, offset)
    literal = _LITERAL.search(symbols.data, max(0, offset - _MOST_BEFORE), offset)
    if operand is not None:
        start = _start_of(operand)
    elif literal is not None:
        start = literal.start()
    else:
        return None
    end = _skip_blanks(symbols, start)
    if symbols.data[end - 1 : end] in _BINDS_CLOSER:
        return None
    # ``a lift b lift c`` is ``(a lift b) lift c``.
    word = _LAST_WORD.search(symbols.data, max(0, end - _MOST_BEFORE), end)
    if word is None or not is_infix(symbols, word.start()):
        return operand
    base = _read_operand(symbols, word.start(), depth + 1)
    if base is None:
        return None
    return Step("call", word[1].decode(), word.start(), offset, base)


def read_expression(
    symbols: FileSymbols,
    end: int,
    depth: int = 0,
) -> Step | None:
    """Return the chain that ends at an offset; None: it is not one."""
    data = symbols.data
    closing = _skip_blanks(symbols, end)
    if symbols.language == "rust" and data[closing - 1 : closing] in {b"?", b"]"}:
        return _read_content(symbols, closing, depth)
    if symbols.language in _INDEXED and data[closing - 1 : closing] == b"]":
        return _read_index(symbols, closing, depth)
    if symbols.language == "rust" and data[closing - 1 : closing] == b"}":
        return _read_literal(symbols, closing)
    while data[closing - 1 : closing] in {b"?", b"!"}:
        closing = _skip_blanks(symbols, closing - 1)
    if depth > _MOST_CHAIN or closing <= 0:
        return None
    opening = _find_arguments(symbols, closing)
    is_call = opening < closing
    name_end = opening
    if is_call:
        name_end = 0
    is_applied = symbols.language == "csharp" and data[closing - 1 : closing] == b">"
    if (is_call or is_applied) and opening >= 0:
        name_end = skip_type_arguments(symbols, opening)
    word = _LAST_WORD.search(data, max(0, name_end - _MOST_BEFORE), name_end)
    is_head = word is not None and _HEADS.fullmatch(word[1]) is not None
    # Elsewhere than in C# it is a method as any other.
    if word is not None and word[1] == b"lock":
        is_head = symbols.language == "csharp"
    if opening < 0 or is_head:
        return None
    if word is None or _KEYWORDS.fullmatch(word[1]):
        if not is_call or data[opening : opening + 1] != b"(":
            return None
        return _read_parentheses(symbols, opening, closing, depth)
    construction = _MADE.search(data, max(0, word.start() - _MOST_BEFORE), name_end)
    # The base of a construction is its own start: ``new A().b``.
    if construction is not None and is_call:
        name = "".join(construction[1].decode().split())
        return Step("new", name, word.start(), closing)
    return _read_member(symbols, word, closing, depth, is_call=is_call)


def _read_content(
    symbols: FileSymbols,
    closing: int,
    depth: int,
) -> Step | None:
    """Return what Rust's ``?`` or an index takes out of a value, as the call of the method that does the same."""
    end = closing - 1
    method = HELD
    if symbols.data[end : end + 1] == b"]":
        end = _find_opening(symbols, end)
        # A range of a slice is a slice.
        if end >= 0 and b".." in symbols.data[end:closing]:
            method = PART
    base = read_expression(symbols, end, depth + 1) if end >= 0 else None
    if base is None:
        return None
    return Step("call", method, end, closing, base)


def _read_index(
    symbols: FileSymbols,
    closing: int,
    depth: int,
) -> Step | None:
    """Return what an index takes out of a value, as the call of the member that does the same."""
    opening = _find_opening(symbols, closing - 1)
    before = _skip_blanks(symbols, opening)
    # What follows no value is a list or an attribute.
    if (
        opening < 0
        or depth > _MOST_CHAIN
        or not _VALUE_END.match(symbols.data, before - 1)
    ):
        return None
    base = read_expression(symbols, opening, depth + 1)
    # The length of a new array stands in the same brackets.
    start = _start_of(base) if base is not None else opening
    if base is None or _BEFORE_ARRAY.search(symbols.data, max(0, start - 20), start):
        return None
    return Step("call", _INDEXED[symbols.language], opening, closing, base)


def _read_literal(
    symbols: FileSymbols,
    closing: int,
) -> Step | None:
    """Return the value of a type of Rust that is written with its fields: ``Crane { size: 1 }``."""
    opening = _find_opening(symbols, closing - 1)
    if opening < 0:
        return None
    end = _skip_blanks(symbols, opening)
    word = _LAST_WORD.search(symbols.data, max(0, end - _MOST_BEFORE), end)
    # Before a block stands no type's name, but in the head of its implementation.
    if word is None or not word[1][:1].isupper():
        return None
    return Step("new", word[1].decode(), word.start(), closing)


def find_block_start(
    symbols: FileSymbols,
    offset: int,
) -> int:
    """Return where the block begins that an offset is in; -1: it is too far away."""
    opening = find_bracket(symbols, offset)
    if opening >= 0 and symbols.data[opening : opening + 1] == b"{":
        return opening
    return -1


def find_bracket(
    symbols: FileSymbols,
    offset: int,
) -> int:
    """Return where the innermost bracket around an offset opens; -1: it is too far away."""
    for most in _FAR_AROUND:
        opening = _find_near_bracket(symbols, offset, max(0, offset - most))
        if opening >= 0:
            return opening
    return -1


def _find_near_bracket(symbols: FileSymbols, offset: int, least: int) -> int:
    data = symbols.data
    depth = 0
    brackets = [match.start() for match in _BRACKETS.finditer(data, least, offset)]
    for at in reversed(brackets):
        if symbols.is_text(at):
            continue
        if data[at : at + 1] in b")]}":
            depth += 1
        elif depth:
            depth -= 1
        else:
            return at
    return -1


def read_callee(
    symbols: FileSymbols,
    opening: int,
) -> Step | None:
    """Return the call whose arguments begin at an offset; None: it is none, or what is not understood."""
    data = symbols.data
    end = skip_type_arguments(symbols, opening)
    word = _LAST_WORD.search(data, max(0, end - _MOST_BEFORE), end)
    if word is None or _HEADS.fullmatch(word[1]) or _KEYWORDS.fullmatch(word[1]):
        return None
    if _MADE.search(data, max(0, word.start() - _MOST_BEFORE), end):
        return Step("new", word[1].decode(), word.start(), opening)
    return _read_member(symbols, word, opening, 0, is_call=True)


def is_open_at(
    symbols: FileSymbols,
    opening: int,
    offset: int,
) -> bool:
    """Whether a bracket is not closed before an offset."""
    depth = 0
    for match in _BRACKETS.finditer(symbols.data, opening, offset):
        if symbols.is_text(match.start()):
            continue
        depth += 1 if match[0] in b"([{" else -1
        if not depth:
            return False
    return depth > 0


def _find_arguments(
    symbols: FileSymbols,
    closing: int,
) -> int:
    """Return where the arguments begin of a call that ends at an offset: there if no call does, -1 if too far away."""
    data = symbols.data
    end = closing
    if symbols.language == "kotlin" and data[closing - 1 : closing] == b"}":
        # The lambda that a call takes last stands behind its parentheses.
        opening = _find_opening(symbols, closing - 1)
        if opening < 0:
            return -1
        closing = _skip_blanks(symbols, opening)
        if data[closing - 1 : closing] != b")":
            return opening
    if data[closing - 1 : closing] == b")":
        return _find_opening(symbols, closing - 1)
    return end


def _read_member(
    symbols: FileSymbols,
    word: re.Match[bytes],
    closing: int,
    depth: int,
    *,
    is_call: bool,
) -> Step | None:
    """Return the chain that ends with a name, and the list of arguments of a call."""
    start = word.start()
    if is_call and symbols.language == "java":
        start = skip_type_arguments(symbols, start)
    operator = _find_operator(symbols, start)
    base = None
    if operator is not None:
        base = read_expression(symbols, operator, depth + 1)
        if base is None:
            return None
    form: Form = "call" if is_call else "name"
    # ``Crane::rope`` names the property itself, not its value.
    is_reference = operator is not None and symbols.data.startswith(b"::", operator)
    if is_reference and not is_call and symbols.language == "kotlin":
        form = "reference"
    return Step(form, word[1].decode(), word.start(), closing, base)


def _read_parentheses(
    symbols: FileSymbols,
    opening: int,
    closing: int,
    depth: int,
) -> Step | None:
    """Return what stands in parentheses: a chain, or a value of a type that is written there."""
    inside = symbols.data[opening + 1 : closing - 1]
    cast = _CAST.match(inside.strip()) or _AS.search(inside)
    if cast is not None:
        return Step("cast", cast[1].decode(), opening, closing)
    step = read_expression(symbols, closing - 1, depth + 1)
    if step is None:
        return None
    before = symbols.data[opening : _start_of(step)]
    if symbols.language == "csharp" and _WAITED.match(before):
        return Step("call", "await", opening, closing, step)
    if before.strip(b" \t\r\n("):
        return None
    return step


def find_first(step: Step) -> Step:
    """Return the first name of a chain."""
    while step.base is not None:
        step = step.base
    return step


def _start_of(step: Step) -> int:
    first = find_first(step)
    if first.form == "new":
        return first.offset - len(first.name) - len("new ")
    return first.offset


def _find_operator(
    symbols: FileSymbols,
    offset: int,
) -> int | None:
    """Return where the expression ends that a member is accessed on; None: there is no operator."""
    end = _skip_blanks(symbols, offset)
    match = _OPERATOR.search(symbols.data, max(0, end - 3), end)
    if match is None:
        return None
    is_arrow = match[0].endswith(b"->")
    is_dot = match[0].endswith(b".")
    has_arrows = symbols.language in _ARROWED
    if (is_arrow and not has_arrows) or (is_dot and has_arrows):
        return None
    # In Rust the question mark takes something out of the value before it.
    if symbols.language == "rust" and match[0].startswith(b"?"):
        return match.start() + 1
    return match.start()


def _skip_blanks(
    symbols: FileSymbols,
    at: int,
) -> int:
    """Return the end of the code before an offset, without blanks and comments."""
    data = symbols.data
    skips = symbols.parsed.skips
    while at > 0:
        if data[at - 1 : at].isspace():
            at -= 1
            continue
        span = int(skips[:, 0].searchsorted(at, side="left")) - 1
        is_comment = (
            span >= 0
            and int(skips[span, 1]) >= at
            and data[int(skips[span, 0])] in b"/#"
        )
        if not is_comment:
            return at
        at = int(skips[span, 0])
    return at


def skip_type_arguments(
    symbols: FileSymbols,
    at: int,
) -> int:
    """Return where a name ends that type arguments may follow, as in ``List<String>(``."""
    at = _skip_blanks(symbols, at)
    data = symbols.data
    if data[at - 1 : at] != b">":
        return at
    # Only balanced angles are arguments; others compare.
    depth = 0
    least = max(0, at - _MOST_BEFORE)
    for angle in reversed(list(_ANGLES.finditer(data, least, at))):
        depth += 1 if angle[0] == b">" else -1
        if not depth:
            end = _skip_blanks(symbols, angle.start())
            return end - 2 if data.endswith(b"::", 0, end) else end
    return at


def _find_opening(
    symbols: FileSymbols,
    closing: int,
) -> int:
    """Return the offset of the bracket that one at an offset closes; -1: it is too far away."""
    for most in _FAR:
        opening = _find_near_opening(symbols, closing, max(0, closing - most))
        if opening >= 0:
            return opening
    return -1


def _find_near_opening(symbols: FileSymbols, closing: int, least: int) -> int:
    data = symbols.data
    depth = 0
    brackets = [match.start() for match in _BRACKETS.finditer(data, least, closing + 1)]
    for at in reversed(brackets):
        if symbols.is_text(at) or data[at - 1 : at] == data[at + 1 : at + 2] == b"'":
            continue
        if data[at : at + 1] in b")]}":
            depth += 1
        else:
            depth -= 1
            if not depth:
                return at
    return -1
