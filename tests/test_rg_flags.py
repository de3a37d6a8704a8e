"""``fgrep rg`` prints what ripgrep prints: a table of flags over a tree of everything, by scan and by index."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import anyio
import pytest

from flashgrep.cli.rg.run import Place
from flashgrep.index.reader import Reader
from flashgrep.ingest.walk import Walker
from flashgrep.search.exact import View
from tests.rgtree import Said, make_tree, ours, theirs
from tests.workspace_harness import opened

PATTERNS = r"""
foo | foo -n | foo -i | -S foo | -S Foo | -s Foo -i | -w foo | -x foo | -F foo | -F f.o | -e foo -e bar | -f patterns
-i ÉTÉ | foo|bar -o --column | (?i)FOO -c | [^a]foo -o | \w+ -o -g utf* | . -o -g latin* | . -c | \s | \S+ -o | foo$
^foo | ^$ | ^ | $ | -o ^ | -c ^$ | -n ^$ | --vimgrep ^ | --json ^$ | -w f | -w oo | -x .* | .{5} -o -g sub/**
-f patterns -e two a.txt | -f /dev/null | -- -foo | -e -foo | foo -- a.txt | -nio FOO | -w $ -m2 -A3 -i
"""
OUTPUT = r"""
-l foo | --files-without-match foo | -c foo | --count-matches foo | -c foo --include-zero | -o foo | -o -b foo
-o -n --column foo | -A1 foo | -B2 foo | -C1 foo -n | -C 3 foo | -C1 -o foo | -A1 -B0 -C5 foo | -C=1 foo | -nC1 foo
-m1 foo | -m2 -n foo | -m1 -A3 foo | -m0 foo | -m0 --json foo | --max-count 3 foo sub | -c -m1 -A1 foo | --vimgrep foo
--vimgrep -o foo | --column foo | --column -n -A1 foo | --heading foo | --heading -n -C1 foo | --no-heading foo
-b foo | -b -c foo | -0 foo | -0 -l foo | -0 -c foo | -0 --heading foo | --trim foo | --trim --color always foo
-I foo | --no-filename foo -n | -H foo a.txt | --with-filename foo a.txt | foo a.txt | foo -n a.txt | -M 10 foo
-M 10 --color always foo | -M 10 -o foo | -M 0 foo | -M 100 -C1 foo | -q foo | -q nothing-at-all | -q --json foo
-q -c foo | -q --files | --no-messages foo nope | -q --files-without-match foo | -q --files-without-match foo a.txt
-l --files-without-match foo | -c -l foo | -p foo | --json -l foo | -l --json foo | --files -l foo | -o -c foo
--include-zero --count-matches foo a.txt | --no-config foo
"""
COLORS = r"""
--color always foo | --color always -n --column foo | --color ansi -n -C1 foo | --color always -o foo
--color always -l foo | --color always -c foo | --color always --heading foo | --color always --vimgrep foo
--color always -r X foo | --color always -U foo\s+ | --color always --files | --color never foo
"""
REPLACEMENTS = r"""
-r X foo | -r X$0Y foo | -r [$1] (f)oo | -r ${x}y (?P<x>fo)o | -o -r <$1> f(o)o | -r X -n --column foo | -r X -C1 foo
--json -r X foo | -r X --vimgrep foo | -U -r X foo\nbar | --crlf -r X foo$
"""
JSON_AND_STATS = r"""
--json foo | --json -C1 bar | --json -o foo | -m1 -C3 --json foo | --json --stats foo | --json -m1 foo a.txt
-N --json foo | --json -m1 foo | --stats foo | --stats -c foo | --stats -l foo | --stats -m1 foo | --stats -q foo
--stats -C2 foo
"""
LINES = r"""
-U foo\nbar | -U foo.*bar | -U --multiline-dotall foo.*bar | -U -n foo\s+ | -U -o -n foo\s+bar | -U -c foo\s
-U --count-matches foo\s | -U -C1 foo\nbar | -U --json foo\nbar | -U --vimgrep foo\s+\w | -U -m2 foo\s
-U -m1 -A2 foo\s | --crlf foo$ | --crlf -x foo | --crlf -o foo$ | --crlf -c foo | --crlf --color always foo
"""
FILES = r"""
-g *.py foo | -g !*.txt foo | -g sub/** foo | -g !sub foo | --iglob *.PY foo | -g *.log foo | -g=*.py foo | -t py foo
-tc foo | -T py foo | -tc -Tc foo | -t all foo | -T all foo | --hidden foo | -. foo | --no-ignore foo
--no-ignore-vcs foo | -u foo | -uu foo | -uuu foo | -uuu -n foo | --sort path foo | --sortr path foo
--sort modified foo | --sortr modified foo | --files | --files -0 | --files --hidden | --files --no-ignore
--files -uuu | --files -g *.c | --files sub | --files sub a.txt nope | --max-depth 1 foo | --max-depth 2 --files
-d 0 foo | -j1 foo | --type-list | --hidden -g !.git foo | --hidden -g .hid/** foo | -uu -g *.txt foo | -uu -t py foo
--sort none foo -g a.txt | foo a.txt b.py | foo link.txt | foo link-to-sub | foo build | foo build/out.txt ignored.log
foo .hid | foo .git | foo nope | foo nope a.txt | foo ./ | foo ./sub/ | foo sub/../sub | foo bom.txt utf16le.txt
foo -g one.c sub/../sub
"""
BINARY = r"""
foo binary.bin | foo binary.bin a.txt | foo binary.bin sub | bar binary.bin -C1 | foo late.bin | foo late.bin -n -C1
foo late.bin late-line.bin a.txt sub | foo sub late.bin late-line.bin binary2.bin | foo -c late.bin binary.bin
foo -l late.bin binary.bin | foo -o late.bin binary.bin | foo --json late.bin binary.bin | foo --stats late.bin sub
foo --json sub late.bin binary.bin | --files-without-match foo binary.bin | -a foo | -a -n foo | -a --json foo
--binary foo | --binary -c foo | --binary -l foo | -a -U foo\s | -g *.bin -C2 --stats foo | nothing$ -B1 late.bin sub
"""
_SEARCHED = re.compile(
    rb'(?<="bytes_searched":)\d+(?=,,"matched_lines":\d+,"matches":\d+,"searches":\d+,"searches_w.*"summary")'
)
REFUSED = [
    *("-v", "-P", "-L", "-z", "--follow", "--invert-match", "--pcre2", "--passthru", "--nosuch", "--no-unicode"),
    *("--color=maybe", "--sort=size", "-A", "-Ax", "-uuuu", "-tnosuch", "-g[", "--hidden=1", "-E", "-%", "-nv", "-m-1"),
]


def _commands(*tables: str) -> list[list[str]]:
    cells = [cell for table in tables for line in table.strip().splitlines() for cell in line.split(" | ")]
    return [cell.split(" ") for cell in cells]


ALL = _commands(PATTERNS, OUTPUT, COLORS, REPLACEMENTS, JSON_AND_STATS, LINES, FILES, BINARY)


@dataclass(frozen=True, slots=True)
class Indexed:
    """The tree as plain files, and as a project that is indexed, but for some files changed since."""

    plain: Place
    project: Place


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexed]:
    root = tmp_path_factory.mktemp("rg")
    top = make_tree(root)

    async def indexed() -> View:
        async with opened(root) as workspace:
            await workspace.wait_indexed()
            (root / "sub" / "fresh.c").write_bytes(b"int foo; /* bar */\n")
            (root / "no-match.txt").write_bytes(b"still nothing, but changed\n")
            assert await workspace.refresh()
            return workspace.view()

    view = anyio.run(indexed)
    assert view.pending
    state = tmp_path_factory.mktemp("state")
    (root / ".flashgrep").rename(state / "moved")  # where -uuu would find it, and ours, by design, would not
    reader = Reader(state / "moved" / "index.db")
    yield Indexed(Place(top), Place(top, replace(view, reader=reader), Walker(top)))
    reader.close()


@pytest.mark.parametrize("arguments", ALL, ids=" ".join)
def test_it_prints_what_ripgrep_prints(tree: Indexed, arguments: list[str]) -> None:
    wanted = theirs(arguments, tree.plain.cwd)
    assert ours(arguments, tree.plain) == wanted
    assert _less(ours(arguments, tree.project)) == _less(wanted)


def _less(said: Said) -> Said:
    """Leave out of the JSON summary how many bytes were searched: from the index, it is what the files have on disk."""
    return Said(_SEARCHED.sub(b"", said.stdout), said.status)


@pytest.mark.parametrize("flag", REFUSED)
def test_a_flag_it_does_not_have_is_refused_not_ignored(tree: Indexed, flag: str) -> None:
    assert ours([flag, "foo"], tree.plain) == Said(b"", 2)
