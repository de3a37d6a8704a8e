"""Tensors of a model's file: safetensors, or npz without pickles. A file's own claims are checked before they cost.

safetensors is a length, a JSON header and the bytes; npz is a zip of arrays. Only the tensors asked for are read.
"""

import math
import struct
import zlib
from collections.abc import Collection, Mapping
from lzma import LZMAError
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt
import orjson

from flashgrep.base.errors import ProviderUnavailable

Tensors = dict[str, npt.NDArray[Any]]

MOST_HEADER: Final = 4 << 20
"""Bytes of a header; a model of 500 tensors has 60 KB."""
MOST_TABLE: Final = 2 << 30
"""Bytes of one tensor: a table of a million words with 512 numbers each."""
MOST_MEMBERS: Final = 64
"""Arrays of an npz."""
UNREADABLE: Final = (
    BadZipFile,
    EOFError,
    LZMAError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""What zipfile and its libraries raise; RuntimeError: encrypted, or a compression or version it does not know."""
_LENGTH: Final = 8
DTYPES: Final[Mapping[str, str]] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I8": "i1",
}


def tensor_names(path: Path) -> list[str]:
    """Return the names of the tensors in a file; raises as ``read_tensors``."""
    if path.suffix == ".npz":
        with _open_archive(path) as archive:
            return [_name_member(member) for member in archive.infolist()]
    return list(_read_header(path)[0])


def read_tensors(path: Path, names: Collection[str] | None = None) -> Tensors:
    """Return the tensors of these names that a file has, by default all; BF16 as float32.

    Raises:
        ProviderUnavailable: it is not such a file, or a tensor is not as its header says, too large, or of a type that
        is not supported.

    """
    if path.suffix == ".npz":
        return _read_archive(path, names)
    header, start = _read_header(path)
    # Mapped, so that a table of hundreds of megabytes is copied tensor by tensor, not
    # read whole first.
    data = np.memmap(path, np.uint8, mode="r")
    tensors: Tensors = {}
    for name, entry in header.items():
        if names is None or name in names:
            try:
                tensors[name] = _read_tensor(data[start:], entry)
            except (
                AttributeError,
                KeyError,
                TypeError,
                ValueError,
            ) as error:
                raise ProviderUnavailable(
                    f"{path}: the tensors cannot be read: {error}"
                ) from None
    return tensors


def _read_tensor(
    data: npt.NDArray[np.uint8],
    entry: Mapping[str, Any],
) -> npt.NDArray[Any]:
    """Return one tensor of a safetensors file; raises KeyError, TypeError or ValueError if its entry is wrong."""
    begin, end = entry["data_offsets"]
    shape = entry["shape"]
    dtype = np.dtype(DTYPES[entry["dtype"]])
    for number in (begin, *shape):
        # JSON has floats, too, and a negative number would count from the end.
        if not isinstance(number, int) or number < 0:
            raise ValueError(f"{number} is no size")
    size = math.prod(shape) * dtype.itemsize
    if size > MOST_TABLE:
        raise ValueError(f"{size} bytes in one tensor")
    if end - begin != size:
        raise ValueError(f"{size} bytes at {begin} to {end}")
    if end > len(data):
        raise ValueError(f"{size} bytes at {begin} to {end} of {len(data)}")
    flat = np.frombuffer(data[begin:end].tobytes(), dtype)
    if entry["dtype"] == "BF16":
        # BF16 is the upper half of a float32.
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(shape)


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header of a ``.safetensors`` file, and the offset of its tensors."""
    with path.open("rb") as file:
        first = file.read(_LENGTH)
        length = MOST_HEADER + 1
        if len(first) == _LENGTH:
            length = struct.unpack("<Q", first)[0]
        # The length comes from the file, so it is not trusted.
        text = b""
        if length <= MOST_HEADER:
            text = file.read(length)
    try:
        header = orjson.loads(text)
        header.pop("__metadata__", None)
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        raise ProviderUnavailable(f"{path}: not a safetensors file") from None
    return header, _LENGTH + length


def _read_archive(path: Path, names: Collection[str] | None) -> Tensors:
    tensors: Tensors = {}
    with _open_archive(path) as archive:
        for member in archive.infolist():
            name = _name_member(member)
            if names is not None and name not in names:
                continue
            try:
                tensors[name] = _read_member(archive, member)
            except UNREADABLE as error:
                raise ProviderUnavailable(
                    f"{path}: {name} cannot be read: {error}"
                ) from None
    return tensors


def _read_member(archive: ZipFile, member: ZipInfo) -> npt.NDArray[Any]:
    """Return an array of an archive whose header agrees with its size, so that no claim is allocated."""
    with archive.open(member) as file:
        magic = np.lib.format.read_magic(file)
        if magic == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        elif magic == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            raise ValueError(f"version {magic} of npy")
        size = math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise ValueError("it has pickled objects")
    if size > MOST_TABLE:
        raise ValueError(f"{size} bytes in one array")
    # What is not array is header.
    header = member.file_size - size
    if not 0 <= header < MOST_HEADER:
        raise ValueError(f"{size} bytes in {member.file_size}")
    with archive.open(member) as file:
        array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _open_archive(path: Path) -> ZipFile:
    try:
        archive = ZipFile(path)
    except UNREADABLE as error:
        raise ProviderUnavailable(f"{path}: not an npz file: {error}") from None
    # The directory of a zip is read whole, its members are not.
    if len(archive.infolist()) > MOST_MEMBERS:
        archive.close()
        raise ProviderUnavailable(f"{path}: more than {MOST_MEMBERS} arrays")
    return archive


def _name_member(member: ZipInfo) -> str:
    return member.filename.removesuffix(".npy")
