"""What is derived from the code is as the code says, and everything that is shown has its sentence."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import flashgrep
from flashgrep.base import config
from flashgrep.base.languages import LANGUAGES, SYNTAX, WORDS
from flashgrep.base.registry import Handler
from flashgrep.parts.built_in import REGISTRY
from flashgrep.parts.hosts.hosts import HOSTS
from scripts.tools.generate import generated, main

SHORT_PAGES = {
    "README.md": 1_000,
    "ARCHITECTURE.md": 5_000,
    "CHANGELOG.md": 1_000,
    "CONTRIBUTING.md": 1_500,
}
"""Most words of the pages that everybody reads; details have pages of their own below docs/."""


def test_the_generated_files_are_up_to_date() -> None:
    assert main(["--check"]) == 0


@pytest.mark.slow
def test_a_stale_file_is_reported_and_written_again(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import pathlib, sys, scripts.tools.generate as g\n"
        f"path = pathlib.Path({str(tmp_path)!r}) / 'x.md'\n"
        "g.generated = lambda: {path: 'new'}\n"
        "path.write_text('old')\n"
        "assert g.main(['--check']) == 1\n"
        "assert path.read_text() == 'old'\n"
        "assert g.main([]) == 0 and path.read_text() == 'new' and g.main(['--check']) == 0\n"
    )
    monkeypatch.delenv("PYTHONPATH", raising=False)
    checkout = Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, cwd=checkout
    )


@pytest.mark.parametrize("handler", list(REGISTRY), ids=lambda handler: handler.name)
def test_every_method_and_field_has_its_sentence(handler: Handler) -> None:
    assert handler.summary.endswith("."), handler.summary
    assert len(handler.summary) <= 120
    missing = [
        name
        for name, field in handler.params.model_fields.items()
        if not field.description
    ]
    assert not missing


def test_every_method_that_is_declared_is_in_the_registry() -> None:
    modules = [
        module.name
        for module in walk_packages(flashgrep.__path__, "flashgrep.")
        if "methods" in module.name
    ]
    handlers = [
        one
        for module in modules
        for one in getattr(import_module(module), "HANDLERS", ())
    ]
    missing = {one.name for one in handlers} - {one.name for one in REGISTRY}
    assert not missing, "add them to methods/core_part.py, or to their part"


def test_every_method_is_named_by_some_test() -> None:
    tests = Path(__file__).parents[1]
    words = {
        word
        for path in tests.rglob("test_*.py")
        for word in re.findall(r"[\w-]+", path.read_text("utf-8"))
    }
    missing = [
        one.name
        for one in REGISTRY
        if not {one.name, one.name.replace("_", "-")} & words
    ]
    assert not missing, "write a test that asks each of these over a wire"


def test_every_setting_has_its_sentence_and_is_in_the_example() -> None:
    text = config.format_example()
    for key, field in config.list_settings():
        assert field.description
        assert f"# {key.rpartition('.')[2]} = " in text
        if field.annotation in {int, float}:
            bounds = {type(one).__name__.lower() for one in field.metadata}
            assert bounds & {"ge", "gt"}, f"{key} has no least value"
            assert bounds & {"le", "lt"}, f"{key} has no greatest value"


def test_every_method_is_in_the_reference() -> None:
    (reference,) = [
        text for path, text in generated().items() if path.name == "reference.md"
    ]
    assert all(f"## {handler.name}\n" in reference for handler in REGISTRY)


def test_the_readme_counts_the_languages() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    parsed = sum(row.symbols not in {"", WORDS} for row in LANGUAGES.values())
    assert f"tree-sitter, {parsed} languages" in readme
    assert f"ast-grep's patterns, {len(SYNTAX)} languages" in readme


def test_the_page_for_agents_names_every_host() -> None:
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
    listed = page.replace("\n", " ").replace(
        "Claude Code and Desktop", "Claude Code, Claude Desktop"
    )
    assert [host.title for host in HOSTS.values() if host.title not in listed] == []
    assert len(HOSTS) > 20, "README says so"


def test_the_pages_that_everybody_reads_are_short() -> None:
    root = Path(__file__).parents[2]
    words = {
        name: len((root / name).read_text("utf-8").split()) for name in SHORT_PAGES
    }
    assert {
        name: count for name, count in words.items() if count > SHORT_PAGES[name]
    } == {}
