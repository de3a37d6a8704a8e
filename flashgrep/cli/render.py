"""Answers to text: hits as ripgrep prints them, lists as lines, everything else as JSON."""

import base64
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

PATH, LINE, PLAIN = b"\x1b[35m", b"\x1b[32m", b"\x1b[0m"
NOTHING_FOUND = 1
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|\xc2[\x80-\x9f]")
"""What a terminal may obey, but for line ends and tabs: C0, DELETE and (in UTF-8) C1."""
JSON_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True)
class Style:
    """How the reader wants it."""

    color: bool = False
    headings: bool = False
    """One heading for each file instead of its path on each line; for a terminal."""
    root: str = ""
    cwd: str = ""

    def path(self, item: Mapping[str, Any]) -> bytes:
        """Return a result's path as seen from the reader's folder, in its own bytes."""
        raw = item.get("file_path_bytes")
        inside = base64.b64decode(raw) if raw else os.fsencode(item["file_path"])
        if self.root and not item.get("project"):
            inside = os.path.relpath(os.path.join(os.fsencode(self.root), inside), os.fsencode(self.cwd))  # noqa: PTH118 - bytes
        return self.harmless(inside).replace(b"\n", b"\\x0a") if self.headings else inside

    def text(self, text: str) -> bytes:
        """Return text of a file, in its own bytes."""
        return self.harmless(text.encode("utf-8", "surrogateescape"))

    def harmless(self, raw: bytes) -> bytes:
        """Return bytes that are safe for whatever they are shown on: a file must not give a terminal orders."""
        return CONTROL.sub(_escaped, raw) if self.headings else raw

    def paint(self, color: bytes, text: bytes) -> bytes:
        """Return ``text`` in a colour, where colours are wanted."""
        return color + text + PLAIN if self.color else text


@dataclass(frozen=True, slots=True)
class Shown:
    """What is printed, and the exit status."""

    stdout: bytes
    stderr: bytes
    status: int


def render(result: Any, style: Style, *, as_json: bool) -> Shown:
    """Return a result as text; the status is 1 when it is a list of nothing."""
    results = result.get("results") if isinstance(result, dict) else None
    status = NOTHING_FOUND if results == [] else 0
    if as_json:
        return Shown(orjson.dumps(result, option=JSON_OPTIONS), b"", status)
    stdout = b"".join(_lines(result, results, style))
    return Shown(stdout, CONTROL.sub(_escaped, _notes(result)), status)


def _lines(result: Any, results: list[Any] | None, style: Style) -> Iterator[bytes]:
    if results is None:
        yield _text(result, style)
    elif results and all(isinstance(item, dict) and "text" in item and "start_line" in item for item in results):
        yield from _hits(results, style)
    else:
        for item in results:
            yield _item(item, style) + b"\n"


def _text(result: Any, style: Style) -> bytes:
    """Return what a read answers with as the text itself, and any other object as JSON."""
    for name in ("content", "text"):
        if isinstance(result, dict) and isinstance(result.get(name), str):
            content: str = result[name]
            return style.text(content if content.endswith("\n") or not content else content + "\n")
    return orjson.dumps(result, option=JSON_OPTIONS)


def _hits(hits: list[dict[str, Any]], style: Style) -> Iterator[bytes]:
    last = None
    for hit in hits:
        path = style.path(hit)
        if style.headings and path != last:
            yield (b"" if last is None else b"\n") + style.paint(PATH, path) + b"\n"
        elif (hit.get("before") or hit.get("after")) and last is not None:
            yield b"--\n"
        last = path
        yield from _hit(hit, b"" if style.headings else style.paint(PATH, path), style)


def _hit(hit: dict[str, Any], path: bytes, style: Style) -> Iterator[bytes]:
    before, first = hit.get("before", []), hit["start_line"]
    line = _line_printer(path, style)
    yield from (line(first - len(before) + at, b"-", text) for at, text in enumerate(before))
    shown = hit["text"].split("\n")
    yield line(first, b":", f"{hit['column']}:{shown[0]}")
    yield from (line(first + at, b":", text) for at, text in enumerate(shown[1:], 1))
    yield from (line(hit["end_line"] + at, b"-", text) for at, text in enumerate(hit.get("after", []), 1))


def _line_printer(path: bytes, style: Style) -> Callable[[int, bytes, str], bytes]:
    def line(number: int, separator: bytes, text: str) -> bytes:
        prefix = path + separator if path else b""
        return prefix + style.paint(LINE, str(number).encode()) + separator + style.text(text) + b"\n"

    return line


def _item(item: Any, style: Style) -> bytes:
    if not isinstance(item, dict) or "file_path" not in item:
        return style.text(item) if isinstance(item, str) else orjson.dumps(item)
    shown = style.paint(PATH, style.path(item))
    if "symbols" in item:
        return b"\n  ".join([shown, *map(style.text, item["symbols"])])
    if "start_line" not in item:
        return shown + (b":%d" % item["count"] if "count" in item else b"")
    place = shown + b":" + style.paint(LINE, b"%d" % item["start_line"])
    column = f"{item['column']}:" if "column" in item else ""
    return place + b":" + style.text(f"{column}{_symbol(item)}")


def _symbol(item: Mapping[str, Any]) -> str:
    """Return what stands at a place: its role and kind, and its line or its name."""
    role = " ".join(str(item[name]) for name in ("role", "kind") if item.get(name))
    text = str(item.get("signature") or item.get("name") or item.get("symbol_name") or item.get("snippet") or "")
    return f"{role}: {text}" if role and text else role or text


def _notes(result: Any) -> bytes:
    """Return what the reader has to know of an answer besides itself: that it is cut, incomplete or empty."""
    if not isinstance(result, dict):
        return b""
    notes, coverage, results = [], result.get("coverage") or {}, result.get("results")
    if results == []:
        skipped = ", ".join(f"{count} {reason}" for reason, count in coverage.get("files_skipped", {}).items() if count)
        searched = f"nothing found in {coverage.get('files_searched', 0)} files"
        notes.append(searched + (f" (skipped: {skipped})" if skipped else ""))
    elif results and result.get("mode") == "words":
        notes.append("the text itself is nowhere; these lines are nearest to it")
    if coverage.get("complete") is False and not result.get("next"):
        notes.append(f"incomplete: {coverage.get('detail') or 'the deadline came first'}")
    if result.get("next"):
        total = result.get("total")
        of_all = f"{len(results or [])} of {total} shown; " if isinstance(total, int) else "there is more; "
        notes.append(f"{of_all}go on with --cursor {result['next']}")
    notes += [f"did you mean {one}?" for one in result.get("suggestions") or [] if isinstance(one, str)]
    return "".join(f"fgrep: {note}\n" for note in notes).encode(errors="replace")


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\x%02x" % found[0][-1]
