"""Which files no longer parse after a write: their texts before and after are compared, as grammars read them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from flashgrep.api.searchers import SyntaxErrors
from flashgrep.files.system import encode_path, format_path
from flashgrep.methods.common import FilePlace

FindErrors = Callable[[bytes, bytes], SyntaxErrors | None]


class UnparsedFile(FilePlace):
    """A file that no longer parses, and the line of the first error."""

    line: int


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

    def run(self, find_errors: FindErrors) -> list[UnparsedFile]:
        """Return the files with more errors than before."""
        unparsed: list[UnparsedFile] = []
        for text in self.written:
            after = find_errors(text.path, text.after)
            if after is None or not after.places:
                continue
            before = None
            if text.before is not None:
                before = find_errors(text.path, text.before)
            if before is None or after.places > before.places:
                unparsed.append({**name_file(text.path), "line": after.line})
        return unparsed


def name_file(path: bytes) -> FilePlace:
    """Return a file as answers name it."""
    place: FilePlace = {"file_path": format_path(path)}
    encoded = encode_path(path)
    if encoded is not None:
        place["file_path_bytes"] = encoded
    return place


def describe_errors(unparsed: Iterable[UnparsedFile]) -> Iterator[str]:
    """Yield one line that names the files, if there are any."""
    places = [f"{file['file_path']}:{file['line']}" for file in unparsed]
    if places:
        yield f"[no longer parses: {', '.join(places)}]"
