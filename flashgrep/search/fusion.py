"""One order from two kinds of evidence: BM25 and similarity, mixed, then weighed by what the code is.

Pure: candidates in, order out. The mix divides each side by its maximum, which beat reciprocal ranks where questions
are documentation and tied with them on questions of people; the weighing follows ``rules``.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from flashgrep.index.tiers import TEST, tier_of
from flashgrep.index.words import parts
from flashgrep.search.rules import Rules

Kind = Literal["symbol", "path", "words"]

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYMBOL: Final = re.compile(r"[\w$]+(?:(?:\.|::|->|#)[\w$]+)*(?:\(\))?", re.ASCII)
_PATH: Final = re.compile(
    r"[^\s/]*/\S*|[\w.-]+\.(?:pyi?|[cm]?[jt]sx?|go|rs|java|kt|[ch]|cc|[ch]pp|cs|rb|php|swift|scala|lua|md|toml|ya?ml|json"
    r"|sh|sql|html|css|proto|gradle)"
)
_MIXED: Final = re.compile(r"[a-z][A-Z]|_|[A-Z]{2}[a-z]|::|\.|->|\(\)")
_STUB: Final = re.compile(rb"\.pyi$|\.d\.[cm]?ts$")
_RE_EXPORT: Final = re.compile(rb"(?:^|/)(?:__init__\.py|index\.[cm]?[jt]sx?|mod\.rs|package-info\.java)$")
_ABOUT_TESTS: Final = re.compile(r"\b(?:tests?|testing|fixtures?|mocks?|benchmarks?|examples?|spec)\b", re.IGNORECASE)

STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a about an and any are as at be been being but by can could do does for from get gets had has have how i if "
        "in into is it its of on or our should so some than that the their them then there these they this those to "
        "used uses was we were what when where which while who why will with would you your",
    )
)
"""Words of questions that say nothing about code."""


@dataclass(slots=True)
class Candidate:
    """A chunk that may be an answer: what is known of it, and what becomes of it."""

    key: tuple[int, int]
    lexical: float
    similarity: float
    path: bytes = b""
    name: str = ""
    defines: Sequence[str] = ()
    kind: str = ""
    score: float = field(default=0.0)


class Asked(NamedTuple):
    """A question: its kind, its words with how telling each is, and the name it is if it is one."""

    kind: Kind
    words: Mapping[str, float]
    name: str
    about_tests: bool


def kind_of(text: str) -> Kind:
    """Return what a question looks like: a symbol's name, a path, or words."""
    stripped = text.strip()
    if _PATH.fullmatch(stripped):
        return "path"
    if _SYMBOL.fullmatch(stripped) and (_MIXED.search(stripped) or stripped[:1].isupper()):
        return "symbol"
    return "words"


def words_of_question(text: str) -> list[str]:
    """Return the distinct words of a question, identifiers whole and in parts; stop words if it has no other."""
    found = [
        word.decode("ascii")
        for identifier in _IDENTIFIER.findall(text)
        for word in parts(identifier.encode())
        if len(word) > 1
    ]
    telling = [word for word in found if word not in STOP_WORDS]
    return list(dict.fromkeys(telling or found))


def asked(text: str, weights: Mapping[str, float]) -> Asked:
    """Return a question, with the weight (idf) of each of its words."""
    kind = kind_of(text)
    last = re.split(r"\.|::|->|#", text.strip().removesuffix("()"))[-1] if kind == "symbol" else ""
    return Asked(kind, weights, last, bool(_ABOUT_TESTS.search(text)))


def weight_of(kind: Kind, rules: Rules) -> float:
    """Return the share of similarity for a kind of question."""
    return {"symbol": rules.symbol_weight, "path": rules.path_weight, "words": rules.semantic_weight}[kind]


def mix(candidates: Sequence[Candidate], weight: float) -> float:
    """Score candidates by both sides, and return the share of similarity that was used.

    Where one side says nothing at all, the other decides; but similarity never does when words alone were asked for.
    """
    most_lexical = max((one.lexical for one in candidates), default=0.0)
    most_similar = max((one.similarity for one in candidates), default=0.0)
    if most_similar <= 0:
        weight = 0.0
    elif most_lexical <= 0 < weight:
        weight = 1.0
    for one in candidates:
        lexical = one.lexical / most_lexical if most_lexical > 0 else 0.0
        similar = max(0.0, one.similarity) / most_similar if most_similar > 0 else 0.0
        one.score = weight * similar + (1 - weight) * lexical
    return weight


def weigh(candidates: Sequence[Candidate], question: Asked, rules: Rules) -> list[Candidate]:
    """Return candidates in their final order, scores changed by what they are."""
    for one in candidates:
        one.score *= _boost(one, question, rules) * _factor(one.path, question, rules)
    _reward_coherence(candidates, rules)
    return _spread(candidates, rules)


def _boost(one: Candidate, question: Asked, rules: Rules) -> float:
    boost = 1.0
    if question.name and question.name in one.defines:
        boost += rules.defined
    total = sum(question.words.values())
    if total > 0:
        boost += rules.name_cover * _covered(_words(" ".join([one.name, *one.defines[:1]])), question.words) / total
        boost += rules.path_cover * _covered(_words(one.path.decode("utf-8", "replace")), question.words) / total
    return boost


def _covered(words: frozenset[str], weights: Mapping[str, float]) -> float:
    return sum(weight for word, weight in weights.items() if word in words)


@lru_cache(maxsize=1 << 14)  # paths and names recur from question to question: 10 µs each
def _words(text: str) -> frozenset[str]:
    return frozenset(part.decode("ascii") for word in _IDENTIFIER.findall(text) for part in parts(word.encode()))


def _factor(path: bytes, question: Asked, rules: Rules) -> float:
    if question.kind == "path":
        return 1.0
    tier = tier_of(path)
    factor = 1.0 if tier == TEST and question.about_tests else rules.of_tier(tier)
    if _STUB.search(path):
        factor *= rules.stub
    if _RE_EXPORT.search(path):
        factor *= rules.re_export
    return factor


def _reward_coherence(candidates: Sequence[Candidate], rules: Rules) -> None:
    by_file: dict[bytes, list[Candidate]] = defaultdict(list)
    for one in candidates:
        by_file[one.path].append(one)
    sums = {path: fsum(one.score for one in found) for path, found in by_file.items()}
    most = max(sums.values(), default=0.0)
    best = max((one.score for one in candidates), default=0.0)
    for path, found in by_file.items():
        top = min(found, key=_order)
        top.score += rules.coherence * best * sums[path] / most if most > 0 else 0.0


def _spread(candidates: Sequence[Candidate], rules: Rules) -> list[Candidate]:
    seen: dict[bytes, int] = defaultdict(int)
    for one in sorted(candidates, key=_order):
        one.score *= rules.repeated ** seen[one.path]
        seen[one.path] += 1
    return sorted(candidates, key=_order)


def _order(one: Candidate) -> tuple[float, bytes, tuple[int, int]]:
    return -one.score, one.path, one.key
