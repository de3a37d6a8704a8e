"""The walk lists what ripgrep and git list, and accepts() says the same of every single path."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.files.outside import OutsideRules, OutsideWatch
from flashgrep.files.walk import Entry, Walker, WalkOptions
from tests.support.ignored_trees import (
    at,
    by_git,
    by_ripgrep,
    fuzz,
    walked,
    write,
    write_if_free,
)

pytestmark = pytest.mark.slow

NAMES = [
    b"a",
    b"b",
    b"c.o",
    b"d.c",
    b".h",
    b"ab",
    b"x y",
    b"n\nl",
    b"\xff\xfe",
    b"\xc3\xa9",
    b"#q",
    b"!w",
    b"t ",
    b"[z]",
]
WORDS = [
    *(b"a b c.o d.c .h ab * ? *.o *.c a* [ab] [!a] [a-c]* ** *b *.* \\a \\*".split()),
    b"x y",
    b"\xc3\xa9",
    b"\\#q",
]
FILES = [b".gitignore", b".ignore", b".rgignore"]

patterns = st.builds(
    lambda sign, lead, words, trail: sign + lead + b"/".join(words) + trail,
    st.sampled_from([b"", b"", b"", b"!"]),
    st.sampled_from([b"", b"", b"/", b"**/"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    st.sampled_from([b"", b"", b"", b"/", b"/**", b"/*", b"  ", b"\r"]),
)
odd = st.sampled_from(
    [
        b"",
        b"# no",
        b"\\!w",
        b"t\\ ",
        b"\\[z]",
        b"[[]z]",
        b"[]z",
        b"a\\",
        b"!*/",
        b"*",
        b"/*",
        b"!/a",
    ]
)
rules = st.lists(patterns | patterns | odd, min_size=1, max_size=5)
folders = st.lists(st.sampled_from([b"a", b"b", b"ab", b".h", b"x y"]), max_size=3).map(
    b"/".join
)
files = st.tuples(folders, st.sampled_from(NAMES)).map(
    lambda pair: b"/".join(filter(None, pair))
)
Tree = tuple[list[bytes], dict[tuple[bytes, bytes], list[bytes]], list[bytes]]
places = st.tuples(st.just(b"") | folders, st.sampled_from([b".gitignore", *FILES]))
repositories = st.lists(folders, max_size=1).map(
    lambda inner: [b"", *inner]
) | st.lists(folders, max_size=2)
trees: st.SearchStrategy[Tree] = st.tuples(
    st.lists(files, min_size=4, max_size=16),
    st.dictionaries(places, rules, min_size=1, max_size=4),
    repositories,
)


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


def plant(root: bytes, tree: Tree) -> None:
    files, ignore_files, repositories = tree
    for folder in repositories:
        write_if_free(root, (folder + b"/" if folder else b"") + b".git/HEAD")
    for (folder, name), lines in ignore_files.items():
        write_if_free(root, folder + b"/" + name if folder else name, b"\n".join(lines))
    for path in files:
        write_if_free(root, path)


@fuzz(50)
@given(tree=trees, hidden=st.booleans())
def test_the_walk_lists_exactly_what_ripgrep_lists(tree: Tree, hidden: bool) -> None:  # noqa: FBT001 - drawn
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        plant(root, tree)
        expected = by_ripgrep(root, *(["--hidden", "-g", "!.git"] if hidden else []))
        assert walked(root, WalkOptions(hidden=hidden)) == expected


@fuzz(25)
@given(tree=trees)
def test_each_kind_of_rule_can_be_switched_off_as_with_ripgrep(tree: Tree) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        plant(root, tree)
        assert walked(root, WalkOptions(ignore=False)) == by_ripgrep(
            root, "--no-ignore"
        )
        assert walked(root, WalkOptions(vcs_ignore=False)) == by_ripgrep(
            root, "--no-ignore-vcs"
        )


@fuzz(40)
@given(tree=trees)
def test_the_walk_lists_exactly_what_git_would_add(tree: Tree) -> None:
    files, ignore_files, _ = tree
    gitignores = {
        (folder, b".gitignore"): lines for (folder, _), lines in ignore_files.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        subprocess.run(["git", "init", "-q", root], check=True)
        plant(root, (files, gitignores, []))
        assert walked(root, WalkOptions(hidden=True)) == by_git(root)


@fuzz(40)
@given(tree=trees)
def test_a_path_is_accepted_exactly_when_the_walk_visits_it(tree: Tree) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        plant(root, tree)
        visited: set[bytes] = set()
        walker = Walker(root)
        listed = {entry.path for entry in walker.walk(on_directory=visited.add)}
        for above, inner, names in os.walk(root):
            lead = above[len(root) + 1 :] + b"/" if above != root else b""
            assert {name for name in names if walker.accepts(lead + name)} == {
                n for n in names if lead + n in listed
            }
            accepted = {
                name for name in inner if walker.accepts(lead + name, is_dir=True)
            }
            assert accepted == {name for name in inner if lead + name in visited}


@fuzz(25)
@given(tree=trees, under=folders)
def test_walking_a_part_lists_the_same_as_walking_the_whole(
    tree: Tree, under: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        plant(root, tree)
        part = {entry.path for entry in Walker(root).walk(under)}
        assert part == {
            path for path in walked(root) if path.startswith(under + b"/") or not under
        }


@pytest.mark.parametrize(
    ("line", "ignored", "kept"),
    [
        (b"*.o", [b"x.o", b"d/x.o"], [b"x.c"]),
        (b"/x.o", [b"x.o"], [b"d/x.o"]),
        (b"d/*.o", [b"d/x.o"], [b"d/e/x.o", b"e/d/x.o"]),
        (b"**/d/x", [b"d/x", b"e/d/x"], [b"x"]),
        (b"d/**", [b"d/x", b"d/e/x"], [b"e/d/x"]),
        (b"d/**/x", [b"d/x", b"d/e/f/x"], [b"x"]),
        (b"x/", [b"x/y", b"d/x/y"], [b"d/x2"]),
        (b"[[:upper:]]x", [b"Ax"], [b"ax"]),
        (b"[a-c]x", [b"bx"], [b"dx", b"-x"]),
        (b"[!a-c]x", [b"dx"], [b"bx"]),
        (b"[^a]x", [b"bx"], [b"ax"]),
        (b"[]-]x", [b"]x", b"-x"], [b"ax"]),
        (b"[a\\]b]x", [b"]x", b"bx"], [b"\\x"]),
        (b"\\!x", [b"!x"], [b"x"]),
        (b"\\#x", [b"#x"], [b"x"]),
        (b"x\\ ", [b"x "], [b"x"]),
        (b"x  ", [b"x"], [b"x  "]),
        (b"x\r\ny", [b"x", b"y"], [b"z"]),
        (b"\xef\xbb\xbfx", [b"x"], [b"y"]),
        (b"x\\", [], [b"x", b"x\\"]),
        (b"[x", [], [b"[x", b"x"]),
        (b"*.{a,b}", [b"x.{a,b}"], [b"x.a"]),
        (b"d/*\n!d/keep", [b"d/x"], [b"d/keep"]),
        (b"d/\n!d/keep", [b"d/x", b"d/keep"], [b"x"]),
        (b"a**b", [b"axxb"], [b"a/b"]),
        (b"\xff?", [b"\xff\xfe"], [b"\xff"]),
    ],
)
def test_a_gitignore_line_means_what_git_says(
    root: bytes, line: bytes, ignored: list[bytes], kept: list[bytes]
) -> None:
    subprocess.run(["git", "init", "-q", root], check=True)
    write(root, b".gitignore", line)
    for path in [*ignored, *kept]:
        write(root, path)
    assert walked(root) == set(kept)
    assert by_git(root) == {*kept, b".gitignore"}


def test_braces_are_alternatives_in_the_files_ripgrep_reads_alone(root: bytes) -> None:
    write(root, b".ignore", b"*.{a,b}")
    for name in (b"x.a", b"x.b", b"x.{a,b}"):
        write(root, name)
    assert walked(root) == by_ripgrep(root) == {b"x.{a,b}"}


def test_our_own_ignore_file_has_the_last_word(root: bytes) -> None:
    write(root, b".git/HEAD")
    write(root, b".gitignore", b"*.log")
    write(root, b".rgignore", b"*.txt")
    write(root, b".flashgrepignore", b"!keep.log\n!.shown\nout.c")
    for name in (
        b"keep.log",
        b"drop.log",
        b"drop.txt",
        b"in.c",
        b"out.c",
        b".shown",
        b".hidden",
    ):
        write(root, name)
    assert walked(root) == {b"keep.log", b"in.c", b".shown"}
    assert walked(root, WalkOptions(flashgrep_ignore=False)) == {b"in.c", b"out.c"}


def test_state_folders_are_never_entered_whatever_the_options(root: bytes) -> None:
    write(root, b".git/config")
    write(root, b".flashgrep/index.db")
    write(root, b"deep/.flashgrep/index.db")
    write(root, b".ignore", b"!.git\n!.flashgrep")
    assert walked(root, WalkOptions(hidden=True)) == {b".ignore"}
    assert not Walker(root).accepts(b".git/config")


def test_links_fifos_and_sockets_are_neither_listed_nor_followed(root: bytes) -> None:
    write(root, b"d/file")
    at(root, b"folder").symlink_to("d")
    at(root, b"link").symlink_to("d/file")
    at(root, b"d/loop").symlink_to("..")
    os.mkfifo(root + b"/fifo")
    assert walked(root) == by_ripgrep(root) == {b"d/file"}
    assert not Walker(root).accepts(b"folder/file")


def test_rules_above_the_root_hold_up_to_the_top_of_the_repository(root: bytes) -> None:
    write(root, b".gitignore", b"outermost")
    write(root, b".ignore", b"everywhere")
    write(root, b"repo/.git/info/exclude", b"excluded\n/sub/anchored")
    write(root, b"repo/.gitignore", b"upper\n/sub/deep/x")
    for name in (
        b"outermost",
        b"everywhere",
        b"excluded",
        b"anchored",
        b"upper",
        b"deep/x",
        b"deep/y",
    ):
        write(root, b"repo/sub/" + name)
    inner = root + b"/repo/sub"
    assert walked(inner) == by_ripgrep(inner) == {b"outermost", b"deep/y"}


def test_a_jujutsu_folder_makes_a_repository_too(root: bytes) -> None:
    write(root, b".gitignore", b"x")
    write(root, b"x")
    assert walked(root) == by_ripgrep(root) == {b"x"}
    write(root, b".jj/repo")
    assert walked(root) == by_ripgrep(root) == set()


def test_a_root_reached_by_a_link_obeys_the_rules_above_its_target(root: bytes) -> None:
    write(root, b"real/repo/.git/HEAD")
    write(root, b"real/repo/.gitignore", b"/sub/x")
    write(root, b"real/repo/sub/x")
    write(root, b"real/repo/sub/y")
    at(root, b"link").symlink_to("real/repo/sub")
    assert walked(root + b"/link") == by_ripgrep(root + b"/link") == {b"y"}


def test_the_global_excludes_file_holds_inside_repositories(root: bytes) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"], "git")
    config.mkdir(parents=True)
    (config / "ignore").write_text("*.swp\n")
    write(root, b"x.swp")
    assert walked(root) == by_ripgrep(root) == {b"x.swp"}
    write(root, b".git/HEAD")
    assert walked(root) == by_ripgrep(root) == set()


def test_the_global_excludes_file_is_the_one_git_is_configured_to_use(
    root: bytes,
) -> None:
    Path(os.environ["HOME"], "excludes").write_text("*.swp\n")
    Path(os.environ["HOME"], ".gitconfig").write_text(
        "[core]\n\texcludesFile = ~/excludes\n"
    )
    subprocess.run(["git", "init", "-q", root], check=True)
    write(root, b"x.swp")
    write(root, b"x.c")
    assert walked(root) == by_ripgrep(root) == by_git(root) == {b"x.c"}


def test_an_anchored_rule_of_the_users_excludes_holds_at_the_top_of_every_repository_as_git_says(
    root: bytes,
) -> None:
    write(os.environb[b"XDG_CONFIG_HOME"], b"git/ignore", b"/docs")
    repositories = [b"", b"nested/", b"module/"]
    for repository in repositories:
        top = root + b"/" + repository
        subprocess.run(["git", "init", "-q", top], check=True)
        for name in (b"docs/a", b"src/docs/b"):
            write(top, name)
    # As in a submodule, whose repository lies in that of the outer one.
    at(root, b"module/.git").rename(at(root, b".git/module"))
    write(root, b"module/.git", b"gitdir: ../.git/module\n")
    listed = walked(root)
    for repository in repositories:
        inside = {
            path.removeprefix(repository)
            for path in listed
            if path.startswith(repository)
        }
        own = {path for path in inside if not path.startswith((b"nested/", b"module/"))}
        # git names a repository inside another one, but lists none of its files.
        assert (
            own
            == {
                path
                for path in by_git(root + b"/" + repository)
                if not path.endswith(b"/")
            }
            == {b"src/docs/b"}
        )


def test_a_work_tree_shares_the_excludes_of_its_repository(root: bytes) -> None:
    write(root, b"main/.git/info/exclude", b"excluded")
    write(root, b"main/.git/worktrees/tree/commondir", b"../..\n")
    write(root, b"tree/.git", b"gitdir: " + root + b"/main/.git/worktrees/tree\n")
    write(root, b"tree/.gitignore", b"ignored")
    for name in (b"excluded", b"ignored", b"kept"):
        write(root, b"tree/" + name)
    assert walked(root + b"/tree") == by_ripgrep(root + b"/tree") == {b"kept"}


def test_a_change_of_rules_outside_the_tree_is_seen(root: bytes) -> None:
    write(root, b".git/info/exclude", b"")
    write(root, b"sub/a")
    walker = Walker(root + b"/sub")
    rules = OutsideRules(walker.outside_rules, OutsideWatch())
    rules.note(rules.look())
    assert walker.accepts(b"a")
    assert not rules.look_again()
    write(root, b".git/info/exclude", b"a")
    assert rules.look_again()
    assert not rules.look_again()
    write(root, b".gitignore", b"b")
    assert rules.look_again()
    walker.forget()
    assert not walker.accepts(b"a")


def test_a_changed_rules_file_counts_once_its_folder_is_forgotten(root: bytes) -> None:
    write(root, b"d/x")
    walker = Walker(root)
    assert walker.accepts(b"d/x")
    write(root, b"d/.ignore", b"x")
    walker.forget(b"d")
    assert not walker.accepts(b"d/x")


def test_a_folder_is_announced_before_it_is_read(root: bytes) -> None:
    write(root, b"d/e/x")

    def add_a_file(folder: bytes) -> None:
        write(root, b"/".join(filter(None, (folder, b"late"))))

    found = {entry.path for entry in Walker(root).walk(on_directory=add_a_file)}
    assert found == {b"late", b"d/late", b"d/e/late", b"d/e/x"}


def test_what_vanishes_during_the_walk_is_no_error(root: bytes) -> None:
    for number in range(20):
        write(root, b"d%d/x" % number)
    walk = Walker(root).walk()
    next(walk)
    shutil.rmtree(root)
    assert list(walk) == []


def test_a_tree_too_deep_to_name_is_walked_as_far_as_names_reach_and_reported(
    tmp_path: Path,
) -> None:
    name = "d" * 200
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    walker = Walker(os.fsencode(tmp_path))
    assert list(walker.walk()) == []
    assert list(walker.unreadable.values()) == ["File name too long"]


def test_an_entry_is_what_stat_says(root: bytes) -> None:
    write(root, b"d/x", b"12345")
    found = at(root, b"d/x").stat()
    entry = Entry(b"d/x", 5, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    assert list(Walker(root).walk()) == [entry]


@pytest.mark.parametrize(
    "text",
    [
        b"\n".join(b"generated-name-%07d" % number for number in range(450_000)),
        b"**/a/" * 1000 + b"b",
        b"**/" * 1000 + b"zz",
        b"*a" * 500,
        b"\n".join(
            b"!*x%d*" % number if number % 2 else b"*y%d*" % number
            for number in range(2000)
        ),
        b"[" * 10_000,
        b"\0" * 100_000,
        b"a" * 1_000_000,
    ],
    ids=[
        "ten megabytes",
        "stars and names",
        "stars",
        "single stars",
        "alternating",
        "brackets",
        "nul",
        "one line",
    ],
)
@pytest.mark.timeout(20)
def test_a_hostile_ignore_file_neither_hangs_the_walk_nor_takes_anything_else_out(
    root: bytes, text: bytes
) -> None:
    write(root, b".ignore", text)
    for number in range(200):
        write(root, b"a/a/a/plain%d" % number)
    assert len(walked(root)) == 200
