"""Models in folders as public packages ship them, and folders that were made to harm."""

import io
import json
import os
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from flashgrep.base.config import Embedding, Reranking, Settings
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed import available, open_embedder
from flashgrep.parts.meaning.embed.model_folder import (
    FEWEST_TOKENS,
    MOST_TOKENIZER,
    MOST_TOKENS,
    read_model_folder,
)
from flashgrep.parts.meaning.embed.models import open_reranker
from flashgrep.parts.meaning.embed.tensors import read_tensors
from flashgrep.parts.models.probe import probe_model
from tests.conftest import BOUND
from tests.models.folders import (
    DIMS,
    ROWS,
    WORDS,
    make_cross_encoder,
    make_encoder,
    make_model2vec,
    make_npz,
    make_static,
    write_graph,
    write_json,
)

STATIC = (make_model2vec, make_static, make_npz)
MEMORY = 768 << 20
"""Bytes that reading a hostile folder may allocate, with numpy and onnxruntime imported."""


def local(folder: Path) -> Settings:
    return Settings(embedding=Embedding(provider="local", model=str(folder)))


def unit(rows: Any) -> Any:
    array = np.asarray(rows, np.float64)
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


def numbers(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.split()]


@pytest.mark.parametrize("make", STATIC)
def test_a_static_folder_is_read_as_its_maker_wrote_it(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    folder = make(tmp_path / "model")
    model = read_model_folder(folder)
    assert model.kind == "static"
    embedder = open_embedder(local(folder), {})
    rows = embedder.embed_code(["read the file", "socket unknown"])
    wanted = [ROWS[numbers("read the file")].sum(axis=0), ROWS[numbers("socket")][0]]
    assert rows == pytest.approx(unit(wanted), abs=1e-3)
    assert "local" in available(local(folder), {})
    assert probe_model(model).dims == DIMS


def test_files_without_a_usual_name_are_read_if_they_are_the_only_ones(
    tmp_path: Path,
) -> None:
    # As packages of programs ship them, in one folder.
    table = make_model2vec(tmp_path / "table")
    (table / "model.safetensors").rename(table / "words_256.safetensors")
    (table / "tokenizer.json").rename(table / "words_tokenizer_config.json")
    graph = make_encoder(tmp_path / "graph")
    (graph / "onnx/model.onnx").rename(graph / "words-q.onnx")
    (graph / "tokenizer.json").rename(graph / "words-q-tokenizer.json")
    for folder, kind in ((table, "static"), (graph, "encoder")):
        model = read_model_folder(folder)
        assert model.kind == kind
        assert probe_model(model).dims == DIMS
        assert {model.weights, model.tokenizer} <= {*model.files()}
    # Which of two is meant, nobody says.
    (graph / "words.onnx").write_bytes((graph / "words-q.onnx").read_bytes())
    with pytest.raises(
        ProviderUnavailable, match=r"which of these graphs\? words-q\.onnx, words\.onnx"
    ):
        read_model_folder(graph)
    (table / "other-tokenizer.json").write_text("{}")
    with pytest.raises(ProviderUnavailable, match=r"tokenizer\.json is missing"):
        read_model_folder(table)


def test_licences_are_those_of_the_card_or_of_the_file(tmp_path: Path) -> None:
    licences = [
        read_model_folder(make(tmp_path / make.__name__)).licence
        for make in (*STATIC, make_encoder)
    ]
    assert licences == ["mit", "Apache License", "", "apache-2.0"]


def pooled(ids: list[int], pooling: str) -> Any:
    rows = ROWS[ids].astype(np.float64)
    if pooling == "cls":
        return rows[0]
    if pooling == "lasttoken":
        return rows[-1]
    return rows.max(axis=0) if pooling == "max" else rows.mean(axis=0)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
def test_an_encoder_pools_and_prompts_as_it_was_trained(
    tmp_path: Path, pooling: str
) -> None:
    folder = make_encoder(tmp_path / "model", pooling)
    model = read_model_folder(folder)
    assert (model.kind, model.pooling, model.max_tokens) == ("encoder", pooling, 64)
    embedder = open_embedder(local(folder), {})
    # Texts of different lengths, so that some are padded.
    texts = ["read", "write the file socket", "the read write"]
    for role, prompt, rows in (
        ("query", "ask: ", embedder.embed_queries(texts)),
        ("document", "say: ", embedder.embed_code(texts)),
    ):
        marked = [numbers(f"[CLS] {prompt}{text} [SEP]") for text in texts]
        wanted = unit([pooled(ids, pooling) for ids in marked])
        assert rows == pytest.approx(wanted, abs=1e-5), role


def test_a_long_text_is_cut_and_an_empty_one_has_no_vector(tmp_path: Path) -> None:
    embedder = open_embedder(local(make_encoder(tmp_path / "model")), {})
    rows = embedder.embed_code(["file " * 5000, " "])
    assert np.linalg.norm(rows, axis=1).tolist() == pytest.approx([1, 0])


def test_a_cross_encoder_reads_question_and_text_together(tmp_path: Path) -> None:
    folder = make_cross_encoder(tmp_path / "model")
    assert read_model_folder(folder).kind == "cross-encoder"
    section = Reranking(provider="local", model=str(folder), top=30)
    reranker = open_reranker(Settings(reranking=section), {})
    assert reranker is not None
    assert reranker.top == 30
    texts = ["read", "write write", "socket file"] * 7
    scores = reranker.scores("write write write write", texts)
    assert scores.tolist() == scores[:3].tolist() * 7
    assert scores[1] > scores[2] > scores[0]
    assert ((scores > 0) & (scores < 1)).all()
    with pytest.raises(ProviderUnavailable, match="set reranking"):
        open_embedder(local(folder), {})
    assert "local" not in available(local(folder), {})
    assert probe_model(read_model_folder(folder)).dims == 0


def test_a_snapshot_of_a_cache_is_read_through_its_links(tmp_path: Path) -> None:
    made = make_model2vec(tmp_path / "made")
    snapshot = tmp_path / "models--a--b" / "snapshots" / "0123"
    blobs = tmp_path / "models--a--b" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for file in made.iterdir():
        file.rename(blobs / f"blob-{file.name}x")
        (snapshot / file.name).symlink_to(f"../../blobs/blob-{file.name}x")
    assert open_embedder(local(snapshot), {}).dims == DIMS


# Folders that were made to harm


def grow_tokenizer(folder: Path) -> None:
    os.truncate(folder / "tokenizer.json", 1 << 30)


def lie_about_length(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 1 << 62) + b"{}")


def lie_about_tensor(folder: Path) -> None:
    shape = '"shape":[1000000000,400],"data_offsets":[0,1600000000000]'
    text = f'{{"embeddings":{{"dtype":"F32",{shape}}}}}'.encode()
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 64)


def turn_offsets(folder: Path) -> None:
    text = b'{"embeddings":{"dtype":"F32","shape":[2,4],"data_offsets":[-32,0]}}'
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 64)


def lack_rows(folder: Path) -> None:
    text = b'{"embeddings":{"dtype":"F32","shape":[2,4],"data_offsets":[0,32]}}'
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 32)


def pickle_table(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    objects = np.array([print, {"a": 1}], object)
    np.savez(folder / "model.npz", embeddings=objects)


def lie_in_archive(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (100000000, 4)}\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + b"\0" * 64
    with ZipFile(folder / "model.npz", "w") as archive:
        archive.writestr("embeddings.npy", array)


def leave_by_module(folder: Path) -> None:
    outside = make_model2vec(folder.parent / "outside")
    (folder / "model.safetensors").unlink()
    module = {"path": f"../{outside.name}", "type": "StaticEmbedding"}
    write_json(folder, {"modules.json": [module]})


def leave_by_link(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("/etc/passwd")


def put_pipe(folder: Path) -> None:
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def break_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text('{"model": {"type": "Unigram", "vocab": 7}}')


HARMS: dict[Callable[[Path], None], str] = {
    grow_tokenizer: f"at most {MOST_TOKENIZER} are read",
    lie_about_length: "not a safetensors file",
    lie_about_tensor: "cannot be read",
    turn_offsets: "cannot be read",
    lack_rows: "11 tokens, but rows for 2",
    pickle_table: "cannot be read: it has pickled objects",
    lie_in_archive: "cannot be read: 1600000000 bytes in",
    leave_by_module: "leads outside",
    leave_by_link: "leads outside",
    put_pipe: "not a file",
    break_tokenizer: "not a tokenizer",
}
OPEN = """
import sys
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed.local import open_folder
for folder in sys.argv[1:]:
    try:
        open_folder(folder, 0)
        print("opened")
    except ProviderUnavailable as error:
        print(error)
"""


def test_a_hostile_folder_is_refused_within_bounds(tmp_path: Path) -> None:
    folders = []
    for harm in HARMS:
        folder = make_model2vec(tmp_path / harm.__name__ / "model")
        harm(folder)
        folders.append(str(folder))
    # One process for all, which may not even allocate what one of them claims.
    done = subprocess.run(
        [sys.executable, "-c", OPEN, *folders],
        capture_output=True,
        text=True,
        timeout=2 * BOUND,
        check=False,
        # Each core's thread would have a stack, which counts.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)),
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(HARMS), done.stderr
    for line, (harm, problem) in zip(lines, HARMS.items(), strict=True):
        assert problem in line, harm.__name__


def lead_outside(folder: Path) -> None:
    path = folder / "onnx" / "model.onnx"
    model = onnx.load(str(path))
    (folder.parent / "secret").write_bytes(ROWS.tobytes())
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "../../secret", "length": str(ROWS.nbytes)}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    path.write_bytes(model.SerializeToString())


def tear_graph(folder: Path) -> None:
    path = folder / "onnx" / "model.onnx"
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize("harm", [lead_outside, tear_graph])
def test_a_hostile_graph_is_refused(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    folder = make_encoder(tmp_path / "model")
    harm(folder)
    with pytest.raises(ProviderUnavailable, match="not a graph to be run here"):
        probe_model(read_model_folder(folder))


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"modules.json": [{"type": "sentence_transformers.models.Dense"}]},
            "its module Dense",
        ),
        (
            {"1_Pooling/config.json": {"pooling_mode_weightedmean_tokens": True}},
            "pooling by",
        ),
        (
            {
                "config.json": {
                    "architectures": ["XForSequenceClassification"],
                    "num_labels": 3,
                }
            },
            "3 labels",
        ),
        ({"config.json": []}, "not a JSON object"),
    ],
)
def test_what_cannot_run_here_is_named(
    tmp_path: Path, changed: dict[str, Any], problem: str
) -> None:
    folder = make_encoder(tmp_path / "model", **changed)
    with pytest.raises(ProviderUnavailable, match=problem):
        read_model_folder(folder)


def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    folder = make_encoder(tmp_path / "model")
    with pytest.raises(ProviderUnavailable, match=r"pip install 'flashgrep\[models\]'"):
        open_embedder(local(folder), {})


def test_only_the_tensors_that_are_asked_for_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, embeddings=ROWS, other=np.array([print], object))
    assert list(read_tensors(path, {"embeddings"})) == ["embeddings"]


ODD: tuple[Any, ...] = (None, True, 0, -3, 2.5, "x", [], [7], {}, {"a": 1})


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("config.json", "architectures"),
        ("config.json", "num_labels"),
        ("config.json", "id2label"),
        ("config.json", "model_type"),
        ("config.json", "max_position_embeddings"),
        ("config_sentence_transformers.json", "default_prompt_name"),
        ("config_sentence_transformers.json", "prompts"),
        ("sentence_bert_config.json", "max_seq_length"),
    ],
)
def test_settings_of_any_type_are_read_or_refused(
    tmp_path: Path, name: str, key: str
) -> None:
    settings = {
        "architectures": ["XForSequenceClassification"],
        "model_type": "roberta",
        "prompts": {"query": "ask: "},
    }
    folder = make_cross_encoder(tmp_path / "model")
    for value in ODD:
        write_json(folder, {name: settings | {key: value}})
        try:
            tokens = read_model_folder(folder).max_tokens
        except ProviderUnavailable:
            continue
        assert FEWEST_TOKENS <= tokens <= MOST_TOKENS


@pytest.mark.parametrize("inner", ["x" * 300, "a\0b", "/" * 300, "x/" * 4_000])
def test_a_module_is_nowhere_that_no_system_has(tmp_path: Path, inner: str) -> None:
    folder = make_encoder(tmp_path / "model")
    module = {"path": inner, "type": "Transformer"}
    write_json(folder, {"modules.json": [module]})
    # Where a system says that there is no such file, the rest is read.
    with suppress(ProviderUnavailable):
        assert read_model_folder(folder).kind == "encoder"


def encrypt(archive: bytes) -> bytes:
    # The flags of the local header and of the directory.
    return archive.replace(b"PK\3\4\x14\0\0", b"PK\3\4\x14\0\1").replace(
        b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"
    )


def want_newer(archive: bytes) -> bytes:
    return archive.replace(b"PK\1\2\x14\3\x14\0", b"PK\1\2\x14\3\xff\0")


def tear_stream(archive: bytes) -> bytes:
    start = archive.index(b"embeddings.npy") + len(b"embeddings.npy")
    return archive[:start] + b"\xff" * 12 + archive[start + 12 :]


@pytest.mark.parametrize("harm", [encrypt, want_newer, tear_stream])
def test_an_archive_that_cannot_be_unpacked_is_refused(
    tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    folder = make_npz(tmp_path / "model")
    path = folder / "model.npz"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive, io.BytesIO() as array:
        np.save(array, ROWS)
        archive.writestr("embeddings.npy", array.getvalue())
    whole = path.read_bytes()
    path.write_bytes(harm(whole))
    assert path.read_bytes() != whole
    with pytest.raises(ProviderUnavailable, match=r"model\.npz"):
        open_embedder(local(folder), {})


@pytest.mark.parametrize(
    "arrays",
    [
        {"embeddings": np.float32(1)},
        {"embeddings": ROWS.astype("S4")},
        {"embeddings": ROWS, "weights": np.float32(1)},
        {"embeddings": ROWS, "weights": ROWS},
        {"embeddings": ROWS, "mapping": np.zeros(len(WORDS), np.float32)},
        {"embeddings": ROWS, "mapping": np.zeros((len(WORDS), 2), np.int64)},
    ],
)
def test_tables_of_another_shape_are_refused(
    tmp_path: Path, arrays: dict[str, Any]
) -> None:
    folder = make_npz(tmp_path / "model")
    np.savez(folder / "model.npz", **arrays)
    with pytest.raises(ProviderUnavailable, match="a table of"):
        open_embedder(local(folder), {})


def test_a_token_without_a_row_is_refused_though_others_are_left_out(
    tmp_path: Path,
) -> None:
    folder = make_npz(tmp_path / "model")
    words = json.loads((folder / "tokenizer.json").read_text())
    words["model"]["vocab"] = {"[UNK]": 0, "read": 1_000}
    write_json(folder, {"tokenizer.json": words})
    with pytest.raises(ProviderUnavailable, match="1001 tokens, but rows for 11"):
        open_embedder(local(folder), {})


@pytest.mark.parametrize(
    "output", [np.zeros((), np.float32), ROWS[0, :1], ROWS[None, None, :1]]
)
def test_a_graph_whose_rows_are_none_is_refused(
    tmp_path: Path, output: npt.NDArray[Any]
) -> None:
    folder = make_encoder(tmp_path / "model")
    rows = helper.make_tensor_value_info("out", TensorProto.FLOAT, output.shape)
    node = helper.make_node("Identity", ["rows"], ["out"])
    path = folder / "onnx" / "model.onnx"
    write_graph(path, [node], ["input_ids", "attention_mask"], rows, output)
    with pytest.raises(ProviderUnavailable, match="not a graph to be run here"):
        open_embedder(local(folder), {})


def test_a_model_is_opened_without_modules_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = read_model_folder(make_npz(tmp_path / "model"))
    (tmp_path / "json.py").write_text("raise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    assert probe_model(model).dims == DIMS


def test_opening_a_graph_leaves_and_tells_nothing(tmp_path: Path) -> None:
    folder = make_encoder(tmp_path / "model")
    home = tmp_path / "home"
    home.mkdir()
    # Where it is tested the library is silent by itself.
    quiet = {"CI", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "XDG_CACHE_HOME"}
    environ = {name: text for name, text in os.environ.items() if name not in quiet}
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(folder)],
        capture_output=True,
        text=True,
        timeout=2 * BOUND,
        check=True,
        env=environ | {"HOME": str(home)},
    )
    assert done.stdout == "opened\n"
    assert list(home.rglob("*")) == []
