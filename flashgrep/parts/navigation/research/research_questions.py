"""Parses questions about code, written in words or as a kind and names."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from flashgrep.base.languages import UNKNOWN, language_of

Kind = Literal[
    "callers", "callees", "implementations", "supertypes", "usages", "path", "imports", "definition",
    "overrides", "hierarchy", "impact", "unused", "unknown",
]  # fmt: skip

_TYPE_ARGUMENTS: Final = r"(?:<[\w\s,:&'*.|]*>|\[[^\W\d][\w\s,.*]*\])?"
_POINTED: Final = rf"\(\*?\w+{_TYPE_ARGUMENTS}\)"
"""Go's receiver: ``(*Wheel).turn``."""
_SEPARATOR: Final = r"(?:\.#?|::|->|#|/|\\|-(?=\w)|:(?=[^\W\d]))"
_NAME: Final = (
    rf"[`'\"]?((?:(?:[^\W\d]|[$#~@])[\w$]*|{_POINTED}){_TYPE_ARGUMENTS}"
    rf"(?:{_SEPARATOR}(?:[\w$~]+|{_POINTED}){_TYPE_ARGUMENTS})*[?!]?)(?:\([^()]*\))?[`'\"]?"
)
_PATTERNS: Final[tuple[tuple[Kind, str], ...]] = (
    ("impact", r"(?:impact\s+of|affected\s+by|what\s+breaks)\b.*?\s(\S+:\d+(?:-\d+)?)"),
    (
        "impact",
        rf"(?:impact\s+of|affected\s+by)\s+(?:chang(?:es?|ing)\s+(?:to|of|in)?\s*)?{_NAME}",
    ),
    (
        "impact",
        rf"what\s+(?:would\s+|will\s+|may\s+)?breaks?\s+(?:if|when)\s+(?:i\s+change\s+)?{_NAME}",
    ),
    (
        "impact",
        rf"(?:which|what)\s+tests?\s+(?:reach|cover|run|exercise|call|use|test)\s+{_NAME}",
    ),
    ("impact", rf"tests?\s+(?:of|for)\s+{_NAME}"),
    (
        "unused",
        r"(?:unused|dead|unreferenced)\s+(?:\w+\s+)?(?:in|below|of|under)\s+(\S+)",
    ),
    (
        "unused",
        r"\b(?:unused|dead|unreferenced)\s+(?:code|definitions?|functions?|methods?|classes|symbols?)\b",
    ),
    (
        "overrides",
        rf"(?:(?:what|which\s+\w+|who)\s+overrides?|overrid(?:es|ers|ing\s+methods)\s+(?:of|for))\s+{_NAME}",
    ),
    (
        "hierarchy",
        rf"(?:type|class|inheritance)\s+(?:hierarchy|tree)\s+(?:of|for|around)\s+{_NAME}",
    ),
    ("path", rf"(?:path|chain|route|way)s?\s+from\s+{_NAME}\s+to\s+{_NAME}"),
    ("path", rf"(?:path|chain|route|way)s?\s+between\s+{_NAME}\s+and\s+{_NAME}"),
    (
        "path",
        rf"how\s+(?:does|do|can|could)\s+{_NAME}\s+(?:reach|call|get to|lead to|end up in|use)\s+{_NAME}",
    ),
    (
        "callees",
        rf"what\s+(?:functions?\s+|methods?\s+)?(?:does|do|is|are)\s+{_NAME}\s+(?:call|calling|invoke)",
    ),
    (
        "callees",
        rf"(?:callees\s+of|(?:functions?|methods?|what\s+is)\s+called\s+(?:by|from)|calls\s+made\s+by)\s+{_NAME}",
    ),
    ("callees", rf"what\s+{_NAME}\s+(?:calls|invokes)\b"),
    (
        "callers",
        rf"(?:who|what|which\s+\w+|everything\s+that|all\s+that)\s+(?:calls?|invokes?|runs?)\s+{_NAME}",
    ),
    (
        "callers",
        rf"(?:callers?|calls|call\s+sites?|call\s+graph|call\s+chain|call\s+hierarchy)\s+(?:of|to|for)\s+{_NAME}",
    ),
    (
        "callers",
        rf"(?:where|from\s+where|how)\s+(?:is|are|does)\s+{_NAME}\s+(?:get\s+)?(?:called|invoked)",
    ),
    (
        "supertypes",
        rf"(?:what|which\s+\w+)\s+(?:does|do)\s+{_NAME}\s+(?:extend|inherit|implement|conform|derive|subclass)",
    ),
    (
        "supertypes",
        rf"(?:super\s*class(?:es)?|super\s*types?|base(?:s|\s+class(?:es)?)?|parents?)\s+of\s+{_NAME}",
    ),
    (
        "implementations",
        (
            r"(?:implementations?|implementers?|implementors?|conform(?:ers|ances?|ing\s+types)|sub\s*class(?:es)?"
            rf"|sub\s*types?|derived\s+(?:types|classes)|children)\s+(?:of|to|from|for)\s+{_NAME}"
        ),
    ),
    (
        "implementations",
        (
            r"(?:who|what|which(?:\s+\w+)?|types?(?:\s+that)?|classes(?:\s+that)?|everything\s+that)\s+"
            r"(?:implements?|implementing|conforms?\s+to|conforming\s+to|extends?|extending|inherits?(?:\s+from)?"
            rf"|subclass(?:es)?|derives?\s+from|adopts?|mixes\s+in)\s+{_NAME}"
        ),
    ),
    (
        "imports",
        rf"(?:who|what|which\s+\w+)\s+(?:imports?|includes?|requires?|depends?\s+(?:up)?on)\s+{_NAME}",
    ),
    (
        "imports",
        rf"(?:imports?|importers|dependents|reverse\s+dependencies)\s+of\s+{_NAME}",
    ),
    (
        "usages",
        rf"(?:where|how)\s+(?:is|are)\s+{_NAME}\s+(?:used|referenced|mentioned)",
    ),
    ("usages", rf"(?:usages?|uses|references?|occurrences?)\s+(?:of|to)\s+{_NAME}"),
    ("usages", rf"(?:who|what|which\s+\w+)\s+(?:uses?|references?|needs?)\s+{_NAME}"),
    (
        "definition",
        rf"(?:where\s+(?:is|are)\s+{_NAME}\s+(?:defined|declared|implemented)|definitions?\s+of\s+{_NAME})",
    ),
)
_ARTICLE: Final = re.compile(
    r"\b(?:the|an?)\s+(?=\S)|\b(?:method|function|class|interface|protocol|trait|struct|type|module|symbol)\s+"
    r"(?!(?:of|that|which|to|from|do|does|is|are|in|by|calls?|uses?|implements?|extends?|inherits?|conforms?|hierarchy|tree)\b)(?=\S)"
)
_QUESTION: Final = re.compile(r"(?:who|what|which|where|how)\b", re.IGNORECASE)
_ASKS: Final = re.compile(
    r"(?:who|what|which|where|how|why|when|does|do|is|are|can)\s+\S+\s+\S",
    re.IGNORECASE,
)
"""The beginning of a question, rather than a name."""
_WORD: Final = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::)[\w$]+)*")
_LIKE_CODE: Final = re.compile(r"\w[A-Z]|[_$.:(`\d]")
"""Characters that plain words do not have."""
_MORE_WORDS: Final = re.compile(
    r"\s+(?!(?:and|as|at|but|by|directly|elsewhere|from|here|if|in|inside|of|on|or|outside|please|to|when|with|within"
    r"|class|function|interface|macro|method|module|protocol|struct|symbol|trait|type)\b)"
    r"[^\W\d_]+\b"
)
"""What shows that a plain word was only the first of several: ``tests for rate limit``."""
ASKED: Final = (
    "callers of X", "what does X call", "where is X used", "what implements X", "subclasses of X", "base classes of X",
    "type hierarchy of X", "what overrides C.m", "what imports M", "path from A to B", "impact of X",
    "impact of PATH:10-20", "unused code in PATH", "where is X defined",
)  # fmt: skip
"""The forms of questions in words."""


@dataclass(frozen=True, slots=True)
class ResearchQuestion:
    """A parsed question: ``names`` as written, two for a path, none if the question is unknown."""

    kind: Kind
    names: tuple[str, ...]


def parse_question(query: str, kind: Kind | None = None) -> ResearchQuestion:
    """Return the parsed question, from words, or from names if the kind is given.

    An unknown form asks for usages if it has exactly one name that looks like code; otherwise, and if it is a question in
    other words (``how does X decide to skip a task``), it is unknown.
    """
    if kind is not None:
        words = query.replace("->", " ").split()
        return ResearchQuestion(
            kind, tuple(words) if kind != "path" else (words[0], words[-1])
        )
    text = _ARTICLE.sub("", " ".join(query.split()))
    if _QUESTION.match(text):  # otherwise it may be part of a Ruby name
        text = text.removesuffix("?")
    for known_kind, pattern in _PATTERNS:
        # ``re`` caches compiled patterns. Compiling all of them at import took a
        # fiftieth of the daemon's start.
        if match := re.search(pattern, text, re.IGNORECASE):
            matched_names = [name for name in match.groups() if name]
            # What was understood of half a question is answered beside it.
            if _goes_on(matched_names, text[match.end() :]):
                return ResearchQuestion("unknown", ())
            return _ask_about(known_kind, *matched_names)
    if _ASKS.match(text):
        return ResearchQuestion("unknown", ())
    names = [
        re.sub(r"[`'\"?!,;]|\(\)|\.$", "", word)
        for word in query.split()
        if _LIKE_CODE.search(word)
    ]
    words = _WORD.findall(query)
    if len(words) == 1 or len(set(names)) == 1:
        return _ask_about("usages", words[0] if len(words) == 1 else names[0])
    return ResearchQuestion("unknown", ())


def _goes_on(names: list[str], rest: str) -> bool:
    """Return whether a name is a plain word, and more of them follow: then it is none."""
    if not names or is_like_code(names[-1]):
        return False
    return _MORE_WORDS.match(rest) is not None


def is_like_code(name: str) -> bool:
    """Return whether a name has characters that plain words do not have, or a capital letter."""
    return _LIKE_CODE.search(name) is not None or not name.islower()


def _ask_about(kind: Kind, *names: str) -> ResearchQuestion:
    """Return the question about names; who uses or calls a file is who imports it."""
    if kind in {"usages", "callers"} and _is_file(names[0]):
        kind = "imports"
    return ResearchQuestion(kind, names)


def _is_file(name: str) -> bool:
    """Return whether a name is the path of a file in a folder, of a language that is known."""
    if "/" not in name or ":" in name:
        return False
    return language_of(name.encode("utf-8", "surrogateescape")) is not UNKNOWN
