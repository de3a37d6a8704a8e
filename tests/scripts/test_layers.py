"""The import ladder: a module imports from lower floors only, and neighbours on a floor are strangers."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import flashgrep

PACKAGE = Path(flashgrep.__file__).parent
LADDER = [
    "errors launcher paths bounded_cache checkpoint damage identifiers inflight lazy machine vocabulary",
    "model shared_turn child_process own_folders languages path_map",
    "config registry scheduler pattern path_text",
    "index ingest embed rpc project_settings",
    "git scip servers",
    "indexer",
    "search edit connect relay specs team_link",
    "workspace",
    "catalogue",
    "handlers web",
    "mcp lsp",
    "daemon client team",
    "cli",
    "__init__ __main__",
]
FLOOR = {name: floor for floor, names in enumerate(LADDER) for name in names.split()}
LIGHT = [
    "launcher",
    "paths",
    "inflight",
    "relay",
    "connect",
    "client",
    "rpc.longpath",
    "daemon.detach",
    "mcp.stdio",
]
HEAVY = {"pydantic", "typer", "rich", "numpy", "anyio", "orjson", "structlog", "pathlib", "dataclasses", "typing"}


@cache
def modules() -> dict[str, list[ast.Import | ast.ImportFrom | ast.Attribute]]:
    """Return the imports and attributes in every module of the package, by its dotted name below the package."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        tree = ast.parse(path.read_bytes())
        found[name] = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute)]
    return found


def edges() -> Iterator[tuple[str, str]]:
    """Yield (importer, imported) for every import of our own, by the names on the ladder."""
    for name, nodes in modules().items():
        for node in nodes:
            for target in _targets(node):
                yield name.partition(".")[0], target


def _targets(node: ast.AST) -> list[str]:
    """Return the top-level modules of ours that a statement imports."""
    return [name.split(".")[1] for name in _find_imported(node) if not name.startswith("flashgrep.__")]


def _find_imported(node: ast.AST) -> list[str]:
    """Return what a statement imports of ours, dotted: modules, or names in them."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        return []
    return [name for name in names if name.startswith("flashgrep.")]


def test_every_module_has_its_floor() -> None:
    assert {name.partition(".")[0] for name in modules()} <= set(FLOOR)


def test_imports_only_go_down() -> None:
    wrong = {(here, there) for here, there in edges() if here != there and FLOOR[here] <= FLOOR[there]}
    assert not wrong


SEARCH_LADDER = ["", "resolution meaning structural", "symbols", "research"]
"""Folders of ``search/``; the empty name is the modules that are in none."""


def test_folders_of_search_import_only_what_is_below_them() -> None:
    floor = {f"{PACKAGE.name}.search.{name}": n for n, names in enumerate(SEARCH_LADDER) for name in names.split()}
    folders = {path.parent.name for path in (PACKAGE / "search").glob("*/__init__.py")}
    assert {name.rpartition(".")[2] for name in floor} == folders
    wrong = set()
    for name, nodes in modules().items():
        here = next((folder for folder in floor if f"{PACKAGE.name}.{name}".startswith(folder)), None)
        for node in nodes if name.startswith("search.") else []:
            for target in _find_imported(node):
                there = next((folder for folder in floor if target.startswith(folder)), None)
                if there not in (None, here) and (here is None or floor[there] >= floor[here]):
                    wrong.add((name, target))
    assert not wrong


def test_no_import_is_relative() -> None:
    relative = [
        name for name, nodes in modules().items() for node in nodes if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not relative


def test_only_the_store_opens_databases() -> None:
    openers = {
        name
        for name, nodes in modules().items()
        for node in nodes
        if isinstance(node, ast.Attribute)
        and (node.attr == "Database" or (node.attr == "connect" and ast.unparse(node.value) == "sqlite3"))
    }
    assert openers
    assert all(name.startswith("index.") for name in openers), openers


def test_nothing_below_the_daemon_reads_the_environment() -> None:
    allowed = {"launcher", "daemon", "client", "cli", "mcp", "lsp", "__main__"}
    own_reasons = {
        "ingest.scopes",  # where git keeps its global excludes is said in the environment alone
        "indexer.meaning_stages",  # in the indexer's processes: the daemon hands them the keys of providers so
        "indexer.revision_texts",  # the same: where git is, and the user's settings of git
    }
    readers = {
        name
        for name, nodes in modules().items()
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"} and ast.unparse(node.value) == "os"
    }
    assert {name.partition(".")[0] for name in readers - own_reasons} <= allowed


@pytest.mark.parametrize("name", LIGHT)
def test_what_the_client_starts_with_imports_nothing_heavy(name: str) -> None:
    program = f"import sys; before = set(sys.modules); import flashgrep.{name}; print(*(set(sys.modules) - before))"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(said.stdout.split()) & HEAVY


def test_what_stands_between_a_shell_and_grep_imports_nothing() -> None:
    program = "import sys; before = set(sys.modules); import flashgrep.launcher; print(*(set(sys.modules) - before))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(said.stdout.split()) <= {"flashgrep", "flashgrep.launcher"}


def test_a_lookup_worker_starts_without_what_parses_and_ranks() -> None:
    program = "import sys, flashgrep.search.lookup_worker, flashgrep.search.ripgrep_walks; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"tree_sitter", "anyio", "flashgrep.ingest.parse", "flashgrep.search.relevance", "flashgrep.servers"}
    assert not set(said.stdout.split()) & heavy


SHORT = HEAVY - {"typing", "dataclasses", "pathlib"} | {"sqlite3", "sqlite_utils", "re2", "tree_sitter"}


@pytest.mark.parametrize(
    ("command", "says", "forbidden"),
    [
        ("--version", "flashgrep ", SHORT | {"flashgrep.cli.commands", "flashgrep.cli.daemon_client"}),
        ("version", "flashgrep ", SHORT | {"flashgrep.cli.commands", "flashgrep.cli.daemon_client"}),
        ("daemon status", "not running", SHORT | {"flashgrep.cli.commands"}),
        ("daemon status --json", "not running", SHORT | {"flashgrep.cli.commands"}),
        ("--help", "search-code", SHORT | {"flashgrep.registry", "flashgrep.config", "flashgrep.daemon"}),
        (
            "projects --help",
            "remove",
            {"numpy", "sqlite3", "sqlite_utils", "flashgrep.registry", "flashgrep.workspace"},
        ),
    ],
)
def test_what_is_asked_often_imports_nothing_heavy(
    command: str, says: str, forbidden: set[str], tmp_path: Path
) -> None:
    program = "from flashgrep.cli.app import main; import sys; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    environ = {**os.environ, "FLASHGREP_STATE_DIR": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", program, *command.split()], capture_output=True, text=True, env=environ, check=True
    )
    assert says in said.stdout
    assert not set(said.stderr.split()) & forbidden


def test_the_daemon_starts_without_a_validator_of_messages_and_others_may_import_it() -> None:
    program = (
        "import flashgrep.cli.run_daemon, flashgrep.daemon.server, sys; before = set(sys.modules);"
        "import jsonrpcserver; print(jsonrpcserver.dispatch.__module__, *before)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    whose, *imported = said.stdout.split()
    assert whose == "jsonrpcserver.main"
    assert not {"jsonschema", "jsonrpcserver"} & set(imported)
