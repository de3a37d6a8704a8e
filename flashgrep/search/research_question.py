"""What a research question asks: its kind and the names it is about."""

import re
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["callers", "callees", "implementations", "supertypes", "usages", "path", "imports", "definition", "free"]

_NAME: Final = r"[`'\"]?((?:[^\W\d]|[$#~@])[\w$]*(?:(?:\.|::|->|#|/|\\)[\w$~]+)*[?!]?)(?:\(\))?[`'\"]?"
_PATTERNS: Final[tuple[tuple[Kind, str], ...]] = (
    ("path", rf"(?:path|chain|route|way)s?\s+from\s+{_NAME}\s+to\s+{_NAME}"),
    ("path", rf"how\s+(?:does|do|can|could)\s+{_NAME}\s+(?:reach|call|get to|lead to|end up in|use)\s+{_NAME}"),
    ("callees", rf"what\s+(?:functions?\s+|methods?\s+)?(?:does|do|is|are)\s+{_NAME}\s+(?:call|calling|invoke)"),
    (
        "callees",
        rf"(?:callees\s+of|(?:functions?|methods?|what\s+is)\s+called\s+(?:by|from)|calls\s+made\s+by)\s+{_NAME}",
    ),
    ("callees", rf"what\s+{_NAME}\s+(?:calls|invokes)\b"),
    ("callers", rf"(?:who|what|which\s+\w+|everything\s+that|all\s+that)\s+(?:calls?|invokes?|runs?)\s+{_NAME}"),
    ("callers", rf"(?:callers?|calls|call\s+sites?|call\s+graph|call\s+chain)\s+(?:of|to|for)\s+{_NAME}"),
    ("callers", rf"(?:where|from\s+where|how)\s+(?:is|are|does)\s+{_NAME}\s+(?:get\s+)?(?:called|invoked)"),
    (
        "supertypes",
        rf"(?:what|which\s+\w+)\s+(?:does|do)\s+{_NAME}\s+(?:extend|inherit|implement|conform|derive|subclass)",
    ),
    ("supertypes", rf"(?:super\s*class(?:es)?|super\s*types?|base(?:s|\s+class(?:es)?)?|parents?)\s+of\s+{_NAME}"),
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
    ("imports", rf"(?:who|what|which\s+\w+)\s+(?:imports?|includes?|requires?|depends?\s+(?:up)?on)\s+{_NAME}"),
    ("imports", rf"(?:importers|dependents|reverse\s+dependencies)\s+of\s+{_NAME}"),
    ("usages", rf"(?:where|how)\s+(?:is|are)\s+{_NAME}\s+(?:used|referenced|mentioned)"),
    ("usages", rf"(?:usages?|uses|references?|occurrences?)\s+(?:of|to)\s+{_NAME}"),
    ("usages", rf"(?:who|what|which\s+\w+)\s+(?:uses?|references?|needs?)\s+{_NAME}"),
    ("definition", rf"(?:where\s+(?:is|are)\s+{_NAME}\s+(?:defined|declared|implemented)|definitions?\s+of\s+{_NAME})"),
)
_COMPILED: Final = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _PATTERNS)
_ARTICLE: Final = re.compile(
    r"\b(?:the|an?)\s+(?=\S)|\b(?:method|function|class|interface|protocol|trait|struct|type|module|symbol)\s+"
    r"(?!(?:of|that|which|to|from|do|does|is|are|in|by|calls?|uses?|implements?|extends?|inherits?|conforms?)\b)(?=\S)"
)
_WORD: Final = re.compile(r"[^\W\d][\w$]*(?:(?:\.|::)[\w$]+)*")
_LEAST_WORD: Final = 3
_STOP: Final = frozenset({
    "the", "and", "for", "are", "how", "what", "where", "which", "who", "why", "when", "does", "with", "from",
    "into", "that", "this", "have", "has", "was", "were", "can", "could", "should", "would", "will", "all", "any",
    "not", "but", "its", "use", "used", "uses", "code", "function", "functions", "method", "methods", "class",
    "classes", "file", "files", "work", "works", "working", "implementation", "implemented", "handle", "handled",
    "handles", "between", "about", "there", "their", "get", "set",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """A question understood: ``names`` as written, two of them for a path, any number for a free question."""

    kind: Kind
    names: tuple[str, ...]


def understand(query: str) -> Asked:
    """Return what a question asks; one of no known form is free, its names the words that are not small."""
    text = _ARTICLE.sub("", " ".join(query.split()))
    for kind, pattern in _COMPILED:
        if found := pattern.search(text):
            return Asked(kind, tuple(name for name in found.groups() if name))
    words = _WORD.findall(query)
    if len(words) == 1:
        return Asked("usages", (words[0],))
    kept = [word for word in words if len(word) >= _LEAST_WORD and word.lower() not in _STOP]
    return Asked("free", tuple(dict.fromkeys(kept)))
