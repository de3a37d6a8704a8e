"""What a C or C++ name means beyond its file: by linkage, or by included headers."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from flashgrep.ingest.parse.model import NAME, START
from flashgrep.search.resolution.symbol_graph import GUESS, UNDECIDED, Definition, Resolution, Undecided

LINKED: Final = frozenset({"c", "cpp", "cuda", "objc", "objcpp"})
"""Languages in which a function that is not static is defined once in a program."""
_UNKNOWN: Final = 0.3
"""What a macro is worth that is called as a function."""


def resolve_by_linkage(
    target: Definition, rivals: Sequence[Definition], find_included: Callable[[], AbstractSet[bytes]], sure: float
) -> Resolution | Undecided | None:
    """Return how a name in a file means what another defines; None: it means something else.

    UNDECIDED: nothing shows it. Decided by the file's includes (``find_included`` returns the nearest of the rivals'
    files); a function by linkage if there is only one to link, which is worth ``sure``.
    """
    is_linked = target.kind == "function" and not _is_static(target)
    if is_linked:
        alike = [one for one in rivals if one.kind == "function" and one.language in LINKED]
        # The linker would refuse two; with one there is nothing else that the name can be.
        if sum(not _is_static(one) for one in alike) == 1:
            return Resolution(sure, "linkage")
    included = find_included()
    if target.path in included and target.kind == "macro" and any(one.kind == "function" for one in rivals):
        return Resolution(_UNKNOWN, "macro of a function's name")  # it renames that where something asks for it
    if target.path in included:
        return Resolution(sure if len(included) == 1 else GUESS, "include")
    is_own = target.kind == "function" and not is_linked and b".h" not in target.path
    # Without a header nobody knows where the compiler looks for what the file includes.
    return None if included or is_own else UNDECIDED


def _is_static(one: Definition) -> bool:
    """Whether a function is seen in its own file alone."""
    row = one.symbols.row(one.index)
    return b"static" in one.symbols.data[row[START] : row[NAME]]
