"""Types as Rust writes them: what a library's container holds, and what its methods return of it.

All containers are one here: of ``Option<Arg>``, ``Vec<Arg>`` and ``Mutex<Arg>`` it is known what they hold,
and of a method whether it returns what is held, or another container of it.
"""

import re
from dataclasses import dataclass
from typing import Final

POINTERS: Final = frozenset(
    {"Box", "Rc", "Arc", "Pin", "Cow", "Ref", "RefMut", "MutexGuard", "Reverse"}
)
"""Types of the library that have the methods of what they point to."""
CONTAINERS: Final = frozenset(
    {"Option", "Result", "Vec", "VecDeque", "Mutex", "RwLock", "RefCell", "Cell", "OnceCell", "OnceLock", "HashSet"}
    | {"BTreeSet", "BinaryHeap", "Iterator", "IntoIterator", "ExactSizeIterator", "DoubleEndedIterator", "Peekable"}
)  # fmt: skip
PRELUDE: Final = frozenset(
    {"Option", "Result", "Vec", "Box", "Rc", "Arc", "Mutex", "HashMap"}
)
"""Names that projects leave to the library, so that none is looked up for each field."""
MAPS: Final = frozenset({"HashMap", "BTreeMap", "IndexMap"})
"""Types of the library that hold what their second argument says."""
TAKES_OUT: Final = frozenset(
    {"unwrap", "expect", "unwrap_or", "unwrap_or_else", "unwrap_or_default", "borrow", "borrow_mut", "unwrap_unchecked"}
)  # fmt: skip
"""Methods that return what a container holds."""
KEEPS: Final = frozenset(
    {"as_ref", "as_mut", "as_deref", "as_deref_mut", "clone", "cloned", "copied", "take", "iter", "iter_mut", "into_iter"}
    | {"rev", "skip", "filter", "by_ref", "chain", "peekable", "ok", "or", "or_else", "ok_or", "ok_or_else", "map_err"}
    | {"context", "with_context", "lock", "read", "write", "first", "last", "get", "get_mut", "pop", "next", "nth", "find"}
    | {"peek", "to_vec", "max_by_key", "min_by_key", "max_by", "min_by", "as_slice", "into_inner", "inspect", "drain"}
    | {"step_by", "take_while", "skip_while", "first_mut", "last_mut", "pop_front", "pop_back", "next_back", "values"}
    | {"values_mut", "into_values", "remove", "insert", "try_lock", "swap_remove", "replace", "get_or_init"}
)  # fmt: skip
"""Methods that return another container of the same."""
OF_MAPS: Final = frozenset(
    {"get", "get_mut", "remove", "insert", "values", "values_mut", "into_values"}
)
"""Methods of maps that return a container of their values; their iterators have pairs."""
SAME: Final = frozenset(
    {"clone", "to_owned", "as_ref", "as_mut", "borrow", "borrow_mut", "by_ref"}
)
"""Methods that return what they are called on, of any type that has none of the name."""
PASSES: Final = frozenset(
    {"map", "for_each", "filter", "any", "all", "find", "flat_map", "filter_map", "position", "inspect", "take_while"}
    | {"skip_while", "partition", "and_then", "is_some_and", "is_ok_and", "find_map", "retain", "max_by_key", "min_by_key"}
    | {"try_for_each", "map_while", "sort_by_key", "is_none_or"}
    | {"binary_search_by_key", "binary_search_by", "group_by", "chunk_by", "map_or", "map_or_else", "is_sorted_by_key"}
    | {"dedup_by_key", "sort_by_cached_key", "sort_unstable_by_key", "partition_point", "rposition", "retain_mut"}
)  # fmt: skip
"""Methods that pass what a container holds to a closure."""
PARTS: Final = frozenset({"chunks", "chunks_exact", "windows", "rchunks", "split"})
"""Methods that return a container of slices."""
MAPPED: Final = frozenset({"map"})
"""Methods that return a container of what their closure returns."""
PASSES_TWICE: Final = frozenset(
    {"sort_by", "sort_unstable_by", "max_by", "min_by", "dedup_by", "reduce"}
)
"""Methods that pass two of what a container holds to a closure."""
PASSES_SECOND: Final = frozenset({"fold", "try_fold", "scan", "rfold"})
"""Methods that pass what a container holds as the second parameter."""
STANDARD: Final = (
    TAKES_OUT | KEEPS | OF_MAPS | SAME | PASSES
    | {"len", "is_empty", "display", "join", "to_string", "as_str", "as_bytes", "to_vec", "lines", "chars"}
    | {"bytes", "contains", "starts_with", "ends_with", "trim", "trim_start", "trim_end", "extend", "collect", "sum"}
    | {"min", "max", "push_str", "path", "parent", "extension", "file_name", "metadata", "exists", "is_file", "is_dir"}
)  # fmt: skip
"""Names that the library's most used types have methods of: alone they say nothing about the type."""
OF_KEYS: Final = frozenset({"keys", "into_keys"})
SLICE: Final = "[]"
TUPLE: Final = "()"
_PAIR: Final = 2
"""How many types a tuple may have."""
_SKIPPED: Final = re.compile(rb"(?:\s*(?:&|\*|'\w+|(?:mut|dyn|impl|const)\b))*\s*")
"""What stands before a type's name and leaves it the same."""
_PATH: Final = re.compile(rb"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
_LIFETIME: Final = re.compile(rb"\s*'\w+\s*,?")
_ITEM: Final = re.compile(rb"\s*(?:Item|Output)\s*=\s*")
_TUPLE_END: Final = re.compile(rb"\s*\)")
_COMMA: Final = re.compile(rb"\s*,")
_MOST_DEPTH: Final = 8
"""Most types inside one another."""


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A type as it is written: the path of its name, what stands in its angles, and where it ends."""

    path: str
    arguments: tuple["WrittenType", ...]
    end: int


def read_type(
    data: bytes,
    start: int,
    depth: int = 0,
) -> WrittenType | None:
    """Return the type that begins at an offset; None: it is not one that is read here, such as a function's."""
    skipped = _SKIPPED.match(data, start)
    at = skipped.end() if skipped is not None else start
    if depth > _MOST_DEPTH:
        return None
    # A slice or an array holds what it says first.
    if data[at : at + 1] == b"[":
        held = read_type(data, at + 1, depth + 1)
        if held is None:
            return None
        return WrittenType(SLICE, (held,), data.find(b"]", held.end) + 1)
    if data[at : at + 1] == b"(":
        return _read_tuple(data, at + 1, depth)
    path = _PATH.match(data, at)
    if path is None:
        return None
    name = path[0].decode()
    at = path.end()
    if data[at : at + 1] != b"<":
        return WrittenType(name, (), at)
    return _read_arguments(data, name, at + 1, depth)


def _read_tuple(
    data: bytes,
    start: int,
    depth: int,
) -> WrittenType | None:
    """Return a pair whose first type begins at an offset; None: it has more, or fewer."""
    parts = list[WrittenType]()
    at = start
    while len(parts) < _PAIR:
        part = read_type(data, at, depth + 1)
        if part is None:
            return None
        parts.append(part)
        comma = _COMMA.match(data, part.end)
        at = part.end if comma is None else comma.end()
    closing = _TUPLE_END.match(data, at)
    if closing is None:
        return None
    return WrittenType(TUPLE, tuple(parts), closing.end())


def _read_arguments(
    data: bytes,
    name: str,
    start: int,
    depth: int,
) -> WrittenType | None:
    """Return a type whose arguments begin at an offset."""
    arguments = list[WrittenType]()
    at = start
    while True:
        # Lifetimes hold nothing, and an iterator's item is what it holds.
        for skipped in (_LIFETIME, _ITEM):
            match = skipped.match(data, at)
            if match is not None:
                at = match.end()
        argument = read_type(data, at, depth + 1)
        if argument is None:
            break
        arguments.append(argument)
        comma = _COMMA.match(data, argument.end)
        at = argument.end
        if comma is None:
            break
        at = comma.end()
    # What follows is not understood if it is no end.
    rest = data[at : at + 100].lstrip()
    if not rest.startswith(b">"):
        return WrittenType(name, tuple(arguments), at)
    return WrittenType(name, tuple(arguments), data.find(b">", at) + 1)
