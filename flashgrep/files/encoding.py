"""Bytes as text and back without loss: byte order marks, encodings, bytes that are not text, and line ends.

A line ends at LF, as grep, git and every hit count them; a CR before it belongs to the line's end, a CR elsewhere is a
character.
"""

import codecs
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from flashgrep.base.errors import InvalidParams
from flashgrep.files.columns import REPLACEMENT
from flashgrep.files.extract import is_latin1

Encoding = Literal["utf-8", "utf-16-le", "utf-16-be", "latin-1"]
LineEnding = Literal["lf", "crlf", "cr", "mixed", "none"]

_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
UTF_16 = frozenset(("utf-16-le", "utf-16-be"))
_LONE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"\s")
_MOST_WORD = 20
"""Characters on either side of a U+FFFD that tell it from others, as far as no space is among them."""


@dataclass(frozen=True, slots=True)
class DecodedText:
    """A file's text and how it is in bytes: ``encode(lossless)`` are exactly the file's bytes."""

    text: str
    """What is shown: bytes that are not text stand as U+FFFD."""
    lossless: str
    """The same with each such byte, or half of a pair in UTF-16, as a lone surrogate. It has the same length, and is
    the same object if there is none."""
    encoding: Encoding = "utf-8"
    bom: bytes = b""
    tail: bytes = b""
    """The last byte of UTF-16 with an odd number of them, which ``lossless`` has as U+FFFD."""

    def encode(self, lossless: str) -> bytes:
        """Return another text, with lone surrogates for its bad bytes, as a file of the same kind."""
        # The odd byte is written only while its replacement is still last.
        tail = b""
        if self.tail and lossless.endswith(REPLACEMENT):
            lossless = lossless[:-1]
            tail = self.tail
        return self.bom + encode_lossless(lossless, self.encoding) + tail


def detect_mark(head: bytes) -> tuple[bytes, Encoding]:
    """Return the byte order mark a file starts with (or none) and the encoding it means."""
    if head.startswith(
        codecs.BOM_UTF32_LE
    ):  # begins like UTF-16's mark, and is not text we know
        return b"", "latin-1"
    return next((pair for pair in _MARKS if head.startswith(pair[0])), (b"", "utf-8"))


def detect_encoding(head: bytes) -> tuple[bytes, Encoding]:
    """Return the mark and the encoding of a file too large to be read at once, by its first part."""
    bom, encoding = detect_mark(head)
    if encoding == "utf-8" and not bom:
        try:
            # As strict decoding, but an unfinished last character is not an error:
            codecs.getincrementaldecoder("utf-8")().decode(
                head
            )  # the part may end inside a character
        except UnicodeDecodeError:
            if is_latin1(head):
                return bom, "latin-1"
    return bom, encoding


def decode(data: bytes) -> DecodedText:
    """Return a file's text; latin-1 only if it has no mark and too many bytes that are not UTF-8."""
    bom, encoding = detect_mark(data)
    body = data[len(bom) :]
    if encoding == "utf-8":
        try:
            text = body.decode()
        except UnicodeDecodeError:
            if not bom and is_latin1(body):
                encoding = "latin-1"
        else:
            return DecodedText(text, text, encoding, bom)
    lossless = decode_lossless(body, encoding)
    if encoding in UTF_16:
        odd = len(body) % 2
    else:
        odd = 0
    return DecodedText(
        replace_lone(lossless), lossless, encoding, bom, body[len(body) - odd :]
    )


def decode_lossless(data: bytes, encoding: Encoding) -> str:
    """Return bytes as text, what is not text as lone surrogates (and an odd byte that ends UTF-16 as U+FFFD)."""
    if encoding in UTF_16:
        odd = len(data) % 2
        return (
            data[: len(data) - odd].decode(encoding, "surrogatepass")
            + REPLACEMENT * odd
        )
    return data.decode(encoding, "surrogateescape")


def encode_lossless(lossless: str, encoding: Encoding) -> bytes:
    """Return the bytes that ``decode_lossless`` made this text of."""
    return lossless.encode(
        encoding, "surrogatepass" if encoding in UTF_16 else "surrogateescape"
    )


def replace_lone(lossless: str) -> str:
    """Return a text with U+FFFD for each lone surrogate; the same object if there is none."""
    if _LONE.search(lossless):
        return _LONE.sub(REPLACEMENT, lossless)
    return lossless


def count_lone(lossless: str) -> int:
    """Return how many characters stand for what is not text."""
    return len(_LONE.findall(lossless))


def encode_strict(text: str, encoding: Encoding) -> bytes:
    """Return the text's bytes, or raise InvalidParams naming the first character the encoding lacks."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        at = f"U+{ord(text[error.start]):04X}"
        message = f"the file is {encoding} and cannot hold {at}; write ASCII, or convert the file with fs_write first"
        raise InvalidParams(
            message,
            reason="encoding",
            encoding=encoding,
            character=at,
        ) from None


def detect_line_ending(text: str) -> LineEnding:
    """Return how the lines of a text end; a file without LF but with CR is one line to us, and said to be "cr"."""
    if "\r" not in text:  # the usual case, without counting
        if "\n" in text:
            return "lf"
        return "none"
    lf = text.count("\n")
    crlf = text.count("\r\n")
    if lf == 0:
        return "cr"
    if crlf == 0:
        return "lf"
    if crlf == lf:
        return "crlf"
    return "mixed"


def usual_ending(text: str) -> str:
    """Return the line end new lines get: the commoner one, LF if there is none."""
    if "\r" not in text:
        return "\n"
    lf = text.count("\n")
    if lf == 0:
        return "\r"
    if text.count("\r\n") * 2 > lf:
        return "\r\n"
    return "\n"


def with_ending(text: str, ending: str) -> str:
    """Return the text with its line ends, LF and CRLF alike, written as ``ending``."""
    plain = text.replace("\r\n", "\n")
    if ending == "\n":
        return plain
    return plain.replace("\n", ending)


def without_end(line: str) -> str:
    """Return a line without its end."""
    return line.removesuffix("\n").removesuffix("\r")


def restore_bad_bytes(text: DecodedText, start: int, end: int, new: str) -> str:
    """Return ``new``, which replaces characters ``start`` to ``end`` of a text, with the bytes that U+FFFD stands for.

    A caller read the text with U+FFFD in place of bytes that are not text, and gives some of these back. Each becomes
    the lone surrogate of the byte that is meant.

    Raises:
        InvalidParams: "encoding": which bytes are meant is ambiguous, or the encoding lacks a character.

    """
    encode_strict(new, text.encoding)
    if text.lossless is not text.text:
        bad_places = _find_bad(new, 0, len(new))
    else:
        bad_places = []
    if not bad_places:
        return new
    replaced = _find_bad(text.text, start, end)
    values = {text.lossless[at] for at in replaced}
    if len(values) == 1:  # all that is replaced has the same byte
        return new.replace(REPLACEMENT, values.pop())
    # By the word it is in; if words were changed but not their order, by order; if a
    # word was moved here, by the same word anywhere in the file.
    origins = _match_words(text, replaced, new, bad_places)
    unmatched = [at for at in bad_places if at not in origins]
    used = set(origins.values())
    unused = [at for at in replaced if at not in used]
    if len(unmatched) == len(unused):
        origins |= dict(zip(unmatched, unused, strict=True))
    elif unmatched:
        origins |= _match_words(
            text, _find_bad(text.text, 0, len(text.text)), new, unmatched, moved=True
        )
    if len(origins) < len(bad_places):
        raise InvalidParams(
            "U+FFFD in the new text: the file has bytes there that are no text, and which of them are meant cannot be "
            "told; leave them out of what is replaced, or change fewer of them at once",
            reason="encoding",
            encoding=text.encoding,
            character="U+FFFD",
        )
    parts = []
    past = 0
    for at in bad_places:
        parts += [new[past:at], text.lossless[origins[at]]]
        past = at + 1
    return "".join([*parts, new[past:]])


def _find_bad(text: str, start: int, end: int) -> list[int]:
    """Return the offsets of every U+FFFD."""
    return [
        match.start() for match in re.compile(REPLACEMENT).finditer(text, start, end)
    ]


def _match_words(
    text: DecodedText,
    places: Iterable[int],
    new: str,
    wanted: Iterable[int],
    *,
    moved: bool = False,
) -> dict[int, int]:
    """Return, for places of ``new``, the places of the text in the same word, if those all mean one byte.

    Each place of the text is used once; ``moved``: as often as it is wanted.
    """

    def surroundings(source: str, at: int) -> tuple[str, str]:
        before = source[max(0, at - _MOST_WORD) : at]
        after = source[at + 1 : at + 1 + _MOST_WORD]
        last_before = _SPACE.split(before)[-1]
        first_after = _SPACE.split(after)[0]
        return last_before, first_after

    by_word: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for at in places:
        by_word[surroundings(text.text, at)].append(at)
    origins = {}
    for at in wanted:
        same = by_word.get(surroundings(new, at), [])
        if same and len({text.lossless[place] for place in same}) == 1:
            if moved or len(same) == 1:
                origins[at] = same[0]
            else:
                origins[at] = same.pop(0)
    return origins
