"""Forms of English words: who asks where accounts are hidden also means the code that says ``hide_account``."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import takewhile
from typing import Final

from flashgrep.identifiers import find_identifiers
from flashgrep.index.word_impacts import Family, words_of
from flashgrep.search.meaning.fusion import query_words

_SHORTEST: Final = 3
"""Letters of a form; of words as short as that, nearly all abbreviations, there are none."""
_VOWELS: Final = frozenset("aeiou")
_LONGEST_DOUBLED: Final = 4
"""Letters of a word that doubles its last one: ``stop``, ``stopped``; longer ones seldom do (``visit``)."""
_HISSING: Final = ("s", "x", "z", "ch", "sh")
"""Endings after which a plural has ``es``."""


def spellings_of(question: str) -> list[tuple[bytes, ...]]:
    """Return the words of a question, each with its forms."""
    return [tuple(one.encode() for one in (word, *forms_of(word))) for word in query_words(question)]


@lru_cache(maxsize=1 << 12)
def forms_of(word: str) -> tuple[str, ...]:
    """Return what a lower-case word is in other numbers and tenses, as regular words are; not the word itself."""
    if len(word) <= _SHORTEST or not word.isalpha():
        return ()
    bases = [word]
    rest = word.removesuffix("ed") if word.endswith("ed") else word.removesuffix("ing")
    if word.endswith(("ies", "ied")):
        bases = [f"{word[:-3]}y"]
    elif rest != word and not rest.endswith("e") and not _VOWELS.isdisjoint(rest):
        is_doubled = rest[-1:] == rest[-2:-1] and not rest.endswith(("l", "s", "z"))
        # Where the letters do not tell, both: ``hid`` and ``hide`` of ``hiding``.
        bases = [rest[:-1]] if is_doubled else [rest, f"{rest}e"]
    elif word.endswith(("ches", "shes", "sses", "xes", "zes")):
        bases = [word[:-2], word[:-1]]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        bases = [word[:-1]]
    forms = set[str]()
    for base in [base for base in bases if len(base) >= _SHORTEST] or [word]:
        if base.endswith("e"):
            forms |= {base, f"{base}s", f"{base}d", f"{base[:-1]}ing"}
        elif base.endswith("y") and base[-2] not in _VOWELS:
            forms |= {base, f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing"}
        else:
            stops = base[-1] not in _VOWELS | set("hwxys") and base[-2] in _VOWELS and base[-3] not in _VOWELS
            stem = base + base[-1] if stops and len(base) <= _LONGEST_DOUBLED else base
            forms |= {base, base + ("es" if base.endswith(_HISSING) else "s"), f"{stem}ed", f"{stem}ing"}
    return tuple(sorted(forms - {word}))


def covered_share(families: Iterable[Family], text: bytes) -> float:
    """Return the share of the weight of a question's words that a text has, 0 to 1; a form counts what it weighs."""
    families = [*families]
    # A word stands letter by letter in its identifier, so most identifiers need not be cut into words: those without
    # the letters that a word and all its forms begin with.
    shared = (takewhile(lambda letters: len({*letters}) == 1, zip(*family, strict=False)) for family in families)
    asked = ["".join(letter for letter, *_ in letters).encode() for letters in shared]
    names = [name for name in set(find_identifiers(text)) if any(map(name.lower().count, asked))]
    there = words_of(b" ".join(names))
    had = sum(max((weight for word, weight in family.items() if word in there), default=0.0) for family in families)
    total = sum(max(family.values()) for family in families)
    return had / total if total > 0 else 0.0
