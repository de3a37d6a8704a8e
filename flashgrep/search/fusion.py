"""One order from two kinds of evidence: BM25 and similarity, mixed, then weighed by what the code is.

Pure: candidates in, order out. The mix divides each side by its maximum, which beat reciprocal ranks where questions
are documentation and tied with them on questions of people; the weighing follows ``rules``.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from flashgrep.index.table import SOURCE, TEST, VENDORED, tier_of
from flashgrep.index.words import parts
from flashgrep.languages import language_of
from flashgrep.search.cover import Cover
from flashgrep.search.rules import Rules

Kind = Literal["symbol", "path", "words"]

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYMBOL: Final = re.compile(r"[\w$]+(?:(?:\.|::|->|#)[\w$]+)*(?:\(\))?", re.ASCII)
_PATH: Final = re.compile(
    r"[^\s/]*/\S*|[\w.-]+\.(?:pyi?|[cm]?[jt]sx?|go|rs|java|kt|[ch]|cc|[ch]pp|cs|rb|php|swift|scala|lua|md|toml|ya?ml|json"
    r"|sh|sql|html|css|proto|gradle)"
)
_MIXED: Final = re.compile(r"[a-z][A-Z]|_|[A-Z]{2}[a-z]|::|\.|->|\(\)")
_VENDORED: Final = re.compile(rb"(?:^|/)(?:deps|extern|thirdparty)/", re.IGNORECASE)
_SHOWN: Final = re.compile(rb"(?:^|/)_?(?:examples?|samples?|demos?|bench(?:es)?)/", re.IGNORECASE)
_STUB: Final = re.compile(rb"\.pyi$|\.d\.[cm]?ts$")
_HEADER: Final = re.compile(rb"\.(?:h|hh|hpp|hxx)$")
_EXTENSION: Final = re.compile(r"\.[^./]*$")
_RE_EXPORT: Final = re.compile(rb"(?:^|/)(?:__init__\.py|index\.[cm]?[jt]sx?|mod\.rs|package-info\.java)$")
_ABOUT_TESTS: Final = re.compile(r"\b(?:tests?|testing|fixtures?|mocks?|benchmarks?|examples?|spec)\b", re.IGNORECASE)
_ABOUT_PROSE: Final = re.compile(r"\b(?:docs?|documentation|guides?|readme|tutorial|changelog|manual)\b", re.IGNORECASE)
_ABOUT_DATA: Final = re.compile(
    r"\.json\b|\b(?:ya?ml|toml|docker\w*|workflows?|ci|manifest|lock ?file|dependencies|licen[cs]e)\b", re.IGNORECASE
)

STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a about an and any are as at be been being but by can could do does for from get gets had has have how i if "
        "in into is it its of on or our should so some than that the their them then there these they this those to "
        "used uses was we were what when where which while who why will with would you your",
    )
)
"""Words of questions that say nothing about code."""

COHERENT: Final = 3
"""Further chunks of a file that speak for it: with all of them, long files would always win."""


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
    whole: float = 0.0
    """Similarity of the whole file."""
    score: float = field(default=0.0)


class Asked(NamedTuple):
    """A question: its kind, its words with how telling each is, and the name it is if it is one."""

    kind: Kind
    words: Mapping[str, float]
    name: str
    about_tests: bool
    about_prose: bool = False
    about_data: bool = False


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
    about = (bool(words.search(text)) for words in (_ABOUT_TESTS, _ABOUT_PROSE, _ABOUT_DATA))
    return Asked(kind, weights, last, *about)


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
    cover = Cover(question.words)
    paths = {one.path for one in candidates}
    places = {path: _place(path, cover, rules) for path in paths}
    factors = {path: _factor(path, question, rules) for path in paths}
    for one in candidates:
        one.score *= (1 + places[one.path] + _named(one, question, cover, rules)) * factors[one.path]
    _reward_coherence(candidates, rules)
    if question.kind == "words":
        _reward_whole(candidates, factors, rules)
    return _spread(candidates, rules)


def _place(path: bytes, cover: Cover, rules: Rules) -> float:
    """Return what is added for the words of a path; its ending says nothing."""
    text = _EXTENSION.sub("", path.decode("utf-8", "replace"))
    return rules.path_cover * cover.share(text) + rules.file_cover * cover.share(text.rpartition("/")[2])


def _named(one: Candidate, question: Asked, cover: Cover, rules: Rules) -> float:
    """Return what is added for the names of a chunk."""
    defined = rules.defined if question.name and question.name in one.defines else 0.0
    return defined + rules.name_cover * cover.share(" ".join([one.name, *one.defines[:1]]))


def _factor(path: bytes, question: Asked, rules: Rules) -> float:
    if question.kind == "path":
        return 1.0
    nature = _nature(path)
    factor = 1.0 if nature.tier == TEST and question.about_tests else rules.of_tier(nature.tier)
    for kind, less in ((nature.stub, rules.stub), (nature.header, rules.header), (nature.re_export, rules.re_export)):
        factor *= less if kind else 1.0
    if nature.substance == "prose":
        return factor if question.about_prose else factor * rules.prose
    return factor * rules.data if nature.substance == "data" and not question.about_data else factor


class _Nature(NamedTuple):
    """What a path says about its file."""

    tier: int
    stub: bool
    header: bool
    re_export: bool
    substance: Literal["code", "prose", "data"]


@lru_cache(maxsize=1 << 13)  # 10 µs each; questions come back to the same files
def _nature(path: bytes) -> _Nature:
    return _Nature(
        _tier(path),
        _STUB.search(path) is not None,
        _HEADER.search(path) is not None,
        _RE_EXPORT.search(path) is not None,
        language_of(path).nature,
    )


def _tier(path: bytes) -> int:
    """Return a path's tier; among sources, what merely shows their use counts as tests do."""
    tier = tier_of(path)
    if tier != SOURCE:
        return tier
    return VENDORED if _VENDORED.search(path) else TEST if _SHOWN.search(path) else SOURCE


def _reward_coherence(candidates: Sequence[Candidate], rules: Rules) -> None:
    by_file: dict[bytes, list[Candidate]] = defaultdict(list)
    for one in sorted(candidates, key=_order):
        by_file[one.path].append(one)
    for first, *others in by_file.values():
        halves = (one.score / 2**place for place, one in enumerate(others[:COHERENT]))
        first.score += rules.coherence * sum(halves)


def _reward_whole(candidates: Sequence[Candidate], factors: Mapping[bytes, float], rules: Rules) -> None:
    """Add to each chunk for what its file is about: the same to all of a file, so that their order stays."""
    most = max((one.whole for one in candidates), default=0.0)
    for one in candidates:
        if one.whole > 0:
            one.score += rules.whole * one.whole / most * factors[one.path]


def _spread(candidates: Sequence[Candidate], rules: Rules) -> list[Candidate]:
    seen: dict[bytes, int] = defaultdict(int)
    for one in sorted(candidates, key=_order):
        one.score *= rules.repeated ** seen[one.path]
        seen[one.path] += 1
    return sorted(candidates, key=_order)


def _order(one: Candidate) -> tuple[float, bytes, tuple[int, int]]:
    return -one.score, one.path, one.key
