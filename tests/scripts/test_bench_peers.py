"""The comparison with other tools: what they print is read, old answers are counted, missing tools are named."""

import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path
from xml.parsers import expat

import pytest

from scripts.benchmarks import peer_chart, peer_report, peer_results, peers
from scripts.benchmarks.machine import Machine, TreeFacts
from scripts.benchmarks.peer_answers import compare, read_places, scan, scan_words
from scripts.benchmarks.peer_edits import TURNS, planned
from scripts.benchmarks.peer_install import Installer
from scripts.benchmarks.peer_process import NotAvailable, Processes
from scripts.benchmarks.peer_results import CHANGES, Comparison, PeerResult
from scripts.benchmarks.peer_running import RunningPeer
from scripts.benchmarks.peer_tools import PEERS, Form, Peer, Question, Syntax, Way
from scripts.benchmarks.private import Client
from scripts.benchmarks.targets import Targets

RG = Path(sys.executable).with_name("rg")
MACHINE = Machine("x", 2, 8.0, "Linux", "3", "3", "ripgrep 15", 0.5)
TARGETS = Targets(
    rare="needle",
    rarest="pin",
    common="int",
    regex=r"need\w+",
    insensitive="NEEDLE",
    many="int",
    wide=r"in\w+",
)
COPY = Peer(
    "copy", ("sh", "env", "rg"),
    (
        Way(
            "copy",
            ("env", "-C", "{state}/copy", "rg", "-n", "-F", "{flags}", "{text}"),
            ("env", "-C", "{state}/copy", "rg", "-n", "{flags}", "{text}"),
        ),
    ),
    index=("sh", "-c", "rm -rf {state}/copy && cp -r {tree} {state}/copy"), where="{state}/copy",
)  # fmt: skip
"""A tool whose index is a copy of the files: all that it knows is as old as the copy."""
SOCKET_PAGES = (
    b'{"result": {"results": [{"file_path": "a/b.c", "start_line": 7},'
    b' {"file_path": "c.c", "start_line": 1}]}}\n'
    b'{"result": {"results": [{"file_path": "d.c", "start_line": 2}]}}'
)
PROBE_BLOCKS = (
    b'Search:\n{"results": [{"file": "a/b.c", "lines": [7, 9]},'
    b' {"file": "c.c", "lines": [1, 1]},'
    b' {"file": "/tree/d.c", "lines": [2, 3]}]}\nFound 3'
)
PLANTED = 6
"""Files of each tool that are there before its changes."""
ABSENT = Peer("absent", ("no-such-program",), (Way("absent", ("no-such-program",)),))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for number in range(6):
        (folder / f"part{number}").mkdir(parents=True)
        text = f"int first;\nint needle{number};\nint last;\n"
        (folder / f"part{number}" / "a.c").write_text(text)
    (folder / "part0" / "pin.c").write_text("int pin;\n")
    return folder


def compared(tree: Path, tmp_path: Path, *tools: Peer) -> Comparison:
    comparison = Comparison("2026-11-27", MACHINE, TreeFacts("source", 7, 200), "")
    installer = Installer(tmp_path / "cache", None, RG.parent)
    bench = peers.Bench(
        tmp_path, tree, RG, installer, tools, round_seconds=0.0, idle_seconds=0.0
    )
    peers.measure(comparison, bench, TARGETS)
    return comparison


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        (
            Form.LINES,
            b"a/b.c:7:x: 9: y\n./c.c:1:z\n/tree/d.c:2:\nbinary file matches\n",
        ),
        (Form.SOCKET, SOCKET_PAGES),
        (Form.PROBE, PROBE_BLOCKS),
    ],
)
def test_what_a_tool_prints_is_read(form: Form, printed: bytes) -> None:
    places = read_places(printed, form, Path("/tree"))
    assert places == {(b"a/b.c", 7), (b"c.c", 1), (b"d.c", 2)}


def test_missing_and_extra_lines_are_told_apart() -> None:
    expected = {(b"a", 1), (b"a", 2)}
    difference = compare({(b"a", 2), (b"b", 1)}, expected, Form.LINES)
    assert (difference.missing, difference.extra, difference.expected) == (1, 1, 2)
    assert not compare(expected, expected, Form.LINES)
    assert not compare({(b"a", 9)}, expected, Form.PROBE)  # a block of the same file


def test_the_oracle_is_a_scan_of_the_disk_now(tree: Path) -> None:
    question = Question("regex", r"needle[12]", Syntax.REGEX)
    assert scan(RG, tree, question) == {(b"part1/a.c", 2), (b"part2/a.c", 2)}
    assert len(scan(RG, tree, Question("insensitive", "NEEDLE"))) == 6
    (tree / "part1" / "a.c").unlink()
    assert scan(RG, tree, question) == {(b"part2/a.c", 2)}
    assert scan_words(RG, tree, ["pin", "needle2"]) == {
        "pin": {(b"part0/pin.c", 1)},
        "needle2": {(b"part2/a.c", 2)},
    }


def test_each_change_makes_the_disk_say_something_else(tree: Path) -> None:
    changes = planned("x", tree, ["part0/a.c", "part5/a.c"])
    assert [change.kind for change in changes] == list(CHANGES) * TURNS
    for change in changes:
        change.plant()
        before = scan_words(RG, tree, change.words)
        change.make()
        assert scan_words(RG, tree, change.words) != before, change.kind


def test_old_answers_are_counted_and_missing_tools_named(
    tree: Path, tmp_path: Path
) -> None:
    ripgrep = PEERS[0]
    comparison = compared(tree, tmp_path, ripgrep, COPY, ABSENT)
    scanning, copied, absent = comparison.peers
    assert absent.not_run.startswith("no no-such-program on PATH")
    assert (scanning.wrong, copied.wrong) == ([], [])
    assert scanning.freshness is not None
    assert set(scanning.freshness.stale.values()) == {0}
    assert copied.freshness is not None
    assert copied.freshness.stale == dict.fromkeys(CHANGES, TURNS)
    assert copied.freshness.later == 0  # it was indexed again
    assert copied.indexing is not None
    assert copied.indexing.disk_mb < 1
    exact = [row for row in comparison.questions if row.lines >= 0]
    assert [row.lines for row in exact][:4] == [6, 1, 0, 19 + 3 * PLANTED]
    for row in exact:
        assert set(row.times) == {"rg", "copy"}
        assert all(cell.p50 > 0 and cell.runs >= 3 for cell in row.times.values())


def test_an_index_that_forgets_files_is_told_as_wrong(
    tree: Path, tmp_path: Path
) -> None:
    forgets = "test ! -e {state}/copy && cp -r {tree} {state}/copy && rm -r {state}/copy/part3"
    forgetful = replace(COPY, name="forgetful", index=("sh", "-c", forgets))
    (result,) = compared(tree, tmp_path, forgetful).peers
    assert result.wrong[0] == "copy, rare literal: 1 missing, 0 too many of 6"
    assert result.wrong[-1].startswith("after changes: sh fails")


def test_an_indexed_tool_that_is_installed_is_compared(
    tree: Path, tmp_path: Path
) -> None:
    for peer in PEERS:
        if peer.index and peer.ways[0].literal and peer.name != "flashgrep":
            if all(shutil.which(program) for program in peer.programs):
                break
    else:
        pytest.skip("none of the indexed tools is on PATH")
    (result,) = compared(tree, tmp_path, peer).peers
    assert (result.not_run, result.wrong) == ("", [])
    assert result.indexing is not None
    assert result.freshness is not None


def test_a_failing_index_is_not_taken_for_one(tree: Path, tmp_path: Path) -> None:
    failing = Peer("failing", ("sh",), index=("sh", "-c", "echo broken >&2; exit 1"))
    (result,) = compared(tree, tmp_path, failing).peers
    assert result.not_run == "sh fails: broken"


def test_no_process_of_a_tool_stays(tmp_path: Path) -> None:
    processes = Processes(tmp_path, {"PATH": "/usr/bin:/bin"}, "server")
    others = Processes(tmp_path, {"PATH": "/usr/bin:/bin"}, "other")
    processes.start(["sleep", "300"])
    assert list(others.running()) == []
    assert len(list(processes.running())) == 1
    processes.end()
    assert list(processes.running()) == []


def test_a_daemon_that_ends_fails_one_answer_only(tree: Path, tmp_path: Path) -> None:
    way = Way("socket", form=Form.SOCKET)
    processes = Processes(tree, {}, "ours")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "daemon.sock"))
        listener.listen()
        running = RunningPeer(
            COPY, PeerResult("ours"), tree, tmp_path, processes,
            Client(str(tmp_path / "daemon.sock")),
        )  # fmt: skip
        listener.accept()[0].close()
        with pytest.raises(NotAvailable, match="socket"):
            running.ask(way, Question("miss", "needle"))
    assert running.client is None  # the next call connects again


def test_tables_chart_and_file_show_the_same_run(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison = compared(tree, tmp_path, PEERS[0], COPY, ABSENT)
    monkeypatch.setattr(peer_results, "FOLDER", tmp_path / "runs")
    assert peer_results.load(peer_results.save(comparison)) == comparison
    table = list(peer_report.question_table(comparison))
    assert table[0] == "| Question (lines) | rg | copy |"
    assert len(table) == 2 + len(comparison.questions)
    assert all("**" in row for row in table[2:-1])
    tools = list(peer_report.tool_table(comparison))
    assert tools[-1].startswith("| absent |  |  |  |  |  | not run: no no-such-program")
    assert "| 2 of 2 | 2 of 2 | 2 of 2 | 2 of 2 | 0 of 8 |" in tools[-2]
    circles: list[dict[str, str]] = []

    def note(name: str, attributes: dict[str, str]) -> None:
        if name == "circle":
            circles.append(attributes)

    parser = expat.ParserCreate()
    parser.StartElementHandler = note
    parser.Parse(peer_chart.draw(comparison), True)
    assert len(circles) == 2 * 8 + 2  # a mark for each of eight rows, and the legend
    for circle in circles:
        assert 0 < float(circle["cx"]) < peer_chart.WIDTH


def test_a_tool_of_no_registry_says_how_to_get_it(tmp_path: Path) -> None:
    installer = Installer(tmp_path / "cache", None, tmp_path)
    with pytest.raises(NotAvailable, match="--programs"):
        installer.path_of(ABSENT)
    assert not (tmp_path / "cache").exists()


def test_a_tool_in_the_named_folder_is_taken(tmp_path: Path) -> None:
    program = tmp_path / "no-such-program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = Installer(tmp_path / "cache", tmp_path, RG.parent).path_of(ABSENT)
    assert str(tmp_path) in path.split(":")
