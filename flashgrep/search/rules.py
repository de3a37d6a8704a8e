"""Every constant of ranked search in one table, with its reason."""

from dataclasses import dataclass

from flashgrep.index.table import GENERATED, TEST, VENDORED


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How lexical and semantic evidence become one order.

    ``scripts/eval_search --ablate`` says what each rule is worth.
    """

    candidates: int = 300
    """Chunks taken from each side; the answer is nearly always among 100, the rest tells how good a file is."""

    common_words: int = 1_000_000
    """Words are asked for from the rarest on, until so many chunks have one: about 10 ns for each."""

    semantic_weight: float = 0.7
    """Share of similarity in the mix with BM25, each divided by its maximum, for questions in words."""

    symbol_weight: float = 0.3
    """The same for names of symbols, which the letter finds better than the meaning."""

    path_weight: float = 0.3
    """The same for paths."""

    defined: float = 1.0
    """Added to a chunk (times its score) that defines the very name asked for."""

    name_cover: float = 0.3
    """Added for the share of the question's weight of rare words that the chunk's names cover (see ``cover``)."""

    file_cover: float = 0.4
    """Added for the share that the file's own name covers."""

    path_cover: float = 0.15
    """Added for the share that the whole path covers."""

    coherence: float = 0.25
    """Added to a file's best chunk for its next best: their scores, each halved once more than the one before."""

    whole: float = 0.6
    """Added (times similarity's share in the mix) for how similar the whole file is to a question in words, as a share
    of the most similar file: what a file is about tells apart chunks that are alike."""

    repeated: float = 0.5
    """Each further chunk of a file counts so much of the one before: ten answers are to show several files."""

    test: float = 0.5
    generated: float = 0.5
    vendored: float = 0.4
    """Factors of files that are seldom what is asked for."""

    stub: float = 0.7
    """Factor of type stubs and declarations (``.pyi``, ``.d.ts``): the code itself is better."""

    header: float = 0.8
    """Factor of headers of C and C++: the source beside them says how."""

    re_export: float = 0.9
    """Factor of files that hand on what others define (``__init__.py``, ``index.ts``, ``mod.rs``); many do more."""

    prose: float = 0.4
    """Factor of documentation, unless it is asked for: it says in the question's own words what the code does."""

    data: float = 0.5
    """Factor of what is neither code nor prose, unless it is asked for: short texts look like anything."""

    def of_tier(self, tier: int) -> float:
        """Return the factor of a tier of paths."""
        return {TEST: self.test, GENERATED: self.generated, VENDORED: self.vendored}.get(tier, 1.0)


RULES = Rules()
