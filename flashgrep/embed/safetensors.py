"""Tensors of a ``.safetensors`` file (Hugging Face's format) as numpy arrays: a length, a JSON header, the bytes."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from flashgrep.errors import ProviderUnavailable

LARGEST_HEADER = 100_000_000  # the format's own bound, in bytes
KINDS: Final[Mapping[str, str]] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I8": "i1",
}


def tensor_names(path: Path) -> list[str]:
    """Return the names of a file's tensors; raises as ``read_tensors``."""
    return list(_header(path)[0])


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return every tensor of a file, those of half-precision brain floats as float32.

    Raises:
        ProviderUnavailable: the file is none, or has a kind of number that is not known here.

    """
    header, start = _header(path)
    data = np.memmap(path, np.uint8, mode="r")
    try:
        return {name: _tensor(data, start, entry) for name, entry in header.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise ProviderUnavailable(f"{path}: no tensors that can be read: {error}") from None


def _header(path: Path) -> tuple[dict[str, Any], int]:
    with path.open("rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else LARGEST_HEADER + 1  # noqa: PLR2004 - one number
        text = file.read(length) if length <= LARGEST_HEADER else b""
    try:
        header = orjson.loads(text)
        header.pop("__metadata__", None)
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        raise ProviderUnavailable(f"{path}: not a safetensors file") from None
    return header, 8 + length


def _tensor(data: npt.NDArray[np.uint8], start: int, entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    begin, end = entry["data_offsets"]
    flat = np.frombuffer(data[start + begin : start + end].tobytes(), KINDS[entry["dtype"]])
    if entry["dtype"] == "BF16":
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(entry["shape"])
