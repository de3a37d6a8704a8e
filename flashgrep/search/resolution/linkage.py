"""What a C or C++ name means beyond its file: by linkage, or by included headers."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from flashgrep.ingest.parse.model import NAME, START
from flashgrep.search.resolution.symbol_graph import GUESS, INCONCLUSIVE, Definition, Inconclusive, Resolution

LINKED: Final = frozenset({"c", "cpp", "cuda", "objc", "objcpp"})
"""Languages in which a function that is not static has one definition per program."""
_UNKNOWN: Final = 0.3
"""The confidence for a macro with the name of a function."""


def resolve_by_linkage(
    target: Definition, rivals: Sequence[Definition], find_included: Callable[[], AbstractSet[bytes]], sure: float
) -> Resolution | Inconclusive | None:
    """Return how a name used in one file means a definition in another; None: it means something else.

    INCONCLUSIVE: no evidence. A function is resolved by linkage (confidence ``sure``) if only one can be linked, and
    anything else by the file's includes: ``find_included`` returns the nearest of the rivals' files.
    """
    is_linked = target.kind == "function" and not _is_static(target)
    if is_linked:
        alike = [one for one in rivals if one.kind == "function" and one.language in LINKED]
        # The linker would refuse two; if there is one, the name can mean nothing else.
        if sum(not _is_static(one) for one in alike) == 1:
            return Resolution(sure, "linkage")
    included = find_included()
    if target.path in included and target.kind == "macro" and any(one.kind == "function" for one in rivals):
        return Resolution(_UNKNOWN, "macro of a function's name")  # it may rename the function
    if target.path in included:
        return Resolution(sure if len(included) == 1 else GUESS, "include")
    is_own = target.kind == "function" and not is_linked and b".h" not in target.path
    # Without a header, the compiler's search path is unknown.
    return None if included or is_own else INCONCLUSIVE


def _is_static(one: Definition) -> bool:
    """Whether a function is visible only in its own file."""
    row = one.symbols.row(one.index)
    return b"static" in one.symbols.data[row[START] : row[NAME]]
