"""Answers to text: hits as ripgrep prints them, lists as lines, everything else as JSON."""

import base64
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

PATH, LINE, PLAIN = b"\x1b[35m", b"\x1b[32m", b"\x1b[0m"
NOTHING_FOUND = 1
CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|\xc2[\x80-\x9f]")
"""What a terminal may obey, but for line ends and tabs: C0, DELETE and (in UTF-8) C1."""
JSON_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints, and its exit status."""

    stdout: bytes
    stderr: bytes
    status: int


@dataclass(frozen=True, slots=True)
class Style:
    """How the reader wants it."""

    color: bool = False
    headings: bool = False
    """One heading for each file instead of its path on each line; for a terminal."""
    root: str = ""
    cwd: str = ""
    roots: Mapping[str, str] = field(default_factory=dict)
    """Of each project, where several were asked."""

    def path(self, item: Mapping[str, Any]) -> bytes:
        """Return a result's path as seen from the reader's folder, in its own bytes; of several projects whole ones."""
        raw = item.get("file_path_bytes")
        inside = base64.b64decode(raw) if raw else os.fsencode(item["file_path"])
        project = item.get("project", "")
        if project in self.roots:
            inside = os.path.join(os.fsencode(self.roots[project]), inside)  # noqa: PTH118 - bytes
            inside = inside.removeprefix(os.fsencode(self.cwd) + b"/")
        elif self.root and not project:
            inside = os.path.relpath(os.path.join(os.fsencode(self.root), inside), os.fsencode(self.cwd))  # noqa: PTH118 - bytes
        return self.harmless(inside).replace(b"\n", b"\\x0a") if self.headings else inside

    def text(self, text: str) -> bytes:
        """Return text of a file, in its own bytes."""
        return self.harmless(text.encode("utf-8", "surrogateescape"))

    def harmless(self, raw: bytes) -> bytes:
        """Return bytes that are safe for whatever they are shown on: a file must not give a terminal orders."""
        return escape_controls(raw) if self.headings else raw

    def paint(self, color: bytes, text: bytes) -> bytes:
        """Return ``text`` in a colour, where colours are wanted."""
        return color + text + PLAIN if self.color else text


def escape_controls(raw: bytes) -> bytes:
    """Return bytes with every control sequence written out."""
    return CONTROL.sub(lambda found: b"\\x%02x" % found[0][-1], raw)


def render(result: Any, style: Style, *, as_json: bool) -> Output:
    """Return a result as text; the status is 1 when it is a list of nothing."""
    results = result.get("results") if isinstance(result, dict) else None
    if results is not None and "projects" in result.get("coverage", ()):
        style = replace(style, roots=result["coverage"]["projects"])
    status = NOTHING_FOUND if results == [] else 0
    if as_json:
        return Output(orjson.dumps(result, option=JSON_OPTIONS), b"", status)
    if results is None:
        # What a read answers with is shown as the text itself, any other object as JSON.
        texts = (result.get(name) for name in ("content", "text")) if isinstance(result, dict) else ()
        text = next((text for text in texts if isinstance(text, str)), None)
        if text is None:
            stdout = orjson.dumps(result, option=JSON_OPTIONS)
        else:
            stdout = style.text(text if text.endswith("\n") or not text else text + "\n")
    elif all(isinstance(item, dict) and "text" in item and "start_line" in item for item in results):
        stdout = b"".join(_format_hits(results, style))
    else:
        stdout = b"".join(_format_item(item, style) + b"\n" for item in results)
    notes = "".join(f"fgrep: {note}\n" for note in _find_notes(result)) if isinstance(result, dict) else ""
    return Output(stdout, escape_controls(notes.encode(errors="replace")), status)


def _format_hits(hits: list[dict[str, Any]], style: Style) -> Iterator[bytes]:
    last = None
    for hit in hits:
        path = style.path(hit)
        if style.headings and path != last:
            yield (b"" if last is None else b"\n") + style.paint(PATH, path) + b"\n"
        elif (hit.get("before") or hit.get("after")) and last is not None:
            yield b"--\n"
        last = path
        before, after = hit.get("before", []), hit.get("after", [])
        matched = hit["text"].split("\n")
        matched[0] = f"{hit['column']}:{matched[0]}"
        lines = [
            *((number, b"-", text) for number, text in enumerate(before, hit["start_line"] - len(before))),
            *((number, b":", text) for number, text in enumerate(matched, hit["start_line"])),
            *((number, b"-", text) for number, text in enumerate(after, hit["end_line"] + 1)),
        ]
        for number, separator, text in lines:
            prefix = b"" if style.headings else style.paint(PATH, path) + separator
            yield prefix + style.paint(LINE, b"%d" % number) + separator + style.text(text) + b"\n"


def _format_item(item: Any, style: Style) -> bytes:
    """Return one result that is no hit: a file, a count, or a place with what stands there."""
    if not isinstance(item, dict) or "file_path" not in item:
        return style.text(item) if isinstance(item, str) else orjson.dumps(item)
    path = style.paint(PATH, style.path(item))
    if "symbols" in item:
        return b"\n  ".join([path, *map(style.text, item["symbols"])])
    if "start_line" not in item:
        return path + (b":%d" % item["count"] if "count" in item else b"")
    role = " ".join(str(item[name]) for name in ("role", "kind") if item.get(name))
    text = str(item.get("signature") or item.get("name") or item.get("symbol_name") or item.get("snippet") or "")
    column = f"{item['column']}:" if "column" in item else ""
    described = f"{role}: {text}" if role and text else role or text
    return path + b":" + style.paint(LINE, b"%d" % item["start_line"]) + b":" + style.text(column + described)


def _find_notes(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the reader has to know of an answer besides itself: that it is cut, incomplete or empty."""
    coverage, results = result.get("coverage") or {}, result.get("results")
    if results == []:
        skipped = ", ".join(f"{count} {reason}" for reason, count in coverage.get("files_skipped", {}).items() if count)
        searched = f"nothing found in {coverage.get('files_searched', 0)} files"
        yield searched + (f" (skipped: {skipped})" if skipped else "")
    elif results and result.get("mode") == "words":
        yield "the text itself is nowhere; these lines are nearest to it"
    if coverage.get("complete") is False and ("projects" in coverage or not result.get("next")):
        yield f"incomplete: {coverage.get('detail') or 'the deadline came first'}"
    if result.get("next"):
        total = result.get("total")
        of_all = f"{len(results or [])} of {total} shown; " if isinstance(total, int) else "there is more; "
        yield f"{of_all}go on with --cursor {result['next']}"
    yield from (f"did you mean {one}?" for one in result.get("suggestions") or [] if isinstance(one, str))
