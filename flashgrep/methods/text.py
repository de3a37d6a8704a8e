"""Answers as text, for a model, a terminal or a pipe: what the renderers of all methods share.

Each method's renderer is next to its handler and yields lines. Only the unusual is said, in notes: in brackets after
the answer for a model, on stderr for a person.
"""

import base64
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple, Self

import orjson

from flashgrep.base.errors import ErrorObject, clip
from flashgrep.methods.parameters import name_parameters

PATH_COLOR = "\x1b[35m"
LINE_COLOR = "\x1b[32m"
MATCH_COLOR = "\x1b[1;31m"
PLAIN = "\x1b[0m"
LINE_LONG, LINE_SHOWN, LINE_LEAD = 200, 120, 40
"""A model is shown part of a matching line longer than this (lines of code are shorter): this many characters, with at
most this many before the match."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
"""Characters that control a terminal, except for line ends and tabs: C0, DELETE and C1."""
_ANSWERED = frozenset({"answer", "message"})
"""Members of a result without hits that answers in words."""
GOING_ON = ("continuation_start_line", "continuation_start_byte")
"""Members of a read's continuation that differ from the previous call."""

ENTRY = re.compile(r"( *)(\d+)(?:-(\d+))? (.*)")
"""A line of an outline: indentation, first and last line, and text."""
USUAL = re.compile(
    r"(?:^|(?<=^async )|(?<=^export )|(?<=^pub )|(?<=^pub\(crate\) ))(?:def|function|fn) (?=[\w$]+ ?[(<])"
    r"|^func (?=[\w(])|:? *# type: ignore.*"
    r"| = function(?= ?\()| -> None:?$|(?<=[\w)\]]):$|(?<=\() ?(?:self|cls|&self|&mut self)(?:, |,? ?(?=\)))"
    r"|(?<=__)(?<!__init__)(?<!__new__)(?<!__call__)\(.*"
)
"""What an outline for a model leaves out: keywords of functions (their parentheses show them), ``self``, the parameters
of Python's special methods, and notes for type checkers."""
OWNER = re.compile(r"[\w$.]+\.prototype(?=\.[\w$]+ ?\()")
"""The class of a method set on its prototype, which the lines below do not repeat."""
EVIDENT_GAP = 10
"""Most lines between a definition's end and the next one (blanks, decorators, a comment) for its end to be left out."""
ENTRY_SHOWN = 56
"""Characters of an outline's line: for long signatures, read the definition."""


class Note(str):
    """A line of an answer that is about it: part of a model's text, on stderr for a person."""

    __slots__ = ()


class Code(str):
    """Lines of a file as they are; on a terminal with their numbers, and in the colours of their language."""

    __slots__ = ("first", "path")
    first: int
    """The number of the first line."""
    path: str

    def __new__(cls, text: str, path: str, first: int) -> Self:
        """Return these lines of a file."""
        code = super().__new__(cls, text)
        code.first = first
        code.path = path
        return code


@dataclass(frozen=True, slots=True)
class Style:
    """Who an answer is rendered for: by default a model."""

    is_person: bool = False
    """On the command line: show columns, name options in notes, make paths relative to the current folder."""
    color: bool = False
    headings: bool = True
    """One heading per file instead of its path on each line; off in a pipe."""
    columns: bool = False
    """The column of a hit after its line, for a person."""
    offers_all: bool = False
    """``--all`` prints what is left out."""
    root: str = ""
    cwd: str = ""
    roots: Mapping[str, str] = field(default_factory=dict)
    """The root of each project, if several were asked."""

    def path(self, item: Mapping[str, Any]) -> str:
        """Return the path of a result on one line: for a person relative to the current folder, in its raw bytes.

        With several projects, a person gets full paths, a model the project's name before each.
        """
        raw = item.get("file_path_bytes")
        shown_path = str(item["file_path"])
        project = item.get("project", "")
        if not self.is_person:
            # An odd name is written so that it can be passed back: with JSON's escapes,
            # or in base64.
            if CONTROL.search(shown_path) or "\n" in shown_path:
                shown_path = json.dumps(shown_path)
            if project:
                shown_path = f"{project}: {shown_path}"
            if raw:
                return f"{shown_path} (file_path_bytes {raw})"
            return shown_path
        # The bytes of the name, which a pipe passes on to the next program as they are.
        if raw:
            inside = base64.b64decode(raw)
        else:
            inside = os.fsencode(shown_path)
        cwd = os.fsencode(self.cwd)
        if project in self.roots:
            inside = os.path.join(os.fsencode(self.roots[project]), inside)  # noqa: PTH118 - bytes
            inside = inside.removeprefix(cwd + b"/")
        elif self.root and not project:
            inside = os.path.join(os.fsencode(self.root), inside)  # noqa: PTH118 - bytes
            inside = os.path.relpath(inside, cwd)
        shown_path = inside.decode("utf-8", "surrogateescape")
        if self.headings:
            shown_path = self.text(shown_path).replace("\n", "\\x0a")
        return self.paint(PATH_COLOR, shown_path)

    def text(self, text: str) -> str:
        """Return text of a file, with control characters escaped on a terminal."""
        if self.is_person and self.headings:
            return escape_controls(text)
        return text

    def note(self, text: str) -> str:
        """Return a remark on the answer: a model sees it in brackets."""
        if self.is_person:
            return self.text(text)
        return f"[{text}]"

    def line(self, number: int | str) -> str:
        """Return a line's number."""
        return self.paint(LINE_COLOR, str(number))

    def paint(self, color: str, text: str) -> str:
        """Return ``text`` in a colour, if colours are wanted."""
        if self.color:
            return color + text + PLAIN
        return text


FOR_MODEL = Style()


def escape_controls(text: str) -> str:
    """Return text with control characters escaped."""
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def render_hits(hits: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """Yield matching lines with their context, below a heading for each file or after its path, as ripgrep does.

    For a model, a file's hits stand by line at the position of the best one, and long lines are cut around the match.
    """
    if not style.is_person:
        hits = _group_by_file(hits, style)
    last = None
    for hit in hits:
        path = style.path(hit)
        has_context = bool(hit.get("before") or hit.get("after"))
        is_divided = last is not None and style.is_person
        if style.headings and path != last:
            if is_divided:
                yield ""
            yield path
        elif has_context and is_divided:
            yield "--"
        last = path
        for number, separator, text in _number_lines(hit, style):
            prefix = ""
            if not style.headings:
                prefix = path + separator
            yield prefix + style.line(number) + separator + text


def _group_by_file(
    hits: Iterable[Mapping[str, Any]], style: Style
) -> list[Mapping[str, Any]]:
    files: dict[str, list[Mapping[str, Any]]] = {}
    for hit in hits:
        files.setdefault(style.path(hit), []).append(hit)
    grouped: list[Mapping[str, Any]] = []
    for of_file in files.values():
        in_order = sorted(of_file, key=lambda hit: int(hit["start_line"]))
        grouped.extend(trim_context(in_order))
    return grouped


def _number_lines(
    hit: Mapping[str, Any], style: Style
) -> Iterator[tuple[int, str, str]]:
    """Yield the lines of a hit as they are shown, each with its number, and what separates both."""
    before = hit.get("before", [])
    for number, text in enumerate(before, hit["start_line"] - len(before)):
        yield number, "-", style.text(text)
    for number, text in enumerate(_show_match(hit, style), hit["start_line"]):
        yield number, ":", text
    for number, text in enumerate(hit.get("after", []), hit["end_line"] + 1):
        yield number, "-", style.text(text)


def _show_match(hit: Mapping[str, Any], style: Style) -> list[str]:
    if style.is_person:
        lines = mark_matches(hit, style).split("\n")
        if style.columns:
            lines[0] = f"{hit['column']}:{lines[0]}"
        return lines
    text = hit["text"]
    if hit.get("cut") or len(text) > LINE_LONG:
        text = _cut_around_match(hit)
    return [style.text(line) for line in text.split("\n")]


def _cut_around_match(hit: Mapping[str, Any]) -> str:
    text = str(hit["text"])
    first = hit.get("text_column", 1)
    low = 0
    high = len(text)
    if "\n" not in text:
        # The hit's text may itself be a part of the line (`text_column`), so the match
        # is found relative to that.
        low = max(0, hit["column"] - first - LINE_LEAD)
        high = min(high, low + LINE_SHOWN)
    shown = text[low:high]
    if first + low > 1:
        shown = "…" + shown
    if hit.get("cut") or high < len(text):
        shown += "…"
    return shown


def mark_matches(hit: Mapping[str, Any], style: Style) -> str:
    """Return the text of a hit for a person, with what matched in a colour; a part of a long line with marks."""
    text = hit["text"]
    first = hit.get("text_column", 1)
    marked = ""
    end = 0
    spans: Sequence[Mapping[str, Any]] = ()
    # Lines that were cut have no place for a match of several.
    if style.color and "\n" not in text:
        spans = hit.get("spans", ())
    for match in spans:
        if match["start_line"] != match["end_line"]:
            continue
        start = max(end, match["start_column"] - first)
        stop = min(len(text), match["end_column"] - first)
        if start < stop:
            marked += style.text(text[end:start])
            marked += style.paint(MATCH_COLOR, style.text(text[start:stop]))
            end = stop
    marked += style.text(text[end:])
    if hit.get("cut"):
        marked = "…" * (first > 1) + marked + "…"
    return marked


def trim_context(hits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the hits of a file, sorted by line if they have context, so that no line is shown twice."""
    if not any(hit.get("before") or hit.get("after") for hit in hits):
        return list(hits)
    trimmed = list[Mapping[str, Any]]()
    shown = 0
    ordered = sorted(hits, key=lambda hit: hit["start_line"])
    ends: list[int | None] = [hit["start_line"] for hit in ordered[1:]]
    ends.append(None)
    for hit, end in zip(ordered, ends, strict=True):
        before = hit.get("before", [])
        after = hit.get("after", [])
        # Already shown by the previous hit.
        first = hit["start_line"] - len(before)
        before = before[max(0, shown + 1 - first) :]
        if end is not None:
            room = end - hit["end_line"] - 1
            after = after[: max(0, room)]
        shown = hit["end_line"] + len(after)
        trimmed.append({**hit, "before": before, "after": after})
    return trimmed


def render_places(
    places: Iterable[tuple[str, str, str]], style: Style
) -> Iterator[str]:
    """Yield places, each (path, lines, text); consecutive places of one file share a heading."""
    for path, grouped in groupby(places, key=lambda place: place[0]):
        group = list(grouped)
        if not style.is_person and len(group) > 1:
            yield path
            for _, lines, text in group:
                yield f"{lines} {text}"
            continue
        separator = " "
        if style.is_person:
            separator = ":"
        for _, lines, text in group:
            yield f"{path}:{style.line(lines)}{separator}{style.text(text)}"


class Use(NamedTuple):
    """A line that uses something, as a model is told of it."""

    path: str
    lines: str
    around: str
    """What is said before the text: how it is used, and in what; may be empty."""
    text: str


def render_uses(uses: Iterable[Use], style: Style) -> Iterator[str]:
    """Yield uses as places; one of which the same is said as of the line above it is ``12: text``.

    A name may be used twenty times in one function.
    """
    above = ("", "")
    places = list[tuple[str, str, str]]()
    for use in uses:
        here = (use.path, use.around)
        lines = use.lines
        text = use.text
        if use.around and here == above:
            lines = f"{lines}:"
        elif use.around:
            text = f"{use.around}: {text}"
        places.append((use.path, lines, text))
        above = here
    yield from render_places(places, style)


def shorten_entries(lines: Sequence[str]) -> list[str]:
    """Return the lines of a file's outline for a model, without what is usual or evident from other lines."""
    entries = list[tuple[str, ...]]()
    for line in lines:
        entry_match = ENTRY.fullmatch(line)
        if entry_match:
            entries.append(entry_match.groups(""))
    shown = list[str]()
    owner = ""
    for place, entry in zip(_shorten_places(entries), entries, strict=True):
        text = USUAL.sub("", entry[-1])
        match = OWNER.match(text)
        if match is None:
            owner = ""
        elif match[0] == owner:
            text = text.removeprefix(owner)
        else:
            owner = match[0]
        line = f"{place} {text}"
        if len(line) > ENTRY_SHOWN:
            line = f"{place} {name_parameters(text)}"
        shown.append(clip(line, ENTRY_SHOWN))
    return shown


def _shorten_places(entries: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the indentation and lines of an outline's entries, without the ends that the next entry makes evident."""
    # For the next entry on each level: its indentation and first line.
    nexts: list[tuple[int, int]] = []
    places: list[str] = []
    # From the last line backwards, since the end of an entry is evident from what
    # follows it.
    for indent, first, last, _ in reversed(entries):
        while nexts and nexts[-1][0] > len(indent):
            nexts.pop()
        is_evident = not last
        if last and nexts:
            gap = nexts[-1][1] - int(last)
            is_evident = gap <= EVIDENT_GAP
        nexts.append((len(indent), int(first)))
        if is_evident:
            places.append(indent + first)
        else:
            places.append(f"{indent}{first}-{last}")
    places.reverse()
    return places


def span(item: Mapping[str, Any]) -> str:
    """Return the line range of a result, e.g. 3 or 3-9."""
    first = item["start_line"]
    last = item["end_line"]
    if first == last:
        return f"{first}"
    return f"{first}-{last}"


def render_text(
    result: Mapping[str, Any], render: Any, style: Style = FOR_MODEL
) -> str:
    """Return an answer as a model reads it: its lines, then notes in brackets."""
    lines = "\n".join(render(result, style))
    notes = "\n".join(f"[{note}]" for note in find_notes(result, style))
    if lines and notes and not lines.endswith("\n"):
        lines += "\n"
    return lines + notes


def render_fields(fields: Iterable[tuple[str, str]], style: Style) -> Iterator[str]:
    """Yield a table of names and values for a person."""
    rows = [(name, value) for name, value in fields if value]
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        shown = style.text(value)
        yield f"{name:<{width}}  {shown}"


def format_time(seconds: float) -> str:
    """Return a time in seconds since 1970, in UTC; one after the year 9999, as files may have, as a number."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"@{seconds:.0f}"


def format_json(result: Any) -> str:
    """Return a result as JSON for people."""
    option = orjson.OPT_INDENT_2
    option |= orjson.OPT_APPEND_NEWLINE
    # Of an encoded list, a dataclass, its items are wanted.
    option |= orjson.OPT_PASSTHROUGH_DATACLASS
    encoded = orjson.dumps(result, default=list, option=option)
    return encoded.decode()


def render_error(error: ErrorObject) -> str:
    """Return an error as a model reads it: what went wrong, and details that the message does not have."""
    message = error["message"]
    data = dict(error["data"])
    lines = [f"error {error['code']} {data.pop('reason', '')}: {message}"]
    if "problems" in data:  # the first is the message, and names the field
        data.pop("field", None)
        _, *others = data.pop("problems")
        for other in others:
            lines.append(f"{other['field']}: {other['problem']}")
    lines += render_details(message, data)
    return "\n".join(lines)


def render_details(message: str, details: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an error's data says beyond its message."""
    data = dict(details)
    # The message already has it; repeating costs tokens.
    if "near: " in message:
        data.pop("near", None)
    if "now" in data:  # what the conflict and the advice are about
        data.pop("conflict", None)
        data.pop("guidance", None)
        yield "now it is"
        yield data.pop("now")
    if likely := data.pop("likely_lines", []):
        yield "until then, the lines with most of the words:"
        yield from likely
    for name, value in data.items():
        if isinstance(value, str):
            text = value
        else:
            text = json.dumps(value, ensure_ascii=False, default=str)
        if text and text not in {"null", "[]", "{}"} and text not in message:
            yield f"{name}: {text}"


def _describe_extent(coverage: Mapping[str, Any], style: Style) -> str:
    if not coverage:
        return ""
    files = coverage.get("files_searched", 0)
    counts = coverage.get("files_skipped", {})
    reasons = list[str]()
    for reason, count in counts.items():
        if count:
            reasons.append(f"{count} {reason}")
    skipped = ", ".join(reasons)
    if not files and not skipped:
        if coverage.get("complete") is False:
            return ""
        # Nothing was even looked at, which is seldom what was meant.
        narrowing = "path, include and exclude"
        if style.is_person:
            narrowing = "PATH, -g and -t"
        return f": no file is asked; do {narrowing} name one, or do ignore rules leave out all?"
    number = f"{files:,}"
    if style.is_person:
        number = str(files)
    extent = f" in {number} files"
    if files == 1:
        extent = " in 1 file"
    if skipped:
        extent += f" (skipped: {skipped})"
    return extent


def explain_empty(result: Mapping[str, Any], style: Style) -> Iterator[str]:
    """Yield why an answer has no results, and how much was searched."""
    coverage = result.get("coverage") or {}
    if style.is_person and "reason" in result:
        yield result.get("detail") or result["reason"].replace("_", " ")
    elif result.get("results") == [] and _ANSWERED.isdisjoint(result):
        yield f"nothing found{_describe_extent(coverage, style)}"
        # A model has the summary above.
        if style.is_person and "summary" in result:
            yield result["summary"]
        if coverage.get("complete") and "detail" in coverage:
            yield coverage["detail"]


def note_libraries(results: Iterable[Mapping[str, Any]]) -> Iterator[Note]:
    """Yield which libraries results are in, if they are in any."""
    libraries = dict.fromkeys(
        item["library"] for item in results if item.get("library")
    )
    if libraries:
        yield Note(f"[in {', '.join(libraries)}, not of the project]")


def find_notes(result: Mapping[str, Any], style: Style) -> Iterator[str]:
    """Yield what the reader has to know about an answer: that it is empty, cut or incomplete."""
    coverage = result.get("coverage") or {}
    if not result.get("results"):
        yield from explain_empty(result, style)
    else:
        yield from _explain_ranking(result, style)
    offset = result.get("next_offset")
    if style.is_person and isinstance(offset, int) and "next" not in result:
        yield f"{result['returned']} of {result['total']:,} shown; continue with --offset {offset}"
    if result.get("truncated"):
        yield _explain_cut_text(result, style)
    # An answer cut at its budget is not incomplete: the cursor leads to the rest.
    is_cut = bool(result.get("next"))
    if coverage.get("complete") is False and ("projects" in coverage or not is_cut):
        yield f"incomplete: {coverage.get('detail') or 'the deadline was reached'}"
    if is_cut:
        yield _explain_cut_page(result, style)
    yield from _suggest(result, style)


def _suggest(result: Mapping[str, Any], style: Style) -> Iterator[str]:
    near = list[str]()
    for suggestion in result.get("suggestions") or []:
        if isinstance(suggestion, str):
            near.append(suggestion)
    if style.is_person:
        for name in near:
            yield f"did you mean {name}?"
    elif near:
        names = ", ".join(near)
        yield f"near: {names}"


def _explain_ranking(result: Mapping[str, Any], style: Style) -> Iterator[str]:
    """Yield how results answer a question that has no exact answer."""
    if result.get("mode") == "words" and style.is_person:
        yield "no line has the text itself; these lines come nearest"
    elif result.get("fallback") == "regex":
        yield "no line has the text itself; these match it as a regular expression"
    elif result.get("fallback") == "grep":
        yield r"no line has the text itself; these match it as grep reads it, \| between alternatives"
    elif result.get("fuzzy"):
        yield "no path has all of it; these come nearest"
    elif result.get("ranked_by") == "words":
        yield "still indexing: ranked by words only"


def _explain_cut_text(result: Mapping[str, Any], style: Style) -> str:
    """Return where a text was cut, and how to continue."""
    words = list[str]()
    for name, value in result["continuation"]["cursor"].items():
        if name not in GOING_ON:
            continue
        if style.is_person:
            words.append(f"--{name.replace('_', '-')} {value}")
        else:
            words.append(f"{name}={value}")
    way = " ".join(words)
    return f"cut at line {result['end_line']}; continue with {way}"


def _explain_cut_page(result: Mapping[str, Any], style: Style) -> str:
    """Return how much a page shows of an answer, and how to continue."""
    total = result.get("total")
    results = result.get("results") or []
    shown = len(results)
    of_all = "there is more"
    if isinstance(total, int) and total > shown:
        of_all = f"{shown} of {total:,} shown"
    if style.is_person and style.headings and style.offers_all:
        way = "--all shows everything"
    elif style.is_person:
        way = f"continue with --cursor {shlex.quote(result['next'])}"
    else:
        way = f"more: cursor={result['next']}"
    return f"{of_all}; {way}"
