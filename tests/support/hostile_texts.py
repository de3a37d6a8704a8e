"""Tries the regular expressions of a package's modules on texts that take long if two of their parts may match the same.

    python -m tests.support.hostile_texts PACKAGE

Prints each expression's name before it is tried, and how long all texts took if that is longer than they may take.
"""

import re
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pkgutil import iter_modules
from typing import Final

BEGINNINGS: Final = ("", "(", "{ ", "new ", "for (", "var ")
REPEATED: Final = (
    " ",
    "a",
    "a ",
    "a, ",
    "a. ",
    "a.b.",
    "a::",
    "(a, ",
    "<a, ",
    "<",
    "& ",
    "@a ",
    "[a] ",
    "a: a, ",
    "a = ",
    "a(",
    "a() ",
    "\n",
    "a\n",
    "* ",
    "/* ",
)
ENDINGS: Final = ("", "[", "!")
FEW, MANY = 24, 400
"""How often a part is repeated: what doubles with each takes minutes at the first, what is cubic at the second."""
MOST_SECONDS: Final = 1.0
"""For all texts; usual are 2 to 20 ms."""
NAME: Final = b"a"
"""What stands for the name in an expression that is made for one."""


def list_patterns(package: str) -> Iterator[tuple[str, re.Pattern[bytes]]]:
    """Yield the expressions that modules of a package keep, by themselves or in tables, each with its name."""
    for module in iter_modules(import_module(package).__path__, f"{package}."):
        for name, value in vars(import_module(module.name)).items():
            for pattern in _unpack(value):
                yield f"{module.name}.{name}", pattern


def _unpack(value: object) -> Iterator[re.Pattern[bytes]]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _unpack(item)
    elif isinstance(value, bytes) and b"%s" in value:
        yield re.compile(value.replace(b"%s", NAME))
    elif isinstance(value, re.Pattern) and isinstance(value.pattern, bytes):
        yield value


def make_texts(times: int) -> list[bytes]:
    """Return the texts with a part so many times."""
    texts = list[bytes]()
    for beginning, part, ending in product(BEGINNINGS, REPEATED, ENDINGS):
        texts.append(f"{beginning}{part * times}{ending}".encode())
    return texts


def tell(line: str) -> None:
    """Print a line at once: this process may be ended."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Try all of them."""
    short = make_texts(FEW)
    long = make_texts(MANY)
    for name, pattern in list_patterns(sys.argv[1]):
        tell(f"{name} {pattern.pattern!r}")
        begun = time.process_time()
        for text in short:
            pattern.search(text)
        for text in long:
            pattern.match(text)
        spent = time.process_time() - begun
        if spent > MOST_SECONDS:
            tell(f"slow: {name}: {spent:.1f} s")


if __name__ == "__main__":
    main()
