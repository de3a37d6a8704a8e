"""JSON as the short-lived commands write and read it: what the module ``json`` writes and reads."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.rpc.light import decode, encode

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
SLOW_TO_IMPORT = {"json", "re", "socket", "enum", "collections", "importlib", "signal"}


@given(VALUES)
def test_values_come_through_as_they_were(value: Any) -> None:
    assert json.loads(encode(value)) == value
    assert decode(json.dumps(value)) == value


@pytest.mark.parametrize("text", ["", "x", "[1,", '{"a"', '"'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode(text)


@pytest.mark.parametrize("name", ["cli.client", "parts.hook.client"])
def test_a_command_of_ten_milliseconds_imports_little(name: str) -> None:
    program = f"import sys; sys.path.insert(0, '.'); import flashgrep.{name}; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not SLOW_TO_IMPORT & set(said.stdout.split())
