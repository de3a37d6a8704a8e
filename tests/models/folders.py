"""Folders of models as public packages ship them, made by the tests: a few words, rows of four numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.embed.test_local import write_tensors

WORDS = (
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[PAD]",
    "read",
    "file",
    "write",
    "socket",
    "the",
    "ask:",
    "say:",
)
"""Numbers of tokens are places in here."""
DIMS = 4
ROWS = np.array(
    [
        *([0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 2], [9, 9, 9, 9], [1, 0, 0, 0]),
        *(
            [0, 1, 0, 0],
            [0, 0, 2, 0],
            [3, 0, 1, 0],
            [0.5, 0.5, 0, 0],
            [0, 4, 0, 0],
            [0, 0, 0, 8],
        ),
    ],
    np.float32,
)
CARD = "---\nlicense: mit\ntags:\n- model2vec\n---\n# A model\n"


def write_json(folder: Path, files: dict[str, Any]) -> None:
    """Write JSON files of a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))


def make_words(*, is_encoder: bool) -> dict[str, Any]:
    """Return a tokenizer.json; an encoder's puts its marks around a text, or around a pair."""
    words: dict[str, Any] = {
        "version": "1.0",
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(WORDS)},
            "unk_token": "[UNK]",
        },
    }
    if is_encoder:
        first, second = (
            {"Sequence": {"id": name, "type_id": number}}
            for number, name in enumerate("AB")
        )
        mark = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
        ends = [
            {"SpecialToken": {"id": "[SEP]", "type_id": number}} for number in (0, 1)
        ]
        words["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [mark, first, ends[0]],
            "pair": [mark, first, ends[0], second, ends[1]],
            "special_tokens": {
                word: {"id": word, "ids": [WORDS.index(word)], "tokens": [word]}
                for word in ("[CLS]", "[SEP]")
            },
        }
    return words


def make_model2vec(folder: Path) -> Path:
    """Write a folder as Model2Vec does."""
    folder.mkdir(parents=True)
    write_tensors(folder / "model.safetensors", {"embeddings": ROWS})
    modules = [
        {
            "idx": 0,
            "name": "0",
            "path": ".",
            "type": "sentence_transformers.models.StaticEmbedding",
        },
        {
            "idx": 1,
            "name": "1",
            "path": "1_Normalize",
            "type": "sentence_transformers.models.Normalize",
        },
    ]
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": DIMS,
        "normalize": True,
    }
    write_json(
        folder,
        {
            "tokenizer.json": make_words(is_encoder=False),
            "config.json": config,
            "modules.json": modules,
        },
    )
    (folder / "README.md").write_text(CARD)
    return folder


def make_static(folder: Path) -> Path:
    """Write a static model as sentence-transformers does."""
    inner = folder / "0_StaticEmbedding"
    inner.mkdir(parents=True)
    write_tensors(inner / "model.safetensors", {"embedding.weight": ROWS})
    modules = [
        {
            "idx": 0,
            "name": "0",
            "path": "0_StaticEmbedding",
            "type": "sentence_transformers.models.StaticEmbedding",
        }
    ]
    write_json(
        folder,
        {
            "0_StaticEmbedding/tokenizer.json": make_words(is_encoder=False),
            "modules.json": modules,
        },
    )
    (folder / "LICENSE").write_text("\nApache License\nVersion 2.0\n")
    return folder


def make_npz(folder: Path) -> Path:
    """Write a static model whose table is an npz."""
    folder.mkdir(parents=True)
    np.savez(folder / "model.npz", embeddings=ROWS.astype(np.float16))
    write_json(folder, {"tokenizer.json": make_words(is_encoder=False)})
    return folder


def make_encoder(folder: Path, pooling: str = "mean", **changed: Any) -> Path:
    """Write an encoder as sentence-transformers exports it: ``onnx/model.onnx``, pooling and prompts."""
    folder.mkdir(parents=True)
    lookup = helper.make_node("Gather", ["rows", "input_ids"], ["last_hidden_state"])
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, ["n", "t", DIMS]
    )
    write_graph(
        folder / "onnx" / "model.onnx",
        [lookup],
        ["input_ids", "attention_mask"],
        output,
        ROWS,
    )
    modes = (
        "mean_tokens",
        "cls_token",
        "max_tokens",
        "lasttoken",
        "weightedmean_tokens",
    )
    files = {
        "tokenizer.json": make_words(is_encoder=True),
        "config.json": {
            "architectures": ["BertModel"],
            "hidden_size": DIMS,
            "max_position_embeddings": 512,
        },
        "1_Pooling/config.json": {
            f"pooling_mode_{mode}": mode.startswith(pooling) for mode in modes
        },
        "modules.json": [
            {
                "idx": 0,
                "name": "0",
                "path": "",
                "type": "sentence_transformers.models.Transformer",
            },
            {
                "idx": 1,
                "name": "1",
                "path": "1_Pooling",
                "type": "sentence_transformers.models.Pooling",
            },
        ],
        "config_sentence_transformers.json": {
            "prompts": {"query": "ask: ", "passage": "say: "}
        },
        "sentence_bert_config.json": {"max_seq_length": 64},
    }
    write_json(folder, files | changed)
    (folder / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n")
    return folder


def make_cross_encoder(folder: Path, labels: int = 1) -> Path:
    """Write a cross-encoder with one logit: the sum of the second text's rows, so that "write" and "socket" count."""
    folder.mkdir(parents=True)
    values = ROWS[:, 2:3].repeat(labels, axis=1) - 0.5
    nodes = [
        helper.make_node("Gather", ["rows", "input_ids"], ["values"]),
        helper.make_node("Mul", ["token_type_ids", "attention_mask"], ["second"]),
        helper.make_node("Cast", ["second"], ["counting"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["counting", "last"], ["column"]),
        helper.make_node("Mul", ["values", "column"], ["counted"]),
        helper.make_node("ReduceSum", ["counted", "along"], ["logits"], keepdims=0),
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", labels])
    axes = {"last": np.array([-1], np.int64), "along": np.array([1], np.int64)}
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    write_graph(folder / "model.onnx", nodes, inputs, output, values, **axes)
    config = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {str(number): f"LABEL_{number}" for number in range(labels)},
    }
    write_json(
        folder, {"tokenizer.json": make_words(is_encoder=True), "config.json": config}
    )
    return folder


def write_graph(
    path: Path,
    nodes: list[Any],
    inputs: list[str],
    output: Any,
    rows: npt.NDArray[Any],
    **more: npt.NDArray[Any],
) -> None:
    """Write a graph of ONNX whose inputs have a number for each token."""
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"])
        for name in inputs
    ]
    constants = [
        numpy_helper.from_array(array, name)
        for name, array in {"rows": rows, **more}.items()
    ]
    graph = helper.make_graph(nodes, "made", given, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))
