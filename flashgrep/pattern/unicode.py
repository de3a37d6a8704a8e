"""Unicode properties and simple case folding, unpacked at first use from `unicode_data`."""

import zlib
from base64 import b85decode
from collections.abc import Iterable
from functools import cache, lru_cache, reduce
from operator import or_

from flashgrep.pattern.charset import ANY_CHAR, ASCII, CharSet, Range
from flashgrep.pattern.unicode_data import PACKED

_UNIONS = {
    "c": "cc cf cn co",
    "l": "ll lm lo lt lu",
    "lc": "ll lt lu",
    "m": "mc me mn",
    "n": "nd nl no",
    "p": "pc pd pe pf pi po ps",
    "s": "sc sk sm so",
    "z": "zl zp zs",
}


@lru_cache(maxsize=64)
def find(name: str, value: str | None = None) -> CharSet | None:
    r"""Return the set of `\p{name}` or `\p{name=value}`, in any case and spacing; None if we know no such property."""
    plain = _plain(name)
    if value is None:
        return _general(plain) or _named(plain) or _named(f"sc={plain}") or _named(f"sc={plain.removeprefix('is')}")
    if plain in {"gc", "generalcategory"}:
        return _general(_plain(value))
    return _named(f"sc={_plain(value)}") if plain in {"sc", "script"} else None


@cache
def word() -> CharSet:
    r"""Return Unicode `\w`: Alphabetic, marks, decimal numbers, connector punctuation and the two joiners."""
    return _unpack("perlword")


@cache
def digit() -> CharSet:
    r"""Return Unicode `\d`."""
    return _unpack("nd")


@cache
def space() -> CharSet:
    r"""Return Unicode `\s`."""
    return _unpack("whitespace")


def folded(chars: CharSet) -> CharSet:
    """Return `chars` and everything equal to one of them but for case (simple folding)."""
    if chars <= ASCII:
        return _fold_ascii(chars, wide=True)
    orbits = _orbits()
    extra = (other for char in chars & _cased() for other in orbits[char])
    return chars | CharSet.of(*((char, char) for char in extra))


def folded_ascii(chars: CharSet) -> CharSet:
    """Return `chars` and the other case of their ASCII letters: folding where Unicode is off."""
    return chars | _fold_ascii(chars & ASCII, wide=False)


def _fold_ascii(chars: CharSet, *, wide: bool) -> CharSet:
    swapped = (chr(char).swapcase() for char in chars)
    found = chars | CharSet.chars(swapped)
    if wide and ord("k") in found:
        found |= CharSet.chars("\N{KELVIN SIGN}")
    if wide and ord("s") in found:
        found |= CharSet.chars("\N{LATIN SMALL LETTER LONG S}")
    return found


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char not in "_- ")


def _general(plain: str) -> CharSet | None:
    plain = _aliases().get(plain, plain)
    if plain in {"any", "ascii"}:
        return ANY_CHAR if plain == "any" else ASCII
    if plain in _UNIONS:
        return reduce(or_, map(_unpack, _UNIONS[plain].split()))
    return _unpack(plain) if plain in _tables() else None


def _named(plain: str) -> CharSet | None:
    name = _aliases().get(plain)
    return _unpack(name) if name in _tables() and name is not None else None


@cache
def _sections() -> tuple[str, str, str]:
    tables, aliases, orbits = zlib.decompress(b85decode(PACKED)).decode().split("\f")
    return tables, aliases, orbits


@cache
def _tables() -> dict[str, str]:
    return dict(_pairs(_sections()[0]))


@cache
def _aliases() -> dict[str, str]:
    return dict(_pairs(_sections()[1]))


def _pairs(section: str) -> Iterable[tuple[str, str]]:
    for line in section.split("\n"):
        key, _, value = line.partition(" ")
        yield key, value


@cache
def _unpack(name: str) -> CharSet:
    ranges: list[Range] = []
    end = 0
    for item in _tables()[name].split(","):
        step, _, length = item.partition(".")
        start = end + int(step, 16)
        end = start + int(length or "0", 16)
        ranges.append((start, end))
    return CharSet(tuple(ranges))


@cache
def _orbits() -> dict[int, tuple[int, ...]]:
    groups = [tuple(map(ord, group)) for group in _sections()[2].split(" ")]
    return {char: group for group in groups for char in group}


@cache
def _cased() -> CharSet:
    return CharSet.of(*((char, char) for char in _orbits()))
