"""Which files may contain calls that mean one of several definitions, judged by language and spelling."""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from flashgrep.base.languages import FAMILIES
from flashgrep.parts.navigation.resolution.symbol_graph import Definition
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.scoping import SCOPED

EVERYDAY: Final = frozenset({
    "acquire", "add", "all", "any", "append", "apply", "begin", "bind", "call", "cancel", "catch", "clear", "close",
    "commit", "concat", "connect", "copy", "count", "create", "cursor", "debug", "decode", "delete", "discard",
    "emit", "encode", "end", "endswith", "entries", "equals", "error", "every", "exec", "execute", "exists", "extend",
    "fetchall", "fetchone", "fileno", "filter", "finally", "find", "findall", "first", "flush", "forEach", "format",
    "get", "group", "has", "hashCode", "includes", "index", "info", "init", "insert", "items", "join", "keys", "last",
    "length", "list", "load", "log", "lower", "map", "match", "name", "new", "next", "off", "on", "once", "open",
    "parse", "pop", "popitem", "push", "push_back", "put", "read", "readline", "readlines", "reduce", "reject",
    "release", "remove", "render", "replace", "reset", "resolve", "result", "rollback", "run", "save", "search",
    "seek", "send", "set", "setdefault", "shift", "size", "slice", "some", "sort", "splice", "split", "start",
    "startswith", "stop", "strip", "sub", "tell", "test", "then", "toString", "trim", "union", "update", "upper",
    "value", "values", "wait", "warn", "write", "writelines",
    # What every object of Java, Kotlin and C# has, or whatever is iterated over.
    "CompareTo", "Dispose", "Equals", "GetEnumerator", "GetHashCode", "MoveNext", "ToString", "compareTo", "hasNext",
})  # fmt: skip
"""Very common method names: alone they are weak evidence."""
METHODS: Final = frozenset({"method", "constructor", "field", "property"})
"""Kinds that are accessed on a receiver, or within their class."""


def is_same_family(one: str, other: str) -> bool:
    """Whether files in two languages use each other's names."""
    return FAMILIES.get(one, one) == FAMILIES.get(other, other)


class CallFilter:
    """Selects files whose calls of a name may mean one of several definitions, judged by language and spelling.

    Where names are resolved, a method needs a receiver, except in its own file: a Python class body uses it bare.
    """

    def __init__(self, name: str, targets: Sequence[Definition]) -> None:
        self._targets = targets
        self._called_on = re.compile(rb"\.\s*#?" + re.escape(name.encode()))
        self._alike: dict[str, tuple[bool, AbstractSet[bytes]]] = {}
        """By language: whether some target may be called without a receiver, and the files of the targets."""

    def accepts(self, path: bytes, symbols: FileSymbols) -> bool:
        """Whether calls in a file may mean one of the definitions."""
        language = symbols.language
        if language not in self._alike:
            alike = [
                target
                for target in self._targets
                if is_same_family(language, target.language)
            ]
            is_bare = any(
                language not in SCOPED or definition.kind not in METHODS
                for definition in alike
            )
            self._alike[language] = (
                is_bare,
                frozenset(definition.path for definition in alike),
            )
        is_bare, paths = self._alike[language]
        return (
            is_bare
            or path in paths
            or (bool(paths) and self._called_on.search(symbols.data) is not None)
        )
