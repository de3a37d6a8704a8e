"""Bytes to text, as ripgrep does it: byte order marks, UTF-16, binary files; and which texts are latin-1."""

import codecs
import errno
import os
from collections.abc import Iterator
from stat import S_ISREG
from typing import Final, Literal

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import Busy
from flashgrep.base.model import Document, FileStat, Skipped
from flashgrep.files.openat import EXHAUSTED, RootFiles

BLOCK: Final = 1 << 16
"""Bytes of ripgrep's buffer: a NUL byte within the first one makes a file binary."""
AT_ONCE: Final = 1 << 20
"""Files of up to this many bytes are read by one call; the rest of a larger one is read if its first block is text."""
_PEEKED: Final = 3
"""Bytes of ripgrep's first read, in which it looks for a byte order mark."""
_DECODED: Final = 1 << 13
_HIGH: Final = bytes(range(0x80, 0x100))
_GONE: Final = frozenset((errno.ENOENT, errno.ENOTDIR))
_NO_FILE: Final = frozenset((errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.ENODEV))

_Wide = Literal["utf-16-le", "utf-16-be"]


def extract(raw: bytes) -> Document | Skipped:
    """Return the text of a file, or why it has none.

    A file with a NUL byte in its first block is binary. At a later NUL, ripgrep (unless given the file by name) stops
    and discards the buffer that contains it. ``Document.data`` is what it did search, whole lines of the buffers
    before, and ``binary_at`` is the offset of the NUL in the text. ripgrep's first read is of three bytes, so a line
    that ends within them is always searched. (``rg -l`` names such a file if a searched line matches, ``rg -c`` does
    not.)
    """
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        wide: _Wide = "utf-16-be"
        if raw.startswith(codecs.BOM_UTF16_LE):
            wide = "utf-16-le"
        data = raw[2:].decode(wide, "replace").encode()
        nul = data.find(0)
        if nul < 0:
            return Document(data, wide)
        end = _measure_search(data, nul, _decoded_ends(raw, wide))
        if end:
            return Document(data[:end], wide, nul)
        return Skipped("binary")
    has_mark = raw.startswith(codecs.BOM_UTF8)
    if has_mark:
        data = raw[3:]
    else:
        data = raw
    binary_at = None
    if (nul := data.find(0)) >= 0:
        reads: tuple[int, ...] = (_PEEKED,)
        if has_mark:
            reads = ()
        end = _measure_search(data, nul, iter(reads))
        if not end:
            return Skipped("binary")
        data = data[:end]
        binary_at = nul
    if has_mark:
        return Document(data, "utf-8-sig", binary_at)
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            if is_latin1(data):
                return Document(data, "latin-1", binary_at)
    return Document(data, "utf-8", binary_at)


def is_latin1(data: bytes) -> bool:
    """Return whether bytes that are not valid UTF-8 are read as latin-1 rather than as damaged UTF-8.

    They are if bad bytes outnumber valid non-ASCII characters by more than two to one. Of 515 files in ISO 8859,
    Windows, IBM and East Asian encodings, none had fewer than 2.3 bad bytes per valid character (valid by chance);
    Western European ones had more than 100. A single bad byte in ASCII is ambiguous and read as latin-1: in source code
    it is usually a letter of a name, and latin-1 shows it without loss.
    """
    text = data.decode("utf-8", "surrogateescape")
    bad = len(data) - len(text.encode("utf-8", "ignore"))
    valid = len(text) - bad - len(data.translate(None, _HIGH))
    return bad > 2 * valid


def read_file(
    files: RootFiles, path: bytes, max_size: int | None
) -> tuple[FileStat, Document | Skipped]:
    """Read the regular file at ``path``, following no links; a FIFO or a device never blocks.

    Raises:
        FileNotFoundError: it is not there (any more).
        Busy: the process is out of file descriptors or memory; nothing is known about the file.

    """
    checkpoint()
    try:
        # Open first, then fstat: between a stat and an open, the name could be given to
        # something else.
        handle = files.open(path)
    except OSError as error:
        return _refuse(files, path, error)
    try:
        status = os.fstat(handle)
        size = status.st_size
        stat = FileStat.from_status(status)
        if not S_ISREG(status.st_mode):
            return stat, Skipped("not_a_file")
        if max_size is not None and size > max_size:
            return stat, Skipped("too_large", f"{size} bytes")
        return stat, _read_content(handle, size, max_size)
    except OSError as error:
        return _refuse(files, path, error)
    finally:
        os.close(handle)


def _refuse(files: RootFiles, path: bytes, error: OSError) -> tuple[FileStat, Skipped]:
    """Return what is known of a file that cannot be read; raises what ``read_file`` raises."""
    if error.errno in EXHAUSTED:
        raise Busy(f"out of resources: {error.strerror}") from error
    if error.errno in _GONE:
        raise FileNotFoundError(
            error.errno, error.strerror, os.fsdecode(path)
        ) from error
    try:
        status = files.lstat(path)
    except (FileNotFoundError, NotADirectoryError) as gone:
        raise FileNotFoundError(gone.errno, gone.strerror, os.fsdecode(path)) from gone
    except OSError:
        # Its folder cannot be read either.
        return FileStat(0, 0, 0, 0), Skipped("unreadable", error.strerror or "")
    stat = FileStat.from_status(status)
    if error.errno in _NO_FILE:
        return stat, Skipped("not_a_file")
    return stat, Skipped("unreadable", error.strerror or "")


def _read_content(handle: int, size: int, max_size: int | None) -> Document | Skipped:
    """Read to the end of the file, wherever that is by now, or only the first block if that is binary."""
    first = size
    if size > AT_ONCE:
        first = BLOCK
    raw = os.read(handle, first + 1)
    # One more byte was requested: if it did not come, this is the end.
    if len(raw) <= size <= AT_ONCE:
        return extract(raw)
    # ``extract`` would call the whole file binary, too.
    if b"\0" in raw[:BLOCK] and not raw.startswith(
        (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    ):
        return extract(raw)
    parts = [raw]
    total = len(raw)
    while part := os.read(handle, max(size - total, BLOCK) + 1):
        parts.append(part)
        total += len(part)
        # It has grown since fstat.
        if max_size is not None and total > max_size:
            return Skipped("too_large", f"over {max_size} bytes and growing")
    return extract(b"".join(parts))


def _decoded_ends(raw: bytes, encoding: _Wide) -> Iterator[int]:
    """Yield where in the text each of ripgrep's reads ends: it decodes the byte it peeked at, then 8 KiB at a time."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    decoder.decode(raw[2:_PEEKED])
    end = 0
    for at in range(_PEEKED, len(raw), _DECODED):
        text = decoder.decode(raw[at : at + _DECODED])
        end += len(text.encode())
        yield end


def _measure_search(data: bytes, nul: int, stops: Iterator[int]) -> int:
    """Return how much of ``data`` ripgrep searches before the NUL byte at ``nul``; ``stops``: where its reads end.

    A read fills the buffer. ripgrep searches it up to the last line end, keeps the rest, and reads on behind that; the
    buffer triples if a line does not fit. What is read together with the NUL is not searched.
    """
    start = end = 0
    capacity = BLOCK
    stop = next(stops, len(data))
    while True:
        if end - start == capacity:
            capacity *= 3
        while stop <= end:
            stop = next(stops, len(data))
        filled = min(start + capacity, stop)
        if nul < filled:
            return start
        start = max(start, data.rfind(b"\n", end, filled) + 1)
        end = filled
