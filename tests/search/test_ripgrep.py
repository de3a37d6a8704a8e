"""ripgrep as a sieve leaves out no file that matches, its counts are ours, and it ends with whoever asked."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from flashgrep.base.checkpoint import expiring
from flashgrep.base.config import Settings
from flashgrep.base.errors import BadPattern
from flashgrep.base.model import Document, path_from_json
from flashgrep.base.registry import Call, Session
from flashgrep.files.extract import extract
from flashgrep.files.openat import RootFolder
from flashgrep.files.walk import Walker
from flashgrep.index.table import FileTable, Mark
from flashgrep.methods.query import query
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.pattern import Pattern
from flashgrep.project.catalogue import Catalogue
from flashgrep.search import ripgrep as scans
from flashgrep.search.exact import MANY_FILES, Question, Search
from flashgrep.search.ripgrep import (
    UNKNOWN,
    Counts,
    Ripgrep,
    counts_in,
    find_matching,
    names_in,
    pattern_flags,
    ripgrep_of,
    run,
    walk,
)
from flashgrep.search.ripgrep_walks import count_on_walk, search_before_listing
from flashgrep.search.snapshot import Snapshot
from tests.support.workspace import opened, put

FOUND = ripgrep_of(os.environ)
assert FOUND is not None
RG = FOUND
PROGRAM = shlex.quote(str(RG.program))
BOUND = 20.0
START_SECONDS = 2.0
"""In which a program of a line has printed on a busy machine, too."""
LATE = b"x\n" * 40_000
WORDS = [
    "foo",
    "Foo",
    "fOO bar",
    "été",
    "ÉTÉ",
    "\u212aelvin",
    "\u017f",
    "12",
    "a.b",
    "-",
    "\t",
    "\u017fs",
]
NAMES = [
    b"a.py",
    b"-",
    b"--help",
    b"sub/new\nline.c",
    b"sub/b: c.txt",
    b"odd\xff.txt",
    b"ign/e.py",
    b"sub/.hid",
    b"u",
]
PIECES = [
    "foo",
    "Foo",
    "été",
    r"\w+",
    r"\d",
    r"[^a]",
    ".",
    "^",
    "$",
    r"\b",
    "|",
    "(?i)É",
    r"\s",
    "k",
    "-",
    "x*",
    r"\.",
]

lines = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
texts = st.tuples(st.lists(lines, max_size=6), st.sampled_from(["\n", "\r\n"])).map(
    lambda drawn: drawn[1].join(drawn[0])
)
contents = st.one_of(
    st.tuples(texts, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"])).map(
        lambda drawn: drawn[0].encode(drawn[1], "replace")
    ),
    st.tuples(texts, st.binary(max_size=6), texts).map(
        lambda drawn: drawn[0].encode() + drawn[1] + drawn[2].encode()
    ),
    st.tuples(texts, texts).map(
        lambda drawn: drawn[0].encode() + b"<LATE>\0\n" + drawn[1].encode()
    ),
)
trees = st.dictionaries(st.sampled_from(NAMES), contents, min_size=1, max_size=5)
patterns = st.builds(
    Pattern,
    texts=st.lists(
        st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join),
        min_size=1,
        max_size=2,
    ).map(tuple),
    mode=st.sampled_from(["literal", "regex"]),
    case=st.sampled_from(["sensitive", "insensitive", "smart"]),
    word=st.booleans(),
    line=st.booleans(),
    crlf=st.booleans(),
)


def documents(root: bytes, names: Iterator[bytes]) -> dict[bytes, Document]:
    """Return the files that are text, as they are read for every answer."""
    read = {
        name: extract(Path(os.fsdecode(root + b"/" + name)).read_bytes())
        for name in names
    }
    return {name: found for name, found in read.items() if isinstance(found, Document)}


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tree=trees, pattern=patterns)
def test_no_file_that_matches_is_left_out_and_counts_are_ours(
    tree: dict[bytes, bytes], pattern: Pattern
) -> None:
    try:
        matcher = pattern.matcher()
    except BadPattern:
        assume(False)
    flags = pattern_flags(RG, pattern)
    assert flags is not None
    with tempfile.TemporaryDirectory() as name:
        folder, root = Path(name), os.fsencode(name)
        put(
            folder,
            {
                os.fsdecode(name): content.replace(b"<LATE>", LATE)
                for name, content in tree.items()
            },
        )
        (folder / ".ignore").write_text("ign/\n")
        listed = sorted(entry.path for entry in Walker(root).walk())
        found = documents(root, iter(listed))
        counts = {name: matcher.count_lines(text.data) for name, text in found.items()}
        matching = {name for name, count in counts.items() if count}

        opened_root = RootFolder(root)
        sieved = find_matching(RG, opened_root, flags, listed)
        assert matching <= set(sieved) <= set(listed)
        assert sieved == sorted(sieved)
        counted = walk(
            RG, opened_root, [*flags, b"--count", b"--include-zero"], 1 << 20
        )
        assert counted is not None
        assert counted.is_whole
        ours = counts_in(counted.printed)
        assert {name: counts[name] for name in ours} == ours
        assert {
            name for name, text in found.items() if text.binary_at is None
        } <= ours.keys()
        named = walk(RG, opened_root, [*flags, b"--files-with-matches"], 1 << 20)
        assert named is not None
        assert set(names_in(named.printed)) == matching


@pytest.mark.parametrize(
    "pattern",
    [
        Pattern(texts=("a\nb",), mode="regex", multiline=True),
        Pattern(texts=("^a",), mode="regex", multiline=True),
        Pattern(texts=("a\0",), mode="literal"),
        Pattern(texts=("\ud800",), mode="literal"),
        Pattern(texts=("a" * 60_000, "b" * 60_000), mode="literal"),
    ],
)
def test_patterns_that_cannot_be_handed_on_are_not(pattern: Pattern) -> None:
    assert pattern_flags(RG, pattern) is None


@pytest.mark.parametrize(
    ("text", "word", "wanted"),
    [
        ("foo", False, True),
        ("foo", True, False),
        (r"\w", False, False),
        ("é", False, False),
    ],
)
def test_another_ripgrep_is_not_asked_what_depends_on_tables(
    text: str,
    word: bool,  # noqa: FBT001 - as above
    wanted: bool,  # noqa: FBT001 - a test's parameters
) -> None:
    flags = pattern_flags(
        Ripgrep("rg", bundled=False), Pattern(texts=(text,), mode="regex", word=word)
    )
    assert (flags is not None) is wanted


def test_what_is_asked_cannot_become_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("--invert-match\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    put(tmp_path, {"--pre=x": b"--help\n", "-": b"--help\n", "other": b"x\n"})
    flags = pattern_flags(RG, Pattern(texts=("--help",), mode="literal"))
    assert flags is not None
    assert find_matching(
        RG, RootFolder(bytes(tmp_path)), flags, [b"-", b"--pre=x", b"other"]
    ) == [b"-", b"--pre=x"]


# ripgrep in trouble: every answer is what reading all files gives


def script(folder: Path, body: str) -> Ripgrep:
    path = folder / "rg"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return Ripgrep(str(path), bundled=True)


def view_of(
    root: Path, ripgrep: Ripgrep | None, files: int = 3 * MANY_FILES
) -> Snapshot:
    """Make a folder of files, of which each third matches, and return it as known but not indexed."""
    root.mkdir()
    for at in range(files):
        (root / f"{at:04}").write_bytes(
            b"needle\nneedle\n" if at % 3 == 0 else b"hay\n"
        )
    pending = {b"%04d" % at: Mark(ours=True, sequence=0, size=0) for at in range(files)}
    return Snapshot(
        RootFolder(bytes(root)), FileTable(), None, pending, 1 << 20, ripgrep=ripgrep
    )


def asked(
    output: Literal["lines", "files", "count"] = "count", **more: Any
) -> Question:
    return Question(
        pattern=Pattern(texts=("needle",), mode="literal"),
        output=output,
        limit=10_000,
        max_chars=10**9,
        **more,
    )


TROUBLES = {
    "ends at once": "exit 0",
    "is killed half-way": f'{PROGRAM} "$@" | head -c 100; kill -9 $$',
    "misunderstands": "echo 'rg: unrecognized flag' >&2; exit 2",
    "fails without a word": "exit 2",
    "complains without end": "while echo rg: ./0000: Permission denied >&2; do :; done",
    "cannot read one": f"{PROGRAM} \"$@\" | sed 's/.\\/0003.//'; echo 'rg: ./0003: no' >&2; exit 2",
    "is not there": None,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "trouble", [name for name in TROUBLES if name != "ends at once"]
)
def test_a_ripgrep_in_trouble_costs_no_file(tmp_path: Path, trouble: str) -> None:
    body = TROUBLES[trouble]
    broken = (
        Ripgrep("/nowhere/rg", bundled=True) if body is None else script(tmp_path, body)
    )
    snapshot = view_of(tmp_path / "tree", broken)
    wanted = Search(view_of(tmp_path / "same", None), asked()).run()
    answer = Search(snapshot, asked()).run()
    assert answer.results == wanted.results
    assert (
        (answer.total, answer.complete)
        == (wanted.total, True)
        == (2 * MANY_FILES, True)
    )
    unlisted = search_before_listing(
        snapshot, asked("lines"), None, Walker(bytes(tmp_path / "tree"))
    )
    assert unlisted is None


@pytest.mark.parametrize(
    ("output", "hits_a_file"), [("lines", 2), ("count", 2), ("files", 1)]
)
def test_where_most_files_match_ripgrep_is_not_asked(
    tmp_path: Path, output: Literal["lines", "count", "files"], hits_a_file: int
) -> None:
    broken = script(tmp_path, f"touch {tmp_path}/asked; exit 2")
    snapshot = view_of(tmp_path / "tree", broken)
    few = {
        path: mark
        for path, mark in snapshot.pending.items()
        if int(path) % 3 == 0 or int(path) % 9 == 1
    }
    answer = Search(replace(snapshot, pending=few), asked(output)).run()
    assert (answer.total, (tmp_path / "asked").exists()) == (
        hits_a_file * MANY_FILES,
        False,
    )
    assert Search(snapshot, asked(output)).run().total == hits_a_file * MANY_FILES
    assert (tmp_path / "asked").exists()


def hanging(folder: Path) -> tuple[Ripgrep, Callable[[], bool]]:
    """Return a ripgrep that never ends, and what tells whether it runs."""
    pid = folder / "pid"
    broken = script(folder, f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 1000")

    def runs() -> bool:
        try:
            state = Path("/proc", pid.read_text().strip(), "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        return state.rpartition(")")[2].split()[0] != "Z"

    return broken, runs


def wait_until(happened: Callable[[], bool]) -> None:
    ends = time.monotonic() + BOUND
    while not happened():
        assert time.monotonic() < ends
        os.sched_yield()


def test_a_ripgrep_that_hangs_ends_with_the_deadline(tmp_path: Path) -> None:
    broken, runs = hanging(tmp_path)
    answer = Search(
        view_of(tmp_path / "tree", broken), asked(deadline=time.monotonic() + 0.3)
    ).run()
    assert not answer.complete
    assert (tmp_path / "pid").exists()
    assert not runs()


def test_nothing_more_is_waited_for_once_ripgrep_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "GATHER_SECONDS", BOUND / 2)
    monkeypatch.setattr(scans, "GATHER_SHARE", 1e9)
    begun = time.monotonic()
    output = run(script(tmp_path, "printf 'one\\0'"), RootFolder(bytes(tmp_path)), [])
    assert time.monotonic() - begun < BOUND / 2
    assert output is not None
    assert output.printed == b"one\0"
    assert output.is_whole


def test_what_ripgrep_named_by_the_deadline_is_shown(tmp_path: Path) -> None:
    broken = script(tmp_path, r"printf './0000\0./0003\0./00'; exec sleep 1000")
    snapshot = view_of(tmp_path / "tree", broken)
    question = asked("lines", deadline=time.monotonic() + START_SECONDS)
    answer = search_before_listing(
        snapshot, question, None, Walker(bytes(tmp_path / "tree"))
    )
    assert answer is not None
    assert [hit["file_path"] for hit in answer.results] == [
        "0000",
        "0000",
        "0003",
        "0003",
    ]
    assert not answer.complete


async def test_a_question_that_is_cancelled_ends_its_ripgrep(
    tmp_path: Path, root: Path
) -> None:
    broken, runs = hanging(tmp_path)

    put(root, {"a": b"needle\n"})
    async with opened(root) as workspace:
        workspace._ripgrep = broken
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(workspace.lookups.search_before_listing, asked("lines"))
            while not runs():
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        while runs():
            await anyio.lowlevel.checkpoint()
        workspace._ripgrep = RG
        answer = await workspace.lookups.search_before_listing(asked("lines"))
        assert answer is None or answer.total == 1


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="others read on to the end of the tree"
)
def test_ripgrep_ends_when_the_daemon_is_killed(tmp_path: Path) -> None:
    broken, runs = hanging(tmp_path)
    code = (
        "import sys; from flashgrep.files.openat import RootFolder; from flashgrep.search.ripgrep import *;"
        f"run(Ripgrep({broken.program!r}, True), RootFolder({bytes(tmp_path)!r}), [])"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as daemon:
        wait_until(runs)
        child = int((tmp_path / "pid").read_text())
        wait_until(
            lambda: os.getpriority(os.PRIO_PROCESS, child) >= scans.NICE
        )  # the last step of tying it to us
        daemon.send_signal(signal.SIGKILL)
    wait_until(lambda: not runs())


def test_more_scans_than_may_run_at_once_read_by_themselves(tmp_path: Path) -> None:
    broken, runs = hanging(tmp_path)
    root = RootFolder(bytes(tmp_path))

    def hang() -> None:
        with expiring(time.monotonic() + 3 * scans.SLOT_SECONDS):
            run(broken, root, [])

    threads = [threading.Thread(target=hang) for _ in range(scans.MOST_AT_ONCE)]
    for thread in threads:
        thread.start()
    wait_until(lambda: scans._slots._value == 0)
    answer = Search(view_of(tmp_path / "tree", RG), asked()).run()
    assert answer.total == 2 * MANY_FILES
    for thread in threads:
        thread.join(BOUND)
    assert scans._slots._value == scans.MOST_AT_ONCE
    assert not runs()


# In a project


async def test_the_first_question_needs_no_listing(root: Path) -> None:
    put(
        root,
        {
            "a.py": b"needle\n",
            "b/c.py": b"needle needle\n",
            "ign/d.py": b"needle\n",
            ".flashgrepignore": b"b/\n",
        },
    )
    (root / ".gitignore").write_text("ign/\n")
    async with opened(root) as workspace:
        first = await workspace.lookups.search_before_listing(asked("lines"))
        assert first is not None
        assert workspace.tree.listed_since is None
        await workspace.refresh()
        assert await workspace.lookups.search_before_listing(asked("lines")) is None
        later = await workspace.search(asked("lines"))
        assert [hit["file_path"] for hit in first.results] == ["a.py"]
        assert (first.results, first.total, first.complete) == (
            later.results,
            later.total,
            True,
        )


async def test_the_first_call_of_query_is_answered_by_ripgrep(
    tmp_path: Path, root: Path
) -> None:
    put(root, {f"{at}.py": b"needle\n" if at == 1 else b"hay\n" for at in range(100)})
    async with Catalogue(
        parts=BUILT_IN, state_dir=tmp_path, settings=Settings(), environ=os.environ
    ) as catalogue:
        await catalogue.open(str(root))
        call = Call(catalogue, Session(projects=(str(root),)))
        first = await query.call(call, {"text": "needle"})
        assert (
            first["coverage"]["files_searched"] == 1
        )  # it alone was read, and the index ruled out none
        assert (
            first["total"],
            first["coverage"]["complete"],
            first["coverage"]["fresh"],
        ) == (1, True, True)
        put(root, {"2.py": b"needle\n"})
        assert (await query.call(call, {"text": "needle"}))["total"] == 2


LOGS_OUT = {".gitignore": b"*.log\n"}
HIDES_MORE: dict[str, dict[str, bytes]] = {
    "our own rules ask back": {
        **LOGS_OUT,
        "a.log": b"needle\n",
        ".flashgrepignore": b"!a.log\n",
    },
    "in a folder without hits": {
        **LOGS_OUT,
        "in/b.log": b"needle\n",
        "in/.flashgrepignore": b"!*.log\n",
    },
    "in a folder whose name is no UTF-8": {
        **LOGS_OUT,
        "\udcff/b.log": b"needle\n",
        "\udcff/.flashgrepignore": b"!*.log\n",
    },
    "by way of a link": {**LOGS_OUT, "in/b.log": b"needle\n", "rules": b"!*.log\n"},
    "not all rules are used": {
        "in/.gitignore": b"a" * 5000 + b"\nb.txt\n",
        "in/c.txt": b"needle\n",
    },
    "the user's rules ask back": {".hidden": b"needle\n", "excludes": b"!.hidden\n"},
    "a pipe holds ripgrep up": {"in/a.txt": b"needle\n"},
}


@pytest.mark.parametrize("case", HIDES_MORE)
async def test_what_ripgrep_might_hide_is_listed_first(case: str, root: Path) -> None:
    put(root, {"found": b"needle\n", **HIDES_MORE[case]})
    if "link" in case:
        (root / "in" / ".flashgrepignore").symlink_to(root / "rules")
    elif "user's" in case:
        with (root / ".git" / "config").open("a") as config:
            config.write(f"[core]\n\texcludesFile = {root}/excludes\n")
    elif "pipe" in case:
        os.mkfifo(root / "in" / ".gitignore")
    async with opened(root) as workspace:
        assert await workspace.lookups.search_before_listing(asked("lines")) is None
        await workspace.refresh()
        found = {
            path_from_json(hit["file_path"], hit.get("file_path_bytes"))
            for hit in (await workspace.search(asked("lines"))).results
        }
        assert found == {
            os.fsencode(name)
            for name, text in HIDES_MORE[case].items()
            if text == b"needle\n"
        } | {b"found"}


async def test_a_folder_that_cannot_be_read_is_listed_first(
    tmp_path: Path, root: Path
) -> None:
    put(root, {"a.py": b"needle\n"})
    async with opened(root) as workspace:
        workspace._ripgrep = script(
            tmp_path, f'{PROGRAM} "$@"; echo "rg: ./b: Permission denied" >&2; exit 2'
        )
        assert await workspace.lookups.search_before_listing(asked("lines")) is None


@pytest.mark.parametrize("output", ["count", "files"])
async def test_counts_of_a_whole_tree_are_those_of_the_slow_truth(
    output: Literal["count", "files"], root: Path
) -> None:
    put(root, {f"{at:03}": b"needle\n" * (at % 3) for at in range(2 * MANY_FILES)})
    put(
        root,
        {
            "late": b"needle\n" + LATE + b"\0needle\n",
            "binary": b"needle\0",
            "wide": "needle".encode("utf-16"),
        },
    )
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        put(root, {"000": b"needle\n", "001": b"", "new": b"needle\n"})
        await workspace.refresh()
        answer = await workspace.search(asked(output))
        truth = Search(
            Snapshot(
                workspace.snapshot().root, *_all_of(workspace.snapshot()), 1 << 20
            ),
            asked(output),
        ).run()
        assert (answer.results, answer.total, answer.skipped) == (
            truth.results,
            truth.total,
            truth.skipped,
        )


async def test_files_are_the_same_if_only_those_with_lines_are_named(
    root: Path,
) -> None:
    put(root, {f"{at:03}": b"needle\n" * (at % 3) for at in range(2 * MANY_FILES)})
    put(root, {"late": b"needle\n" + LATE + b"\0needle\n", "binary": b"needle\0"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        put(root, {"000": b"needle\n", "new": b"needle\n"})
        ours = Mark(ours=True, sequence=0, size=0)
        snapshot = replace(
            workspace.snapshot(),
            pending={b"000": ours, b"new": ours, b"001": ours._replace(ours=False)},
        )
        named = count_on_walk(snapshot, asked(), meets_all=True)
        assert named is not None
        assert named.of_others == 0
        every = dict.fromkeys((*snapshot.table.paths, *snapshot.pending), 0)
        answers = [
            Search(replace(snapshot, counts=counts), asked()).run()
            for counts in (named, Counts(every | named.of_file, UNKNOWN))
        ]
        first, second = [
            (answer.results, answer.total, answer.files_read) for answer in answers
        ]
        assert first == second
        assert len(answers[0].results) > MANY_FILES


@pytest.mark.parametrize("case", [name for name in HIDES_MORE if "pipe" not in name])
@pytest.mark.parametrize("output", ["count", "files"])
async def test_what_ripgrep_hides_is_counted(
    output: Literal["count", "files"], case: str, root: Path
) -> None:
    put(
        root,
        {f"{at:03}": b"needle\n" * (at % 3) for at in range(2 * MANY_FILES)}
        | HIDES_MORE[case],
    )
    if "link" in case:
        (root / "in" / ".flashgrepignore").symlink_to(root / "rules")
    elif "user's" in case:
        with (root / ".git" / "config").open("a") as config:
            config.write(f"[core]\n\texcludesFile = {root}/excludes\n")
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        answer = await workspace.search(asked(output))
        truth = Search(
            Snapshot(
                workspace.snapshot().root, *_all_of(workspace.snapshot()), 1 << 20
            ),
            asked(output),
        ).run()
        assert (answer.results, answer.total, answer.skipped) == (
            truth.results,
            truth.total,
            truth.skipped,
        )
        hidden = [
            name for name, text in HIDES_MORE[case].items() if text == b"needle\n"
        ]
        found = {
            path_from_json(hit["file_path"], hit.get("file_path_bytes"))
            for hit in answer.results
        }
        assert {os.fsencode(name) for name in hidden} <= found


def _all_of(snapshot: Snapshot) -> tuple[FileTable, None, dict[bytes, Mark]]:
    return (
        FileTable(),
        None,
        dict.fromkeys(snapshot.table.paths, Mark(ours=True, sequence=0, size=0))
        | dict(snapshot.pending),
    )


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="without events at once there are no counts by ripgrep",
)
async def test_a_file_that_changed_while_ripgrep_counted_is_read(
    tmp_path: Path, root: Path
) -> None:
    put(root, {f"{at:03}": b"needle\n" for at in range(2 * MANY_FILES)})
    async with opened(root) as workspace:
        await (
            workspace.wait_indexed()
        )  # what is stored during the count would be read as well
        touch = f"mv {root}/007 {root}/old; ln -s /etc/passwd {root}/007; rm {root}/007; mv {root}/old {root}/007"
        lie = r"| sed 's/\x00[0-9]*$/\x0099/'"  # as if what was there for a moment had 99 such lines
        workspace._ripgrep = script(tmp_path, f'{touch}; {PROGRAM} "$@" {lie}; exit 0')
        answer = await workspace.search(asked("count"))
        counts = {hit["file_path"]: hit["count"] for hit in answer.results}
        assert counts.pop("007") == 1
        assert set(counts.values()) == {99}  # whose files no event told of
