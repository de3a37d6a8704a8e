"""Models in ONNX: an encoder of texts, and a cross-encoder that reads question and text together.

onnxruntime and tokenizers are optional: ``pip install flashgrep[models]``.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flashgrep.base.errors import (
    ProviderUnavailable,
    clip,
)
from flashgrep.base.installation import advise_install
from flashgrep.parts.meaning.embed.interface import (
    ModelEmbedder,
    Role,
)
from flashgrep.parts.meaning.embed.model_folder import (
    MOST_WEIGHTS,
    ModelFolder,
    Pooling,
    find_file,
    read_tokenizer,
)

ADVICE: Final = advise_install("flashgrep[models]")
SILENCE: Final = "ORT_DISABLE_TELEMETRY"
"""Read when onnxruntime starts; what its API turns off comes later than the first message."""
BATCH: Final = 8
"""Texts at once: larger batches take memory by the longest text and are no faster on one core."""
PAIRS: Final = 8
MOST_REASON: Final = 300
"""Characters of an error of the runtime; some quote half of the graph."""
INPUTS: Final = frozenset(
    {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
)
"""What a graph may be given; decoders want more."""
_RANK_OF_ROWS: Final = 2
"""Dimensions of an output that has a row for each text; one that has a row for each token has three."""

Table = npt.NDArray[Any]


def import_library(name: str, advice: str) -> Any:
    """Import an optional library.

    Raises:
        ProviderUnavailable: it is not installed, or importing it fails.
    """
    # Else onnxruntime sends what it runs to its maker, from 1.29 on.
    os.environ[SILENCE] = "1"
    try:
        return import_module(name)
    except ImportError as error:
        raise ProviderUnavailable(
            f"{name} cannot be imported ({error}): {advice}"
        ) from None


def make_tokenizer(text: str, where: object) -> Any:
    """Return the tokenizer of a file's text.

    Raises:
        ProviderUnavailable: there is no such library, or it cannot read the text.

    """
    tokenizers = import_library("tokenizers", ADVICE)
    try:
        return tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # noqa: BLE001 - the library raises nothing more specific
        raise ProviderUnavailable(f"{where}: not a tokenizer: {error}") from None


class Graph:
    """A graph of ONNX with its tokenizer; thread-safe."""

    def __init__(self, model: ModelFolder) -> None:
        """Raise ProviderUnavailable if a library is missing, or the graph or the tokenizer cannot be used."""
        runtime = import_library("onnxruntime", ADVICE)
        path = find_file(model.path, model.weights, MOST_WEIGHTS)
        self._path = model.path / model.weights
        self._tokenizer = make_tokenizer(read_tokenizer(model), model.path)
        # The file may have settings of its training, such as a fixed length.
        self._tokenizer.enable_truncation(model.max_tokens)
        self._tokenizer.enable_padding(**_read_padding(self._tokenizer))
        options = runtime.SessionOptions()
        # More threads spin while waiting and nearly double the processor time.
        options.intra_op_num_threads = 1
        try:
            self._session = runtime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # noqa: BLE001 - its errors have no base of their own
            raise self._failure(error) from None
        self._inputs = [node.name for node in self._session.get_inputs()]
        for name in self._inputs:
            if name not in INPUTS:
                raise self._failure(f"it wants {name}")

    def run(self, texts: Sequence[Any]) -> tuple[Table, Table]:
        """Return the first output for texts, or for pairs of them, and which of their tokens count.

        Raises:
            ProviderUnavailable: the graph cannot be run on them.

        """
        encoded = self._tokenizer.encode_batch(list(texts))
        mask = np.array([text.attention_mask for text in encoded], np.int64)
        feed: dict[str, Table] = {}
        rows: Any
        for name in self._inputs:
            if name == "input_ids":
                rows = [text.ids for text in encoded]
            elif name == "token_type_ids":
                rows = [text.type_ids for text in encoded]
            elif name == "position_ids":
                # Padding on the left must not count.
                rows = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
            else:
                rows = mask
            feed[name] = np.asarray(rows, np.int64)
        try:
            output = self._session.run(None, feed)[0]
        except Exception as error:  # noqa: BLE001 - as in __init__
            raise self._failure(error) from None
        table = np.asarray(output)
        # Some graphs have texts, or lists of maps.
        if not table.ndim or table.dtype.kind not in "fiu":
            raise self._failure(f"{table.dtype} in the shape {table.shape}")
        if len(table) != len(mask):
            raise self._failure(f"{len(table)} rows for {len(mask)} texts")
        if not np.isfinite(table).all():
            raise self._failure("numbers that are not finite")
        return table, mask

    def _failure(self, problem: object) -> ProviderUnavailable:
        reason = clip(str(problem).replace("\n", " "), MOST_REASON)
        return ProviderUnavailable(
            f"{self._path}: not a graph to be run here: {reason}"
        )


def open_encoder(name: str, model: ModelFolder, batch: int) -> ModelEmbedder:
    """Return the embedder of a folder with an encoder.

    Raises:
        ProviderUnavailable: a library is missing, or the model cannot be run.

    """
    graph = Graph(model)

    def encode(texts: Sequence[str], role: Role) -> Table:
        # Trained with them: without its prompt a question is embedded as a text.
        prompt = model.prompts.get(role, "")
        rows, mask = graph.run([prompt + text for text in texts])
        if rows.ndim == _RANK_OF_ROWS:
            return rows
        if rows.shape[:-1] != mask.shape:
            raise ProviderUnavailable(
                f"{model.path}: not a graph to be run here: rows in the shape {rows.shape}"
            )
        return pool(rows, mask, model.pooling)

    width = encode(["probe"], "document").shape[1]
    return ModelEmbedder(
        name=name,
        dims=int(width),
        encode=encode,
        batch=batch or BATCH,
    )


def pool(rows: Table, mask: Table, pooling: Pooling) -> Table:
    """Return a row for each text from the rows of its tokens."""
    # Rows of padding count in no pooling.
    if pooling == "cls":
        first: Table = rows[:, 0]
        return first
    if pooling == "lasttoken":
        # Padding may be on either side.
        width = mask.shape[1]
        behind = np.argmax(mask[:, ::-1], axis=1)
        numbers = np.arange(len(rows))
        ends: Table = rows[numbers, width - 1 - behind]
        return ends
    if pooling == "max":
        counting = np.where(mask[:, :, None] > 0, rows, -np.inf)
        largest: Table = counting.max(axis=1)
        return largest
    weights = mask.astype(np.float32)
    total: Table = np.einsum("ntd,nt->nd", rows, weights)
    return total


def open_pairs(
    model: ModelFolder,
) -> Callable[[list[tuple[str, str]]], Table]:
    """Return a function from pairs of question and text to scores in 0-1, of a folder with a cross-encoder.

    Raises:
        ProviderUnavailable: a library is missing, or the model cannot be run.

    """
    graph = Graph(model)

    # Opened once; a question has thirty pairs.
    def predict(pairs: list[tuple[str, str]]) -> Table:
        scores = [np.zeros(0)]
        for at in range(0, len(pairs), PAIRS):
            part = pairs[at : at + PAIRS]
            logits, _ = graph.run(part)
            if logits.size != len(part):
                raise ProviderUnavailable(
                    f"{model.path}: {logits.shape[-1]} scores for a pair, not one"
                )
            flat = logits.astype(np.float64).ravel()
            # Clipped so that exp does not overflow; beyond 50 the result is 0 or 1.
            limited = flat.clip(-50, 50)
            scores.append(1 / (1 + np.exp(-limited)))
        return np.concatenate(scores)

    # A model with several scores is refused before anything depends on it.
    predict([("probe", "probe")])
    return predict


def _read_padding(tokenizer: Any) -> dict[str, Any]:
    """Return the file's own padding, so that its token and side stay, without a fixed length."""
    padding = dict(tokenizer.padding or {})
    padding.pop("length", None)
    padding.pop("pad_to_multiple_of", None)
    return padding
