"""Search by relevance: first the lines that define the name searched for, then the others, best first.

Hits are ranked within a window of files, so that pages are stable however many hits there are. Whether a file defines a
name depends on its text alone, not on whether its symbols were stored or are parsed now, so that the pages of an answer
fit together while files are being indexed.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import lru_cache
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Final

import numpy as np

from flashgrep.base.checkpoint import Expired, checkpoint, expiring
from flashgrep.base.errors import InvalidParams
from flashgrep.base.languages import LANGUAGES
from flashgrep.base.model import Document
from flashgrep.files.attributes import NOTHING_DECLARED, DeclaredKinds
from flashgrep.index.table import GENERATED, TIERS, tier_of
from flashgrep.parts.symbols import symbol_table as table
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import DECLARES, KIND, KINDS, NAME, NAME_END
from flashgrep.parts.symbols.symbol_source import parse_file
from flashgrep.pattern import LineMatch, Pattern
from flashgrep.search.declared_kinds import find_tier, read_kinds
from flashgrep.search.exact import SHOWING_SECONDS, Answer, Position, Question, Search
from flashgrep.search.hits import decode_span
from flashgrep.search.snapshot import TEXT_ID, TIER, Places, Snapshot, merge_series

WINDOW_HITS = 200
"""Hits per window: whole files, best tier first, are added until a window has this many."""

WINDOW_FILES = 100
FILE_HITS = 2_000
"""Most hits of one file that are ranked; further ones follow in line order."""

DEFINITIONS = 30
"""Most defining lines that are ranked: each file that has one costs 0.4 ms."""

MOST_JUDGED = 100
"""Most defining files that are read to see whether they define a function or a type, likely ones first; the others are
ordered by their paths alone. Fewer are read once ``DEFINITIONS`` of them do, or ``KEPT_BYTES`` were read."""

KEPT_BYTES = 8 << 20
"""Most bytes of defining files that are kept, so that they are not read again for their other lines."""

_DEFINING = -2 * TIERS
"""Added to the tier of a file for its defining lines, so that they come first."""
_SURE = -TIERS
"""Added to that for files that define a function or a type of the name."""
_LED = -TIERS
"""Added to the tier of a defining file, or one with that name, for its other lines."""

RANKS: Final = 6
"""Parts of a rank that are comparable across projects: all except path and line."""
Match = tuple[bytes, Document, LineMatch]
"""A matching line of a file."""

_DEFINES = re.compile(
    r"^\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]+\))?|unsafe"
    r"|extern|inline|virtual|override|open|sealed|data|const)\s+)*"
    r"(?:def|class|struct|interface|trait|enum|union|type|typedef|fn|func|fun|function|module|namespace|package|protocol"
    r"|impl|object|let|var|val|const|macro_rules!|#\s*define|sub|proc|extension|record|contract|defmodule|defp?)\b"
)
_C_FUNCTION = re.compile(r"^[A-Za-z_][\w\s*&:<>,]*\([^;]*$")

_PROSE = re.compile(
    rb"\.(?:md|mdx|markdown|rst|txt|adoc|asciidoc|org|tex|po)$"
    rb"|(?:^|/)(?:changelog|changes|readme|license|news|history|authors)[^/.]*$",
    re.IGNORECASE,
)
_tier_of = lru_cache(maxsize=1024)(tier_of)
"""Hits of one file are adjacent, and computing its tier costs as much as all the rest of ranking one."""

MOST_PARSED: Final = 16
"""Most files without stored symbols that are read, and parsed if they contain the word: 5 ms each."""
MOST_PARSED_BYTES: Final = 1 << 17
"""Larger files are not parsed for a question: only results up to this size are cached."""
MOST_NAMES: Final = 8
_NAME: Final = re.compile(r"[^\W\d][\w$]*")


class Definition(IntEnum):
    """How certainly a line defines a name, best first."""

    DEFINED = 0
    OTHER_CASE = 1
    """A function or a type whose name differs in case: as people type it."""
    VALUE = 2
    """A variable, a field, a constant: less often meant than a function or a type of that name."""
    DECLARED = 3
    """A prototype, an overload, an extension of a type defined elsewhere, a value whose name differs in case."""
    PERHAPS = 4
    """The line looks like a definition, or is a heading."""
    USED = 5


_BY_KIND: Final = {
    **dict.fromkeys(
        ("variable", "field", "property", "constant", "enumerator", "event"),
        Definition.VALUE,
    ),
    "extension": Definition.DECLARED,
    "heading": Definition.PERHAPS,
}


_OTHER_CASE: Final = (Definition.OTHER_CASE, Definition.DECLARED)
"""How certainly a name in another case is meant: of a function or a type, and of anything else."""


def search_by_relevance(snapshot: Snapshot, question: Question) -> Answer:
    """Answer a question with lines by relevance; raises as ``Search.run``."""
    answer = RankedSearch(snapshot, question).run()
    if (
        answer.next is not None
        and not answer.next.led
        and names_in_pattern(question.pattern)
    ):
        answer.detail = (
            "definitions do not come first yet: files are still being parsed"
        )
    return answer


class RankedSearch(Search):
    """One question answered by relevance.

    Defining lines come first, then the other lines of their files and of files with that name, then all other files.
    Definitions are known once symbols are stored; before that, all files rank alike.
    """

    def __init__(self, snapshot: Snapshot, question: Question) -> None:
        super().__init__(snapshot, question)
        self._kinds = read_kinds(snapshot)
        self._definers: Definers | None = None
        self._kept: dict[bytes, Document] = {}
        self._kept_bytes = 0
        self._judged_bytes = 0

    def hits(self) -> Iterator[tuple[Position, int, bytes, Document, LineMatch]]:
        """Rank window by window; a position names a window's first file and how many of its hits were already taken."""
        position = self.question.position
        if self.is_linear and (
            position is None or position.led
        ):  # later pages continue as the first began
            going_on = position is not None
            self._definers = find_definers(
                self.snapshot, self.question.pattern, self.places, going_on=going_on
            )
            if self._definers is None and going_on:
                raise InvalidParams(
                    "cursor: the index has been rebuilt; ask again without a cursor",
                    field="cursor",
                )
        count = position.taken if position else 0
        for (tier, first), window, rest in self._windows():
            start = Position(tier, first, 0, None, led=self._definers is not None)
            ranked: list[tuple[tuple[object, ...], Match]] = []
            for path, document, match in window:
                checkpoint()
                begin, end = (
                    match.spans[0] if match.spans else (match.start, match.start)
                )
                low = max(
                    match.start, begin - 200
                )  # of a very long line, the part around the match
                line = (
                    decode_span(document, low, min(match.end, end + 200)),
                    begin - low,
                    match.number,
                )
                parsed = None
                if self._definers is not None and path in self._definers.defining:
                    parsed = self._definers.definitions(path, document).get(
                        match.start, Definition.USED
                    )
                key = rank_key(
                    self.question.pattern.texts, path, line, parsed, self._kinds
                )
                ranked.append((key, (path, document, match)))
            ranked.sort(key=itemgetter(0))
            # Unranked hits come last.
            least: tuple[object, ...] = ()
            if ranked:
                least = ranked[-1][0]
            hits = chain(ranked, ((least, item) for item in rest))
            for at, (rank, (path, document, match)) in enumerate(
                islice(hits, count, None), count + 1
            ):
                self.rank = rank[:RANKS]
                yield start, at, path, document, match
            count = 0

    def _windows(
        self,
    ) -> Iterator[tuple[tuple[int, bytes], list[Match], Iterator[Match]]]:
        """Yield a window's start, its hits to rank, and the further hits of its last file."""
        window: list[Match] = []
        starts: list[tuple[int, bytes]] = []
        try:
            for tier, path, document, lines in chain(self._definitions(), self._uses()):
                matches = ((path, document, line) for line in lines)
                starts.append((tier, path))
                before = len(window)
                window.extend(islice(matches, FILE_HITS if tier >= 0 else WINDOW_HITS))
                if len(window) == before:  # the file has no match
                    starts.pop()
                elif (
                    tier >= _LED
                ):  # a defining file is counted later, with its other lines
                    self.matching += 1
                most = DEFINITIONS if tier < _LED else WINDOW_HITS
                if len(starts) >= WINDOW_FILES or len(window) >= most:
                    yield starts[0], window, matches
                    window = []
                    starts = []
        except Expired:
            self.answer.complete = False
            if window:
                with expiring(
                    time.monotonic() + SHOWING_SECONDS
                ):  # also while the window is consumed
                    yield starts[0], window, iter(())
            raise
        if window:
            yield starts[0], window, iter(())

    def _definitions(
        self,
    ) -> Iterator[tuple[int, bytes, Document, Iterator[LineMatch]]]:
        """Yield the defining files with their defining lines; their other lines come later."""
        definers = self._definers
        for tier, path in self._order_definers():
            # Not counted as read here: the file is yielded again later.
            document = None
            if self._is_asked(tier, path):
                document = self._read_definer(path)
            if definers is None or document is None:
                continue
            data = document.data
            lines = list[LineMatch]()
            for start in sorted(definers.definitions(path, document)):
                end = data.find(b"\n", start)
                if end < 0:
                    text = data[start:]
                else:
                    text = data[start:end]
                has_spans = self.question.spans is not None
                for line in self.matcher.lines(text, all_spans=has_spans):
                    number = data.count(b"\n", 0, start) + 1
                    spans = tuple(
                        (low + start, high + start) for low, high in line.spans
                    )
                    lines.append(
                        LineMatch(number, number, start, start + line.end, spans)
                    )
            yield tier, path, document, iter(lines)

    def _order_definers(self) -> list[tuple[int, bytes]]:
        """Return the defining files: first those of a function or a type, prose and generated code last."""
        definers = self._definers
        if definers is None:
            return []
        keep = self.question.keep
        tiers = {
            path: GENERATED
            if is_secondary(path) or self._kinds.find_kind(path)
            else tier_of(path)
            for path in definers.defining
            if keep is None or keep(path)
        }
        likely = sorted(
            tiers, key=lambda path: (tiers[path], path not in definers.called, path)
        )
        if len(likely) > 1:
            for path in choose_sure(likely, self._is_sure_definer):
                tiers[path] += _SURE
        return sorted((tier + _DEFINING, path) for path, tier in tiers.items())

    def _is_sure_definer(self, path: bytes) -> bool:
        """Return whether a file defines a function or a type of the name."""
        checkpoint()
        if self._definers is None or self._judged_bytes > KEPT_BYTES:
            return False
        document = self._read_definer(path)
        if document is None:
            return False
        self._judged_bytes += len(document.data)
        ways = self._definers.definitions(path, document).values()
        return min(ways, default=Definition.USED) <= Definition.OTHER_CASE

    def _read_definer(self, path: bytes) -> Document | None:
        """Return a defining file's text, which is kept if there is room."""
        if path in self._kept:
            return self._kept[path]
        document = self.snapshot.read(path)
        if not isinstance(document, Document):
            return None
        if self._kept_bytes + len(document.data) <= KEPT_BYTES:
            self._kept_bytes += len(document.data)
            self._kept[path] = document
        return document

    def _uses(self) -> Iterator[tuple[int, bytes, Document, Iterator[LineMatch]]]:
        """Yield the files that may match, best first, with all matching lines not already yielded as definitions."""
        for path, document in self.documents():
            is_led = self._definers is not None and path in self._definers.paths
            yield (
                find_tier(self._kinds, path) + (_LED if is_led else 0),
                path,
                document,
                self._other_lines(path, document),
            )

    def _other_lines(self, path: bytes, document: Document) -> Iterator[LineMatch]:
        lines = iter(
            self.matcher.lines(document.data, all_spans=self.question.spans is not None)
        )
        if self._definers is None or path not in self._definers.defining:
            return lines
        definitions = self._definers.definitions(path, document)
        return (line for line in lines if line.start not in definitions)

    def count_hits(self, path: bytes, document: Document) -> int:
        """Return a file's number of hits, without those that came first as definitions."""
        if self._definers is None or path not in self._definers.defining:
            return super().count_hits(path, document)
        return sum(1 for _ in self._other_lines(path, document))

    def read(self, path: bytes) -> Document | None:
        """Return a file's text, like ``Search.read``; a defining file is read once for all its lines."""
        if path not in self._kept:
            return super().read(path)
        self.answer.files_read += 1
        return self._kept.pop(path)

    def files(self) -> Iterator[bytes]:
        """Yield the files that may match: first defining files and those with that name, then the rest by tier."""
        snapshot = self.snapshot
        places = self.places
        if self._definers:
            leading = self._definers.paths
        else:
            leading = frozenset()
        tiers = snapshot.table.columns[places, TIER]
        first = sorted((find_tier(self._kinds, path) + _LED, path) for path in leading)
        by_path = (
            (tier, path)
            for tier in range(TIERS)
            for path in snapshot.unchanged_paths(places[tiers == tier])
        )
        if self._kinds:
            unchanged = self._put_off(by_path)
        else:
            unchanged = by_path
        changed = sorted(
            (find_tier(self._kinds, path), path) for path in snapshot.changed_paths()
        )
        for tier, path in chain(first, merge_series(unchanged, changed)):
            if (tier < 0 or path not in leading) and self._is_asked(tier, path):
                yield path

    def _put_off(
        self, files: Iterator[tuple[int, bytes]]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield files by tier and path, those that are declared to be generated or vendored in the tiers of these."""
        late: dict[int, list[tuple[int, bytes]]] = {tier: [] for tier in range(TIERS)}
        for tier, group in groupby(files, key=itemgetter(0)):
            for earlier in range(tier):
                yield from late.pop(earlier, ())
            yield from merge_series(
                self._keep_tier(group, late), sorted(late.pop(tier))
            )
        for tier in sorted(late):
            yield from sorted(late[tier])

    def _keep_tier(
        self,
        files: Iterator[tuple[int, bytes]],
        late: dict[int, list[tuple[int, bytes]]],
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the files whose tier is that of their path; the others are added to ``late``."""
        for tier, path in files:
            checkpoint()
            declared = find_tier(self._kinds, path)
            if declared == tier:
                yield tier, path
            else:
                late[declared].append((declared, path))

    def _is_asked(self, tier: int, path: bytes) -> bool:
        """Return whether a file is in the question's scope and not on earlier pages."""
        keep = self.question.keep
        position = self.question.position
        return (position is None or (tier, path) >= position[:2]) and (
            keep is None or keep(path)
        )


def choose_sure(
    likely: Sequence[bytes], is_sure: Callable[[bytes], bool]
) -> list[bytes]:
    """Return the first ``DEFINITIONS`` files that are sure, of the first ``MOST_JUDGED``."""
    judged = filter(is_sure, likely[:MOST_JUDGED])
    return list(islice(judged, DEFINITIONS))


def rank_key(
    words: tuple[str, ...],
    path: bytes,
    line: tuple[str, int, int],
    parsed: Definition | None = None,
    kinds: DeclaredKinds = NOTHING_DECLARED,
) -> tuple[object, ...]:
    """Return the sort key of a hit, best first; ``line``: its text, the match's start in it, and its number.

    ``parsed``: the line's role according to the file's symbols. Order: definitions of the name; whole words before
    parts of words; sources before prose and generated code; what looks like a definition; tier of the file; files with
    that name; then path and line, so that the order of equal hits is stable.
    """
    text, at, number = line
    word = words[0]
    end = at + len(word)
    is_whole = not (_is_word(text[at - 1 : at]) and _is_word(word[:1])) and not (
        _is_word(text[end : end + 1]) and _is_word(word[-1:])
    )
    is_named = (
        path.rpartition(b"/")[2].partition(b".")[0].lower() == word.lower().encode()
    )
    if parsed is None:
        parsed = (
            Definition.PERHAPS
            if is_whole and looks_defining(text, at, end)
            else Definition.USED
        )
    # Prose and generated code may be full of a name; only what defines it comes before
    # the sources that use it.
    return (
        min(parsed, Definition.PERHAPS),
        not is_whole,
        is_secondary(path) or kinds.find_kind(path) is not None,
        parsed,
        find_tier(kinds, path) if kinds else _tier_of(path),
        not is_named,
        path,
        number,
    )


@lru_cache(maxsize=1024)
def is_secondary(path: bytes) -> bool:
    """Return whether a file is prose or generated, by its path."""
    return _tier_of(path) >= GENERATED or _PROSE.search(path) is not None


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def looks_defining(text: str, at: int, end: int) -> bool:
    """Return whether a line, judged by its text, looks like a definition of the name between two offsets."""
    match = _DEFINES.match(
        text, 0, end
    )  # the search text may include the keyword itself: "def main"
    if match and at - 2 <= match.end() < end:  # a space, possibly a pointer's star
        return True
    head = text[:at]
    return bool(
        head
        and not head[0].isspace()
        and _C_FUNCTION.match(text)
        and "=" not in head
        and "(" not in head
    )


class Definers:
    """Files that define one of some names, or have one as their file name."""

    def __init__(
        self,
        snapshot: Snapshot,
        names: frozenset[bytes],
        defining: set[bytes],
        called: set[bytes],
    ) -> None:
        self.defining = frozenset(defining)
        self.called = frozenset(called)
        self.paths = frozenset(defining | called)
        self._snapshot = snapshot
        self._names = names
        self._known: dict[bytes, Mapping[int, Definition]] = {}

    def definitions(self, path: bytes, document: Document) -> Mapping[int, Definition]:
        """Return the starts of the lines in which a file defines one of the names, and how certainly."""
        if path not in self._known:
            packed = None
            version = self._snapshot.indexed_version(path)
            reader = self._snapshot.reader
            if version is not None and reader is not None:
                with suppress(table.Declined):
                    rows = reader.rows(table.SYMBOL_ROWS).packed_symbols([version[0]])
                    packed = table.read_row(rows.get(version[0]))
            symbols = (
                FileSymbols(packed, document.data)
                if packed
                else parse_file(path, document.data, self._snapshot.unsaved)
            )
            found_definitions: dict[int, Definition] = {}
            for at, how in (
                find_definitions(symbols, self._names)
                if isinstance(symbols, FileSymbols)
                else ()
            ):
                start = document.data.rfind(b"\n", 0, at) + 1
                found_definitions[start] = min(how, found_definitions.get(start, how))
            self._known[path] = found_definitions
        return self._known[path]


def find_definers(
    snapshot: Snapshot, pattern: Pattern, places: Places, *, going_on: bool
) -> Definers | None:
    """Return which of the files that may match define the name searched for; None: unknown.

    ``places``: positions in the table. ``going_on``: an earlier page used definers; files that cannot be judged have
    changed since and count as using the word.
    """
    names = names_in_pattern(pattern)
    if not names or snapshot.reader is None or not snapshot.parsed_to:
        return None
    words = frozenset(name.encode() for name in names)
    rows = snapshot.reader.rows(table.SYMBOL_ROWS)
    text_ids = sorted({text_id for name in names for text_id in rows.defining(name)})
    paths = snapshot.table.paths
    numbers = snapshot.table.columns[places, TEXT_ID]
    changed = set(snapshot.changed_paths())
    is_stored = np.isin(numbers, np.array(text_ids, np.int64)) & (
        numbers <= snapshot.parsed_to
    )
    defining = set(snapshot.unchanged_paths(places[is_stored].tolist()))

    # Files with one of the names, with any ending: many paths are searched as one text.
    indexed = [paths[at] for at in places.tolist()]
    joined = b"\0".join([b"", *indexed, *changed, b""])
    either = b"|".join(map(re.escape, words))
    named = rb"(?i)[/\0](?:%s)(?:\.[^/\0]*)?(?=\0)" % either
    called = set()
    for match in re.finditer(named, joined):
        start = joined.rfind(b"\0", 0, match.start() + 1) + 1
        path = joined[start : match.end()]
        if path in changed or path not in snapshot.pending:
            called.add(path)

    # A few files without stored symbols are parsed if they contain a name. With more of
    # them nothing is ranked first: the order of pages must not depend on the parser's
    # progress.
    unknown = changed.union(
        snapshot.unchanged_paths(places[numbers > snapshot.parsed_to].tolist())
    )
    if len(unknown.difference(snapshot.unsaved)) > MOST_PARSED:
        if going_on:
            return Definers(snapshot, words, defining, called)
        return None
    for path in unknown:
        checkpoint()
        document = snapshot.read(path)
        if isinstance(document, Document):
            text = document.data.lower()
        else:
            text = b""
        if not isinstance(document, Document) or not any(
            name.lower() in text for name in words
        ):
            continue
        if len(text) <= MOST_PARSED_BYTES or path in snapshot.unsaved:
            symbols = parse_file(path, document.data, snapshot.unsaved)
            if isinstance(symbols, FileSymbols) and any(
                find_definitions(symbols, words)
            ):
                defining.add(path)
        elif not going_on:
            return None
    return Definers(snapshot, words, defining, called)


def names_in_pattern(pattern: Pattern) -> list[str]:
    """Return the names that a literal pattern may refer to: the last one of each text, as in ``def main``."""
    if pattern.mode != "literal" or pattern.multiline:
        return []
    name_lists = (
        _NAME.findall(text[: table.LONGEST_NAME]) for text in pattern.texts[:MOST_NAMES]
    )
    return list(dict.fromkeys(names[-1] for names in name_lists if names))


def find_definitions(
    symbols: FileSymbols, names: frozenset[bytes]
) -> Iterator[tuple[int, Definition]]:
    """Yield the offsets where a file defines the names, in any case, and how certainly."""
    rows = symbols.parsed.definitions
    sizes = rows[:, NAME_END] - rows[:, NAME]
    folded = {name.lower() for name in names}
    # A key of YAML, a section of a configuration are no functions or types.
    is_code = LANGUAGES[symbols.language].nature == "code"
    least = Definition.DEFINED if is_code else Definition.VALUE
    for row in rows[np.isin(sizes, [len(name) for name in names])].tolist():
        name = symbols.data[row[NAME] : row[NAME_END]]
        if name.lower() in folded:
            kind = KINDS[row[KIND]]
            how = max(least, _BY_KIND.get(kind, Definition.DEFINED))
            if row[DECLARES]:
                how = max(how, Definition.DECLARED)
            if name not in names:
                is_value = how > Definition.DEFINED
                how = max(how, _OTHER_CASE[is_value])
            yield row[NAME], how
