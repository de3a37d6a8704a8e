r"""Which grams a text must hold: AND/OR expressions over four-byte windows, and how the windows of a string are chosen.

The index computes a document's grams on its bytes with ASCII A-Z folded to a-z, line by line with the line end "\n"
appended (to a last line without one also): every window of four bytes, save those made of blanks alone.
So "\n" is only ever a gram's last byte, and a window of blanks is unknown, never absent.
A document that has a character beyond ASCII which folds to a letter of ASCII also has the gram FOLDS.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

GRAM = 4
FOLDS = b"\n\n\n\n"  # No window is this; it stands for "has U+017F (folds to s) or U+212A (folds to k)".
MAX_PARTS = 64  # More narrow nothing further and cost the index a posting list each.
MAX_TERMS = 512  # Grams in one expression altogether.
_BLANKS = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class Gram:
    """One four-byte gram that must occur; of three bytes: any gram that begins with them."""

    value: bytes

    def __str__(self) -> str:
        text = repr(self.value)[1:]
        return text if len(self.value) == GRAM else f"{text}…"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds; without parts it always holds."""

    parts: "tuple[GramExpr, ...]"

    def __str__(self) -> str:
        return "(" + " AND ".join(map(str, self.parts)) + ")" if self.parts else "ANYTHING"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds; without parts it never does."""

    parts: "tuple[GramExpr, ...]"

    def __str__(self) -> str:
        return "(" + " OR ".join(map(str, self.parts)) + ")" if self.parts else "NOTHING"


GramExpr = Gram | AllOf | AnyOf

ANYTHING = AllOf(())
NOTHING = AnyOf(())


def all_of(parts: Iterable[GramExpr]) -> GramExpr:
    """Return the conjunction, flattened, without what a stricter part implies or what exceeds the bounds."""
    flat: dict[GramExpr, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.parts if isinstance(part, AllOf) else (part,)))
    if NOTHING in flat:
        return NOTHING
    kept = [part for part in flat if not _implied(part, flat)]
    kept.sort(key=_size)  # grams first, then short disjunctions: they are worth most where we must cut
    sizes = accumulate(map(_size, kept))
    kept = [part for part, size in zip(kept[:MAX_PARTS], sizes, strict=False) if size <= MAX_TERMS]
    return kept[0] if len(kept) == 1 else AllOf(tuple(kept))


def any_of(parts: Iterable[GramExpr]) -> GramExpr:
    """Return the disjunction of grams and of conjunctions of grams; what a weaker alternative covers is left out.

    Disjunctions within an alternative are dropped in favour of its grams, so no expression is deeper than three;
    more than `MAX_PARTS` alternatives are anything.
    """
    flat: dict[GramExpr, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(_alternatives(part)))
    if ANYTHING in flat or len(flat) > MAX_PARTS * 2:
        return ANYTHING
    terms = {part: _terms(part) for part in flat}
    kept = [part for part in flat if not any(terms[other] < terms[part] for other in flat)]
    if len(kept) > MAX_PARTS:
        return ANYTHING
    most = max(2, MAX_TERMS // max(1, len(kept)))
    kept = [AllOf(_spread(part.parts, most)) if isinstance(part, AllOf) else part for part in kept]
    return kept[0] if len(kept) == 1 else AnyOf(tuple(kept))


def _alternatives(part: GramExpr) -> tuple[GramExpr, ...]:
    if isinstance(part, AnyOf):
        return part.parts
    if isinstance(part, Gram) or not part.parts:
        return (part,)
    grams = tuple(inner for inner in part.parts if isinstance(inner, Gram))
    if not grams:
        return _alternatives(part.parts[0])
    return (grams[0] if len(grams) == 1 else AllOf(grams),)


def _size(part: GramExpr) -> int:
    return 1 if isinstance(part, Gram) else sum(map(_size, part.parts))


def grams_in(text: bytes, most: int = MAX_PARTS) -> GramExpr:
    """Return what a document must hold to contain `text`, which is folded already."""
    pieces = text.split(b"\n")
    lines = [piece + b"\n" for piece in pieces[:-1]] + pieces[-1:]
    found = [gram for line in lines for gram in _windows(line)]
    return all_of(_spread(tuple(found), most))


def _windows(line: bytes) -> list[Gram]:
    """Return the grams of a part of one line; three bytes that do not end it are the start of some gram."""
    if len(line) == GRAM - 1 and not line.endswith(b"\n"):
        windows = [line]
    else:
        windows = [line[at : at + GRAM] for at in range(len(line) - GRAM + 1)]
    return [Gram(window) for window in windows if window.strip(_BLANKS)]


def _spread(parts: "tuple[GramExpr, ...]", most: int) -> "tuple[GramExpr, ...]":
    """Choose at most `most` parts at even distances, the last included: the grams of a text then overlap least."""
    if len(parts) <= most:
        return parts
    return tuple(parts[index * (len(parts) - 1) // (most - 1)] for index in range(most))


def _implied(part: GramExpr, others: Iterable[GramExpr]) -> bool:
    if isinstance(part, Gram) and len(part.value) < GRAM:
        return any(isinstance(other, Gram) and other != part and other.value.startswith(part.value) for other in others)
    if isinstance(part, AnyOf):
        held = frozenset(others)
        return any(_terms(branch) <= held for branch in part.parts)
    return False


def _terms(part: GramExpr) -> frozenset[GramExpr]:
    return frozenset(part.parts) if isinstance(part, AllOf) else frozenset((part,))
