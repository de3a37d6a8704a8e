"""What we stored ourselves and read back: within bounds, or ``Damaged``."""

import zlib


class Damaged(Exception):
    """What was stored is broken, foreign or of another format: set it aside and build anew."""


def inflate(packed: bytes, most: int) -> bytes:
    """Return the bytes that were deflated, no more than ``most``: what is damaged may say it is endless.

    Raises:
        Damaged: these never were, or they are more.

    """
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(packed, most)
        if not reader.eof:  # the checksum stands behind the last byte
            data += reader.decompress(reader.unconsumed_tail, 1)
    except zlib.error as error:
        raise Damaged(str(error)) from None
    if len(data) > most or not reader.eof:
        raise Damaged(f"cut short, or more than {most} bytes")
    return data
