"""What a folder with a model says of itself: its kind, its files, its pooling, prompts and bounds.

Three layouts are read: a static table (Model2Vec, or StaticEmbedding of sentence-transformers: safetensors or npz, with
tokenizer.json), an encoder in ONNX, and a cross-encoder in ONNX; a folder with weights of PyTorch alone needs
sentence-transformers. The folder may come from anywhere: files are plain, inside it and of bounded size.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

import orjson

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.base.plain_files import read_plain_file
from flashgrep.parts.meaning.embed.interface import Role
from flashgrep.parts.meaning.embed.tensors import tensor_names

Kind = Literal["static", "encoder", "cross-encoder", "transformers"]
Pooling = Literal["mean", "cls", "max", "lasttoken"]

MOST_JSON: Final = 1 << 20
MOST_TOKENIZER: Final = 64 << 20
"""Bytes; the vocabulary of a quarter of a million pieces takes 17 to 34 MB."""
MOST_WEIGHTS: Final = 8 << 30
MOST_FILES: Final = 2_000
"""Files of a folder; a repository of a model has a few dozen."""
MOST_TOKENS: Final = 512
"""Tokens of a text that are read; few functions are longer, and time grows with the square."""
FEWEST_TOKENS: Final = 8
FIRST_POSITION: Final = 2
"""Where the family of RoBERTa begins to number positions."""
STATIC: Final = "0_StaticEmbedding"
TABLES: Final = frozenset({"embeddings", "embedding.weight"})
"""Names of a static model's table, in Model2Vec and in sentence-transformers."""
TABLE_FILES: Final = ("model.safetensors", "model.npz", "embeddings.npz")
GRAPHS: Final = (
    "model.onnx",
    "onnx/model.onnx",
    "model_optimized.onnx",
    "model_quantized.onnx",
    "onnx/model_quantized.onnx",
    "onnx/model_int8.onnx",
    "onnx/model_qint8_avx512_vnni.onnx",
    "onnx/model_fp16.onnx",
)
"""Where a graph of ONNX is, in the order of preference: the exact one before quantised ones."""
ONLY_GRAPH: Final = re.compile(r".+\.onnx")
ONLY_TABLE: Final = re.compile(r".+\.(?:safetensors|npz)")
ONLY_TOKENIZER: Final = re.compile(r"(?!tokenizer_config\.).*tokenizer.*\.json")
"""Names of files without a usual name, as packages of programs ship them, if there is only one of its kind."""
CONFIGS: Final = (
    "config.json",
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "tokenizer_config.json",
    "1_Pooling/config.json",
    "README.md",
    "LICENSE",
    "LICENSE.txt",
)
"""Files that are read beside weights and tokenizer."""
_POOLINGS: Final[Mapping[str, Pooling]] = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
_PROMPTS: Final[Mapping[Role, tuple[str, ...]]] = {
    "query": ("query", "search_query", "retrieval.query", "s2p_query"),
    "document": (
        "document",
        "passage",
        "search_document",
        "retrieval.passage",
    ),
}
"""Names of the prompts of questions and of texts; models do not agree on them."""
_MODULES: Final = frozenset({"Transformer", "Pooling", "Normalize", "StaticEmbedding"})
"""What of sentence-transformers runs here."""
_LICENCE: Final = re.compile(r"^license:\s*[\"']?([\w.+ -]{1,60})", re.MULTILINE)
_BLOBS: Final = "models--"
"""How a folder of the cache of Hugging Face begins; its snapshots are links to files beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """A model's folder, as far as it can be described without its libraries."""

    path: Path
    kind: Kind
    weights: str
    """The file of the table or the graph, below the folder."""
    tokenizer: str = ""
    pooling: Pooling = "mean"
    prompts: Mapping[Role, str] = field(default_factory=dict)
    max_tokens: int = MOST_TOKENS
    licence: str = ""
    """As its card says it; empty: it says nothing."""

    def files(self) -> Iterator[str]:
        """Yield the files that the model consists of, below the folder."""
        beside = [f"{self.weights}_data", f"{self.weights}.data"]
        for name in (self.weights, *beside, self.tokenizer, *CONFIGS):
            if name and find_file(self.path, name, MOST_WEIGHTS) is not None:
                yield name

    def size(self) -> int:
        """Return the bytes of its files."""
        return sum((self.path / name).stat().st_size for name in self.files())


def read_model_folder(folder: Path) -> ModelFolder:
    """Return what a folder says of its model.

    Raises:
        ProviderUnavailable: there is no model in it, or one that cannot be run here; a file is too large, is none, or
        leads outside; settings are of another type than they should be.

    """
    try:
        return _read_folder(folder)
    # A file of settings may have anything anywhere, and a name that no system has.
    except (
        AttributeError,
        OSError,
        TypeError,
        ValueError,
    ) as error:
        raise ProviderUnavailable(f"{folder}: no model's settings: {error}") from None


def _read_folder(folder: Path) -> ModelFolder:
    """As ``read_model_folder``, but what the files have is not checked for its type."""
    table = find_table(folder)
    config = read_config(folder, "config.json")
    licence = read_licence(folder)
    if table is not None:
        return ModelFolder(
            path=folder,
            kind="static",
            weights=table,
            tokenizer=find_tokenizer(folder, PurePosixPath(table).parent),
            licence=licence,
        )
    graph = find_graph(folder)
    is_pair = is_cross_encoder(config)
    # Without a graph only the library that made the folder can run it.
    if graph is None:
        if is_pair or find_file(folder, "modules.json", MOST_JSON) is not None:
            return ModelFolder(
                path=folder,
                kind="transformers",
                weights="",
                licence=licence,
            )
        raise ProviderUnavailable(
            f"{folder}: no model of model2vec, ONNX or sentence-transformers: neither a table (safetensors, npz)"
            " nor a graph (onnx)"
        )
    if is_pair:
        kind: Kind = "cross-encoder"
    else:
        kind = "encoder"
        check_modules(folder)
    return ModelFolder(
        path=folder,
        kind=kind,
        weights=graph,
        tokenizer=find_tokenizer(folder, PurePosixPath(graph).parent),
        pooling=read_pooling(folder),
        prompts=read_prompts(folder),
        max_tokens=read_max_tokens(folder, config),
        licence=licence,
    )


def find_file(folder: Path, name: str, most: int) -> Path | None:
    """Return a file below a folder; None if there is none.

    Raises:
        ProviderUnavailable: it leads outside, is no file, or is longer than ``most`` bytes.

    """
    path = folder / name
    if not path.exists():
        return None
    # Links are followed first, since they may lead anywhere.
    real = path.resolve()
    home = folder.resolve()
    is_inside = real.is_relative_to(home)
    if not is_inside and home.parent.name == "snapshots":
        cache = home.parent.parent
        is_cache = cache.name.startswith(_BLOBS)
        is_inside = is_cache and real.is_relative_to(cache / "blobs")
    if ".." in PurePosixPath(name).parts or not is_inside:
        raise ProviderUnavailable(f"{path}: it leads outside of the model's folder")
    if not real.is_file():
        raise ProviderUnavailable(f"{path}: not a file")
    size = real.stat().st_size
    if size > most:
        raise ProviderUnavailable(f"{path}: {size} bytes, at most {most} are read")
    return real


def read_config(folder: Path, name: str) -> dict[str, Any]:
    """Return a JSON object of a folder, empty if there is none; raises ProviderUnavailable."""
    content = read_json(folder, name)
    if not isinstance(content, dict):
        raise ProviderUnavailable(f"{folder / name}: not a JSON object")
    return content


def read_json(folder: Path, name: str) -> Any:
    """Return a JSON file of a folder, an empty object if there is none; raises ProviderUnavailable."""
    path = find_file(folder, name, MOST_JSON)
    if path is None:
        return {}
    try:
        return orjson.loads(read_plain_file(path, MOST_JSON))
    except (OSError, orjson.JSONDecodeError) as error:
        raise ProviderUnavailable(f"{folder / name}: {error}") from None


def read_tokenizer(model: ModelFolder) -> str:
    """Return the text of the tokenizer's file; raises ProviderUnavailable."""
    path = find_file(model.path, model.tokenizer, MOST_TOKENIZER)
    if path is None:
        raise ProviderUnavailable(f"{model.path}: tokenizer.json is missing")
    try:
        return read_plain_file(path, MOST_TOKENIZER).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderUnavailable(f"{path}: {error}") from None


def find_table(folder: Path) -> str | None:
    """Return the file with a static model's table, below the folder; None if there is none."""
    for inner in (
        "",
        f"{STATIC}/",
        *(f"{path}/" for path in list_modules(folder)),
    ):
        for name in TABLE_FILES:
            path = find_file(folder, inner + name, MOST_WEIGHTS)
            if path is None:
                continue
            # A link of a cache leads to a file without an ending.
            named = folder / (inner + name)
            if not TABLES.isdisjoint(tensor_names(named)):
                return inner + name
    names = list_files(folder, ONLY_TABLE)
    if len(names) == 1 and not TABLES.isdisjoint(tensor_names(folder / names[0])):
        return names[0]
    return None


def list_files(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    """Return the files directly in a folder with such a name; raises ProviderUnavailable as ``find_file``."""
    names = list[str]()
    with os.scandir(folder) as entries:
        for entry in islice(entries, MOST_FILES):
            if pattern.fullmatch(entry.name) and find_file(
                folder, entry.name, MOST_WEIGHTS
            ):
                names.append(entry.name)
    return sorted(names)


def list_modules(folder: Path) -> Iterator[str]:
    """Yield the folders of the modules of sentence-transformers."""
    modules = read_json(folder, "modules.json")
    if not isinstance(modules, list):
        return
    for module in modules:
        if isinstance(module, dict) and isinstance(module.get("path"), str):
            if module["path"]:
                yield module["path"]


def check_modules(folder: Path) -> None:
    """Refuse a model with a module that does not run here; raises ProviderUnavailable."""
    modules = read_json(folder, "modules.json")
    if not isinstance(modules, list):
        return
    for module in modules:
        name = str(module.get("type", "")) if isinstance(module, dict) else ""
        last = name.rpartition(".")[2]
        if last not in _MODULES:
            raise ProviderUnavailable(
                f"{folder}: its module {last or '(unnamed)'} does not run here, only"
                f" {', '.join(sorted(_MODULES))}"
            )


def find_graph(folder: Path) -> str | None:
    """Return the file of an ONNX graph, below the folder; None if there is none.

    Raises:
        ProviderUnavailable: there are several, and none has a usual name.

    """
    for name in GRAPHS:
        if find_file(folder, name, MOST_WEIGHTS) is not None:
            return name
    names = list_files(folder, ONLY_GRAPH)
    if len(names) > 1:
        raise ProviderUnavailable(
            f"{folder}: which of these graphs? {', '.join(names)}: leave one, or name it model.onnx"
        )
    return names[0] if names else None


def find_tokenizer(folder: Path, inner: PurePosixPath) -> str:
    """Return the tokenizer's file, below the folder; raises ProviderUnavailable."""
    for name in (str(inner / "tokenizer.json"), "tokenizer.json"):
        if find_file(folder, name, MOST_TOKENIZER) is not None:
            return name
    names = list_files(folder, ONLY_TOKENIZER)
    if len(names) != 1:
        raise ProviderUnavailable(f"{folder}: tokenizer.json is missing")
    return names[0]


def is_cross_encoder(config: Mapping[str, Any]) -> bool:
    """Return whether a model's settings are those of one that reads question and text together.

    Raises:
        ProviderUnavailable: it has several labels, so it is a classifier.

    """
    # A file of settings may have null here.
    architectures = config.get("architectures") or ()
    if not any("SequenceClassification" in str(name) for name in architectures):
        return False
    labels = config.get("num_labels", len(config.get("id2label") or "1"))
    if labels != 1:
        raise ProviderUnavailable(
            f"a classifier of {labels} labels: a cross-encoder has one"
        )
    return True


def read_pooling(folder: Path) -> Pooling:
    """Return how the rows of a text's tokens become one row; raises ProviderUnavailable."""
    config = read_config(folder, "1_Pooling/config.json")
    # The file has every mode with yes or no.
    modes = [
        name
        for name, chosen in config.items()
        if name.startswith("pooling_mode_") and chosen
    ]
    if not modes:
        return "mean"
    # Several at once are concatenated, which no model of code does.
    if len(modes) > 1 or modes[0] not in _POOLINGS:
        raise ProviderUnavailable(f"{folder}: pooling by {', '.join(modes)}")
    return _POOLINGS[modes[0]]


def read_prompts(folder: Path) -> dict[Role, str]:
    """Return what is put before questions and texts, as the model was trained with it."""
    config = read_config(folder, "config_sentence_transformers.json")
    prompts = config.get("prompts")
    # Many models have the file for its versions alone.
    if not isinstance(prompts, dict):
        return {}
    usual = prompts.get(config.get("default_prompt_name") or "", "")
    chosen: dict[Role, str] = {}
    for role, names in _PROMPTS.items():
        texts = [prompts[name] for name in names if name in prompts]
        chosen[role] = str(texts[0] if texts else usual)[:MOST_TOKENS]
    return chosen


def read_max_tokens(folder: Path, config: Mapping[str, Any]) -> int:
    """Return how many tokens of a text the model reads."""
    # Each file may say it, and the smallest is what works.
    claims = [
        read_config(folder, "sentence_bert_config.json").get("max_seq_length"),
        read_config(folder, "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings"),
    ]
    bounds = [MOST_TOKENS]
    for claim in claims:
        if isinstance(claim, int | float) and claim >= FEWEST_TOKENS:
            bounds.append(int(min(claim, MOST_TOKENS)))
    if config.get("model_type") in {"roberta", "xlm-roberta", "camembert"}:
        positions = config.get("max_position_embeddings", MOST_TOKENS + FIRST_POSITION)
        bounds.append(int(positions) - FIRST_POSITION)
    return max(FEWEST_TOKENS, min(bounds))


def read_licence(folder: Path) -> str:
    """Return the licence that a model's card or its licence file names; empty if neither does."""
    # The card begins with lines of YAML between two rules.
    card = read_beginning(folder, "README.md")
    stated = _LICENCE.search(card.split("\n---", 1)[0])
    if card.startswith("---") and stated is not None:
        return stated[1].strip()
    for name in ("LICENSE", "LICENSE.txt"):
        lines = read_beginning(folder, name).split("\n")
        for line in lines:
            if line.strip():
                return line.strip()[:60]
    return ""


def read_beginning(folder: Path, name: str) -> str:
    """Return the beginning of a text file of a folder; empty if there is none."""
    path = find_file(folder, name, MOST_WEIGHTS)
    if path is None:
        return ""
    with path.open("rb") as file:
        return file.read(MOST_JSON).decode("utf-8", "replace")


def fingerprint(folder: Path) -> str:
    """Return a folder's name with a hash over the sizes and the first MiB of its files.

    Raises:
        ProviderUnavailable: it has more files than a model.

    """
    digest = sha256()
    paths = []
    for path in folder.rglob("*"):
        if path.is_file():
            paths.append(path)
        if len(paths) > MOST_FILES:
            raise ProviderUnavailable(f"{folder}: more than {MOST_FILES} files")
    for path in sorted(paths):
        name = os.fsencode(path.relative_to(folder))
        digest.update(name + f"\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(1 << 20))
    return f"{folder.name}-{digest.hexdigest()[:12]}"
