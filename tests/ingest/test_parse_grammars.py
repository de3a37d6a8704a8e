"""Grammars come from packages whose libraries are unpacked when first needed; what is wrong with one is mended."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from semble_grammars import get_language

from flashgrep.base.child_process import make_frame
from flashgrep.base.paths import GRAMMARS_FOLDER, GRAMMARS_VARIABLE
from flashgrep.parts.symbols.parse import ParsedFile, grammar, parse_symbols
from flashgrep.parts.symbols.parse.isolate import COMMAND
from tests.conftest import BOUND, DaemonAtHand, MakeProject
from tests.support.pace import paced

PARSE = "from flashgrep.parts.symbols.parse import parse_symbols; print(parse_symbols('go', b'func f() {}').grammar)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder that this test's grammars are unpacked into."""
    monkeypatch.setenv(GRAMMARS_VARIABLE, str(tmp_path / "grammars"))
    for cache in (grammar.grammar_of, get_language):
        cache.cache_clear()
    yield tmp_path / "grammars"
    grammar.grammar_of.cache_clear()


def grammar_used(language: str, text: bytes) -> str:
    parsed = parse_symbols(language, text)
    assert isinstance(parsed, ParsedFile)
    assert len(parsed.definitions) == 1
    return parsed.grammar


def test_a_query_of_many_signs_is_compiled_in_time() -> None:
    before = time.thread_time()
    grammar.grammar_of.__wrapped__("swift")
    # Each process that parses does it once; it took 10 s when the signs stood behind a
    # keyword, not in a field.
    assert time.thread_time() - before < paced(3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: bytes(len(whole)),
        lambda _: b"",
    ],
)
def test_a_library_that_is_not_as_packed_is_unpacked_again(
    folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    assert subprocess.check_output([sys.executable, "-c", PARSE]) == b"tree-sitter\n"
    (library,) = folder.rglob("libtree_sitter_go.*")
    whole = library.read_bytes()
    library.write_bytes(damage(whole))
    assert subprocess.check_output([sys.executable, "-c", PARSE]) == b"tree-sitter\n"
    assert library.read_bytes() == whole


def test_where_nothing_can_be_unpacked_patterns_find_definitions(folder: Path) -> None:
    folder.write_text("a file has the folder's name")
    assert grammar_used("go", b"func f() {}") == "generic"
    folder.unlink()
    assert grammar_used("go", b"func f() {}") == "tree-sitter"
    assert (
        grammar_used("kotlin", b"fun f() {}") == "tree-sitter"
    )  # comes in a package of its own


@pytest.mark.slow
def test_processes_may_unpack_the_same_library_at_once(folder: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", PARSE], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=BOUND)[0] for process in running] == [
        b"tree-sitter\n"
    ] * 4
    assert len([*folder.rglob("*.*")]) == 1


def test_several_are_unpacked_together(folder: Path) -> None:
    grammar.unpack_grammars(["go", "python", "rust", "no such grammar"])
    libraries = {file.name.partition(".")[0]: file for file in folder.rglob("*.*")}
    assert sorted(libraries) == [
        "libtree_sitter_go",
        "libtree_sitter_python",
        "libtree_sitter_rust",
    ]
    inode = libraries["libtree_sitter_go"].stat().st_ino
    libraries["libtree_sitter_rust"].unlink()
    grammar.unpack_grammars(["go", "rust"])
    assert libraries["libtree_sitter_rust"].exists()
    assert libraries["libtree_sitter_go"].stat().st_ino == inode


def test_where_there_is_no_room_nothing_is_left_of_what_was_unpacked_together(
    folder: Path,
) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))"  # Go's fits, Rust's does not
    unpack = "from flashgrep.parts.symbols.parse.grammar import unpack_grammars; unpack_grammars(['go', 'rust'])"
    assert subprocess.run(
        [sys.executable, "-c", f"{full}; {unpack}; {PARSE}"],
        check=True,
        capture_output=True,
    ).stdout
    assert [file.name.partition(".")[0] for file in folder.rglob("*.*")] == [
        "libtree_sitter_go"
    ]


def test_the_daemon_unpacks_into_its_state_folder(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    del cold_daemon.environ[GRAMMARS_VARIABLE]
    root = project({"a.go": "package a\nfunc hello() {}\n"})
    assert cold_daemon.run("outline", "a.go", cwd=root).returncode == 0
    state = Path(cold_daemon.paths.state)
    assert [*(state / GRAMMARS_FOLDER).rglob("libtree_sitter_go.*")]
    assert cold_daemon.run("uninstall", "--yes").returncode == 0
    assert not state.exists()


def test_a_parser_whose_reader_is_gone_brings_no_state_folder_back(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    environ = {**os.environ, GRAMMARS_VARIABLE: str(state / "grammars")}
    parser = subprocess.Popen(
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
    )
    assert parser.stdout is not None
    parser.stdout.close()
    parser.stdout = None
    # As after fgrep uninstall: the indexer was killed with a batch on its way.
    parser.communicate(make_frame([("python", 5)]) + b"x = 1")
    assert parser.returncode == 1
    assert not state.exists()
