"""JavaScript's own objects: their names, and what their methods return and pass to callbacks, by what they hold."""

from typing import Final

# Without those that may hold something of the project, as ``window`` and ``globalThis``.
GLOBALS: Final = frozenset(
    {
        "Array",
        "Atomics",
        "BigInt",
        "Buffer",
        "Date",
        "Error",
        "Intl",
        "JSON",
        "Math",
        "Number",
        "Object",
        "Promise",
        "Proxy",
        "Reflect",
        "RegExp",
        "String",
        "Symbol",
        "console",
        "crypto",
        "document",
        "fetch",
        "jest",
        "navigator",
        "performance",
        "process",
        "vi",
    }
)
"""Objects of the language, its hosts and test runners: a member of one is outside, where nothing binds its name."""
KEEPING: Final = frozenset(
    {
        "filter",
        "slice",
        "splice",
        "concat",
        "sort",
        "reverse",
        "toSorted",
        "toReversed",
        "values",
    }
)
"""Methods that return several of what is held."""
TAKING: Final = frozenset({"find", "findLast", "pop", "shift", "at", "get"})
"""Methods that return one of what is held."""
MAPPING: Final = frozenset({"map", "flatMap"})
"""Methods that return what a callback returns, for each."""
METHODS: Final = KEEPING | TAKING | MAPPING
PASSED: Final = {
    "forEach": (0,),
    "map": (0,),
    "flatMap": (0,),
    "filter": (0,),
    "find": (0,),
    "findLast": (0,),
    "findIndex": (0,),
    "some": (0,),
    "every": (0,),
    "sort": (0, 1),
    "toSorted": (0, 1),
    "reduce": (1,),
}
"""The parameters of a method's callback that get one of what is held."""
AWAITS: Final = "then"
"""The method whose callback gets what a promise stands for."""
