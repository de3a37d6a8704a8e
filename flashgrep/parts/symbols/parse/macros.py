"""Texts made readable for grammars: what those of C, C++, Groovy and Sass cannot parse is blanked out.

In C and C++ these are macros: ``API int f(void);``, ``class MY_API X {``, a macro alone among members. Grammars have no
preprocessor, and lose what follows. A blanked text keeps its length, so offsets stay the same. Macros are recognised by
their letters, all capitals, and by what is around them, since types and functions may be in capitals, too.
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import re2

from flashgrep.base.lazy import LazyAttribute

_PRAGMA: Final = re.compile(rb"(?m)^[ \t]*#[ \t]*pragma\b[^\r\n]*")
_SASS_MODULES: Final = (
    rb"(?<=@include )[\w-]+\.|(?<![\w.$#-])[A-Za-z_][\w-]*+\.(?=\$|[A-Za-z_][\w-]*+\()"
    rb"|(?<=[\"'])[ \t]+as[ \t]+[\w*-]+|!default\b|!global\b"
)
_MACRO: Final = r"[A-Z][A-Z0-9_]{2,}"
_CALLED: Final = _MACRO + r'(?:[ \t]*\((?:[^()\n;{}"/]|\([^()\n;{}"/]*\))*\))?'
"""A macro with its arguments, if any; these without strings and comments, whose words must not become names."""
_NAME: Final = r"[A-Za-z_~][\w:~]*"
_LEADS: Final = r'(?:(?:extern|static|inline|virtual|explicit|friend|typedef|constexpr)[ \t]+(?:"C"[ \t]+)?)*'
_TYPE: Final = (
    r"(?:(?:const|struct|enum|union|unsigned|signed|typename|class)[ \t]+)*"
    r"[A-Za-z_][\w:]*(?:<[^\n;(){}]*>)?[\w:]*(?:\s*[*&]+(?:[ \t]*const\b)?\s*|\s+)"
)
_MOST_BEFORE: Final = 300
"""Bytes that are examined before and after a macro alone on its line."""
_NO_TYPES: Final = frozenset(
    b"static inline extern const struct union enum class typedef virtual explicit constexpr friend return else case "
    b"typename volatile register goto new delete throw using operator unsigned signed define undef ifdef ifndef".split()
)
_STATEMENTS: Final = frozenset(
    b"if for while switch return else do case catch sizeof defined".split()
)
_OPENS: Final = re.compile(
    rb"\b(?:struct|class|union|namespace|extern)\b[^;{}()=]*\{\Z"
)
_FIRST: Final = re.compile(rb"[ \t]*(\w+)")
_CONTINUES: Final = re.compile(rb"[{(=,|&+\-?:.)]|(?![A-Z][A-Z0-9_]+\s*\()\w+\s*\(")


class _Rule(NamedTuple):
    """How to find a macro: the pattern's last group; the first of two groups is the word before it."""

    pattern: str
    replacement: bytes = b""
    """What replaces the macro, padded with spaces."""
    accepts: Callable[[bytearray, Any], bool] = lambda _text, _found: True


class _Rules:
    """Several rules as one pattern, which needs only one pass over a text; compiled for the first file of C or C++."""

    def __init__(self, *rules: _Rule) -> None:
        self._rules = rules

    @LazyAttribute
    def pattern(self) -> Any:
        """Join all rules."""
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        return re2.compile(
            f"(?m){'|'.join(rule.pattern for rule in self._rules)}".encode(), options
        )

    @LazyAttribute
    def by_group(self) -> dict[int, _Rule]:
        """Map the number of a rule's last group in the joined pattern to the rule."""
        groups = itertools.accumulate(
            re.compile(rule.pattern).groups for rule in self._rules
        )
        return dict(zip(groups, self._rules, strict=True))


def blank_macros(data: bytes) -> bytes:
    """Return a text of the same length without the macros that grammars cannot parse."""
    text = bytearray(data)
    for rules in (_LINES, _WORDS):
        _apply(rules, text, data)
    return bytes(text)


def _apply(rules: _Rules, text: bytearray, data: bytes) -> None:
    """Replace in a text what rules find in it as it was at first."""
    behind = 0
    while (match := rules.pattern.search(data, behind)) is not None:
        group = match.lastindex
        start, behind = match.span(group)
        rule = rules.by_group[group]
        if rule.accepts(text, match):
            text[start:behind] = rule.replacement.ljust(behind - start)


def blank_in_c(data: bytes) -> bytes:
    """Return a C text of the same length as ``blank_macros`` does, and without what only C has.

    These are macros that stand for the head of a function, of a loop or of a case, and branches of ``#if`` each of which
    opens the same braces.
    """
    text = bytearray(data)
    _keep_one_branch(text)
    for match in _LISTS.finditer(data) if b"_HEAD(" in data else ():
        _write(text, match, b"struct", b"{", b"}")
    passed = 0
    for match in _BODIES.finditer(data):
        if match.start() < passed:
            continue
        end = _find_end(data, match.end("name"))
        if end < 0:
            # Nothing opens a body there, so that no head in it has one.
            passed = match.end() + _MOST_ARGUMENTS // 2
            continue
        brace = _BRACE.match(data, end)
        if end and brace is not None and _begins_statement(text, match.start()):
            head = match.start("macro")
            name_start = match.start("name")
            text[head:name_start] = b"void".ljust(name_start - head)
            rest = bytes(text[match.end("name") : end])
            # The names of the other arguments stay, to be found as uses.
            blank = re.sub(rb"[^\n]", b" ", rest)
            text[match.end("name") : end + 1] = b"(" + blank[1:] + b")"
    _apply(_IN_C, text, bytes(text))
    return blank_macros(bytes(text))


def _keep_one_branch(text: bytearray) -> None:
    """Blank all but the first branch of an ``#if`` whose branches each leave the same braces open.

    Of an ``#if`` inside an expression or a list, which no grammar reads, too; of one that has a single branch there, only
    the directives.
    """
    groups: list[list[tuple[int, int]]] = []
    for match in list(_DIRECTIVES.finditer(bytes(text))):
        if match[1].startswith(b"if"):
            groups.append([match.span()])
            continue
        if not groups:
            return
        groups[-1].append(match.span())
        if match[1] == b"endif":
            for start, end in _list_others(text, groups.pop()):
                text[start:end] = re.sub(rb"[^\n]", b" ", text[start:end])


def _list_others(
    text: bytearray, marks: list[tuple[int, int]]
) -> Sequence[tuple[int, int]]:
    """Return what to blank of an ``#if`` with its branches; ``marks``: its directives."""
    first_start, first_end = marks[0]
    but_the_first = marks[0], (marks[1][0], marks[-1][1])
    if len(marks) == _TWO_BRANCHES:
        return marks if _is_inside(text, first_start, _LISTS_GO_ON) else ()
    if _OLD_HEAD in text[first_start:first_end]:
        return (first_start, marks[1][1]), marks[-1]
    opened = {
        text.count(b"{", end, start) - text.count(b"}", end, start)
        for (_, end), (start, _) in itertools.pairwise(marks)
    }
    is_opened = len(opened) == 1 and opened != {0}
    if is_opened or _is_inside(text, first_start, _EXPRESSIONS_GO_ON):
        return but_the_first
    return ()


def _is_inside(text: bytearray, start: int, signs: tuple[bytes, ...]) -> bool:
    """Return whether one of some signs is the last before a position, but for comments."""
    before = text[max(0, start - _MOST_BEFORE) : start]
    return _COMMENTS.sub(b"", before).rstrip().endswith(signs)


def _write(
    text: bytearray, match: re.Match[bytes], head: bytes, opens: bytes, ends: bytes
) -> None:
    """Write a definition in the place of a macro, its name left where it is."""
    start, end = match.span()
    first, last = match.span("name")
    text[start:first] = head.ljust(first - start)
    blanks = b" " * (end - last - 2)
    text[last:end] = opens + blanks + ends


def _find_end(data: bytes, start: int) -> int:
    """Return where the parentheses around a position end; 0: before a brace or a semicolon they do not.

    -1: there is neither within ``_MOST_ARGUMENTS`` bytes.
    """
    depth = 1
    for match in _PARENTHESES.finditer(data, start, start + _MOST_ARGUMENTS):
        if match[0] in b"{};":
            return 0
        depth += {b"(": 1, b")": -1}.get(match[0], 0)
        if not depth:
            return match.end()
    return -1


def _begins_statement(text: bytearray, start: int) -> bool:
    """Return whether a position is behind a statement, a declaration, a brace, a directive or a comment."""
    before = bytes(text[max(0, start - _MOST_BEFORE) : start]).rstrip()
    line = before.rpartition(b"\n")[2].lstrip()
    return (
        not before
        or before.endswith((b";", b"}", b"{", b":", b"*/"))
        or line.startswith((b"#", b"//"))
    )


def _starts_statement(text: bytearray, found: Any) -> bool:
    return _begins_statement(text, found.start(found.lastindex))


def blank_conflicts(data: bytes) -> bytes:
    """Return a text of the same length without the conflict markers of an unfinished merge."""
    if b"<<<<<<< " not in data or b"\n>>>>>>> " not in data:
        return data
    return re.sub(rb"(?m)^(?:(?:<{7}|>{7}|\|{7})[ ][^\n]*|={7}\r?)$", _blank, data)


def blank_modules(data: bytes) -> bytes:
    """Return a Sass text of the same length, written as before there were modules: ``map.get(`` without ``map.``."""
    return re.sub(_SASS_MODULES, lambda found: b" " * len(found[0]), data)


def blank_pragmas(data: bytes) -> bytes:
    """Return a C# text of the same length without its pragmas: within an expression, the grammar cannot read them."""
    return re.sub(_PRAGMA, _blank, data)


def blank_groovy(data: bytes) -> bytes:
    """Return a Groovy text of the same length that its grammar can parse.

    The grammar takes a documentation comment of one line for one that never ends. It does not know methods named by
    strings, type parameters in heads, ``throws``, traits and methods without a type.
    """
    for pattern, replacement in _GROOVY:
        data = re.sub(pattern, replacement, data)
    return data


def _blank_head(found: re.Match[bytes]) -> bytes:
    """Return the head of a type without ``<T>`` and ``implements A, B``."""
    word, rest = found.groups()
    rest = re.sub(rb"<[^<>]*>", _blank, re.sub(rb"<[^<>]*>(?=[^<>]*>)", _blank, rest))
    return (b"class" if word == b"trait" else word) + re.sub(
        rb"\bimplements\b[^{]*", _blank, rest
    )


def _blank_modifiers(found: re.Match[bytes]) -> bytes:
    return found[1] + b"def".ljust(len(found[2]))


def _blank(found: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\n]", b" ", found[0])


def _is_alone(text: bytearray, found: Any) -> bool:
    """Return whether a macro alone on its line is between declarations, judging by what is before and after."""
    start = found.start(found.lastindex)
    if _CONTINUES.match(bytes(text[found.end() : found.end() + _MOST_BEFORE]).lstrip()):
        return False
    before = bytes(text[max(0, start - _MOST_BEFORE) : start]).rstrip()
    while before.endswith(b"*/"):
        before = before[: max(0, before.rfind(b"/*"))].rstrip()
    if before.endswith(
        b"\\"
    ):  # the body of a ``#define``: without it, the next ``#define`` would become the body
        return False
    line = before.rpartition(b"\n")[2].lstrip()
    return (
        not before
        or line.startswith((b"#", b"//"))
        or before.endswith((b";", b"}"))
        or (before.endswith(b":") and line.startswith((b"pu", b"pr")))
        or _OPENS.search(before) is not None
    )


def _follows_type(_text: bytearray, found: Any) -> bool:
    before = found[found.lastindex - 1]
    if before in _NO_TYPES:
        return False
    return len(before) == 1 or not before.isupper()


def _ends_argument(text: bytearray, found: Any) -> bool:
    name = found[found.lastindex]
    is_macro = found[0].endswith(b")") or name.count(b"_") > 1
    return is_macro and _follows_type(text, found)


def _ends_head(text: bytearray, found: Any) -> bool:
    """Return whether the parentheses before a macro are a function's, not those of a statement or a cast."""
    line_start = text.rfind(b"\n", 0, found.start()) + 1
    line = bytes(text[line_start : found.start()])
    first = _FIRST.match(line)
    if first is None or first[1] in _STATEMENTS or b"?" in line or b";" in line:
        return False
    return b"=" not in line or b"operator" in line


_LINES: Final = _Rules(
    # ``MEMBERS`` or ``BEGIN_NAMESPACE(a)``, alone on a line
    _Rule(
        rf"^[ \t]*({_CALLED})[ \t]*(?://.*|/\*[^*\n]*\*/[ \t]*)?\r?$", accepts=_is_alone
    ),
    # ``API int f(``, ``extern API type *f(``, ``API int (*f)(``, ``API int (f)(``
    _Rule(
        rf"^[ \t]*{_LEADS}({_CALLED}(?:[ \t]+{_CALLED})*)\s+{_LEADS}{_TYPE}"
        rf"(?:(?:{_MACRO}[ \t]+)?{_NAME}[ \t]*[(;=\[:]|\([ \t]*(?:\*|\w+\)[ \t]*\())"
    ),
    # ``EXPLICIT X(int a) : a(a) {``
    _Rule(rf"^[ \t]*({_CALLED})[ \t]+\w+[ \t]*\([^;{{}}\n]*\)[^;{{}}:\n]*\s:\s"),
    # Qt's sections
    _Rule(r"^[ \t]*(?:public|protected|private)[ \t]+(Q_SLOTS|slots)[ \t]*:"),
    _Rule(r"^[ \t]*(Q_SIGNALS|signals)[ \t]*:[ \t]*$", b"public"),
)
_WORDS: Final = _Rules(
    # ``int CALL f(``
    _Rule(rf"(\w+|[*&>])[ \t]+({_MACRO})[ \t]+{_NAME}[ \t]*\(", accepts=_follows_type),
    # ``class API X {``
    _Rule(
        rf"\bclass[ \t]+({_CALLED}(?:[ \t]+{_CALLED})*)\s+[\w:<>, ]+\s*(?:[:{{;]|\bfinal\b)"
    ),
    _Rule(
        rf"\b(?:struct|union|enum)[ \t]+({_CALLED})\s+\w+\s*(?:\{{|:\s*(?:public|private|protected)|\bfinal\b)"
    ),
    # ``(CALLP f)(``, ``(CALL *f)(``
    _Rule(r"\(([A-Z][A-Z0-9_]+P)[ \t]+\w+\)[ \t]*\(", b"*"),
    _Rule(rf"\(({_MACRO})[ \t]*\*[ \t]*\w+\)\s*\("),
    # ``f(int a NO_ESCAPE)``, ``f(FORMAT const char *a``
    _Rule(rf"(\w+)[ \t]+({_MACRO})\s*[),]", accepts=_ends_argument),
    _Rule(
        rf"[(,]\s*({_MACRO})\s+(?:const\s|struct\s|\w+(?:[ \t]*[*&]+[ \t]*|[ \t]+)\w+\s*[,)=\[])"
    ),
    # ``f() const NO_THROW {``
    _Rule(
        rf"\)[ \t]*(?:const\b[ \t]*)?({_CALLED})"
        r"\s*(?:override\b\s*|final\b\s*|=\s*(?:0|default|delete)\s*)?(?:[;{]|:[^:])",
        accepts=_ends_head,
    ),
)

_ATTRIBUTE: Final = (
    r"(?:__[a-z]\w*|(?:force|always|no)_?inline|noreturn|(?:printf|scanf)like)"
)
"""Attributes in small letters, as many projects name them; the compiler's own words are no macros."""
_IN_C: Final = _Rules(
    # ``CASE_CODE(POP):``
    _Rule(
        r"^[ \t]+([A-Z][A-Z0-9_]{3,})[ \t]*\([^()\n;{}\"]*\)[ \t]*:(?:[^:]|$)",
        b"case",
        accepts=_starts_statement,
    ),
    # ``INTERPRET_LOOP {``, ``FOREACH(item, list) {``
    _Rule(rf"^[ \t]+({_CALLED})\s*\{{", accepts=_starts_statement),
    # ``static void printflike(3, 4) f(``, ``static int __init f(``
    _Rule(
        rf"^[ \t]*(?:\w+[ \t*]+)*?(\w+|[*&>])[ \t]+({_ATTRIBUTE}(?:[ \t]*\([\w, ]*\))?)\s+{_NAME}[ \t]*\(",
        accepts=lambda _text, found: found[found.lastindex - 1] not in _NO_TYPES,
    ),
    # ``__dead void f(``
    _Rule(
        rf"^({_ATTRIBUTE}(?:[ \t]*\([\w, ]*\))?)[ \t]+{_LEADS}{_TYPE}{_NAME}[ \t]*\("
    ),
)
_LISTS: Final = re.compile(
    rb"(?m)(?<![\w#])[A-Z]+_HEAD\((?P<name>[A-Za-z_]\w*),[ \t]*\w+\)(?=[ \t]*(?:;|\w))"
)
"""``RB_HEAD(names, name);``: a type of the BSD's lists and trees."""
_BODIES: Final = re.compile(
    rb"(?m)^(?:static[ \t]+)?(?P<macro>[A-Z][A-Z0-9_]{2,})\((?P<name>[A-Za-z_]\w*)(?=\s*[,)])"
)
"""``DEF_PRIMITIVE(list_add) {``: the head of a function."""
_BRACE: Final = re.compile(rb"\s+\{")
_PARENTHESES: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|[()]|[{};]')
_MOST_ARGUMENTS: Final = 5_000
_DIRECTIVES: Final = re.compile(
    rb"(?m)^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b(?:[^\n\\]|\\\r?\n|\\.)*"
)
_OLD_HEAD: Final = b"KR_headers"
"""Asked in files whose functions have two heads, the first as before there were prototypes."""
_COMMENTS: Final = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_EXPRESSIONS_GO_ON: Final = (b"=", b"||", b"&&", b"?", b"+", b"|")
_LISTS_GO_ON: Final = (*_EXPRESSIONS_GO_ON, b"(", b",")
"""What an expression, or a list, does not end with."""
_TWO_BRANCHES: Final = 2
"""An ``#if`` with no more directives than that has one branch."""

_GROOVY_WORDS: Final = (
    rb"(?:public|private|protected|static|final|synchronized|abstract)"
)
_GROOVY: Final = (
    (rb"/\*\*(?!/)", rb"/* "),
    # ``def "adds two numbers"() {``
    (
        rb"(?m)(?<=[ \t])(?:\"[^\"\n]{1,300}\"|'[^'\n]{1,300}')(?=[ \t]*\([^()\n]*\)[ \t]*(?:throws\b[^{\n]*)?\{)",
        lambda found: re.sub(rb"\W", b"_", found[0]),
    ),
    (
        rb"(?m)(?<![.\w])(class|interface|trait)(?=[ \t]+\w)([ \t][\w<>, \t\n.?&@]{1,500})(?=\{)",
        _blank_head,
    ),
    # ``static private int x`` as ``static int x``
    (rb"(?<=\bstatic |.\bfinal )(?:public|private|protected)(?=[ \t])", _blank),
    # ``def <T> T first(``, ``static main(args)``, ``private size = 3``: as ``def
    # first(`` and so on
    (
        rb"(?m)^([ \t]*)((?:%s[ \t]+){0,4}(?:def[ \t]+)?<[\w ,?]{1,60}(?:<[\w ,?]{1,60}>)?>[ \t]+"
        rb"[A-Za-z][\w<>.]*[ \t]+)(?=[a-z_]\w*\()" % _GROOVY_WORDS,
        _blank_modifiers,
    ),
    (
        rb"(?m)^([ \t]*)((?:%s[ \t]+){1,4})(?=[a-z_]\w*[ \t]*(?:\(|=|\r?$))"
        % _GROOVY_WORDS,
        _blank_modifiers,
    ),
    # ``private Shop(int size)``: a constructor
    (rb"(?m)^[ \t]*(?:%s[ \t]+){1,4}(?=[A-Z]\w*[ \t]*\()" % _GROOVY_WORDS, _blank),
    (rb"(?<=\))\s{0,40}throws[ \t]+[\w., \t\n]{1,300}?(?=\{|\n)", _blank),
    # ``def (a, b) = pair``
    (rb"\bdef[ \t]*\([^()\n]*\)[ \t]*=(?!=)", _blank),
)
"""What Groovy's grammar cannot parse, and its replacements."""
BLANKED: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "c": blank_in_c, "csharp": blank_pragmas, "cpp": blank_macros, "groovy": blank_groovy, "scss": blank_modules,
}  # fmt: skip
"""By language, the function that makes a text readable for its grammar without changing its length."""
