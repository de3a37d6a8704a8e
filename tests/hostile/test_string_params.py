"""Every string that any method takes, at any depth: what cannot be a name or a path is an error with a name."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flashgrep.base.registry import Handler
from flashgrep.parts.built_in import REGISTRY
from tests.conftest import BOUND, DaemonAtHand, short_folder
from tests.hostile.test_params import INTERNAL, USUAL
from tests.support.git import commit, git

ODD = {
    "a NUL": "a\0b",
    "a lone surrogate": "a\ud800b",
    "too long": "x/" * 40_000,
    "a long name": "x" * 5_000,
    "above": "../../../etc/passwd",
    "absolute": "/etc/passwd",
    "empty": "",
}
SKIPPED = {"fs_remove"}
"""Methods that would remove the project's own files."""


@pytest.fixture(scope="module")
def root(daemon: DaemonAtHand) -> Iterator[Path]:
    folder = short_folder()
    (folder / "a.py").write_text("x = 1\n")
    git(folder, "init", "-q")
    commit(folder)
    daemon.add(folder)
    yield folder
    shutil.rmtree(folder)


def list_strings(
    schema: dict[str, Any], node: dict[str, Any], way: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to each string of a schema: names of properties, and 0 for the item of a list."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if len(way) < 6:
            yield from list_strings(schema, schema["$defs"][name], way)
        return
    for form in node.get("anyOf", ()):
        yield from list_strings(schema, form, way)
    if node.get("type") == "string" and "enum" not in node:
        yield way
    if isinstance(node.get("items"), dict):
        yield from list_strings(schema, node["items"], (*way, 0))
    for name, field in node.get("properties", {}).items():
        yield from list_strings(schema, field, (*way, name))


def put(params: Any, way: tuple[str | int, ...], value: str) -> Any:
    """Return parameters with a value at the end of a way, what is on it made as needed."""
    if not way:
        return value
    step, *rest = way
    if step == 0:
        return [put(params[0] if params else None, tuple(rest), value)]
    inside = params if isinstance(params, dict) else {}
    return {**inside, step: put(inside.get(str(step)), tuple(rest), value)}


@pytest.mark.parametrize("handler", list(REGISTRY), ids=lambda handler: handler.name)
def test_no_odd_string_is_an_internal_error_or_hangs(
    daemon: DaemonAtHand, root: Path, handler: Handler
) -> None:
    if handler.name in SKIPPED:
        pytest.skip("it removes files")
    schema = handler.params_schema()
    usual = {
        name: USUAL[name]
        for name in handler.params.field_names()
        if name in USUAL and handler.params.model_fields[name].is_required()
    }
    if "deadline_ms" in handler.params.field_names():
        usual["deadline_ms"] = 2000
    wrong: list[object] = []
    with closing(daemon.wire("unix", root)) as wire:
        # Some ways are taken only while a text is unsaved.
        wire.call("buffers", action="open", path="a.py", text="x = 2\n", version=1)
        for way in sorted(set(list_strings(schema, schema)), key=str):
            for name, value in ODD.items():
                params = put(usual, way, value)
                begun = time.monotonic()
                wire.send(
                    {
                        "jsonrpc": "2.0",
                        "id": 1,
                        "method": handler.name,
                        "params": params,
                    }
                )
                try:
                    answer = wire.receive()
                except OSError:
                    raise AssertionError((way, name)) from None
                # A missing collection has the code of an internal error by contract.
                data = answer.get("error", {}).get("data", {})
                if data.get("reason") == INTERNAL:
                    wrong.append((way, name, json.dumps(answer)[:300]))
                if time.monotonic() - begun > BOUND / 2:
                    wrong.append((way, name, "slow"))
    assert not wrong


def test_the_strings_of_a_nested_list_are_drawn_too() -> None:
    ways = set()
    for handler in REGISTRY:
        schema = handler.params_schema()
        ways |= {(handler.name, *way) for way in list_strings(schema, schema)}
    assert ("batch_write_code", "operations", 0, "path") in ways
    assert ("query", "include", 0) in ways
    assert len(ways) > len(REGISTRY.names())
