"""Answers as a model gets them: text alone, compact, saying what is unusual in words that can be acted on."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flashgrep.mcp.service import INSTRUCTIONS
from flashgrep.methods.text import Style, find_notes
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.mcp_clients import LineTransport, McpClient, transport

CHOSEN_AMONG = (
    "query",
    "get_symbol",
    "search_code",
    "code_research",
    "list_files",
    "get_slice",
    "read_code",
    "outline",
    "repo_map",
)
"""Tools that answer like questions: each says when it is the one."""
FILES = {
    "src/config.py": 'def parse_config(path):\n    """Read settings."""\n    return open(path)\n',
    "src/main.py": "from config import parse_config\n\n\ndef main():\n    parse_config('a')\n    parse_config('b')\n",
    "docs/crlf.txt": "one\r\ntwo\r\nno end",
}


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text") / "project"
    for name, text in {".git/x": "", **FILES}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    (folder / "blob.bin").write_bytes(b"\0\1")
    daemon.add(folder)
    wire = daemon.wire("unix", folder)
    assert wire.call("index_codebase", path=".")["complete"]
    wire.close()
    return folder


@pytest.fixture(scope="module", params=["shim", "unix", "tcp", "http"])
def model(
    request: pytest.FixtureRequest, daemon: DaemonAtHand, root: Path
) -> Iterator[McpClient]:
    client = McpClient(
        transport(request.param, daemon, root, structured=False), "legacy"
    )
    client.start()
    yield client
    client.transport.close()


def read(client: McpClient, tool: str, **arguments: Any) -> str:
    """Return the text of an answer, which is all there is of it."""
    result = client.call(tool, **arguments)
    assert result.keys() == {"content", "isError"}
    [content] = result["content"]
    assert content.keys() == {"type", "text"}
    return str(content["text"])


def count_tokens(told: Any) -> float:
    """Return at most how many tokens JSON takes, at four characters each; of these lists cl100k has 4.4 in one."""
    return len(json.dumps(told, ensure_ascii=False, separators=(",", ":"))) / 4


def test_what_every_conversation_begins_with_is_short(
    daemon: DaemonAtHand, root: Path, model: McpClient
) -> None:
    assert count_tokens(model.request("tools/list")["tools"]) <= 2_300
    assert count_tokens(INSTRUCTIONS) <= 250
    wire = daemon.wire("unix")
    wire.call("$/bind", project=str(root), toolsets=["all"])
    everything = McpClient(LineTransport(wire), "legacy").request("tools/list")["tools"]
    wire.close()
    assert count_tokens(everything) <= 7_700
    unbound = daemon.wire("unix")
    tools = McpClient(LineTransport(unbound), "legacy").request("tools/list")["tools"]
    unbound.close()
    assert "project" in tools[0]["inputSchema"]["properties"], (
        "a connection that has to name its project"
    )
    assert count_tokens(tools) <= 2_420
    # A connection to several projects names one in each call, and never has to index.
    several = [tool for tool in tools if tool["name"] != "index_codebase"]
    assert count_tokens(several) <= 2_300
    assert all(
        "Use it" in tool["description"]
        for tool in everything
        if tool["name"] in CHOSEN_AMONG
    )


def test_tools_have_no_output_schemas(model: McpClient) -> None:
    assert all(
        "outputSchema" not in tool for tool in model.request("tools/list")["tools"]
    )


def test_hits_stand_below_their_file(model: McpClient) -> None:
    assert read(model, "query", text="parse_config") == (
        "src/config.py\n1:def parse_config(path):\n"
        "src/main.py\n1:from config import parse_config\n5:    parse_config('a')\n6:    parse_config('b')"
    )
    assert read(model, "query", text="'a'", context=1) == (
        "src/main.py\n4-def main():\n5:    parse_config('a')\n6-    parse_config('b')"
    )
    assert (
        read(model, "query", text="parse_config", output="files")
        == "src/config.py\nsrc/main.py"
    )
    assert (
        read(model, "query", text="parse_config", output="count")
        == "src/config.py:1\nsrc/main.py:3"
    )


def test_a_cut_answer_says_how_to_go_on(model: McpClient) -> None:
    first, note = read(model, "query", text="parse_config", limit=3).rsplit("\n", 1)
    assert note.startswith("[3 of 4 shown; more: cursor=")
    cursor = note.removesuffix("]").partition("cursor=")[2]
    assert (
        read(model, "query", text="parse_config", limit=3, cursor=cursor)
        == "src/main.py\n6:    parse_config('b')"
    )
    assert first.endswith("5:    parse_config('a')")


def test_nothing_found_says_what_was_searched_and_what_is_near(
    model: McpClient,
) -> None:
    assert read(model, "query", text="confyg").startswith(
        "[nothing found in 3 files (skipped: 1 binary)]"
    )
    assert "near: parse_config" in read(model, "get_symbol", symbol_name="parse_confg")


def test_a_text_that_is_nowhere_gets_few_lines_and_says_so_first(
    model: McpClient, root: Path
) -> None:
    words = root / "src" / "words.py"
    words.write_text(
        "".join(f"# such a line has whatever no {n}\n" for n in range(30))
        + "# the zebra and whatever\n"
    )
    try:
        answer = read(model, "query", query="no such zebra whatsoever is here")
        assert answer.splitlines() == [
            "[nothing has this text; nearest:]",
            "src/words.py",
            "31:# the zebra and whatever",
        ]
        absent = read(model, "query", query="quagga okapi whatsoever")
        assert absent.startswith("[nothing found in ")
        assert len(absent.splitlines()) <= 2
    finally:
        words.unlink()


def test_a_message_is_found_though_it_names_its_occasion(
    model: McpClient, root: Path
) -> None:
    texts = {
        "README.md": "The request was refused.\n",
        "data.json": f'{{"log": "failed to list all plugins {"refused " * 300}"}}\n',
        "src/plugins.go": 'log.Error("failed to list plugins", "err", err)\n',
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    try:
        answer = read(
            model, "query", query="failed to list plugins: connection refused"
        )
        assert answer.splitlines()[:3] == [
            "[nothing has this text; nearest:]",
            "src/plugins.go",
            '1:log.Error("failed to list plugins", "err", err)',
        ]
        assert len(answer) < 800
    finally:
        for name in texts:
            (root / name).unlink()


def test_of_several_projects_too_the_nearest_lines_are_few(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    texts = {f"{n}.py": f"# the zebra of {n}\n" for n in range(5)}
    others = [
        project({**texts, "z.py": "# the zebra's question\n" * 2}) for _ in range(2)
    ]
    for other in others:
        daemon.add(other)
    wire = daemon.wire("unix")
    wire.call("$/bind", structured=False)
    answer = read(
        McpClient(LineTransport(wire), "legacy"),
        "query",
        query="zebra question",
        projects=list(map(str, others)),
    )
    wire.close()
    assert answer.startswith("[nothing has this text; nearest:]")
    assert len(re.findall(r"^\d+:", answer, re.MULTILINE)) == 3
    assert answer.count("the zebra's question") == 3


def test_of_the_nearest_lines_definitions_come_first_and_prose_last(
    model: McpClient, root: Path
) -> None:
    texts = {
        "CHANGELOG.md": "- handle_ticket is new\n- handle_tickets, too\n" * 3,
        "src/desk.py": "a = rehandle_ticket(1)\n\n\ndef handle_ticket(number: int):\n    pass\n",
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    try:
        answer = read(model, "query", query="def handle_ticket(ticket)")
        assert answer.splitlines()[:3] == [
            "[nothing has this text; nearest:]",
            "src/desk.py",
            "4:def handle_ticket(number: int):",
        ]
    finally:
        for name in texts:
            (root / name).unlink()


def test_a_misspelt_name_is_answered_with_those_near_it(model: McpClient) -> None:
    assert "[near: parse_config" in read(model, "query", query="parse_cnofig")


def test_no_file_of_the_kind_asked_for_is_said(model: McpClient) -> None:
    answer = read(model, "query", query="parse_config", include=["**/*.go"])
    assert answer.startswith("[nothing found: no file is asked")


@pytest.mark.parametrize("style", [Style(), Style(is_person=True)])
def test_an_empty_answer_cut_by_the_deadline_is_not_one_about_no_file(
    style: Style,
) -> None:
    coverage = {"complete": False, "files_searched": 0, "files_skipped": {}}
    assert list(find_notes({"results": [], "coverage": coverage}, style)) == [
        "nothing found",
        "incomplete: the deadline was reached",
    ]


def test_lines_of_a_file_ascend_and_sources_come_before_prose_and_generated_code(
    model: McpClient, root: Path
) -> None:
    texts = {
        "CHANGELOG.md": "# RATIO_REF\nRATIO_REF is new\n",
        "dist/out.py": "x = env['RATIO_REF']\n",
        "src/uses.py": "a = 1\nb = 'RATIO_REF_OLD'\nc = env['RATIO_REF']\n"
        "d = 'RATIO_REF_OLD'\n",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    try:
        answer = read(model, "query", query="RATIO_REF").splitlines()
        assert answer[0] == "src/uses.py"
        assert [line[:2] for line in answer[1:4]] == ["2:", "3:", "4:"]
        assert set(answer[4:]) >= {"CHANGELOG.md", "dist/out.py"}
    finally:
        for name in texts:
            (root / name).unlink()
        (root / "dist").rmdir()


def test_a_page_is_filled_by_tokens_not_by_ten_lines(
    model: McpClient, root: Path
) -> None:
    many = root / "src" / "many.py"
    many.write_text("".join(f"call_many({n})\n" for n in range(400)))
    try:
        lines = read(model, "query", query="call_many").splitlines()
        assert 60 <= len(lines) <= 110
        assert "of 400 shown; more: cursor=" in lines[-1]
        assert len("\n".join(lines)) <= 2_400
        few = read(model, "query", query="call_many", limit=3).splitlines()
        assert len(few) == 5
    finally:
        many.unlink()


def test_a_line_is_shown_once_however_often_it_has_the_name(
    model: McpClient, root: Path
) -> None:
    twice = root / "src" / "twice.py"
    twice.write_text("def turn_twice(x): ...\n\n\ny = turn_twice(turn_twice(1))\n")
    try:
        lines = read(model, "get_symbol", symbol_name="turn_twice").splitlines()
        assert sum("y = turn_twice" in line for line in lines) == 1
    finally:
        twice.unlink()


def test_a_symbol_is_its_places(model: McpClient) -> None:
    assert read(model, "get_symbol", symbol_name="parse_config") == (
        "src/config.py:1-3 function def parse_config(path):\n"
        "src/main.py\n5 call in main: parse_config('a')\n6: parse_config('b')\n"
        "1 import: from config import parse_config"
    )


def test_code_found_by_meaning_stands_below_its_place_and_the_rest_are_places(
    model: McpClient, root: Path
) -> None:
    step = "".join(
        f"    motor.step({at})  # on and on to the next one\n" for at in range(30)
    )
    names = [
        f"turn_{part}_of_telescope" for part in ("mirror", "mirrors", "mirror_slowly")
    ]
    files = [root / "src" / f"telescope_{at}.py" for at in range(len(names))]
    for file, name in zip(files, names, strict=True):
        file.write_text(f"def {name}(motor):\n{step}")
    try:
        first, places = read(
            model, "search_code", query="turn the mirror of the telescope"
        ).split("\n\n")
        heading, code = first.split("\n", 1)
        assert heading.startswith("src/telescope_0.py:1-31 turn_mirror_of_telescope (")
        assert f"{code}\n" == files[0].read_text()
        lines = places.split("\n")
        others = [line for line in lines if line.startswith("src/telescope")]
        assert sorted(others) == [
            f"src/telescope_{at}.py: {names[at]} 1-31" for at in (1, 2)
        ]
        assert all(re.fullmatch(r"\S+: .*\d|\[.*\]", line) for line in lines)
        everything = read(
            model,
            "search_code",
            query="turn the mirror of the telescope",
            max_tokens=4000,
            limit=50,
        )
        assert all(file.read_text() in everything + "\n" for file in files)
        assert "src/config.py" in everything
        cut = read(
            model,
            "search_code",
            query="turn the mirror of the telescope",
            max_tokens=200,
            limit=1,
        )
        assert len(cut) < 900
        assert re.search(r"^… \d+-31$", cut, re.MULTILINE)
    finally:
        for file in files:
            file.unlink()


def test_a_read_is_a_header_and_the_lines_as_they_are(model: McpClient) -> None:
    header, lines = read(
        model, "get_slice", file_path="src/main.py", start_line=4, end_line=5
    ).split("\n", 1)
    assert header.startswith("src/main.py:4-5 #")
    assert lines == "def main():\n    parse_config('a')\n"
    header, lines = read(model, "read_code", symbol_name="main").split("\n", 1)
    assert header.startswith("src/main.py:4-6 of 6 #")
    header, lines = read(
        model, "read_code", symbol_name="main", symbol_context_lines=1
    ).split("\n", 1)
    assert header.startswith("src/main.py:3-6 of 6 #")
    header, lines = read(model, "read_code", file_path="docs/crlf.txt").split("\n", 1)
    assert header.startswith("docs/crlf.txt:1-3 of 3 #")
    assert header.endswith(" CRLF")
    assert lines == "one\r\ntwo\r\nno end\n[no line end at the end of the file]"
    cut = read(model, "read_code", file_path="src/main.py", max_lines=2)
    assert cut.endswith("\n[cut at line 2; continue with continuation_start_line=3]")


def test_the_short_hash_of_a_read_guards_a_write(model: McpClient, root: Path) -> None:
    (root / "note.txt").write_text("a\n")
    header = read(
        model, "get_slice", file_path="note.txt", start_line=1, end_line=1
    ).splitlines()[0]
    change = {"file_path": "note.txt", "old_text": "a", "new_text": "b"}
    precondition = {"expected_file_hash": header.split()[-1]}
    assert not model.call("write_code", **change, precondition=precondition)["isError"]
    refused = model.call(
        "write_code", **{**change, "old_text": "b"}, precondition=precondition
    )
    assert refused["isError"]
    assert "precondition_failed" in refused["content"][0]["text"]
    (root / "note.txt").unlink()


def test_a_refused_write_shows_the_lines_it_is_about(
    model: McpClient, root: Path
) -> None:
    file = root / "guarded.txt"
    file.write_text("one\ntwo\nthree  words here\n")
    try:
        change = {"path": "guarded.txt", "start_line": 2, "end_line": 2}
        refused = model.call(
            "write_code", **change, replacement="x\n", expected_file_hash="#00000000"
        )["content"][0]["text"]
        assert "precondition_failed" in refused
        assert re.search(r"now it is\n#[0-9a-f]{8}\n2:two$", refused)
        missing = model.call(
            "write_code", path="guarded.txt", old_text="three words here", new_text="x"
        )["content"][0]["text"]
        assert missing.endswith("now it is\n3:three  words here")
        nowhere = model.call(
            "write_code", path="guarded.txt", old_text="%%%%", new_text="x"
        )["content"][0]["text"]
        assert nowhere.endswith("now it is\nwithout a line like its first")
        twice = model.call(
            "write_code", path="guarded.txt", old_text="w", new_text="x"
        )["content"][0]["text"]
        assert "give more of the text around it" in twice
        assert twice.endswith("now it is\n2:two\n3:three  words here")
        assert file.read_text() == "one\ntwo\nthree  words here\n"
    finally:
        file.unlink()


def test_a_batch_tells_the_new_hash_of_each_file(model: McpClient, root: Path) -> None:
    for name in ("first.txt", "second.txt"):
        (root / name).write_text("a\n")
    try:
        edit = {"old_text": "a", "new_text": "b"}
        paths = ["first.txt", "second.txt"]
        applied = read(model, "batch_write_code", operations=[{**edit, "paths": paths}])
        hashes = re.findall(r"(\w+\.txt) (#[0-9a-f]{8})", applied)
        assert [path for path, _ in hashes] == paths
        again = {"path": "first.txt", "old_text": "b", "new_text": "c"}
        assert not model.call(
            "batch_write_code",
            operations=[{**again, "expected_file_hash": hashes[0][1]}],
        )["isError"]
    finally:
        for name in ("first.txt", "second.txt"):
            (root / name).unlink()


def test_writes_say_what_became_of_them(model: McpClient, root: Path) -> None:
    made = read(
        model,
        "write_code",
        file_path="new.txt",
        replacement="a\nb\n",
        precondition={"expected_absent": True},
    )
    assert made.startswith("new.txt made, 2 lines now #")
    refused = model.call("write_code", file_path="new.txt", replacement="other\n")[
        "content"
    ][0]["text"]
    assert (
        "guidance: the file exists: say which lines, or old_text; fs_write replaces it"
        in refused
    )
    stale = model.call(
        "write_code",
        file_path="new.txt",
        old_text="b",
        new_text="c",
        precondition={"expected_file_hash": "0" * 64},
    )
    assert "now it is\n#" in stale["content"][0]["text"]
    diff = read(
        model,
        "write_code",
        file_path="new.txt",
        old_text="b",
        new_text="c",
        dry_run=True,
    )
    assert "-b\n+c" in diff
    assert diff.endswith("[dry run: nothing is written]")
    operations = [{"id": "1", "file_path": "new.txt", "old_text": "a", "new_text": "x"}]
    operations += [
        {"id": "2", "file_path": "gone.txt", "old_text": "a", "new_text": "x"}
    ]
    lines = read(
        model, "batch_write_code", operations=operations, mode="best_effort"
    ).splitlines()
    assert lines[0].startswith("1: new.txt applied #")
    assert lines[1].startswith("2: gone.txt failed file_not_found")
    assert (root / "new.txt").read_text() == "x\nb\n"
    (root / "new.txt").unlink()


def test_an_edit_of_a_file_that_is_not_there_names_those_near_it(
    model: McpClient,
) -> None:
    edit = {"path": "lib/main.py", "old_text": "a", "new_text": "b"}
    near = "file not found: lib/main.py; near: src/main.py"
    assert near in read(model, "read_code", path="lib/main.py")
    assert near in read(model, "write_code", **edit)
    assert near in read(model, "batch_write_code", operations=[edit])


def test_files_and_folders_are_printed_in_a_line_each(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    daemon.add(tmp_path)
    wire = daemon.wire("unix")
    wire.call("$/bind", project=str(tmp_path), toolsets=["all"])
    model = McpClient(LineTransport(wire), "legacy")
    model.start()
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert (
        "path: needed: which file or folder?"
        in model.call("fs_create")["content"][0]["text"]
    )
    stopped = read(model, "watch_codebase", path=str(tmp_path), action="stop")
    assert (
        stopped
        == f"{tmp_path}: stopped, from now on: each question scans the whole tree"
    )
    assert re.fullmatch(
        f"fs/a.txt 0 {time}", read(model, "fs_create", path="fs/a.txt", parents=True)
    )
    assert re.fullmatch(
        rf"fs/a.txt \d+ {time}\n\[dry run: nothing is written\]",
        read(model, "fs_write", path="fs/a.txt", content="é", dry_run=True),
    )
    read(model, "fs_write", path="fs/a.txt", content="one\r\ntwo")
    assert re.fullmatch(
        r"fs/a\.txt #[0-9a-f]{8} CRLF\none\r\ntwo\n\[no line end .*\]",
        read(model, "fs_read", path="fs/a.txt"),
    )
    assert (
        read(model, "fs_copy", src="fs/a.txt", dst="fs/b.txt")
        == "copied fs/a.txt to fs/b.txt"
    )
    assert (
        read(
            model, "fs_move", src="fs/b.txt", dst="fs/c.txt", dry_run=True
        ).splitlines()[0]
        == "moved fs/b.txt to fs/c.txt"
    )
    first, note = read(model, "fs_list", path="fs", limit=1).splitlines()
    assert re.fullmatch(f"fs/a.txt 8 {time}", first)
    assert note == "[1 of 2 shown; more: offset=1]"
    assert re.fullmatch(f"fs directory {time}", read(model, "fs_stat", path="fs"))
    assert (
        read(model, "fs_remove", path="fs/z.txt", force=True)
        == "removed fs/z.txt\n[it was not there]"
    )
    assert read(model, "fs_remove", path="fs", recursive=True) == "removed fs"
    wire.close()


def test_stats_of_the_index_are_a_few_lines(model: McpClient, root: Path) -> None:
    # Other tests make files that may not be forgotten yet.
    stats = read(model, "stats")
    assert re.match(rf"project \({root}\), flashgrep .*\n\d files, \d+ lines, ", stats)
    assert re.match(
        rf"project \({root}\): \d files, .*, ready, in ",
        read(model, "index_codebase", path=str(root)),
    )
    watched = read(model, "watch_codebase", path=str(root), action="status")
    assert re.fullmatch(rf"{root}: watching \d files, as before", watched)


def test_the_skill_comes_as_it_is(model: McpClient) -> None:
    first = read(model, "bootstrap_skill", force=True)
    assert first.startswith("flashgrep-init: injected, skill ")
    assert "\n# flashgrep\n" in first
    assert read(model, "bootstrap_skill", compact=True).count("\n") <= 1


def test_paths_stand_one_a_line(model: McpClient) -> None:
    assert read(model, "list_files", include=["src/**"]) == "src/config.py\nsrc/main.py"
    assert read(model, "glob", pattern="src/*.py") == "src/config.py\nsrc/main.py"
    by_size = read(model, "glob", pattern="src/*.py", sort_by="size", sort_order="desc")
    assert by_size.splitlines()[0] == f"src/main.py {len(FILES['src/main.py'])}"


def test_research_shows_the_lines_that_prove_it(model: McpClient) -> None:
    told = read(model, "code_research", query="who calls parse_config").splitlines()
    assert told == [
        "src/config.py:1-3 function parse_config",
        "src/main.py",
        "5 main: parse_config('a')",
        "6: parse_config('b')",
    ]
    told = read(model, "code_research", query="how does a program begin").splitlines()
    assert told[0].startswith("a question in other words")
    assert any("src/main.py" in line for line in told)
    assert read(model, "outline", path="src/main.py") == "src/main.py\n4-6 main()"
    whole = "src/config.py\n1-3 parse_config(path)\nsrc/main.py\n4-6 main()"
    assert read(model, "outline", path="src") == whole
    beside = "\n[files not mapped: docs/ (1); list_files, outline]"
    assert read(model, "repo_map") == whole + beside
    assert (
        read(model, "outline", path="src/config.py", everything=True)
        == "src/config.py\n1-3 parse_config(path)"
    )
    assert (
        read(
            model, "repo_map", path="src", max_tokens=50, mentions="main"
        ).splitlines()[-1]
        == "4-6 main()"
    )


def test_a_failure_says_what_and_why(model: McpClient) -> None:
    failed = model.call("query", text="(", mode="regex")
    assert failed["isError"]
    assert failed["content"][0]["text"].startswith("error -32602 invalid_pattern: ")
    assert "structuredContent" not in failed
    text = read(model, "read_code", file_path="nope.py")
    assert text.startswith("error -32001 file_not_found: ")
    assert "nope.py" in text
    assert read(model, "read_code", symbol_name="parse_confg").count("near") == 1
    assert read(model, "read_code", path="src/confg.py").count("near") == 1


def test_reading_a_folder_names_what_is_in_it(model: McpClient) -> None:
    text = read(model, "read_code", path="src")
    assert text.startswith("error -32602 not_a_file: ")
    assert "list_files" in text
    assert "holds: config.py, main.py" in text


def test_a_folder_with_more_than_is_named_says_so(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({f"many/{number:02}.txt": "x" for number in range(32)})
    assert daemon.run("index", "--wait", "all", ".", cwd=root).returncode == 0
    wire = daemon.wire("unix", root)
    holds = wire.fail("read_code", path="many")["data"]["holds"]
    wire.close()
    assert holds.endswith("28.txt, 29.txt, and 2 more")


def test_a_path_elsewhere_is_told_where_the_project_is_and_whose_it_is(
    daemon: DaemonAtHand, root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere"
    (other / ".git").mkdir(parents=True)
    (other / "a.py").write_text("x = 1\n")
    daemon.add(other)
    for wire, is_users in (("shim", True), ("http", False)):
        client = McpClient(transport(wire, daemon, root, structured=False), "legacy")
        client.start()
        text = read(client, "read_code", path=str(other / "a.py"))
        assert "outside_root" in text
        assert f"relative to {root}" in text
        assert ("it is in elsewhere: " in text) == is_users
        client.transport.close()


def test_an_odd_name_can_be_passed_back(model: McpClient, root: Path) -> None:
    odd = root / "odd"
    odd.mkdir()
    (odd / "a\nb.py").write_text("")
    (root / "odd" / b"\xff.py".decode("utf-8", "surrogateescape")).write_text("raw\n")
    first, second = sorted(read(model, "list_files", include=["odd/**"]).splitlines())
    assert first == '"odd/a\\nb.py"'
    raw = second.partition("file_path_bytes ")[2].rstrip(")")
    assert read(
        model, "get_slice", file_path_bytes=raw, start_line=1, end_line=1
    ).endswith("\nraw\n")
    for file in odd.iterdir():
        file.unlink()
    odd.rmdir()


@pytest.fixture
def loom(root: Path) -> Iterator[Path]:
    """Return a folder of the project for one test."""
    folder = root / "loom"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def test_hits_of_a_file_stand_together_and_long_lines_are_cut_around_the_match(
    model: McpClient, loom: Path
) -> None:
    (loom / "a.py").write_text("def weft():\n    pass\n\n\nx = weft_long\n")
    (loom / "b.py").write_text(f"{'a' * 300} weft {'b' * 300}\nweft()\n")
    told = read(model, "query", query="weft", path="loom")
    paths = [line for line in told.splitlines() if line.startswith("loom/")]
    assert sorted(paths) == ["loom/a.py", "loom/b.py"]
    assert f"1:…{'a' * 39} weft {'b' * 75}…" in told.splitlines()
    (loom / "b.py").write_text(f"weft {'b' * 1_500}\n")
    assert (
        f"1:weft {'b' * 115}…"
        in read(model, "query", query="weft", path="loom").splitlines()
    )


def test_uses_of_one_role_have_it_said_once(model: McpClient, loom: Path) -> None:
    (loom / "a.py").write_text(
        "def weft():\n    pass\n\n\ndef weave():\n    weft()\n    weft()\n\n\nweft()\n"
    )
    told = read(model, "get_symbol", symbol_name="weft", role=["call"], path="loom")
    assert told == "call in:\nloom/a.py\n6 weave: weft()\n7: weft()\n10 weft()"
    told = read(model, "code_research", query="who calls weft")
    assert "loom/a.py\n6 weave: weft()\n7: weft()\n10 weft()" in told


def test_subclasses_are_listed_by_their_lines_once(
    model: McpClient, loom: Path
) -> None:
    (loom / "a.py").write_text(
        "class Loom:\n    pass\n\n\nclass Jacquard(Loom):\n    pass\n\n\nclass Jenny(Loom):\n    pass\n"
    )
    told = read(model, "code_research", query="subclasses of Loom").splitlines()[1:]
    assert told == [
        "loom/a.py:1-2 class Loom",
        "loom/a.py",
        "5 class Jacquard(Loom):",
        "9 class Jenny(Loom):",
    ]


def test_implementations_by_extension_are_listed_by_their_lines_once(
    model: McpClient, loom: Path
) -> None:
    (loom / "a.rs").write_text(
        "trait Weave {}\nstruct Jenny;\nimpl Weave for Jenny {}\nimpl Weave for str {}\n"
    )
    told = read(model, "code_research", query="what implements Weave").splitlines()[1:]
    assert told == [
        "loom/a.rs:1 trait Weave",
        "loom/a.rs",
        "3 impl Weave for Jenny {}",
        "4 impl Weave for str {}",
    ]


def test_a_question_in_other_words_is_answered_and_not_denied(
    model: McpClient,
) -> None:
    told = read(model, "code_research", query="how does main parse its two files?")
    assert told.startswith("a question in other words, as search_code answers it:\n")
    assert "src/main.py" in told
    assert "nothing found" not in told


def test_words_that_are_no_name_are_answered_by_search(model: McpClient) -> None:
    told = read(model, "code_research", query="tests for settings")
    assert "nothing found" in told.splitlines()[0]
    assert told.splitlines()[0].endswith("as search_code answers it:")
    assert "src/config.py" in told


def test_a_path_begins_with_the_definitions_that_are_on_it(
    model: McpClient, loom: Path
) -> None:
    (loom / "a.py").write_text("def weft(): ...\n\n\ndef weave():\n    weft()\n")
    (loom / "b.py").write_text("def weave(): ...\n")
    told = read(model, "code_research", query="path from weave to weft")
    assert "loom/a.py" in told
    assert "loom/b.py" not in told


def test_the_tests_of_an_impact_are_named_once_by_file(
    model: McpClient, loom: Path
) -> None:
    (loom / "a.py").write_text("def weft(): ...\n\n\ndef weave():\n    weft()\n")
    (loom / "tests").mkdir()
    (loom / "tests" / "test_a.py").write_text(
        "from loom.a import weft\n\n\ndef test_one():\n    weft()\n\n\ndef test_two():\n    weft()\n"
    )
    told = read(model, "code_research", query="impact of weft")
    assert told.splitlines()[-2:] == [
        "[tests: 2 in 1 file; tests=true]",
        "tests: loom/tests/test_a.py test_one, test_two",
    ]
    assert "perhaps" not in told
    told = read(model, "code_research", query="impact of weft", tests=True)
    assert told.count("test_one") == 1


def test_several_edits_that_were_made_are_one_line(
    model: McpClient, loom: Path
) -> None:
    for name in ("a.py", "b.py"):
        (loom / name).write_text("weft\n")
    edits = [
        {"path": f"loom/{name}", "old_text": "weft", "new_text": "warp"}
        for name in ("a.py", "b.py")
    ]
    told = read(model, "batch_write_code", operations=edits)
    assert re.fullmatch(r"applied: 1 #\w{8}, 2 #\w{8}", told)
    told = read(
        model,
        "batch_write_code",
        operations=[{**edits[0], "old_text": "warp", "new_text": "weft"}, edits[1]],
        mode="best_effort",
    )
    assert told.startswith("1: loom/a.py applied #")
    assert "\n2: loom/b.py " in told


def test_one_edit_is_made_in_several_files_and_reported_as_one(
    model: McpClient, loom: Path
) -> None:
    for name, text in (("a.py", "weft, weft\n"), ("b.py", "weft\n"), ("c.py", "x\n")):
        (loom / name).write_text(text)
    rename = {
        "old_text": "weft",
        "new_text": "warp",
        "replace_all": True,
        "paths": ["loom/a.py", "loom/b.py", "loom/a.py"],
    }
    other = {"path": "loom/c.py", "old_text": "x", "new_text": "y"}
    told = read(model, "batch_write_code", operations=[rename, other])
    assert re.fullmatch(
        r"applied: 1 3 places in 2 files, 2 #\w{8}\na.py #\w{8}, b.py #\w{8}",
        told,
    )
    # Where names are not enough, paths tell the files apart.
    (loom / "deep").mkdir()
    (loom / "deep" / "a.py").write_text("warp\n")
    paths = ["loom/a.py", "loom/b.py", "loom/deep/a.py"]
    told = read(
        model,
        "batch_write_code",
        operations=[
            {
                "old_text": "warp",
                "new_text": "weft",
                "replace_all": True,
                "paths": paths,
            }
        ],
    )
    assert re.fullmatch(
        r"applied: 1 4 places in 3 files\nloom/a.py #\w{8}, b.py #\w{8}, loom/deep/a.py #\w{8}",
        told,
    )
    assert [(loom / name).read_text() for name in ("a.py", "b.py")] == [
        "weft, weft\n",
        "weft\n",
    ]
    # Files of one name in two operations are told apart, and each is named once.
    first = {"old_text": "weft", "new_text": "woof", "replace_all": True}
    (loom / "deep" / "b.py").write_text("weft\n")
    told = read(
        model,
        "batch_write_code",
        operations=[
            {**first, "paths": ["loom/a.py", "loom/b.py"]},
            {**first, "paths": ["loom/deep/a.py", "loom/deep/b.py"]},
        ],
    )
    named = re.findall(r"(\S+) #\w{8}", told)
    assert named == ["loom/a.py", "loom/b.py", "loom/deep/a.py", "loom/deep/b.py"]
    (loom / "a.py").write_text("weft, weft\n")
    (loom / "b.py").write_text("weft\n")
    wrongs: list[dict[str, Any]] = [
        {"path": "a"},
        {"paths": ["a"] * 1001},
        {"paths": [""]},
        {"paths": []},
    ]
    for wrong in wrongs:
        assert (
            "invalid_params"
            in model.call("batch_write_code", operations=[rename | wrong])["content"][
                0
            ]["text"]
        )
