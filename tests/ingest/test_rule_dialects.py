"""Difficult rules: `.gitignore` means what git says, `.ignore` and `.rgignore` what ripgrep says."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.files.walk import WalkOptions
from tests.support.ignored_trees import (
    by_git,
    by_ripgrep,
    fuzz,
    walked,
    write,
    write_if_free,
)

pytestmark = pytest.mark.slow

SETS = b"[!a] [^a] [a-c] [a-c-e] [a- [a-] [] []a] [[:alpha:]] [[:digit:] [/] [+-9] [z-a] [\\]] [\\ [\xc3\xa9]".split()
BRACES = b"{ } , {} {,a} {a,b} {a,{,b}} {**,a} {**/,b} {a/**,b} \\,".split()
ATOMS = [
    *(
        b"a b o foo bar - . .h ! # * ** *** ? / / /** **/ \\ \\/ \\* \xc3\xa9 \xff".split()
    ),
    *(b" ", b"\t", b"\r", "\u2003".encode()),
    *SETS,
    *BRACES,
]
NAMES = [
    *(
        b"a b c e foo bar foobar fooa .h .a [ ] [a a] l] :] \\ foo\\ {a,b} ! # - , * ** \xff \xc3\xa9 \xc3".split()
    ),
    *(b"foo ", b"foo  ", b"foo\t", b"foo bar", b"a\r", "\u2003".encode()),
]
SAMPLES = [
    *(
        b"! !*/ !/a !.h \\! !\\! \\#a #x * ** /** **/ /*** / // !/ \\/ foo\\/ foo[!a]bar foo[/]bar [a-]\\/".split()
    ),
    *(
        b"! ",
        b"\\/ ",
        b"foo\t",
        b"foo\\ ",
        b"foo\\  ",
        b"foo\\\t",
        b"foo\r",
        b"{,a}x y",
        b"foo**{,a}",
        b"\xffx",
    ),
]
"""One rule, at least, of each class in which git and ripgrep differ."""

built = st.builds(
    lambda sign, lead, atoms, trail: sign + lead + b"".join(atoms) + trail,
    st.sampled_from([b"", b"", b"!"]),
    st.sampled_from([b"", b"", b"/", b"**/"]),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=5),
    st.sampled_from([b"", b"", b"", b"/", b"/**", b" ", b"\t", b"\r", b"\\ "]),
)
texts = st.builds(
    lambda mark, lines, end, last: mark + end.join(lines) + last,
    st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"]),
    st.lists(built | built | st.sampled_from(SAMPLES), min_size=1, max_size=4),
    st.sampled_from([b"\n", b"\n", b"\r\n"]),
    st.sampled_from([b"", b"\n", b"\r\n"]),
)
agreed = st.lists(
    st.sampled_from(
        [
            b"*",
            b"!*/",
            b"!.h",
            b"/foo",
            b"!foo",
            b"b/",
            b"*.h",
            b"a*",
            b"!/a/b",
            b"[a-c]",
        ]
    ),
    max_size=3,
).map(b"\n".join)
"""Rules of git that ripgrep reads as git does, to see which kind of file comes first."""
folders = st.lists(st.sampled_from(NAMES), max_size=3).map(b"/".join)
files = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(b"/".join)


def draw_rules(
    *names: bytes, rules: st.SearchStrategy[bytes] = texts
) -> st.SearchStrategy[dict[bytes, bytes]]:
    places = st.tuples(st.just(b"") | folders, st.sampled_from(names)).map(
        lambda pair: b"/".join(filter(None, pair))
    )
    return st.dictionaries(places, rules, min_size=1, max_size=3)


def plant(root: bytes, paths: list[bytes], rules: dict[bytes, bytes]) -> None:
    for path, text in rules.items():
        write_if_free(root, path, text)
    for path in paths:
        write_if_free(root, path)


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(home.parent))


@pytest.fixture
def root(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


@fuzz(100)
@given(
    paths=st.lists(files, min_size=4, max_size=20),
    rules=draw_rules(b".ignore", b".rgignore"),
    gitignores=draw_rules(b".gitignore", rules=agreed) | st.just({}),
    repositories=st.lists(st.just(b"") | folders, max_size=2),
    hidden=st.booleans(),
)
def test_ripgreps_own_ignore_files_mean_what_ripgrep_says(
    paths: list[bytes],
    rules: dict[bytes, bytes],
    gitignores: dict[bytes, bytes],
    repositories: list[bytes],
    hidden: bool,  # noqa: FBT001 - drawn
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        for repository in repositories:
            write_if_free(
                root, repository + b"/.git/HEAD" if repository else b".git/HEAD"
            )
        plant(root, paths, {**rules, **gitignores})
        expected = by_ripgrep(root, *(["--hidden", "-g", "!.git"] if hidden else []))
        assert walked(root, WalkOptions(hidden=hidden)) == expected


@fuzz(60)
@given(
    paths=st.lists(files, min_size=4, max_size=20),
    rules=draw_rules(b".gitignore"),
    excludes=texts | st.just(b""),
    users=texts | st.just(b""),
)
def test_gits_ignore_files_mean_what_git_says(
    paths: list[bytes], rules: dict[bytes, bytes], excludes: bytes, users: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        subprocess.run(["git", "init", "-q", root], check=True)
        write(root, b".git/info/exclude", excludes)
        write(os.environb[b"XDG_CONFIG_HOME"], b"git/ignore", users)
        plant(root, paths, rules)
        assert walked(root, WalkOptions(hidden=True)) == by_git(root)


@pytest.mark.parametrize(
    ("text", "ignored", "kept"),
    [
        (b"a\n\xffb\nc", [b"a"], [b"c"]),
        (b"foo\t\nbar\r\r\n", [b"foo", b"bar"], [b"foo\t"]),
        ("foo\u2003".encode(), [b"foo"], []),
        (b"*\n!", [], [b"a", b".hidden", b"d/.e"]),
        (b"[[:alpha:]]", [b"l]", b":]"], [b"a"]),
        (b"[a", [b"[a"], [b"a"]),
        (b"[\\]]", [b"\\]"], [b"]", b"\\"]),
        (b"[a-c-e]x", [b"dx"], [b"-x"]),
        (b"foo\\/", [b"foo/a"], [b"d/bar"]),
        (
            b"foo[!a]bar",
            [b"foo/bar", b"d/foo/bar", b"foo-bar"],
            [b"fooabar", b"foobar"],
        ),
        (b"foo[/]bar", [b"foo/bar"], [b"d/foo/bar"]),
        (b"{,a}x", [b"ax"], [b"x"]),
        (b"foo\\  ", [], [b"foo", b"foo ", b"foo  "]),
        (b"/***\n!*/", [b"x"], [b"d/x", b".h/x"]),
        (b"b\n" + b"{a," * 300 + b"a" + b"}" * 300, [], [b"a", b"b"]),
        (b"{}\n{a,b}{}", [b"a", b"b"], [b"c"]),
        # It matches nothing between two names, too.
        (b"{**/,b}", [b"b/d", b"b/e"], [b"a/c", b"c/e"]),
    ],
)
@pytest.mark.parametrize("name", [b".ignore", b".rgignore"])
def test_a_line_of_ripgreps_means_what_ripgrep_says(
    root: bytes, name: bytes, text: bytes, ignored: list[bytes], kept: list[bytes]
) -> None:
    write(root, name, text)
    for path in [*ignored, *kept]:
        write(root, path)
    listed = walked(root) - {name}
    assert listed == by_ripgrep(root) - {name}
    assert listed == set(kept)
