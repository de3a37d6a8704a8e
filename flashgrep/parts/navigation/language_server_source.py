"""What a language server knows about the names in a file, for one lookup (``servers`` runs the servers).

The server sees the texts that the lookup sees: it receives unsaved texts, and is notified of files that changed on
disk. A location counts only if the project's file has such a name there now, whatever the server answers.
"""

import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.languages import LANGUAGES, language_of
from flashgrep.files.columns import Columns, Lines, PositionEncoding, find_column
from flashgrep.parts.navigation.servers.known import KnownServer
from flashgrep.parts.navigation.servers.language_server import LanguageServer, make_uri
from flashgrep.parts.navigation.servers.pool import NotAsked, ServerPool
from flashgrep.parts.symbols.other_sources import Meaning, Open, SourceOccurrence
from flashgrep.parts.symbols.parse.lookup import FileSymbols, Role
from flashgrep.search.snapshot import MTIME_NS, SIZE, Snapshot

HOW: Final = "server"
"""The evidence given in answers for results of a language server."""
MOST_LOCATIONS: Final = 20_000
_SCHEME: Final = "file://"
_ASKED: Final = {False: "textDocument/definition", True: "textDocument/references"}
_ABOUT_PROJECTS: Final = (
    b"go.mod",
    b"go.work",
    b"Cargo.toml",
    b"config.json",
    b"package.json",
    b"pyproject.toml",
)
"""Endings of file names that describe a project to its server."""
Span = tuple[int, int]


class LanguageServerSource:
    """Answers from language servers; each location is checked against the current files."""

    how = HOW

    def __init__(self, pool: ServerPool, snapshot: Snapshot) -> None:
        self.problem = ""
        self._pool = pool
        self._snapshot = snapshot
        self._meanings: dict[tuple[bytes, Span, bool], Meaning | None] = {}
        self._uses: dict[bytes, list[SourceOccurrence]] = {}
        """Uses of the last name that was looked up, by file."""
        self._names: frozenset[bytes] = frozenset()

    def find_meaning(
        self, path: bytes, span: Span, open_file: Open, *, uses: bool
    ) -> Meaning | None:
        """Return what the name at a span of a file refers to, with the files that use it if ``uses``.

        None: there is no server, it did not answer, or it knows no definition in the project.
        """
        key = path, span, uses
        if key not in self._meanings:
            symbols = open_file(path)
            if symbols is None or self.problem:
                server = None
            else:
                server = self._pool.find(symbols.language, self._snapshot.root.path)
            try:
                if server is None or symbols is None:
                    meaning = None
                else:
                    meaning = self.ask_server(
                        server, symbols, path, span, open_file, uses=uses
                    )
            except NotAsked as why:
                self.problem = str(why)
                meaning = None
            self._meanings[key] = meaning
        return self._meanings[key]

    def find_known(self, path: bytes, open_file: Open) -> list[int]:
        """Return the offsets of the name in a file, if the server reported any use in it."""
        if path in self._uses:
            symbols = open_file(path)
        else:
            symbols = None
        if symbols is None:
            return []
        return sorted(
            {at for name in self._names for at in symbols.words(name, fold=False)}
        )

    def find_occurrences(
        self,
        numbers: frozenset[int],  # noqa: ARG002 - of one name at a time
        path: bytes,
        open_file: Open,  # noqa: ARG002 # of one name at a time
    ) -> list[SourceOccurrence] | None:
        """Return the uses of the last name in a file, in order; None if the server reported none."""
        return self._uses.get(path)

    def ask_server(
        self,
        found: tuple[KnownServer, str],
        symbols: FileSymbols,
        path: bytes,
        span: Span,
        open_file: Open,
        *,
        uses: bool,
    ) -> Meaning | None:
        """Return a server's result for a name; raises NotAsked if it does not answer."""
        known_server, _ = found
        name = symbols.data[span[0] : span[1]]
        language = symbols.language
        texts = {
            current_path: (language_of(current_path, text.data).name, text.data)
            for current_path, text in self._snapshot.unsaved.items()
            if not text.is_saved
            and language_of(current_path, text.data).name in known_server.languages
        }
        # Always including the file itself: the question is about its text, saved or
        # not.
        texts[path] = language, symbols.data
        versions = dict(list_versions(self._snapshot, known_server))

        def question(
            server: LanguageServer, ends: float
        ) -> list[tuple[PositionEncoding, Any]]:
            server.prepare(texts, versions, ends)
            line, column = Columns(Lines(symbols.data), server.encoding).place(span[0])
            where = {
                "textDocument": {"uri": make_uri(self._snapshot.root.path, path)},
                "position": {"line": line - 1, "character": column - 1},
            }
            answers_wanted = [server.ask(_ASKED[False], where, ends)]
            # Without a definition in the project, the uses would be those of an
            # external symbol.
            if uses and answers_wanted[0]:
                answers_wanted.append(
                    server.ask(
                        _ASKED[True],
                        {**where, "context": {"includeDeclaration": True}},
                        ends,
                    )
                )
            return [(server.encoding, answer) for answer in answers_wanted]

        answers = self._pool.ask(self._snapshot.root, found, question)
        read = partial(self.read_places, name=name, open_file=open_file)
        definitions = [
            location
            for location in read(*answers[0])
            if location.role in {"definition", "declaration"}
        ]
        if (
            not definitions
        ):  # nothing in the project, or not a definition that could be shown
            return None
        files: list[bytes] = []
        if uses:
            self._names = frozenset({name})
            self._uses = {}
            starts = {
                (current_definition.path, current_definition.start)
                for current_definition in definitions
            }
            for source_occurrence in read(*answers[-1]):
                if (source_occurrence.path, source_occurrence.start) not in starts:
                    self._uses.setdefault(source_occurrence.path, []).append(
                        source_occurrence
                    )
            for definition in definitions:
                self._uses.setdefault(definition.path, []).append(definition)
            files = sorted(self._uses)
        return Meaning(self, frozenset(), definitions, files)

    def read_places(
        self, encoding: PositionEncoding, result: Any, *, name: bytes, open_file: Open
    ) -> Iterator[SourceOccurrence]:
        """Yield the locations where the project's files have the name or a definition."""
        if isinstance(result, list):
            locations = result
        else:
            locations = [result]
        seen: set[tuple[bytes, int]] = set()
        for location in locations[:MOST_LOCATIONS]:
            checkpoint()
            path, place = read_location(self._snapshot.root.path, location)
            if path and self._snapshot.has(path):
                symbols = open_file(path)
            else:
                symbols = None
            if symbols is None or place is None:
                span = None
            else:
                span = find_span(symbols, place, encoding)
            if symbols is None or span is None or (path, span[0]) in seen:
                continue
            # Servers report a location once per overload.
            seen.add((path, span[0]))
            index = symbols.index_at(span[0])
            if index < 0 and symbols.data[span[0] : span[1]] != name:
                continue  # an alias, which is resolved here, or a changed text
            role: Role | None = (
                symbols.role(span[0]) if index < 0 else symbols.defined_role(index)
            )
            if role is not None:
                yield SourceOccurrence(path, symbols, *span, role)


def find_span(
    symbols: FileSymbols, place: tuple[int, int], encoding: PositionEncoding
) -> Span | None:
    """Return the span of the word at a line and column, both from 0; None if there is none."""
    lines = symbols.lines
    line = place[0] + 1
    # The server may have another version of the file; a line past the end would be read
    # as the last one.
    if line > symbols.data.count(b"\n") + 1:
        return None
    start = lines.start(line)
    within = find_column(
        lines.data[start : lines.start(line + 1)].rstrip(b"\r\n"),
        place[1] + 1,
        encoding,
    )
    if within is None:
        word = ""
    else:
        word = symbols.word_at(start + within)
    if not word or within is None:
        return None
    return (start + within, start + within + len(word.encode("utf-8", "replace")))


def list_versions(
    snapshot: Snapshot, known: KnownServer
) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """Yield the files in a server's languages, each with its size and modification time."""
    table = snapshot.table
    files = (
        pattern for name in known.languages for pattern in LANGUAGES[name].files.split()
    )
    endings = (
        *(b"." + file.encode() for file in files if file.isalnum()),
        *_ABOUT_PROJECTS,
    )
    columns = table.columns[:, [SIZE, MTIME_NS]].tolist()
    for at, path in enumerate(table.paths):
        if path.endswith(endings) and path not in snapshot.pending:
            yield path, tuple(columns[at])
    for path in snapshot.changed_paths():
        checkpoint()
        if (
            path.endswith(endings)
            and path not in snapshot.unsaved
            and (version := snapshot.version(path))
        ):
            yield path, version


def read_location(root: bytes, one: Any) -> tuple[bytes, tuple[int, int] | None]:
    """Return a location's path from the root (empty if it is outside) and its line and column from 0."""
    if not isinstance(one, Mapping):
        return b"", None
    uri = one.get("uri", one.get("targetUri"))
    span = one.get("range", one.get("targetSelectionRange"))
    root += b"/"
    if (
        not isinstance(uri, str)
        or not uri.startswith(_SCHEME)
        or not isinstance(span, Mapping)
    ):
        return b"", None
    path = os.path.normpath(unquote_to_bytes(uri.removeprefix(_SCHEME)))
    start = span.get("start")
    # Locations in libraries are outside the project, and a server's answer is not
    # trusted.
    if not path.startswith(root) or b"\0" in path or not isinstance(start, Mapping):
        return b"", None
    line = start.get("line")
    column = start.get("character")
    if not (
        isinstance(line, int) and isinstance(column, int) and line >= 0 and column >= 0
    ):
        return b"", None
    return path.removeprefix(root), (line, column)
