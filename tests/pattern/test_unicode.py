"""The Unicode tables are ripgrep's, code point by code point."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from flashgrep.pattern import unicode
from flashgrep.pattern.regex_tree import ANY_CHAR, CharSet

RG = (
    shutil.which(
        "rg",
        path=os.pathsep.join(
            [sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
        ),
    )
    or "rg"
)
GENERAL = [
    "C",
    "L",
    "LC",
    "Ll",
    "Lo",
    "Lu",
    "M",
    "Mn",
    "N",
    "Nl",
    "P",
    "Pc",
    "S",
    "Z",
    "isLu",
]
SCRIPTS = [
    "Greek",
    "Han",
    "Latn",
    "Cyrillic",
    "sc=Common",
    "Zinh",
    "isArabic",
    "Old_Turkic",
    "script=Kawi",
]
OTHERS = [
    "Alphabetic",
    "lower",
    "Uppercase",
    "WSpace",
    "XIDC",
    "Emoji",
    "Grapheme_Base",
    "Any",
    "ASCII",
    "Assigned",
    "Uppercase_Letter",
]
CASED = [
    "k",
    "s",
    "å",
    "ß",
    "\u03c3",
    "\u1e9e",
    "\u01c5",
    "\u0130",
    "\u0131",
    "\u13a0",
    "\u10d0",
    "\ua64b",
    "1",
]
SETS = {r"\w": unicode.word(), r"\d": unicode.digit(), r"\s": unicode.space()}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unicode") / "everything"
    path.write_text("\n".join(map(chr, ANY_CHAR)), encoding="utf-8")
    return path


def members(path: Path, *arguments: str) -> CharSet:
    """Return which code points ripgrep matches; the line end itself it cannot be asked for here."""
    command = [
        RG,
        "--no-config",
        "-a",
        "-o",
        "-N",
        "--color=never",
        *arguments,
        str(path),
    ]
    found = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    return CharSet.chars(found.replace("\n", ""))


@pytest.mark.slow
def test_properties_hold_the_same_code_points_as_in_ripgrep(everything: Path) -> None:
    different = []
    for name in [*GENERAL, *SCRIPTS, *OTHERS]:
        found = unicode.find_property(*name.split("="))
        assert found is not None
        if members(everything, "-e", rf"\p{{{name}}}") != found - CharSet.chars("\n"):
            different.append(name)
    assert not different


@pytest.mark.parametrize("pattern", SETS)
def test_perl_classes_hold_the_same_code_points_as_in_ripgrep(
    everything: Path, pattern: str
) -> None:
    assert members(everything, "-e", pattern) == SETS[pattern] - CharSet.chars("\n")


def test_folding_pairs_the_same_characters_as_ripgrep(everything: Path) -> None:
    for text in CASED:
        assert members(everything, "-i", "-e", text) == unicode.fold(
            CharSet.chars(text)
        ), text


def test_unknown_properties_are_none() -> None:
    assert unicode.find_property("Klingon") is None
    assert unicode.find_property("age", "3.0") is None
    assert unicode.find_property("sc", "Lu") is None
