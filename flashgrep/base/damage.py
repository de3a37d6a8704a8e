"""Reading back what we stored: within bounds, or ``Damaged``."""

import zlib


class Damaged(Exception):
    """Stored data is broken, foreign or of another format; it is set aside and rebuilt."""


def inflate(packed: bytes, most: int) -> bytes:
    """Inflate bytes, to at most ``most``: a few damaged bytes can inflate to any size.

    Raises:
        Damaged: not deflated data, or it inflates to more.

    """
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(packed, most)
        if not reader.eof:  # the checksum is read only when a further byte is requested
            data += reader.decompress(reader.unconsumed_tail, 1)
    except zlib.error as error:
        raise Damaged(str(error)) from None
    if len(data) > most or not reader.eof:
        raise Damaged(f"truncated, or more than {most} bytes")
    return data
