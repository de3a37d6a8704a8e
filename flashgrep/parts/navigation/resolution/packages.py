"""What a name means by packages: of Java, Kotlin, Groovy and Scala, namespaces of C# and PHP, modules of Elixir.

A definition has one full name: its package, its container and its own name. An import names it, or everything beside
it. Without an import a file sees its own package; in C# and Scala, also the enclosing ones.
"""

import re
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Final

from flashgrep.parts.navigation.resolution.local_names import has_parameter
from flashgrep.parts.navigation.resolution.symbol_graph import (
    GUESS,
    INCONCLUSIVE,
    PROVEN,
    SEEN,
    WEAK,
    Definition,
    Inconclusive,
    Resolution,
)
from flashgrep.parts.symbols.parse.imports import ALL, PACKAGED, FileImports
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import QUALIFIER, QUALIFIER_END, TYPE_KINDS
from flashgrep.parts.symbols.symbol_source import imports_of

_BEFORE: Final = re.compile(rb"(?<![\w.\\$>])((?:[A-Za-z_\\][\w.\\]{0,200})?[.\\])\Z")
"""What is written before a name: its package or the start of one, in PHP also the root's backslash alone."""
_NESTED: Final = frozenset({"csharp", "scala"})
"""Languages in which a package sees the definitions of enclosing packages."""
STRICT: Final = frozenset({"java", "php"})
"""Languages in which a definition of another package is visible only through an import."""
_DOTTED: Final = re.compile(rb"([A-Za-z_][\w.]{0,200})\.\s*\Z")
_MODULES: Final = frozenset({"module", "interface", "extension"})
_GOES_ON: Final = re.compile(rb"\.[A-Z{]")
"""What follows a module's name that is only the first part of a longer one."""


def resolve_by_package(
    symbols: FileSymbols,
    word: str,
    target: Definition,
    rivals: Sequence[Definition],
    *,
    inherits: bool,
) -> Resolution | Inconclusive | None:
    """Return how a bare name relates to a target; None: it means something else; INCONCLUSIVE: no evidence.

    ``inherits``: whether an enclosing type derives from the target's.
    """
    if symbols.language not in PACKAGED or target.language not in PACKAGED:
        return INCONCLUSIVE
    imports = imports_of(symbols)
    full = target.full_name
    if named := imports.names.get(word):
        is_meant = any(
            f"{import_.module}.{import_.name}".replace(".Companion", "").lstrip(".")
            == full
            for import_ in named
        )
        if is_meant:
            return Resolution(_grade(target, rivals), "import")
        return None
    package = target.package
    own = symbols.package
    around = full.rpartition(".")[0]
    is_above = symbols.language in _NESTED and (
        f"{own}.".startswith(f"{package}.") or not package
    )
    if symbols.language == "php" and not package and target.kind not in TYPE_KINDS:
        # In PHP a function of no namespace is visible if the file's namespace has none
        # of that name.
        is_above = not any(rival.full_name == f"{own}.{word}" for rival in rivals)
    if around == package and (package == own or is_above):
        return Resolution(_grade(target, rivals), "same package")
    if any(star.module == around for star in imports.stars):
        # The file's own package comes first.
        is_own = any(
            rival.full_name == f"{own}.{word}"
            for rival in rivals
            if rival.kind in TYPE_KINDS
        )
        if is_own:
            return None
        return Resolution(_grade(target, rivals), "import")
    if inherits:
        return Resolution(SEEN, "inherited")
    # A constant may follow ``case`` without its type.
    is_free = symbols.language == "php" and target.kind == "function"
    is_told = symbols.language in STRICT and (
        around == package or target.kind in TYPE_KINDS or is_free
    )
    if is_told:
        return None
    return INCONCLUSIVE


def _grade(target: Definition, rivals: Sequence[Definition]) -> float:
    """Return how sure a full name is, by the number of definitions that have it."""
    alike = sum(rival.full_name == target.full_name for rival in rivals)
    if alike == 1:
        return PROVEN
    # Parts of a class or one for each platform; but functions that extend several types
    # are different ones: 18 of 31 were right.
    if target.kind == "function":
        return GUESS
    return SEEN


def resolve_written(
    symbols: FileSymbols, offset: int, target: Definition, rivals: Sequence[Definition]
) -> Resolution | Inconclusive | None:
    """Resolve a name in an import, or one with its package before it; INCONCLUSIVE: it is neither."""
    imports = imports_of(symbols)
    full = target.full_name
    if symbols.role(offset) == "import":
        spans = symbols.parsed.statements
        start = int(
            spans[max(0, int(spans[:, 0].searchsorted(offset, "right")) - 1), 0]
        )
        here = (
            import_
            for import_ in (
                *chain.from_iterable(imports.names.values()),
                *imports.stars,
            )
            if import_.offset == start
        )
        paths = (
            import_.module
            if import_.name == ALL
            else f"{import_.module}.{import_.name}"
            for import_ in here
        )
        is_meant = any(
            f"{path.replace('.Companion', '').lstrip('.')}.".startswith(f"{full}.")
            for path in paths
        )
        if is_meant:
            return Resolution(PROVEN, "import")
        return None
    before = _BEFORE.search(symbols.data, max(0, offset - 210), offset)
    if before is None:
        return INCONCLUSIVE
    own = symbols.package
    written = before[1].decode("utf-8", "replace").replace("\\", ".") + target.name
    first, _, rest = written.partition(".")
    if not first:  # \A\B
        full_names = {rest}
    elif symbols.language == "php":
        full_names = {
            f"{import_.module}.{import_.name}.{rest}"
            for import_ in imports.names.get(first, [])
        }
        full_names = full_names or {f"{own}.{written}"}
    else:
        if symbols.language in _NESTED:
            outer = [*accumulate(own.split("."), "{}.{}".format)]
        else:
            outer = []
        full_names = {written, *(f"{package}.{written}" for package in outer)}
    if full in {full_name_.lstrip(".") for full_name_ in full_names}:
        return Resolution(_grade(target, rivals), "full name")
    if symbols.language == "php":
        return None
    return INCONCLUSIVE


def resolve_in_modules(
    path: bytes,
    symbols: FileSymbols,
    offset: int,
    target: Definition,
    rivals: Sequence[Definition],
) -> Resolution | None:
    """Return how an Elixir name relates to a target: by the module written before it, its own, or an import."""
    imports = imports_of(symbols)
    data = symbols.data
    own = _name_module(symbols, offset)
    on = ""
    before = _DOTTED.search(data, max(0, offset - 200), offset)
    if before:
        on = before[1].decode()
    if target.kind in _MODULES:
        is_part = _GOES_ON.match(data, offset + len(target.name.encode())) is not None
        written = target.name
        if on:
            written = f"{on}.{target.name}"
        is_meant = not is_part and _means(imports, own, written, target.qualified)
        if is_meant:
            return Resolution(PROVEN, "module")
        return None
    container = target.symbols.container(target.index)
    if data[offset - 1 : offset] == b".":
        if not on[:1].isupper() and not on.startswith("__"):
            return Resolution(WEAK, "name only")  # called on a variable
        if _means(imports, own, on, container):
            return Resolution(PROVEN, "module")
        return None
    # Without parentheses a parameter of the name comes first, except after a pipe.
    behind, ahead = (
        data[(end := offset + len(target.name.encode())) : end + 1],
        data[max(0, offset - 50) : offset],
    )
    is_called = behind in {b"(", b"/"} or ahead.rstrip().endswith(b"|>")
    is_given = not is_called and has_parameter(symbols, target.name, offset)
    if container == own or is_given:
        if target.path == path and not is_given:
            return Resolution(PROVEN, "same file")
        return None
    if any(_means(imports, own, star.module, container) for star in imports.stars):
        return Resolution(PROVEN, "import")
    # ``use`` of a module may import anything.
    is_brought = b"use " in data and not any(
        rival.symbols.container(rival.index) == own for rival in rivals
    )
    if is_brought:
        return Resolution(WEAK, "name only")
    return None


def _name_module(symbols: FileSymbols, offset: int) -> str:
    """Return the full name of the module around a place; empty: it is in none."""
    at = symbols.enclosing(offset)
    while at >= 0 and symbols.kind(at) not in _MODULES:
        at = symbols.parent(at)
    if at < 0:
        return ""
    return symbols.qualified(at)


def _means(imports: FileImports, own: str, written: str, wanted: str) -> bool:
    """Whether a module name means the wanted module: by an alias, in full, or relative to an enclosing module."""
    if written == "__MODULE__" or written.startswith("__MODULE__."):
        return wanted == own + written.removeprefix("__MODULE__")
    first, dot, rest = written.partition(".")
    if aliased := imports.names.get(first):
        return any(
            f"{import_.module}.{import_.name}".lstrip(".") + dot + rest == wanted
            for import_ in aliased
        )
    parts = own.split(".")
    return any(
        ".".join([*parts[:size], written]) == wanted for size in range(len(parts) + 1)
    )


def choose_type(
    symbols: FileSymbols, word: str, types: Sequence[Definition]
) -> Definition | None:
    """Return which of several types of one name a file refers to; None if unknown.

    Parts of a type share a full name; without packages, two types of one name are different types.
    """
    candidates = [
        type_
        for type_ in types
        if isinstance(
            resolve_by_package(symbols, word, type_, types, inherits=False), Resolution
        )
    ]
    found_candidates = [
        definition
        for definition in candidates or types
        if definition.kind != "extension"
    ]
    is_named = symbols.language in PACKAGED or symbols.language == "ruby"
    if (
        len(
            {
                definition.full_name if is_named else definition.key
                for definition in found_candidates
            }
        )
        == 1
    ):
        return found_candidates[0]
    return None


def choose_base(
    one: Definition, word: str, types: Sequence[Definition]
) -> Definition | None:
    """Return which of several types is a type's base: the nearest nested one, or the one its file refers to."""
    around = f"{one.symbols.container(one.index)}."
    beside = [
        other
        for other in types
        if other.path == one.path
        and around.startswith(f"{other.qualified[: -len(word)]}")
    ]
    nested = [other for other in beside if "." in other.qualified]
    return max(
        nested, key=lambda other: len(other.qualified), default=None
    ) or choose_type(one.symbols, word, types)


def is_part_of(one: Definition, owner: Definition) -> bool:
    """Whether a definition is in a type or a part of it: by full names, in languages with packages."""
    row = one.symbols.row(one.index)
    if one.language not in PACKAGED or row[QUALIFIER_END] > row[QUALIFIER]:
        return True
    return one.full_name.rpartition(".")[0] == owner.full_name.replace(".Companion", "")
