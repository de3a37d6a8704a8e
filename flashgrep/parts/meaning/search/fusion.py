"""One order from two kinds of evidence: BM25 and similarity, mixed, then weighed by what the code is.

Pure: candidates in, order out. The mix divides each side by its maximum, which beat reciprocal rank fusion on
documentation questions and tied with it on questions by people; the weights follow ``Rules``, one table of all
constants with their reasons. ``Cover`` measures how much of a question a name or a path covers, by stems and prefixes
of words: people ask for ``encoding`` and ``asynchronous`` when the code says ``encoder`` and ``async``.
"""

import heapq
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import Final, Literal, NamedTuple

from flashgrep.base.languages import language_of
from flashgrep.files.attributes import NOTHING_DECLARED, DeclaredKind, DeclaredKinds
from flashgrep.index.table import GENERATED, SOURCE, TEST, VENDORED, tier_of
from flashgrep.parts.meaning.index.word_impacts import parts
from flashgrep.search.declared_kinds import TIER_OF_KIND

Kind = Literal["symbol", "path", "words"]

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYMBOL: Final = re.compile(r"[\w$]+(?:(?:\.|::|->|#)[\w$]+)*(?:\(\))?", re.ASCII)
_PATH: Final = re.compile(
    r"[^\s/]*/\S*|[\w.-]+\.(?:pyi?|[cm]?[jt]sx?|go|rs|java|kt|[ch]|cc|[ch]pp|cs|rb|php|swift|scala|lua|md|toml|ya?ml|json"
    r"|sh|sql|html|css|proto|gradle)"
)
_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_MIXED_NAME: Final = re.compile(r"[a-z][A-Z]|[A-Za-z0-9]_|[A-Z]{2}[a-z]")
_MIXED: Final = re.compile(r"[a-z][A-Z]|_|[A-Z]{2}[a-z]|::|\.|->|\(\)")
_VENDORED: Final = re.compile(rb"(?:^|/)(?:deps|extern|thirdparty)/", re.IGNORECASE)
_EXAMPLE: Final = re.compile(
    rb"(?:^|/)_?(?:examples?|samples?|demos?|bench(?:es)?)/", re.IGNORECASE
)
_STUB: Final = re.compile(rb"\.pyi$|\.d\.[cm]?ts$")
_HEADER: Final = re.compile(rb"\.(?:h|hh|hpp|hxx)$")
_EXTENSION: Final = re.compile(r"\.[^./]*$")
_TESTS: Final = ("tests.", "test.")
"""Beginnings of the names of tests in a file of sources."""
_RE_EXPORT: Final = re.compile(
    rb"(?:^|/)(?:__init__\.py|index\.[cm]?[jt]sx?|mod\.rs|package-info\.java)$"
)
_ABOUT_TESTS: Final = re.compile(
    r"\b(?:tests?|testing|fixtures?|mocks?|benchmarks?|examples?|spec)\b", re.IGNORECASE
)
_ABOUT_PROSE: Final = re.compile(
    r"\b(?:docs?|documentation|guides?|readme|tutorial|changelog|manual)\b",
    re.IGNORECASE,
)
_ABOUT_DATA: Final = re.compile(
    r"\.json\b|\b(?:ya?ml|toml|docker\w*|workflows?|ci|manifest|lock ?file|dependencies|licen[cs]e)\b",
    re.IGNORECASE,
)

STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a about an and any are as at be been being but by can could do does for from get gets had has have how i if "
        "in into is it its of on or our should so some than that the their them then there these they this those to "
        "used uses was we were what when where which while who why will with would you your",
    )
)
"""Words in questions that say nothing about code."""

MOST_NAMES: Final = 8
"""Identifiers of a question that are looked up as types: a sentence has few, a pasted text may have hundreds."""
MOST_JOINED: Final = 3
"""Adjacent words of a question that may be one file name (``connection pool manager``)."""
_SHORTEST_NAME: Final = 3
"""Letters of a file name that a question can name whole."""

LEADING: Final = 0.95
"""Least score of what has the one rare word that is asked for: a model is shown all of its code that fits."""
FOLLOWING: Final = 0.59
"""Most that anything else scores then: a model is told its path, and no functions."""
COHERENT: Final = 3
"""Further chunks of a file that raise its score: with all of them, long files would always win."""
BEGINNING: Final = 0.8
"""Weight of a word that is only a prefix of another, such as ``config`` of ``configuration``."""
_SHORTEST: Final = 4
"""Letters that two words must share to match; a three-letter abbreviation (``env``) may begin the question's word."""
_LEAST_STEM: Final = 3

_MOST_KEPT: Final = 256
"""Characters of a text whose stems are remembered: names and paths are shorter, a question may be longer."""
_LONGEST: Final = 64
_VOWEL: Final = re.compile("[aeiouy]")
_ENDINGS: Final = (
    *(
        "ization",
        "isation",
        "ations",
        "ation",
        "ition",
        "ments",
        "ment",
        "ings",
        "ing",
        "ness",
        "able",
        "ible",
    ),
    *(
        "ers",
        "er",
        "ors",
        "or",
        "ions",
        "ion",
        "ies",
        "ed",
        "es",
        "s",
        "ly",
        "e",
        "y",
        "al",
    ),
)
"""Endings that are removed, the first that fits: enough for comparing names, not for linguistics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How lexical and semantic evidence become one order.

    ``scripts/eval_search --ablate`` measures each rule.
    """

    candidates: int = 300
    """Chunks taken from each side; the answer is nearly always among 100, the rest shows how good a file is."""

    form: float = 0.5
    """Weight of another form of a question's word (``hide`` for ``hiding``), in chunks without the word."""

    common_words: int = 1_000_000
    """Words are looked up from the rarest on, until this many chunks have one: about 10 ns per chunk."""

    common_forms: int = 20_000
    """The same for forms, about 60 ns for each: a common one says little."""

    semantic_weight: float = 0.7
    """Share of similarity in the mix with BM25, each divided by its maximum, for questions in words."""

    symbol_weight: float = 0.3
    """The same for names of symbols, which spelling finds better than meaning."""

    path_weight: float = 0.3
    """The same for paths."""

    defined: float = 1.0
    """Added to a chunk (times its score) that defines the very name asked for."""

    name_cover: float = 0.3
    """Added for the share of the question's weight of rare words that the chunk's names cover (see ``Cover``)."""

    file_cover: float = 0.4
    """Added for the share that the file's own name covers."""

    path_cover: float = 0.15
    """Added for the share that the whole path covers."""

    coherence: float = 0.25
    """Added to a file's best chunk for its next best: their scores, each halved once more than the one before."""

    whole: float = 0.6
    """Added (times similarity's share in the mix) for how similar the whole file is to a question in words, as a share
    of the most similar file: what a file is about tells apart chunks that are alike."""

    said: float = 0.24
    """Added for the share of a question's words, by weight, that the chunks of a file have together: by BM25 alone one
    rare word that is said often outweighs several others."""

    side_by_side: float = 0.2
    """Added to a file for the share of a question's adjacent words that a chunk of it has side by side: a phrase of the
    question is seldom there by chance."""

    names_type: float = 0.5
    """Added for the share of the question's identifiers that a file defines as types or modules."""

    named_whole: float = 0.15
    """Added to a file whose name is the symbol asked for, or one word of a question, or two or three adjacent ones."""

    named_both: float = 0.2
    """Added for the share of the question that a file's name covers, times the share of the name that the question
    covers: of two names that a question mentions, the shorter is meant. At two to four times these three weights
    public questions gain, and questions that avoid the words of the code lose 0.01 to 0.02."""

    repeated: float = 0.5
    """Each further chunk of a file counts this much of the one before: ten answers should show several files."""

    file_share: float = 0.5
    """Share of its file's score in the score of a function; the rest is its own."""

    further: float = 0.9
    """Each further function of a file counts this much of the one before."""

    test: float = 0.5
    generated: float = 0.5
    vendored: float = 0.4
    """Factors of files that are seldom meant."""

    stub: float = 0.7
    """Factor of type stubs and declarations (``.pyi``, ``.d.ts``): the code itself is better."""

    header: float = 0.8
    """Factor of C and C++ headers: the implementation is in the source next to them."""

    re_export: float = 0.9
    """Factor of files that re-export (``__init__.py``, ``index.ts``, ``mod.rs``); many do more."""

    prose: float = 0.4
    """Factor of documentation, unless asked for: it describes the code in the question's own words."""

    data: float = 0.5
    """Factor of files that are neither code nor prose, unless asked for: short texts resemble anything."""

    def of_tier(self, tier: int) -> float:
        """Return the factor of a tier of paths."""
        return {
            TEST: self.test,
            GENERATED: self.generated,
            VENDORED: self.vendored,
        }.get(tier, 1.0)


RULES = Rules()


class Stems(NamedTuple):
    """The stems of an identifier, whole and in parts."""

    words: tuple[str, ...]
    beginnings: frozenset[str]
    """Their first letters: words that are alike begin alike."""


class Cover:
    """The words of one question with their weights."""

    def __init__(self, words: Mapping[str, float]) -> None:
        self._weights: dict[str, float] = {}
        for word, weight in words.items():
            stem = stem_of(word)
            # Of two words with one stem, the more common one determines how rare the
            # stem is.
            self._weights[stem] = min(weight, self._weights.get(stem, weight))
        self._total = sum(self._weights.values())
        self._beginning: dict[str, list[str]] = {}
        """By their first letters: words with different first letters never match."""
        for stem in self._weights:
            self._beginning.setdefault(stem[:_LEAST_STEM], []).append(stem)
        self._beginnings = frozenset(self._beginning)
        self._matches: dict[str, dict[str, float]] = {}
        """By word of code: the words of the question that it matches, and how well."""

    def share(self, text: str) -> float:
        """Return the share of the question's weight, 0 to 1, that the words of a name or path cover."""
        return self.share_of(split_stems(text))

    def share_of(self, identifiers: Iterable[Stems]) -> float:
        """Return the same for a name or path that was split."""
        best: dict[str, float] = {}
        for identifier in identifiers:
            # Nearly all have no word that begins like one of the question.
            if self._beginnings.isdisjoint(identifier.beginnings):
                continue
            for word in identifier.words:
                matches = self._matches.get(word)
                if matches is None:
                    matches = self._match(word)
                for term, how in matches.items():
                    # Each word of the question counts once, however often a name
                    # contains it.
                    if how > best.get(term, 0.0):
                        best[term] = how
        if not best or self._total <= 0:
            return 0.0
        # In the question's order: names that cover the same are equal to the last bit.
        weight = 0.0
        for term, term_weight in self._weights.items():
            if term in best:
                weight += term_weight * best[term]
        return weight / self._total

    def _match(self, word: str) -> dict[str, float]:
        """Return the words of the question that a word of code matches, and how well."""
        matches = dict[str, float]()
        for term in self._beginning.get(word[:_LEAST_STEM], ()):
            how = _likeness(term, word)
            if how:
                matches[term] = how
        self._matches[word] = matches
        return matches


def _likeness(asked: str, word: str) -> float:
    if asked == word:
        return 1.0
    if len(asked) < _SHORTEST or len(word) < _LEAST_STEM:
        return 0.0
    if asked.startswith(word) or word.startswith(asked):
        return BEGINNING
    return 0.0


def split_stems(text: str) -> list[Stems]:
    """Return the stems of each identifier of a text."""
    identifiers = _IDENTIFIER.findall(text)
    if len(text) <= _MOST_KEPT:
        return [*map(_kept_stems, identifiers)]
    return [*map(_find_stems, identifiers)]


def _find_stems(identifier: str) -> Stems:
    stems = list[str]()
    for part in parts(identifier.encode()):
        word = part.decode("ascii")
        if len(part) <= _LONGEST:
            word = stem_of(word)
        stems.append(word)
    # Shared by all that have a word with this beginning.
    beginnings = frozenset(intern(stem[:_LEAST_STEM]) for stem in stems)
    return Stems(tuple(stems), beginnings)


# Names recur from question to question, their identifiers even more: 4 µs each.
_kept_stems = lru_cache(maxsize=1 << 14)(_find_stems)


@lru_cache(maxsize=1 << 14)
def stem_of(word: str) -> str:
    """Return a lower-case word without its ending; names with digits or underscores, and short words, as they are."""
    if len(word) < _SHORTEST or not word.isalpha():
        return word
    stem = word
    for ending in _ENDINGS:
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= _LEAST_STEM and _VOWEL.search(rest):
            stem = rest
            break
    # ``stopping`` and ``stop``; but ``class`` and ``call`` keep both letters.
    if len(stem) > _LEAST_STEM and stem[-1] == stem[-2] and stem[-1] not in "sl":
        stem = stem[:-1]
    if len(stem) > _LEAST_STEM and stem[-1] in "ie":
        return stem[:-1]
    return stem


@dataclass(slots=True)
class Candidate:
    """A candidate chunk: its properties and scores."""

    key: tuple[int, int]
    lexical: float
    similarity: float
    path: bytes = b""
    name: str = ""
    defines: Sequence[str] = ()
    kind: str = ""
    whole: float = 0.0
    """Similarity of the whole file."""
    words: int = 0
    """The question's words that it has in some form: a bit for each, the first word's is the lowest."""
    score: float = field(default=0.0)
    strength: float = 0.0
    """Its score by itself, before further chunks of its file count less."""
    leads: bool = False
    """Whether it has the one rare word that the question is: it comes before all that lack it."""


NO_TYPES: Final[Mapping[bytes, float]] = {}


class AnalyzedQuery(NamedTuple):
    """A question: its kind, its words with their weights, and the name if it is one."""

    kind: Kind
    words: Mapping[str, float]
    name: str
    about_tests: bool
    about_prose: bool = False
    about_data: bool = False
    identifiers: tuple[str, ...] = ()
    """Words of the question that may be names of types: with capitals or underscores inside it."""
    stems: frozenset[str] = frozenset()
    """Stems of its words, without compounds and stop words."""
    spellings: frozenset[str] = frozenset()
    """Its words, and two or three adjacent ones as one, or the symbol, as file names are compared with them."""

    def weigh(self, words: int) -> float:
        """Return the share of the weight of these words, a bit for each."""
        total = weight = 0.0
        for at, of_word in enumerate(self.words.values()):
            total += of_word
            if words >> at & 1:
                weight += of_word
        return weight / total if total else 0.0


def classify_query(text: str) -> Kind:
    """Classify a question: a symbol's name, a path, or words."""
    stripped = text.strip()
    if _PATH.fullmatch(stripped):
        return "path"
    if _SYMBOL.fullmatch(stripped) and (
        _MIXED.search(stripped) or stripped[:1].isupper()
    ):
        return "symbol"
    return "words"


def query_words(text: str) -> list[str]:
    """Return the distinct words of a question, identifiers whole and in parts; stop words if it has no other."""
    words = [
        word.decode("ascii")
        for identifier in _IDENTIFIER.findall(text)
        for word in parts(identifier.encode())
        if len(word) > 1
    ]
    # A question of stop words alone ("how does it do that") is still answered by them.
    telling = [word for word in words if word not in STOP_WORDS]
    return list(dict.fromkeys(telling or words))


def analyze_query(text: str, weights: Mapping[str, float]) -> AnalyzedQuery:
    """Return a question, with the weight (idf) of each of its words."""
    kind = classify_query(text)
    if kind == "symbol":
        last = re.split(r"\.|::|->|#", text.strip().removesuffix("()"))[-1]
    else:
        last = ""
    if kind == "words":
        spellings = spell_together(text)
        identifiers = find_identifiers_in(text)
    else:
        spellings = frozenset[str]()
        identifiers = ()
        if last:
            spellings = frozenset([bare_name(last)])
            identifiers = (last,)
    about_tests = _ABOUT_TESTS.search(text)
    about_prose = _ABOUT_PROSE.search(text)
    about_data = _ABOUT_DATA.search(text)
    return AnalyzedQuery(
        kind,
        weights,
        last,
        about_tests is not None,
        about_prose is not None,
        about_data is not None,
        identifiers=identifiers,
        stems=simple_stems(text),
        spellings=spellings,
    )


def find_identifiers_in(text: str) -> tuple[str, ...]:
    """Return the words of a sentence that look like names in code, without repetition, at most ``MOST_NAMES``.

    These have capitals or underscores inside, or begin with a capital without being the first word.
    """
    names = dict[str, None]()
    for match in _IDENTIFIER.finditer(text):
        word = match[0]
        is_first = not text[: match.start()].strip()
        if _MIXED_NAME.search(word) or (word[0].isupper() and not is_first):
            names[word] = None
    return tuple(names)[:MOST_NAMES]


def spell_together(text: str) -> frozenset[str]:
    """Return the words of a question, and two or three adjacent ones joined, each as ``bare_name`` returns it."""
    words = [bare_name(word) for word in _WORD.findall(text)]
    spellings = set[str]()
    for start in range(len(words)):
        joined = ""
        for word in words[start : start + MOST_JOINED]:
            joined += word
            spellings.add(joined)
    return frozenset(spellings)


def bare_name(name: str) -> str:
    """Return a name without case, ``_`` and ``-``."""
    return name.lower().replace("_", "").replace("-", "")


def simple_stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words, without stop words; of a compound, those of its parts."""
    # Names of files and functions recur.
    return (_kept_simple_stems if len(text) <= _MOST_KEPT else _find_simple_stems)(text)


def _find_simple_stems(text: str) -> frozenset[str]:
    stems = set[str]()
    for identifier in _IDENTIFIER.findall(text):
        whole, *split = parts(identifier.encode())
        for word in split or [whole]:
            spelled = word.decode("ascii")
            if len(spelled) > 1 and spelled not in STOP_WORDS:
                stems.add(stem_of(spelled))
    return frozenset(stems)


_kept_simple_stems = lru_cache(maxsize=1 << 14)(_find_simple_stems)


def semantic_share(kind: Kind, rules: Rules) -> float:
    """Return the share of similarity for a kind of question."""
    return {
        "symbol": rules.symbol_weight,
        "path": rules.path_weight,
        "words": rules.semantic_weight,
    }[kind]


def mix_scores(candidates: Sequence[Candidate], weight: float) -> float:
    """Score candidates by both sides, and return the share of similarity that was used.

    If one side has nothing at all, the other decides; but never similarity if only words were requested.
    """
    most_lexical = max([candidate.lexical for candidate in candidates], default=0.0)
    most_similar = max([candidate.similarity for candidate in candidates], default=0.0)
    if most_similar <= 0:
        weight = 0.0
    # No chunk has any of its words, for example if the question is in another language.
    elif most_lexical <= 0 < weight:
        weight = 1.0
    rest = 1 - weight
    for candidate in candidates:
        lexical = 0.0
        if most_lexical > 0:
            lexical = candidate.lexical / most_lexical
        # Negative similarity counts as zero: it must not reduce the other side's score.
        similar = 0.0
        if most_similar > 0 and candidate.similarity > 0:
            similar = candidate.similarity / most_similar
        candidate.score = weight * similar + rest * lexical
    return weight


class RankedFile(NamedTuple):
    """A file with its chunks."""

    path: bytes
    score: float
    chunks: list[Candidate]
    """Best first, each with its own ``strength``."""


def rank_files(
    candidates: Sequence[Candidate],
    query: AnalyzedQuery,
    rules: Rules,
    types: Mapping[bytes, float] = NO_TYPES,
    kinds: DeclaredKinds = NOTHING_DECLARED,
) -> list[RankedFile]:
    """Return the files of candidates, best first, each with its chunks in the order of their own scores.

    ``types``: by file, the share of the question's identifiers that it defines as types or modules.
    ``kinds``: what the project declares about its files.
    """
    factors = dict.fromkeys((candidate.path for candidate in candidates), 0.0)
    for path in factors:
        factors[path] = weigh_file(path, kinds, query, rules)
    _reward_names(candidates, query, rules, factors)
    by_file: dict[bytes, list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=_order):
        by_file[candidate.path].append(candidate)

    # The same for all chunks of a file, so that their order is unchanged.
    additions = _reward_file_names(by_file, query, rules, types)
    most = max(
        (current_candidate.whole for current_candidate in candidates), default=0.0
    )
    has_whole = query.kind == "words" and most > 0
    files = list[RankedFile]()
    for path, chunks in by_file.items():
        # A file with several good chunks is more likely to be about the question.
        support = 0.0
        for place, chunk in enumerate(chunks[1 : COHERENT + 1]):
            support += chunk.score / 2**place
        of_file = additions[path]
        if query.kind == "words":
            # Its chunks may have the words between them.
            said = 0
            for chunk in chunks:
                said |= chunk.words
            of_file += rules.said * query.weigh(said)
        factor = factors[path]
        for chunk in chunks:
            addition = of_file
            # What a file is about tells apart chunks that are alike.
            if has_whole and chunk.whole > 0:
                addition += rules.whole * chunk.whole / most
            addition *= weigh_place(chunk, query, rules)
            chunk.strength = chunk.score + addition * factor
        score = chunks[0].strength + rules.coherence * support
        files.append(RankedFile(path, score, chunks))
    return sort_files(_put_leading_first(files))


def sort_files(files: Iterable[RankedFile]) -> list[RankedFile]:
    """Return files in the order of their scores."""
    return sorted(files, key=lambda file: (-file.score, file.path))


def _put_leading_first(files: list[RankedFile]) -> list[RankedFile]:
    """Return files with scores of which all that lead are above the others."""
    if not any(file.chunks[0].leads for file in files):
        return files
    best_file = {True: 0.0, False: 0.0}
    best_chunk = {True: 0.0, False: 0.0}
    for file in files:
        leads = file.chunks[0].leads
        best_file[leads] = max(best_file[leads], file.score)
        for chunk in file.chunks:
            best_chunk[chunk.leads] = max(best_chunk[chunk.leads], chunk.strength)
    placed = list[RankedFile]()
    for file in files:
        for chunk in file.chunks:
            best = best_chunk[chunk.leads] or 1.0
            chunk.strength = _place(chunk.strength / best, leads=chunk.leads)
        leads = file.chunks[0].leads
        score = _place(file.score / (best_file[leads] or 1.0), leads=leads)
        placed.append(file._replace(score=score))
    return placed


def _place(share: float, *, leads: bool) -> float:
    """Return a score for a share of the best score among those that lead, or among the others."""
    if leads:
        return LEADING + (1 - LEADING) * share
    return FOLLOWING * share


def apply_rules(
    candidates: Sequence[Candidate],
    query: AnalyzedQuery,
    rules: Rules,
    types: Mapping[bytes, float] = NO_TYPES,
) -> list[Candidate]:
    """Return candidates in their final order, files first, with scores adjusted by the rules."""
    ranked = list[Candidate]()
    for file in rank_files(candidates, query, rules, types):
        # Ten answers should show several files: each further chunk of a file ranks
        # lower, although it is as good.
        for place, chunk in enumerate(file.chunks):
            score = file.score if place == 0 else chunk.strength
            chunk.score = score * rules.repeated**place
            ranked.append(chunk)
    return sorted(ranked, key=_order)


def _reward_names(
    candidates: Sequence[Candidate],
    query: AnalyzedQuery,
    rules: Rules,
    factors: Mapping[bytes, float],
) -> None:
    """Multiply each candidate's score by what its names and its path cover of the question, and by its nature."""
    cover = Cover(query.words)
    paths: dict[bytes, float] = {}
    for path in factors:
        spelled = _spell_path(path)
        of_path = rules.path_cover * cover.share_of(spelled.path)
        # The file's name says most.
        of_file = rules.file_cover * cover.share_of(spelled.name)
        paths[path] = of_path + of_file
    for candidate in candidates:
        name = candidate.name
        if candidate.defines:
            name = f"{name} {candidate.defines[0]}"
        named = rules.name_cover * cover.share(name)
        if query.name and query.name in candidate.defines:
            named += rules.defined
        path = candidate.path
        candidate.score *= (1 + paths[path] + named) * factors[path]
        candidate.score *= weigh_place(candidate, query, rules)


def _reward_file_names(
    paths: Iterable[bytes],
    query: AnalyzedQuery,
    rules: Rules,
    types: Mapping[bytes, float],
) -> dict[bytes, float]:
    """Return by file what is added for the types it defines, and for a name that the question says."""
    additions: dict[bytes, float] = {}
    by_spelling: dict[str, list[bytes]] = defaultdict(list)
    beginnings = {stem[:_LEAST_STEM] for stem in query.stems}
    for path in paths:
        spelled = _spell_path(path)
        additions[path] = rules.names_type * types.get(path, 0.0)
        if not beginnings.isdisjoint(spelled.beginnings):
            both = cover_each_other(query.stems, spelled.stems)
            additions[path] += rules.named_both * both
        if not query.spellings.isdisjoint(spelled.forms):
            by_spelling[spelled.forms[-1]].append(path)
    for same in by_spelling.values():
        # Of many files with that name, each is meant the less.
        for path in same:
            additions[path] += rules.named_whole / math.sqrt(len(same))
    return additions


class _SpelledPath(NamedTuple):
    """A path as questions are compared with it."""

    path: list[Stems]
    """Without its ending, which says nothing."""
    name: list[Stems]
    """The file's own, without its ending."""
    stems: frozenset[str]
    """Of its name."""
    beginnings: frozenset[str]
    """Of these stems."""
    forms: tuple[str, ...]
    """Its bare name, the plural and, last, the singular; none if it is too short to be meant."""


# 10 µs each; questions come back to the same files.
@lru_cache(maxsize=1 << 11)
def _spell_path(path: bytes) -> _SpelledPath:
    text = _EXTENSION.sub("", path.decode("utf-8", "replace"))
    name = text.rpartition("/")[2]
    stems = simple_stems(name)
    spelling = bare_name(name)
    forms: tuple[str, ...] = ()
    if len(spelling) >= _SHORTEST_NAME:
        forms = (spelling, f"{spelling}s", spelling.removesuffix("s"))
    return _SpelledPath(
        split_stems(text),
        split_stems(name),
        stems,
        frozenset(stem[:_LEAST_STEM] for stem in stems),
        forms,
    )


def cover_each_other(asked: Collection[str], named: Collection[str]) -> float:
    """Return the share of a question's stems that a name has, times the share of the name's that the question has."""
    if not asked or not named:
        return 0.0
    of_question = 0.0
    for stem in asked:
        of_question += max(_likeness(stem, word) for word in named)
    of_name = 0.0
    for word in named:
        of_name += max(_likeness(stem, word) for stem in asked)
    return of_question / len(asked) * of_name / len(named)


class FunctionOrder:
    """The chunks of ranked files for showing functions: mixed, the next best one at a time.

    A file's chunks come in their own order. ``most``: chunks of one file after which it
    waits for all others.
    """

    def __init__(self, files: Sequence[RankedFile], rules: Rules, most: int) -> None:
        self._rules = rules
        self._most = max(1, most)
        self._best_file = max((file.score for file in files), default=0.0)
        self._best_chunk = max((file.chunks[0].strength for file in files), default=0.0)
        self._shown: dict[bytes, int] = defaultdict(int)
        self._waiting: list[tuple[bool, bool, float, bytes, int, RankedFile]] = []
        for file in files:
            self._push(file, 0)

    def __bool__(self) -> bool:
        """Return whether any chunk is left."""
        return bool(self._waiting)

    def next(self) -> Candidate:
        """Return the best chunk; ``advance`` with it before the next call."""
        *_, place, file = self._waiting[0]
        return file.chunks[place]

    def advance(self, *, is_shown: bool) -> None:
        """Go on to the next chunk of the file that was next; ``is_shown``: whether it took a place in the answer."""
        *_, path, place, file = heapq.heappop(self._waiting)
        self._shown[path] += is_shown
        if place + 1 < len(file.chunks):
            self._push(file, place + 1)

    def _push(self, file: RankedFile, place: int) -> None:
        share = self._rules.file_share
        own = file.chunks[place].strength / self._best_chunk
        score = share * file.score / self._best_file + (1 - share) * own
        count = self._shown[file.path]
        score *= self._rules.further**count
        is_behind = not file.chunks[place].leads
        entry = (count >= self._most, is_behind, -score, file.path, place, file)
        heapq.heappush(self._waiting, entry)


def _order(one: Candidate) -> tuple[bool, float, bytes, tuple[int, int]]:
    return not one.leads, -one.score, one.path, one.key


def weigh_file(
    path: bytes, kinds: DeclaredKinds, query: AnalyzedQuery, rules: Rules
) -> float:
    """Return the factor of a file according to its path, and what is declared about it."""
    nature = declare_nature(_nature(path), kinds.find_kind(path))
    return _weigh_nature(nature, query, rules)


def weigh_place(candidate: Candidate, query: AnalyzedQuery, rules: Rules) -> float:
    """Return the factor of a chunk by where it is in its file: Rust keeps tests in a module of the file they test."""
    is_test = candidate.path.endswith(b".rs") and candidate.name.startswith(_TESTS)
    if is_test and not query.about_tests and tier_of(candidate.path) == SOURCE:
        return rules.test
    return 1.0


def _weigh_nature(nature: "_Nature", query: AnalyzedQuery, rules: Rules) -> float:
    """Return the factor of a file according to its path, and what is declared about it."""
    # A typed path means that file, whatever its nature.
    if query.kind == "path":
        return 1.0
    factor = 1.0
    is_meant = nature.tier == TEST and query.about_tests
    if nature.tier != SOURCE and not is_meant:
        factor = rules.of_tier(nature.tier)
    if nature.stub:
        factor *= rules.stub
    if nature.header:
        factor *= rules.header
    if nature.re_export:
        factor *= rules.re_export
    if nature.substance == "prose":
        if query.about_prose:
            return factor
        return factor * rules.prose
    if nature.substance == "data" and not query.about_data:
        return factor * rules.data
    return factor


class _Nature(NamedTuple):
    """Properties of a file that its path shows."""

    tier: int
    stub: bool
    header: bool
    re_export: bool
    substance: Literal["code", "prose", "data"]


@lru_cache(maxsize=1 << 13)  # 10 µs each; questions come back to the same files
def _nature(path: bytes) -> _Nature:
    tier = tier_of(path)
    if tier == SOURCE:  # among sources, examples count like tests
        if _VENDORED.search(path):
            tier = VENDORED
        elif _EXAMPLE.search(path):
            tier = TEST
        else:
            tier = SOURCE
    return _Nature(
        tier,
        _STUB.search(path) is not None,
        _HEADER.search(path) is not None,
        _RE_EXPORT.search(path) is not None,
        language_of(path).nature,
    )


def declare_nature(nature: _Nature, kind: DeclaredKind | None) -> _Nature:
    """Return a file's nature by its path, changed to what the project declares about it."""
    if kind is None:
        return nature
    if kind in TIER_OF_KIND:
        return nature._replace(tier=max(nature.tier, TIER_OF_KIND[kind]))
    if nature.substance == "code":
        return nature._replace(substance="prose")
    return nature
