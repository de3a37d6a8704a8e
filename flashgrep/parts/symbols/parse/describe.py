"""What an answer says about a definition, read from the file's text: lines, signature, documentation, receiver."""

import re
from collections.abc import Iterable
from typing import Final

from flashgrep.base.languages import LANGUAGES
from flashgrep.files.columns import Lines

SIGNATURE_CHARS: Final = 200
_WINDOW: Final = 1200
"""Bytes of a definition that are read for its signature and its documentation string."""
_COMMENT_LINES: Final = 40
"""Lines of a comment that are read; a longer one is a licence or an essay."""
_PYTHON_DOC: Final = re.compile(
    rb'\s*(?:#[^\n]*\n\s*)*[rRuU]?("""|\'\'\'|"|\')\s*([^\n]*?)\s*(?:\1|\n)'
)
_ELIXIR_DOC: Final = re.compile(rb'@(?:type)?doc\s+(?:~S)?(?:"""\s*|")([^\n"]+)')
_MARKERS: Final = re.compile(r"^[\s/*!#;%{(|-]+|[\s*/)}-]+$")
_ABOVE: Final = (b"@", b"[", b"#", b"/", b"*")
"""How annotations and comments above a definition begin."""
_WORD: Final = re.compile(r"\w")
_NO_MODIFIER: Final = frozenset(b"=(){}[]<>;,|")
"""Bytes that no modifier has."""
_HEAD_ENDS: Final = re.compile(rb"[()\[\]{;\n]")
"""The bytes that decide where the head of a definition ends."""
_XML: Final = re.compile(r"</?[A-Za-z][^>]*>")
_RECEIVER: Final = re.compile(
    rb"(?:(?<!\w)(\w++)[!?]?|[)\]}\"'`]!?)\s*(?:\?\.|!!\.|&\.|\?->|\.|->|::)\s*$|(?<=>)(?:\?\.|\.|::)\s*$"
)
"""A receiver (a word, the end of an expression, or type arguments) and the operator after it."""
_JOINTS: Final = frozenset({b".", b">", b":"})
"""Last bytes of these operators."""
_ARROWS: Final = frozenset({"c", "cpp", "cuda", "objc", "objcpp", "php", "perl"})
"""Languages in which an arrow accesses a member; elsewhere a type or a body follows it."""
_MOST_COMMENT: Final = 300
"""Bytes of a line before a name that are searched for a comment's beginning."""
_BEFORE_COMMENT: Final = b" \t;,(){}"
"""What a sign of a comment stands behind, unless it begins the line."""
_JOINS: Final = frozenset({"php", "perl"})
"""Languages in which a dot concatenates strings."""
_KEYWORDS: Final = frozenset({b"case", b"return", b"in", b"else", b"where"})
"""Words after which a dot begins an expression in Swift: ``case .red``."""
_LUA_RECEIVER: Final = re.compile(rb"(?:(\w+)|[)\]])[.:]$")


# JavaScript's const {a, b} = c
_DESTRUCTURING: Final = re.compile(rb"\s*((?:export\s+)?(?:const|let|var))\s*\{")
_UNPACKED_VALUE: Final = re.compile(rb"\}\s*=\s*([^\n;]*)")
_IDENTIFIER: Final = re.compile(rb"[\w$]+")


def signature(lines: Lines, name: int, start: int, end: int) -> str:
    """Return a definition up to its body, on one line of at most ``SIGNATURE_CHARS``."""
    data = lines.data
    start_line = lines.line(start)
    unpacked = _DESTRUCTURING.match(data, lines.start(start_line), name)
    if unpacked is not None:
        source = _UNPACKED_VALUE.search(data, name, min(end, name + _WINDOW))
        word = _IDENTIFIER.match(data, name)
        if source is not None and word is not None:
            # The other names are definitions of their own.
            parts = (unpacked[1], b"{", word[0], b"} =", source[1])
            flat = b" ".join(parts).decode("utf-8", "replace")
            return flat[:SIGNATURE_CHARS]
    name_line = lines.line(name)
    # In C the type often stands on the line above the name.
    line_above = max(start_line, name_line - 1)
    first = max(start, lines.start(line_above))
    beginning = data[first : first + 40].lstrip()
    if beginning.startswith(_ABOVE):
        first = max(start, lines.start(name_line))
    line_start = lines.start(start_line)
    modifiers = data[line_start:start]
    if _has_only_modifiers(modifiers):
        first = min(first, line_start)
    last = min(end, first + _WINDOW)
    text = data[first:last]
    # A signature over several lines is shown on one.
    body = find_body(text, name - first)
    head = text[:body].decode("utf-8", "replace")
    flat = " ".join(head.split())
    if len(flat) <= SIGNATURE_CHARS:
        return flat
    cut = flat[: SIGNATURE_CHARS - 1]
    return f"{cut}…"


def _has_only_modifiers(head: bytes) -> bool:
    """Return whether a definition is preceded on its line only by words like ``export const``."""
    return set(head).isdisjoint(_NO_MODIFIER)


def find_body(text: bytes, name: int) -> int:
    """Return where the body begins: at a brace, or at the end of a line outside parentheses."""
    depth = 0
    for match in _HEAD_ENDS.finditer(text, max(0, name)):
        at = match.start()
        byte = match[0]
        if byte in b"([":
            depth += 1
        elif byte in b")]":
            depth -= 1
        elif depth <= 0:
            if byte in b"{;":
                return at
            # A line that ends with a comma or an equals sign goes on.
            before = text[:at].rstrip()
            if before[-1:] not in b",=":
                return at
    return len(text)


def documentation(lines: Lines, language: str, name: int, start: int, end: int) -> str:
    """Return the first line of a definition's documentation, or nothing."""
    if language == "python":
        text = lines.data[name : min(end, name + _WINDOW)]
        opened = text.find(b":\n", _find_head_end(text))
        if opened < 0:
            return ""
        string = _PYTHON_DOC.match(text, opened + 2)
        if string is None:
            return ""
        return string[2].decode("utf-8", "replace")
    if language == "elixir":
        above = _find_elixir_doc(lines, start)
        if above:
            return above
    line = lines.line(start)
    head = lines.data[lines.start(line) : start]
    if _has_only_modifiers(head):
        return _comment_above(lines, language, line)
    return ""


def _find_elixir_doc(lines: Lines, start: int) -> str:
    """Return the first line of the last documentation above a definition, if it is the definition's own."""
    first = max(1, lines.line(start) - _COMMENT_LINES)
    last = None
    for match in _ELIXIR_DOC.finditer(lines.data, lines.start(first), start):
        last = match
    if last is None:
        return ""
    # If another function ends or begins in between, the text belongs to that one.
    between = lines.data[last.end() : start]
    if re.search(rb"^\s*(?:def|end)", between, re.MULTILINE):
        return ""
    return last[1].decode("utf-8", "replace").strip()


def _find_head_end(text: bytes) -> int:
    """Return the offset of the colon that ends the head of a Python definition."""
    depth = 0
    for at, byte in enumerate(text):
        if byte in b"([{":
            depth += 1
        elif byte in b")]}":
            depth -= 1
        elif byte == ord(":") and depth == 0:
            return at
    return len(text)


def _comment_above(lines: Lines, language: str, line: int) -> str:
    """Return the first line with words in the comment right above."""
    markers = LANGUAGES[language].comments
    above: list[str] = []
    for number in range(line - 1, max(0, line - 1 - _COMMENT_LINES), -1):
        text = lines.text(number).strip()
        if not above and text.startswith(("@", "#[", "[")):
            continue  # annotations may follow the comment
        marker = _find_marker(text, markers)
        if marker is None or text.startswith("{-#"):
            break
        above.append(text.removeprefix(marker))
    for comment in reversed(above):
        text = _MARKERS.sub("", comment)
        text = _XML.sub("", text).strip()
        if _WORD.search(text):
            return text[:SIGNATURE_CHARS]
    return ""


def _find_marker(text: str, markers: Iterable[bytes]) -> str | None:
    """Return what marks a line as a comment."""
    for marker in markers:
        decoded = marker.decode()
        if text.startswith(decoded):
            return decoded
    return None


def _ends_comment(data: bytes, end: int, name: int, language: str) -> bool:
    """Whether the last sign before a name, which ends at a position, is in a comment on a line before it."""
    if b"\n" not in data[end:name]:
        return False
    # A comment that is longer hides nothing: the call is told as before.
    begin = max(0, end - _MOST_COMMENT)
    line = data[begin:end].rpartition(b"\n")[2]
    for sign in LANGUAGES[language].comments:
        at = line.find(sign)
        if at == 0:
            return True
        # The // of "http://" stands behind a colon.
        if at > 0 and line[at - 1] in _BEFORE_COMMENT:
            return True
    return False


def receiver(data: bytes, name: int, language: str) -> str | None:
    """Return the word a call is made on (``self`` in ``self.run()``), "" for an expression, None if there is none."""
    before = data[max(0, name - 80) : name]
    stripped = before.rstrip()
    # Most names have none; this check takes a tenth of the expression's time.
    if stripped[-1:] not in _JOINTS:
        return None
    blanks = len(before) - len(stripped)
    end = name - blanks
    if _ends_comment(data, end, name, language):
        return None
    pattern = _RECEIVER
    if language == "lua":
        pattern = _LUA_RECEIVER
    match = pattern.search(before)
    if match is None:
        return None
    expression = match[0].rstrip()
    if expression.endswith(b"->") and language not in _ARROWS:
        return None
    if expression.endswith(b".") and language in _JOINS:
        return None
    word = match[1] or b""
    if language == "swift" and word in _KEYWORDS:
        return None
    return word.decode("utf-8", "replace")
