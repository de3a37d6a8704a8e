"""Models in folders as public packages ship them, and folders that were made to harm."""

import os
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import onnx
import pytest

from flashgrep.base.config import Embedding, Reranking, Settings
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed import available, open_embedder
from flashgrep.parts.meaning.embed.model_folder import (
    MOST_TOKENIZER,
    read_model_folder,
)
from flashgrep.parts.meaning.embed.models import open_reranker
from flashgrep.parts.meaning.embed.tensors import read_tensors
from flashgrep.parts.models.probe import probe_model
from tests.models.folders import (
    DIMS,
    ROWS,
    WORDS,
    make_cross_encoder,
    make_encoder,
    make_model2vec,
    make_npz,
    make_static,
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
        timeout=60,
        check=False,
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
