"""Writes the Unicode data of patterns from the sources of the regex-syntax crate, whose tables ripgrep uses.

Each line has the names of a set and, after a tab, its ranges: hexadecimal, each start relative to the previous end,
then ``.length`` unless that is 0. Names are normalised as in the crate; general categories start with ``gc=``, scripts
with ``sc=``. The last line has the characters that differ only in case.
"""

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

OUTPUT = Path(__file__).parents[2] / "flashgrep" / "pattern" / "unicode.txt"

CHAR = r"'((?:\\u\{[0-9a-f]+\}|\\.|[^\\])[^']*)'"
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "'": "'", "\\": "\\"}
SURROGATES = (0xD800, 0xDFFF)

Ranges = list[tuple[int, int]]


def read_char(text: str) -> int:
    """Return the code point of a Rust character literal without its quotes."""
    if text.startswith("\\u"):
        return int(text[3:-1], 16)
    return ord(ESCAPES[text[1]] if text.startswith("\\") else text)


def read_sets(source: str) -> dict[str, Ranges]:
    """Return the sets of one table module by their canonical names."""
    constants = dict(
        re.findall(
            r"const (\w+): &'static \[\(char, char\)\] =\s*&\[(.*?)\];",
            source,
            re.DOTALL,
        )
    )
    by_name = re.search(r"const BY_NAME.*?=\s*&\[(.*?)\];", source, re.DOTALL)
    names = (
        re.findall(r'\("(\w+)", (\w+)\)', by_name[1])
        if by_name
        else [(name, name) for name in constants]
    )
    pair = re.compile(rf"\({CHAR}, {CHAR}\)")
    return {
        name: [
            (read_char(low), read_char(high))
            for low, high in pair.findall(constants[constant])
        ]
        for name, constant in names
    }


def read_aliases(source: str) -> dict[str, list[str]]:
    """Return the normalised names of each canonical name."""
    found: dict[str, list[str]] = {}
    for alias, name in re.findall(r'\("([^"]+)", "(\w+)"\)', source):
        found.setdefault(name, []).append(alias)
    return found


def write_ranges(ranges: Ranges) -> str:
    """Return ranges in the format of the data file."""
    parts, end = [], 0
    for low, high in ranges:
        parts.append(f"{low - end:x}" + (f".{high - low:x}" if high > low else ""))
        end = high
    return ",".join(parts)


def complement(ranges: Ranges) -> Ranges:
    """Return the code points outside these ranges, without surrogates."""
    gaps, start = [], 0
    for low, high in sorted([*ranges, SURROGATES]):
        if start < low:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    return [*gaps, (start, sys.maxunicode)] if start <= sys.maxunicode else gaps


def read_tables(folder: Path) -> Iterable[str]:
    """Yield the lines of the data."""

    def read(name: str) -> str:
        return (folder / f"{name}.rs").read_text(encoding="utf-8")

    version = re.search(r"Unicode version: ([\d.]+)\.\n", read("perl_word"))
    yield f"# Unicode {version[1] if version else ''}, written by scripts/unicode_tables: names, a tab, ranges"
    yield "PERL_WORD\t" + write_ranges(read_sets(read("perl_word"))["PERL_WORD"])
    values = re.split(r'\n        "(\w+)",\n', read("property_values"))
    kinds = {
        name: read_aliases(part)
        for name, part in zip(values[1::2], values[2::2], strict=True)
    }
    categories = read_sets(read("general_category"))
    categories |= {
        "Any": complement([]),
        "ASCII": [(0, 0x7F)],
        "Assigned": complement(categories["Unassigned"]),
    }
    sources = (
        (
            "",
            read_sets(read("property_bool")) | read_sets(read("perl_space")),
            read_aliases(read("property_names")),
        ),
        ("gc=", categories, kinds["General_Category"]),
        ("sc=", read_sets(read("script")), kinds["Script"]),
    )
    for prefix, sets, aliases in sources:
        for name, ranges in sets.items():
            names = aliases.get(name, [name.lower()])
            # The crate's categories may include surrogates, which UTF-8 cannot contain.
            plain = complement(complement(ranges))
            yield (
                " ".join(prefix + alias for alias in names) + "\t" + write_ranges(plain)
            )
    orbits: dict[str, None] = {}
    entry = re.compile(rf"\({CHAR}, &\[({CHAR}(?:, {CHAR})*)\]\)")
    for found in entry.finditer(read("case_folding_simple")):
        others = re.findall(CHAR, found[2])
        orbits[
            "".join(sorted(chr(read_char(char)) for char in (found[1], *others)))
        ] = None
    yield "CASE_ORBITS\t" + " ".join(orbits)


def main() -> int:
    """Write the data file, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "crate", type=Path, help="folder of the crate's sources, as unpacked by cargo"
    )
    parser.add_argument(
        "--check", action="store_true", help="only compare; status 1 if it differs"
    )
    given = parser.parse_args()
    text = "\n".join(read_tables(given.crate / "src" / "unicode_tables")) + "\n"
    if given.check:
        return int(text != OUTPUT.read_text(encoding="utf-8"))
    OUTPUT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
