"""Difficult rules: `.gitignore` means what git says, `.ignore`, `.rgignore` and `rg -g` what ripgrep says."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.errors import InvalidParams
from flashgrep.files.globs import Overrides, PathFilter
from flashgrep.files.walk import WalkOptions
from tests.support.ignored_trees import (
    by_git,
    by_ripgrep,
    fuzz,
    globbed,
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


def is_utf8(glob: bytes) -> bool:
    return os.fsdecode(glob).isprintable() or b"\xff" not in glob


flags = (built | st.sampled_from([*SAMPLES, b"#foo", b"!#foo", b"./foo", b""])).filter(
    is_utf8
)
"""Values of -g and --iglob; ripgrep takes no others."""


def choose(paths: set[bytes], overrides: Overrides) -> set[bytes]:
    """Return the files that a walk with these overrides and no ignore rules finds."""
    entered = {b"": True}

    def is_wanted(path: bytes, *, is_dir: bool) -> bool:
        folder, _, name = path.rpartition(b"/")
        if folder not in entered:
            entered[folder] = is_wanted(folder, is_dir=True)
        if not entered[folder]:
            return False
        verdict = overrides.verdict(path, name, is_dir)
        if verdict is None:
            return not name.startswith(b".")
        return verdict

    return {path for path in paths if is_wanted(path, is_dir=False)}


@fuzz(60)
@given(
    paths=st.lists(files, min_size=4, max_size=20),
    globs=st.lists(flags, max_size=2),
    iglobs=st.lists(flags, max_size=2),
)
def test_globs_of_a_call_of_ripgrep_mean_what_ripgrep_says(
    paths: list[bytes], globs: list[bytes], iglobs: list[bytes]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        plant(root, paths, {})
        every = globbed(root, b"--hidden")
        assert every is not None
        values = [b"-g" + glob for glob in globs if glob]
        values += [b"--iglob=" + glob for glob in iglobs]
        expected = globbed(root, *values)
        try:
            overrides = Overrides(
                [os.fsdecode(glob) for glob in globs],
                [os.fsdecode(glob) for glob in iglobs],
            )
        except InvalidParams:
            # ripgrep is left to judge; a slash alone is the only one that it takes.
            without_names = any(not glob.strip(b"!/ \\\t\r") for glob in globs + iglobs)
            assert expected is None or without_names
        else:
            assert choose(every, overrides) == expected


AGREED = [
    *(
        b"a b c o foo bar - . .h * * ? / / /** **/ [a-c] [a-] []a] {a,b} {a,{b,foo}} {a/b,c} \\[ \\] \\{ \\} ,".split()
    ),
]
"""Parts of globs that our filters read as ripgrep does; docs/design/paths.md has the others."""
plain_globs = (
    st.builds(
        lambda sign, lead, parts: sign + lead + b"".join(parts),
        st.sampled_from([b"", b"", b"!"]),
        st.sampled_from([b"", b"", b"/", b"**/"]),
        st.lists(st.sampled_from(AGREED), min_size=1, max_size=5),
    )
    # Ours take "src/" for a file src as well, and stars in a row for as many.
    .filter(lambda glob: not glob.endswith(b"/") and b"//" not in glob)
    .filter(lambda glob: b"***" not in glob and b"}**" not in glob)
    .filter(lambda glob: glob not in {b"!.", b"."})
)
ascii_files = files.filter(bytes.isascii)


@fuzz(50)
@given(paths=st.lists(ascii_files, min_size=4, max_size=20), glob=plain_globs)
def test_a_plain_glob_of_ours_means_what_ripgrep_says(
    paths: list[bytes], glob: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        plant(root, paths, {})
        every = globbed(root, b"--hidden")
        assert every is not None
        values = [b"-g" + glob]
        name = re.sub(rb"\\.", b"", glob.rpartition(b"/")[2])
        if re.search(rb"[*?[{}]", name) is None and not glob.startswith(b"!"):
            # What has no wildcard may be a folder, with all that is in it.
            lead = b"" if b"/" in glob else b"**/"
            values.append(b"-g" + lead + glob + b"/**")
        expected = globbed(root, b"--hidden", *values)
        try:
            keep = PathFilter([os.fsdecode(glob)], [])
        except InvalidParams:
            assert expected is None
        else:
            assert {path for path in every if keep(path)} == expected, glob


@pytest.mark.parametrize(
    ("glob", "ours", "ripgreps"),
    [
        ("[[:alpha:]]", {b"a"}, {b"l]"}),
        ("foo{,.bar}", {b"foo", b"foo.bar"}, {b"foo.bar"}),
        ("?", {b"a", "é".encode()}, {b"a"}),
        ("foo[!a]bar", {b"foo-bar"}, {b"foo-bar", b"foo/bar"}),
        ("foo ", {b"foo "}, {b"foo"}),
        ("#foo", {b"#foo"}, None),
        ("d", {b"d/a", b"d/b"}, set()),
        (r"d\a", {b"d/a"}, set()),
        ("foo/", {b"foo/bar"}, set()),
    ],
)
def test_a_glob_of_ours_differs_from_ripgreps_as_the_page_says(
    root: bytes, glob: str, ours: set[bytes], ripgreps: set[bytes] | None
) -> None:
    paths = {*ours, *(ripgreps or ()), b"x/z.c"}
    plant(root, [*paths], {})
    keep = PathFilter([glob], [])
    assert {path for path in paths if keep(path)} == ours
    expected = globbed(root, b"-g" + os.fsencode(glob))
    assert expected == (paths if ripgreps is None else ripgreps)


def test_a_bracket_or_brace_behind_a_backslash_is_itself() -> None:
    paths = [b"app/[id]/page.tsx", b"app/i/page.tsx", b"app/{x}/a", b"[id]/b"]
    keep = PathFilter([r"app/\[id\]/*.tsx", r"app/\{x\}", r"\[id]"], [])
    assert [path for path in paths if keep(path)] == [
        b"app/[id]/page.tsx",
        b"app/{x}/a",
        b"[id]/b",
    ]


def test_an_anchored_rule_of_the_user_holds_at_the_top_of_every_repository(
    root: bytes,
) -> None:
    write(os.environb[b"XDG_CONFIG_HOME"], b"git/ignore", b"/docs\n")
    for repository in (root, root + b"/inner"):
        subprocess.run(["git", "init", "-q", repository], check=True)
        for path in (b"docs/a", b"b/docs/c"):
            write(repository, path)
    assert by_git(root + b"/inner") == {b"b/docs/c"}
    assert walked(root) == {b"b/docs/c", b"inner/b/docs/c"}
    # ripgrep takes such a rule for one of the folder where it is run.
    assert by_ripgrep(root) == {b"b/docs/c", b"inner/b/docs/c", b"inner/docs/a"}


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
