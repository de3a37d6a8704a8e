"""Which files no longer parse after a write: their texts before and after are compared, as grammars read them."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NotRequired

from typing_extensions import TypedDict

from flashgrep.api.searchers import SyntaxErrors
from flashgrep.files.system import encode_path, format_path
from flashgrep.methods.common import FilePlace

FindErrors = Callable[[bytes, bytes], SyntaxErrors | None]
CHECK_SECONDS: Final = 5.0
"""After this the answer is given: a thousand files take a minute, and all are written."""


class UnparsedFile(FilePlace):
    """A file that no longer parses, and the line of the first error."""

    line: int


class SyntaxReport(TypedDict):
    """Files that no longer parse; ``unchecked``: how many files there was no time to check."""

    unparsed: NotRequired[list[UnparsedFile]]
    unchecked: NotRequired[int]


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A file's bytes before a write, None for a new file, and after it."""

    path: bytes
    before: bytes | None
    after: bytes


@dataclass(slots=True)
class SyntaxCheck:
    """Gathers what one call has written."""

    written: list[WrittenText] = field(default_factory=list)

    def add(self, path: bytes, before: bytes | None, after: bytes) -> None:
        """Note one file."""
        self.written.append(WrittenText(path, before, after))

    def run(self, find_errors: FindErrors) -> SyntaxReport:
        """Return the files with more errors than before."""
        unparsed: list[UnparsedFile] = []
        report: SyntaxReport = {}
        until = time.monotonic() + CHECK_SECONDS
        for at, text in enumerate(self.written):
            if time.monotonic() > until:
                report["unchecked"] = len(self.written) - at
                break
            after = find_errors(text.path, text.after)
            if after is None or not after.places:
                continue
            before = None
            if text.before is not None:
                before = find_errors(text.path, text.before)
            if before is None or after.places > before.places:
                unparsed.append({**name_file(text.path), "line": after.line})
        if unparsed:
            report["unparsed"] = unparsed
        return report


def name_file(path: bytes) -> FilePlace:
    """Return a file as answers name it."""
    place: FilePlace = {"file_path": format_path(path)}
    encoded = encode_path(path)
    if encoded is not None:
        place["file_path_bytes"] = encoded
    return place


def describe_errors(report: SyntaxReport) -> Iterator[str]:
    """Yield a line that names the files, and one that says how many were not checked, if there are any."""
    unparsed = report.get("unparsed", ())
    places = [f"{file['file_path']}:{file['line']}" for file in unparsed]
    if places:
        yield f"[no longer parses: {', '.join(places)}]"
    if "unchecked" in report:
        yield f"[not checked whether they parse: {report['unchecked']} files]"
