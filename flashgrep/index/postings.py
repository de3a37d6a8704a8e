"""The encoding of postings: which documents have which gram, as blocks of bytes with a checksum.

A segment covers consecutive document numbers. Its grams are in ascending order, cut into blocks; a block is

    crc32 of all that follows, with the segment's number as start value   4 bytes
    number of grams n, first gram covered, last gram covered              3 x 4 bytes
    the grams                                                             n x 4 bytes
    the end of each gram's list in the payload                            n x 4 bytes
    payload: document numbers minus the segment's first, as differences in LEB128 (7 bits a byte, low bits first)

A gram between the first and the last one covered that is not listed is in no document of the segment, so a block proves
absence too. A lookup that gets a block which does not cover its gram has found damage. numpy does the work: it encodes
about 30 million (gram, document) pairs a second on one core.
"""

import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flashgrep.base.damage import Damaged
from flashgrep.index.grams import Grams

Numbers = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
Pairs = npt.NDArray[np.uint64]
"""Ascending; the upper half is a gram, the lower half a document number minus the segment's first."""

FORMAT = 2
"""The format of blocks, of the grams of a text and of merged blocks. It is raised when any of these changes, since a
team's store, unlike an index, outlives an upgrade. In format 1, merged lists may lack documents."""

BLOCK = 3800
"""The target size of a block's tables and payload, in bytes: two blocks fit a page of 8 KiB; reading one takes 5 µs."""

SLICE_PAIRS = 1 << 18
"""Pairs encoded at once: numpy needs about 80 bytes for each."""

LAST_KEY = 0xFFFFFFFF
MORE = 0x80
"""The bit of a LEB128 byte that says that the number continues in the next byte."""
_HEADER = 16
_COVERED = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class Block:
    """One block as stored: the first gram it covers, and its bytes."""

    first: int
    data: bytes


def pairs_of(documents: list[Grams]) -> Pairs:
    """Return the (gram, index into the list) pairs of documents, ascending; takes twice the memory of their grams."""
    pairs = np.empty(sum(map(len, documents)), np.uint64)
    end = 0
    for at, grams in enumerate(documents):
        start = end
        end = end + len(grams)
        pairs[start:end] = grams
        pairs[start:end] <<= np.uint64(32)
        pairs[start:end] |= np.uint64(at)
    pairs.sort()
    return pairs


def encode(
    pairs: Pairs, segment: int, covered: tuple[int, int] = (0, LAST_KEY)
) -> Iterator[Block]:
    """Yield the blocks for pairs, covering every gram from ``covered[0]`` to ``covered[1]``."""
    start = 0
    low = covered[0]
    while len(pairs) - start > SLICE_PAIRS:
        gram = int(pairs[start + SLICE_PAIRS] >> np.uint64(32))
        # Cut where a gram begins: no list spans two slices, so the blocks of the slices
        # can simply be concatenated.
        stop = int(np.searchsorted(pairs, np.uint64(gram << 32)))
        if stop <= start:  # one gram fills the slice: its list stays whole
            stop = int(
                np.searchsorted(pairs, np.uint64(gram << 32 | LAST_KEY), "right")
            )
            gram += 1
        if stop == len(pairs):
            break
        yield from _encode(pairs[start:stop], segment, (low, gram - 1))
        start = stop
        low = gram
    yield from _encode(pairs[start:], segment, (low, covered[1]))


def _encode(pairs: Pairs, segment: int, covered: tuple[int, int]) -> Iterator[Block]:
    grams = (pairs >> np.uint64(32)).astype(np.uint32)
    documents = pairs.astype(np.uint32)
    is_first = np.ones(len(grams), bool)
    np.not_equal(grams[1:], grams[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    # Store the differences between documents; each list begins with the number itself.
    gaps: Numbers = documents.copy()
    gaps[1:] -= documents[:-1]
    gaps[starts] = documents[starts]
    stops = np.append(starts, len(grams))[1:]
    payload, ends = _encode_leb128(gaps, stops)
    yield from _cut_blocks(grams[starts], ends, payload, segment, covered)


def _encode_leb128(
    values: Numbers, stops: Counts
) -> tuple[npt.NDArray[np.uint8], Counts]:
    """Return the values as LEB128, and how many bytes those before each stop take; ``stops``: ascending."""
    # Nine of ten take one byte, so only the others are processed by index: all their
    # second bytes, then all third.
    wide = np.flatnonzero(values >= MORE)
    first_bytes = values.astype(np.uint8)
    first_bytes[wide] |= MORE
    if not len(wide):
        return first_bytes, stops
    rest = values.take(wide)
    rest >>= np.uint32(7)
    lengths = np.ones(len(wide), np.int64)
    for bits in (7, 14, 21):
        lengths += rest >= (1 << bits)
    added = np.append(0, np.cumsum(lengths))
    ends = stops + added.take(np.searchsorted(wide, stops))
    size = len(values) + int(added[-1])
    out = np.empty(size, np.uint8)
    is_first_byte = np.ones(len(out), bool)
    at = wide + added[:-1] + 1
    while len(at):
        lengths -= 1
        following = rest & (MORE - 1)
        following[lengths > 0] |= MORE
        out[at] = following
        is_first_byte[at] = False
        longer = np.flatnonzero(lengths)
        rest = rest.take(longer)
        rest >>= np.uint32(7)
        at = at.take(longer) + 1
        lengths = lengths.take(longer)
    out[is_first_byte] = first_bytes
    return out, ends


def _cut_blocks(
    grams: Grams,
    ends: npt.NDArray[np.int64],
    payload: npt.NDArray[np.uint8],
    segment: int,
    covered: tuple[int, int],
) -> Iterator[Block]:
    """Cut the lists into blocks of about BLOCK bytes, never inside a list."""
    # The size of a block up to each list: its payload, and two table entries of four
    # bytes per list.
    weights = ends + 8 * np.arange(1, len(ends) + 1)
    written = memoryview(grams.astype("<u4").tobytes())
    lists = payload.data
    first = covered[0]
    at = 0
    while True:
        if at:
            base = int(ends[at - 1])
        else:
            base = 0
        if at:
            used = int(weights[at - 1])
        else:
            used = 0
        if at < len(grams):
            stop = max(at + 1, int(weights.searchsorted(used + BLOCK, "right")))
        else:
            stop = at
        # The block covers everything up to the next listed gram, so it proves that no
        # document has the grams between.
        if stop < len(grams):
            last = int(grams[stop]) - 1
        else:
            last = covered[1]
        body = b"".join(
            (
                _COVERED.pack(stop - at, first, last),
                written[4 * at : 4 * stop],
                (ends[at:stop] - base).astype("<u4").tobytes(),
                lists[base : int(ends[stop - 1]) if stop > at else base],
            )
        )
        yield Block(first, _checksum(body, segment).to_bytes(4, "little") + body)
        if stop >= len(grams):
            return
        first = last + 1
        at = stop


def _checksum(body: bytes | memoryview, segment: int) -> int:
    # Includes the segment's number, so that a sound block of another segment is not
    # accepted.
    return zlib.crc32(body, segment & 0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """A block whose checksum was verified, ready for lookups."""

    first: int
    last: int
    grams: memoryview
    ends: memoryview
    payload: memoryview

    def span(self, gram: int) -> tuple[int, int]:
        """Return the span of the gram's list in the payload; an empty one if no document has the gram."""
        at = bisect_left(self.grams, gram)
        if at == len(self.grams) or self.grams[at] != gram:
            return 0, 0
        start = 0
        if at:
            start = self.ends[at - 1]
        return start, self.ends[at]


def open_block(data: bytes, segment: int) -> OpenBlock:
    """Verify a block's bytes and return it, ready for lookups.

    Raises:
        Damaged: the bytes are not as written.

    """
    view = memoryview(data)
    if len(data) < _HEADER or _checksum(view[4:], segment) != int.from_bytes(
        view[:4], "little"
    ):
        raise Damaged("postings: checksum")
    count, first, last = view[4:_HEADER].cast("I")
    middle = _HEADER + 4 * count
    end = _HEADER + 8 * count
    return OpenBlock(
        first,
        last,
        view[_HEADER:middle].cast("I"),
        view[middle:end].cast("I"),
        view[end:],
    )


def count(data: memoryview | bytes) -> int:
    """Return the number of documents in a list."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) < MORE))


def decode(data: memoryview | bytes) -> Numbers:
    """Return the document numbers of a list, ascending, minus the segment's first."""
    raw = np.frombuffer(data, np.uint8)
    numbers: Numbers = _decode_leb128(raw).cumsum(dtype=np.uint32)
    return numbers


def _decode_leb128(raw: npt.NDArray[np.uint8]) -> Numbers:
    """Return LEB128 numbers. Nearly all take one byte, so only the longer ones are processed by index."""
    more = raw >= MORE
    at = more.nonzero()[0]
    if not len(at):
        return raw.astype(np.uint32)
    values = (raw & 0x7F).astype(np.uint32)
    is_last = np.ones(len(raw), bool)
    is_last[at + 1] = False
    while len(at):  # once for each byte of the longest number: its last two bytes first
        deeper = more[at + 1]
        last = at[~deeper]
        values[last] += values[last + 1] << np.uint32(7)
        more[last] = False
        at = at[deeper]
    numbers: Numbers = values[is_last]
    return numbers


def decode_lists(
    data: memoryview | bytes, ends: Counts
) -> tuple[npt.NDArray[np.uint64], Counts]:
    """Return the numbers of concatenated lists, and how many each list has; ``ends``: the end of each, in bytes."""
    raw = np.frombuffer(data, np.uint8)
    values = _decode_leb128(raw)
    # Convert the ends from bytes to numbers by counting the last bytes of numbers up to
    # each end.
    if len(values) == len(raw):
        stops = ends
    else:
        stops = np.cumsum(raw < MORE, dtype=np.int64)[ends - 1]
    starts = np.concatenate((np.zeros(1, np.int64), stops[:-1]))
    counts: Counts = stops - starts
    sums = np.cumsum(values, dtype=np.uint64)
    # One running sum over all lists, minus its value at the start of each list.
    before = np.where(starts > 0, sums[starts - 1], 0)
    return sums - np.repeat(before, counts), counts


def decode_pairs(block: OpenBlock) -> Pairs:
    """Return every (gram, document) pair of a block, ascending."""
    if not len(block.grams):
        return np.empty(0, np.uint64)
    documents, counts = decode_lists(
        block.payload, np.frombuffer(block.ends, "<u4").astype(np.int64)
    )
    grams = np.repeat(np.frombuffer(block.grams, "<u4").astype(np.uint64), counts)
    pairs: Pairs = (grams << np.uint64(32)) | documents
    return pairs


def join(
    blocks: Sequence[OpenBlock],
    offsets: Sequence[int],
    segment: int,
    covered: tuple[int, int],
    numbers: npt.NDArray[np.int64] | None = None,
) -> Iterator[Block]:
    """Yield the blocks of a segment merged from others; ``offsets``: what to add to each block's document numbers.

    ``numbers``: the new number of each document, in the same order, or -1 to drop it; None: all stay.
    """
    if numbers is None:
        yield from splice(blocks, offsets, segment, covered)
        return
    # Dropping a document changes the difference after it, so the lists are decoded and
    # encoded again.
    decoded = [
        decode_pairs(block) + np.uint64(offset)
        for block, offset in zip(blocks, offsets, strict=True)
    ]
    pairs = np.concatenate([np.empty(0, np.uint64), *decoded])
    keys = pairs >> np.uint64(32)
    documents = numbers[(pairs & np.uint64(LAST_KEY)).astype(np.int64)]
    is_covered = (keys >= covered[0]) & (keys <= covered[1])
    is_covered &= documents >= 0
    pairs = keys[is_covered] << np.uint64(32)
    pairs |= documents[is_covered].astype(np.uint64)
    pairs.sort()
    yield from encode(pairs, segment, covered)


def splice(
    blocks: Sequence[OpenBlock],
    offsets: Sequence[int],
    segment: int,
    covered: tuple[int, int],
) -> Iterator[Block]:
    """Yield the blocks of a segment merged from others, concatenating the lists of each key without decoding them.

    ``offsets``: what to add to each block's document numbers; a key's lists come in the order of documents. Only the
    first number of a list depends on the list before it; all other bytes are copied. This takes a quarter of the time
    of decoding, sorting and encoding.
    """
    payload = np.concatenate(
        [np.frombuffer(block.payload, np.uint8) for block in blocks]
    )
    lists = _read_lists(blocks, payload, offsets)
    # Sort by gram, then by index, which is the order of documents, as one sort of plain
    # numbers.
    is_covered = (lists.grams >= covered[0]) & (lists.grams <= covered[1])
    order = lists.grams.astype(np.uint64) << np.uint64(32)
    order |= np.arange(len(order), dtype=np.uint64)
    order = order[is_covered]
    order.sort()
    lists = lists.take(order.astype(np.uint32))
    is_head = np.ones(len(lists.grams), bool)
    np.not_equal(lists.grams[1:], lists.grams[:-1], out=is_head[1:])

    # Only the first number of each list is encoded again; its width may change.
    gaps = lists.firsts.copy()
    gaps[1:] -= np.where(is_head[1:], 0, lists.lasts[:-1])
    added, added_ends = _encode_leb128(
        gaps.astype(np.uint32), np.arange(1, len(gaps) + 1)
    )
    places, ends = _place_pieces(lists, len(payload) + added_ends, len(payload))
    # A gram's list ends where the last of its concatenated lists ends.
    is_tail = np.ones(len(is_head), bool)
    is_tail[:-1] = is_head[1:]
    yield from _cut_blocks(
        lists.grams[is_head],
        ends[is_tail],
        np.concatenate((payload, added))[places],
        segment,
        covered,
    )


@dataclass(frozen=True, slots=True)
class _Lists:
    """Lists of several blocks, not decoded; each field has one number for each list."""

    grams: Grams
    firsts: Counts
    """The first document of each."""
    lasts: Counts
    """The last document of each, from which the following list's first one is counted."""
    rests: Counts
    """Where the bytes after the first number begin in the concatenated payloads."""
    ends: Counts

    def take(self, order: Numbers) -> "_Lists":
        """Return the lists with these indexes."""
        return _Lists(
            self.grams[order],
            self.firsts[order],
            self.lasts[order],
            self.rests[order],
            self.ends[order],
        )


def _read_lists(
    blocks: Sequence[OpenBlock],
    payload: npt.NDArray[np.uint8],
    offsets: Sequence[int],
) -> _Lists:
    """Return the lists of blocks.

    ``payload``: their payloads, concatenated; ``offsets``: what to add to each block's document numbers.
    """
    grams = np.concatenate([np.frombuffer(block.grams, "<u4") for block in blocks])
    counts = [len(block.grams) for block in blocks]
    bases = np.cumsum([0, *(len(block.payload) for block in blocks)])
    ends = np.concatenate([np.frombuffer(block.ends, "<u4") for block in blocks])
    ends = ends + np.repeat(bases[:-1], counts)
    # Lists fill the payload, so each one begins where the previous one ends.
    starts = np.concatenate((bases[:1], ends))[: len(ends)]
    values = (payload & (MORE - 1)).astype(np.uint32)
    firsts = values[starts].astype(np.int64)
    widths = np.ones(len(starts), np.int64)
    at = np.flatnonzero(payload >= MORE) + 1
    # Once for each further byte of the longest number: a third byte is shifted twice.
    while len(at):
        values[at] <<= np.uint32(7)
        longer = np.flatnonzero(payload[starts + widths - 1] >= MORE)
        firsts[longer] += values[starts[longer] + widths[longer]]
        widths[longer] += 1
        at = at[payload[at] >= MORE] + 1
    added = np.repeat(np.array(offsets, np.int64), counts)
    lasts = firsts
    if len(starts):  # the differences of a list add up to its last document
        lasts = np.add.reduceat(values, starts).astype(np.int64)
    return _Lists(grams, firsts + added, lasts + added, starts + widths, ends)


def _place_pieces(
    lists: _Lists, first_ends: Counts, first_begin: int
) -> tuple[Counts, Counts]:
    """Return where each byte of the new payload is copied from, and where each list ends in it.

    Each list is made of two pieces: its new first number, and its other bytes, unchanged. The new numbers begin at
    ``first_begin`` and end at ``first_ends``.
    """
    begins = np.empty((len(first_ends), 2), np.int64)
    lengths = np.empty_like(begins)
    lengths[:, 0] = np.diff(first_ends, prepend=first_begin)
    begins[:, 0] = first_ends - lengths[:, 0]
    begins[:, 1] = lists.rests
    lengths[:, 1] = lists.ends - lists.rests
    stops = np.cumsum(lengths)
    flat_lengths = lengths.ravel()
    shifts = begins.ravel() - (stops - flat_lengths)
    places = np.repeat(shifts, flat_lengths)
    places += np.arange(len(places))
    return places, stops[1::2]
