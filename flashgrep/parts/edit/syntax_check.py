"""Which files no longer parse after a write: their texts before and after are compared, as grammars read them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from flashgrep.api.searchers import SyntaxErrors
from flashgrep.base.model import path_to_json
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
                place = path_to_json(text.path)
                unparsed.append({**place, "line": after.line})  # type: ignore[typeddict-item]
        return unparsed


def describe_errors(unparsed: Iterable[UnparsedFile]) -> Iterator[str]:
    """Yield one line that names the files, if there are any."""
    places = [f"{file['file_path']}:{file['line']}" for file in unparsed]
    if places:
        yield f"[no longer parses: {', '.join(places)}]"
