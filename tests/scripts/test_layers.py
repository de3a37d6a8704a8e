"""The import ladder: imports only go down, neighbours on a floor are strangers, and the core imports no part."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import flashgrep
from flashgrep.parts.built_in import BUILT_IN

PACKAGE = Path(flashgrep.__file__).parent
LADDER = [
    "base",
    "pattern files rpc",
    "index",
    "search",
    "api",
    "indexer",
    "project",
    "methods",
    "mcp",
    "daemon",
    "cli client",
    "__init__ __main__ aio",
]
"""Floors of the core. ``rpc`` knows the registry only; a part may import all of them."""
FLOOR = {name: floor for floor, names in enumerate(LADDER) for name in names.split()}
BASE_LADDER = [
    (
        "errors paths bounded_cache checkpoint cores damage failures frames identifiers lazy machine places"
        " unused_pools vocabulary installation program_name"
    ),
    "model shared_turn child_process plain_files languages habits",
    "own_folders path_map",
    "config registry scheduler path_text",
    "project_settings",
]
"""Floors of the modules of ``base``."""
ASSEMBLERS = {"cli.commands", "cli.doctor", "cli.run_daemon"}
"""Programs of the core that put the parts together: they import these modules, and none of a part."""
ASSEMBLED = {"parts.built_in", "parts.entries", "parts.installed"}
LIGHT = [
    "cli.launcher",
    "base.paths",
    "rpc.inflight",
    "rpc.relay",
    "rpc.connect",
    "rpc.light",
    "cli.client",
    "parts.hook.client",
    "rpc.longpath",
    "daemon.detach",
    "mcp.stdio",
]
HEAVY = {
    "pydantic",
    "typer",
    "rich",
    "numpy",
    "anyio",
    "orjson",
    "structlog",
    "pathlib",
    "dataclasses",
    "typing",
}


NAMED = re.compile(r"flashgrep(?:\.[a-z_]+)+")


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of every module of the package, by its dotted name below the package."""
    trees: dict[str, ast.Module] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[-1] == "__init__" and len(parts) > 1:
            parts = parts[:-1]
        trees[".".join(parts)] = ast.parse(path.read_bytes())
    return trees


@cache
def edges() -> frozenset[tuple[str, str]]:
    """Return (importer, imported) for every import of our own, by dotted names; a module named in a string counts."""
    pairs: set[tuple[str, str]] = set()
    for name, tree in modules().items():
        for node in ast.walk(tree):
            for target in _find_imported(node):
                imported = _find_module(target)
                if imported not in ("", name):
                    pairs.add((name, imported))
    return frozenset(pairs)


def _find_imported(node: ast.AST) -> list[str]:
    """Return what a node imports of ours, dotted: modules, or names in them."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        # As ``import_module`` and tables of commands name them: "flashgrep.cli.app" or
        # "flashgrep.cli.app:main".
        module = node.value.partition(":")[0]
        if NAMED.fullmatch(module):
            names = [module]
    return [name for name in names if name.startswith("flashgrep.")]


def _find_module(target: str) -> str:
    """Return the longest beginning of a dotted name that is a module of ours; empty if there is none."""
    words = target.removeprefix("flashgrep.").split(".")
    for count in range(len(words), 0, -1):
        name = ".".join(words[:count])
        if name in modules():
            return name
    return ""


def room_of(module: str) -> str:
    """Return the top-level folder of a module; of a part's, its part: ``parts.edit``."""
    words = module.split(".")
    if words[0] == "parts" and len(words) > 2:
        return ".".join(words[:2])
    return words[0]


def test_every_module_has_its_floor() -> None:
    core = {name.partition(".")[0] for name in modules()} - {"parts"}
    assert core == set(FLOOR)


def test_imports_only_go_down() -> None:
    wrong = {
        (here, there)
        for here, there in edges()
        if not here.startswith("parts")
        and not there.startswith("parts")
        and room_of(here) != room_of(there)
        and FLOOR[room_of(here)] <= FLOOR[room_of(there)]
        and here != COMMAND_TABLE
    }
    assert not wrong - LATE_IMPORTS


LATE_IMPORTS = {
    (
        "rpc.connect",
        "cli.daemon_process",
    ),  # the command line of a daemon, which it starts
    ("cli.client", "cli.app"),
}
COMMAND_TABLE = "methods.core_part"
"""Names the core's commands by their modules, which other processes import."""
"""Modules named for another process, or for a later moment, above the module that names them."""


def test_modules_of_base_import_only_what_is_below_them() -> None:
    floor = {
        f"base.{name}": number
        for number, names in enumerate(BASE_LADDER)
        for name in names.split()
    }
    assert set(floor) == {name for name in modules() if name.startswith("base.")}
    wrong = {
        (here, there)
        for here, there in edges()
        if here in floor and floor[here] <= floor.get(there, 99)
    }
    assert not wrong


def test_the_core_imports_no_part() -> None:
    hooks = set()
    for here, there in edges():
        if here.startswith("parts") or not there.startswith("parts"):
            continue
        if here in ASSEMBLERS and there in ASSEMBLED:
            continue
        hooks.add((here, there))
    assert not hooks


def test_parts_import_each_other_only_as_declared() -> None:
    requires = {
        f"parts.{part.name}": {f"parts.{name}" for name in part.requires}
        for part in BUILT_IN[1:]
    }
    folders = {
        room_of(name)
        for name in modules()
        if name.startswith("parts.") and name.count(".") > 1
    }
    assert folders == set(requires)
    undeclared = {
        (room_of(here), room_of(there))
        for here, there in edges()
        if room_of(here) in requires
        and room_of(there) in requires
        and room_of(here) != room_of(there)
    } - {(here, there) for here, others in requires.items() for there in others}
    assert not undeclared, "declare it in the part's `requires`"


def test_a_part_is_listed_after_those_it_requires() -> None:
    listed: set[str] = set()
    for part in BUILT_IN:
        assert set(part.requires) <= listed, part.name
        listed.add(part.name)


def test_rooms_and_parts_import_each_other_in_no_circle() -> None:
    below: dict[str, set[str]] = {}
    for here, there in edges() - LATE_IMPORTS:
        # Programs that put the parts together, a team's server too, import their list.
        if here == COMMAND_TABLE or room_of(there) == "parts":
            continue
        if room_of(here) != room_of(there):
            below.setdefault(room_of(here), set()).add(room_of(there))
    # Raises CycleError, which names a circle.
    TopologicalSorter(below).prepare()


def test_no_import_is_relative() -> None:
    relative = [
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not relative


def test_only_the_store_opens_databases() -> None:
    openers = {
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and (
            node.attr == "Database"
            or (node.attr == "connect" and ast.unparse(node.value) == "sqlite3")
        )
    }
    assert openers
    assert all(
        name.startswith(("index.", "parts.navigation.scip.")) for name in openers
    ), openers


def test_nothing_below_the_daemon_reads_the_environment() -> None:
    allowed = {
        "daemon",
        "cli",
        "client",
        "mcp",
        "rpc",
        "__main__",
        "parts.lsp",
        "parts.http",
        "parts.gain",
        "parts.hosts",
        "parts.models",
        "parts.pick",
        "parts.team",
    }
    own_reasons = {
        "files.scopes",  # where git keeps its global excludes is said in the environment alone
        "indexer.__main__",  # it sets one, before numpy is imported, which reads there how many threads to start
        "parts.hook.client",  # a client, as those of the command line
        "parts.meaning.embed.onnx_model",  # it sets one: onnxruntime reads there whether it may send reports
        "parts.meaning.meaning_stages",  # in the indexer's processes: the daemon hands them the keys of providers so
        "parts.git.revision_texts",  # the same: where git is, and the user's settings of git
    }
    readers = {
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in {"environ", "getenv"}
        and ast.unparse(node.value) == "os"
    }
    assert {room_of(name) for name in readers - own_reasons} <= allowed


@pytest.mark.parametrize("name", LIGHT)
def test_what_the_client_starts_with_imports_nothing_heavy(name: str) -> None:
    program = f"import sys; before = set(sys.modules); import flashgrep.{name}; print(*(set(sys.modules) - before))"
    said = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); {program}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not set(said.stdout.split()) & HEAVY


def test_what_stands_between_a_shell_and_grep_imports_nothing() -> None:
    program = "import sys; before = set(sys.modules); import flashgrep.cli.launcher; print(*(set(sys.modules) - before))"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert set(said.stdout.split()) <= {
        "flashgrep",
        "flashgrep.cli",
        "flashgrep.cli.launcher",
    }


def test_a_lookup_worker_starts_without_what_parses_and_ranks() -> None:
    program = "import sys, flashgrep.search.lookup_worker, flashgrep.search.ripgrep_walks; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    heavy = {
        "tree_sitter",
        "anyio",
        "flashgrep.parts.symbols.parse",
        "flashgrep.parts.symbols.relevance",
        "flashgrep.parts.navigation.servers",
    }
    assert not set(said.stdout.split()) & heavy


SHORT = HEAVY - {"typing", "dataclasses", "pathlib"} | {
    "sqlite3",
    "sqlite_utils",
    "re2",
    "tree_sitter",
}


@pytest.mark.parametrize(
    ("command", "says", "forbidden"),
    [
        (
            "--version",
            "flashgrep ",
            SHORT | {"flashgrep.cli.commands", "flashgrep.cli.daemon_client"},
        ),
        (
            "version",
            "flashgrep ",
            SHORT | {"flashgrep.cli.commands", "flashgrep.cli.daemon_client"},
        ),
        ("daemon status", "not running", SHORT | {"flashgrep.cli.commands"}),
        ("daemon status --json", "not running", SHORT | {"flashgrep.cli.commands"}),
        (
            "--help",
            "search-code",
            SHORT
            | {"flashgrep.base.registry", "flashgrep.base.config", "flashgrep.daemon"},
        ),
        (
            "projects --help",
            "remove",
            {
                "numpy",
                "sqlite3",
                "sqlite_utils",
                "flashgrep.base.registry",
                "flashgrep.project",
            },
        ),
    ],
)
def test_what_is_asked_often_imports_nothing_heavy(
    command: str, says: str, forbidden: set[str], tmp_path: Path
) -> None:
    program = "from flashgrep.cli.app import main; import sys; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    environ = {**os.environ, "FLASHGREP_STATE_DIR": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-c", program, *command.split()],
        capture_output=True,
        text=True,
        env=environ,
        check=True,
    )
    assert says in said.stdout
    assert not set(said.stderr.split()) & forbidden
