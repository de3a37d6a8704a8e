"""Long pages that ripgrep prints have the hits that are found here, in their order, within the same limits."""

import os
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from flashgrep.base.checkpoint import CURRENT_TURN, Abandoned, Expired
from flashgrep.index.table import FileRow, FileTable, Mark
from flashgrep.pattern import Pattern
from flashgrep.search import ripgrep as scans
from flashgrep.search.exact import Answer, Position, Question, search
from flashgrep.search.printed import LEAST_FILES, Printer, Printing
from flashgrep.search.ripgrep import Ripgrep, Running
from flashgrep.search.snapshot import Snapshot, ask_and_close
from tests.support.workspace import opened

FILES = 300
LINES = (
    b"a needle",
    b'\tneedle "quoted" \\ back',
    b"needle: 1:2:3",
    b"nothing here",
    b"",
    b"needle at the end \r",
    "un été, needle".encode(),
    "na\xefve needle".encode("latin-1"),
    b"needle \x0c form feed",
    b"needle \x7f rubout, needle",
    b"x" * 1_200 + b" needle",
    b"Needle",
    b"needle_needle needle",
    b"needle \x01 separator\x01 twice",
    b"1\x012\x01needle",
)
NAMES = (
    b"new\nline.txt",
    b"co:lon: 1.txt",
    b"odd\xff.txt",
    b'qu"ote\\.txt',
    b"-n",
    b"5:6:x",
)


def make_tree(root: Path) -> None:
    """Write files of drawn lines, and a few that only we read as they are meant."""
    rng = random.Random(7)
    for at in range(FILES):
        path = root / f"folder{at % 7}" / f"{at}.txt"
        path.parent.mkdir(exist_ok=True)
        end = rng.choice([b"\n", b"\n", b"\r\n"])
        # Most files are of plain lines, as most are.
        lines = LINES if at % 4 == 0 else LINES[:5]
        text = end.join(rng.choices(lines, k=12)) + rng.choice([b"", end])
        path.write_bytes(text)
    for name in NAMES:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(
            b"a needle\n" * 3
        )
    (root / "late.txt").write_bytes(b"needle\n" + b"x\n" * 40_000 + b"\0 needle\n")
    (root / "marked.txt").write_bytes(b"\xef\xbb\xbfneedle\n")
    (root / "wide.txt").write_bytes("needle\n".encode("utf-16"))


def settle(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot as of files that were not written just before they were indexed."""
    rows = []
    for at, path in enumerate(snapshot.table.paths):
        version = snapshot.stat(path)
        if version is None:  # deleted since
            continue
        text_id = int(snapshot.table.columns[at, 0])
        skip = snapshot.table.skipped.get(path, "")
        rows.append(
            FileRow(
                path,
                text_id,
                skip,
                version.size,
                version.mtime_ns,
                version.ctime_ns,
                version.inode,
            )
        )
    return replace(snapshot, table=snapshot.table.with_changes(rows, ()))


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    root = tmp_path_factory.mktemp("printed")
    make_tree(root)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opened(root)) as workspace,
    ):
        portal.call(workspace.wait_indexed)
        (root / "folder1" / "1.txt").write_bytes(b"changed, a needle\n")
        (root / "fresh.txt").write_bytes(b"fresh needle\n")
        (root / "folder2" / "2.txt").unlink()
        assert portal.call(workspace.refresh)
        yield settle(workspace.snapshot())


def ask(snapshot: Snapshot, question: Question, *, slowly: bool = False) -> Answer:
    """Return the answer; ``slowly``: every file is read and matched here."""
    asked = replace(snapshot, ripgrep=None) if slowly else snapshot
    return ask_and_close(lambda project: search(project, question), asked)


def describe(answer: Answer) -> tuple[object, ...]:
    """Return what a caller sees of an answer."""
    hits = list(answer.hits)
    assert len(answer.hits) == len(hits)
    return (
        hits,
        answer.total,
        answer.next,
        answer.files_read,
        answer.skipped,
        answer.complete,
    )


PATTERNS = {
    "literal": Pattern(texts=("needle",), mode="literal", case="sensitive"),
    "insensitive": Pattern(texts=("NEEDLE",), mode="literal", case="insensitive"),
    "word": Pattern(texts=("needle",), mode="literal", case="sensitive", word=True),
    "regex": Pattern(texts=(r"e+d\w*|1:\d",), mode="regex", case="sensitive"),
    "line": Pattern(texts=("a needle",), mode="literal", case="sensitive", line=True),
    "several": Pattern(texts=("quoted", "form"), mode="literal", case="sensitive"),
    "end": Pattern(texts=("needle$",), mode="regex", case="sensitive"),
}

EVERY_HIT = Question(pattern=PATTERNS["literal"], limit=10**6, max_chars=10**9)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_long_page_is_what_is_found_here(
    snapshot: Snapshot, pattern: Pattern, *, as_json: bool
) -> None:
    question = Question(pattern=pattern, limit=10**6, max_chars=10**9, as_json=as_json)
    assert describe(ask(snapshot, question)) == describe(
        ask(snapshot, question, slowly=True)
    )


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("chars", [3_000, 81_234, 123_456, 10**9])
@pytest.mark.parametrize("limit", [2_000, 2_345, 10_000])
def test_limits_end_a_page_at_the_same_hit(
    snapshot: Snapshot, limit: int, chars: int, *, as_text: bool
) -> None:
    question = Question(
        pattern=PATTERNS["literal"],
        limit=limit,
        max_chars=chars,
        as_text=as_text,
        as_json=True,
    )
    page = ask(snapshot, question)
    assert describe(page) == describe(ask(snapshot, question, slowly=True))
    if page.next is None:
        return
    following = replace(question, position=page.next)
    assert describe(ask(snapshot, following)) == describe(
        ask(snapshot, following, slowly=True)
    )
    middle = replace(question, position=Position(0, page.next.path, 1, None))
    assert describe(ask(snapshot, middle)) == describe(
        ask(snapshot, middle, slowly=True)
    )


def test_ripgrep_prints_most_files(snapshot: Snapshot) -> None:
    printer = Printer.of(snapshot, PATTERNS["literal"])
    assert printer is not None
    printed = Printing(printer, snapshot.table.paths).finish()
    read = {
        path for path, hits in zip(printed.files, printed.hits, strict=True) if not hits
    }
    assert len(read) < FILES / 3
    assert read >= {
        b"late.txt",
        b"marked.txt",
        b"wide.txt",
        b"new\nline.txt",
        b"folder1/1.txt",
    }
    snapshot.files.close()


def test_a_file_that_became_a_link_is_read_here(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_bytes(b"a secret needle\n")
    path = Path(os.fsdecode(snapshot.root.path), "folder3", "3.txt")
    kept = tmp_path / "kept.txt"
    path.rename(kept)
    path.symlink_to(secret)
    try:
        page = ask(snapshot, EVERY_HIT)
        assert describe(page) == describe(ask(snapshot, EVERY_HIT, slowly=True))
        assert not [hit for hit in page.results if "secret" in hit["text"]]
    finally:
        path.unlink()
        kept.rename(path)
        snapshot.files.close()


def test_without_a_ripgrep_that_runs_files_are_read_here(snapshot: Snapshot) -> None:
    broken = replace(snapshot, ripgrep=Ripgrep("/nowhere/rg", bundled=True))
    question = Question(pattern=PATTERNS["literal"], limit=10_000, max_chars=10**9)
    assert describe(ask(broken, question)) == describe(
        ask(snapshot, question, slowly=True)
    )


def test_a_page_of_few_characters_is_not_worth_its_start(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    watched = replace(snapshot, ripgrep=Ripgrep(str(program), bundled=True))
    question = Question(pattern=PATTERNS["literal"], limit=10_000, max_chars=3_000)
    assert ask(watched, question).has_hits
    assert not (tmp_path / "started").exists()
    ask(watched, replace(question, max_chars=10**6))
    assert (tmp_path / "started").exists()


def test_a_page_that_few_files_fill_is_not_worth_its_start(tmp_path: Path) -> None:
    """Ripgrep printed all lines of 1,000 files for a page that the first ones filled."""
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    root = tmp_path / "dense"
    root.mkdir()
    for at in range(LEAST_FILES + 10):
        (root / f"{at}.txt").write_bytes(b"many\n" * 40 + b"few\n")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opened(root)) as workspace,
    ):
        portal.call(workspace.wait_indexed)
        watched = replace(
            workspace.snapshot(), ripgrep=Ripgrep(str(program), bundled=True)
        )
        for text, starts in ("many", False), ("few", True):
            pattern = Pattern(texts=(text,), mode="literal")
            question = Question(pattern=pattern, limit=2_000, max_chars=10**6)
            ask(watched, question)
            assert (tmp_path / "started").exists() is starts


def test_files_made_since_an_empty_project_was_indexed_are_found(
    snapshot: Snapshot,
) -> None:
    mark = Mark(ours=True, sequence=1, size=0)
    grown = replace(
        snapshot,
        table=FileTable(),
        pending=dict.fromkeys(snapshot.table.paths, mark),
    )
    assert describe(ask(grown, EVERY_HIT)) == describe(
        ask(grown, EVERY_HIT, slowly=True)
    )


class TurnUntil:
    """A turn that is over once a file is there."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    @property
    def stopped(self) -> bool:
        return self._mark.exists()

    def give_way(self) -> None:
        pass

    pause = resume = give_way


def test_a_cancelled_lookup_ends_the_ripgrep_that_prints_ahead(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    mark = tmp_path / "second"
    program = tmp_path / "rg"
    program.write_text(
        f"#!/bin/sh\n[ -e {first} ] || {{ touch {first}; exit 1; }}\necho $$ > {mark}.new\n"
        f"mv {mark}.new {mark}\nexec sleep 60\n"
    )
    program.chmod(0o755)
    table = snapshot.table
    text_id = int(table.columns[table.find(b"-n"), 0])
    names = [b"zz/%04d" % at for at in range(1_400)]
    gone = [FileRow(name, text_id, "", 1, 1, 1, 1) for name in names]
    grown = replace(
        snapshot,
        table=table.with_changes(gone, ()),
        ripgrep=Ripgrep(str(program), bundled=True),
    )
    question = Question(pattern=PATTERNS["line"], limit=2_000, max_chars=10**9)
    token = CURRENT_TURN.set(TurnUntil(mark))
    try:
        with pytest.raises(Abandoned):
            ask(grown, question)
    finally:
        CURRENT_TURN.reset(token)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


class TurnLostUntil(TurnUntil):
    """A turn that is over when it is asked for again, once a file is there."""

    stopped = False

    def resume(self) -> None:
        until = time.monotonic() + 10
        while not self._mark.exists():
            assert time.monotonic() < until
        raise Abandoned


def test_a_ripgrep_whose_lookup_ends_as_it_starts_is_ended(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    mark = tmp_path / "started"
    program = tmp_path / "rg"
    program.write_text(
        f"#!/bin/sh\necho $$ > {mark}.new\nmv {mark}.new {mark}\nexec sleep 60\n"
    )
    program.chmod(0o755)
    slots = scans._slots._value
    token = CURRENT_TURN.set(TurnLostUntil(mark))
    try:
        with pytest.raises(Abandoned):
            Running.start(Ripgrep(str(program), bundled=True), snapshot.root, [])
    finally:
        CURRENT_TURN.reset(token)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
    assert scans._slots._value == slots


@pytest.mark.parametrize("is_shared", [False, True])
def test_two_ripgreps_run_at_once_unless_others_wait(
    snapshot: Snapshot, tmp_path: Path, *, is_shared: bool
) -> None:
    running = tmp_path / "running"
    program = tmp_path / "rg"
    program.write_text(
        f"#!/bin/sh\nmkdir {running} || touch {tmp_path}/both\nsleep .2\nrmdir {running}\nexit 1\n"
    )
    program.chmod(0o755)
    table = snapshot.table
    text_id = int(table.columns[table.find(b"-n"), 0])
    names = [b"zz/%04d" % at for at in range(2 * LEAST_FILES)]
    gone = [FileRow(name, text_id, "", 1, 1, 1, 1) for name in names]
    grown = replace(
        snapshot,
        table=table.with_changes(gone, ()),
        ripgrep=Ripgrep(str(program), bundled=True, is_shared=is_shared),
    )
    question = Question(pattern=PATTERNS["line"], limit=2_000, max_chars=10**9)
    ask(grown, question)
    assert (tmp_path / "both").exists() is not is_shared


def test_a_deadline_leaves_a_part_of_the_page(snapshot: Snapshot) -> None:
    question = Question(
        pattern=PATTERNS["literal"],
        limit=10_000,
        max_chars=10**9,
        as_json=True,
        deadline=0.0,
    )
    answer = ask(snapshot, question)
    assert not answer.complete
    assert not answer.has_hits


def test_a_deadline_between_two_batches_leaves_a_place_to_go_on(
    snapshot: Snapshot,
) -> None:
    table = snapshot.table
    text_id = int(table.columns[table.find(b"-n"), 0])
    names = [b"zz/%04d" % at for at in range(1_400)]
    gone = [FileRow(name, text_id, "", 1, 1, 1, 1) for name in names]
    grown = replace(snapshot, table=table.with_changes(gone, ()))

    def keep(path: bytes) -> bool:
        if path == names[-1]:
            raise Expired
        return True

    question = Question(pattern=PATTERNS["line"], limit=2_000, max_chars=10**9)
    whole = ask(grown, question)
    part = ask(grown, replace(question, keep=keep))
    assert (part.results, part.complete) == (whole.results, False)
    last = part.results[-1]
    place = os.fsencode(last["file_path"])
    assert part.next == Position(0, place, last["start_line"], None)
