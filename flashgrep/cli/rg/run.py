"""One ``rg`` command from arguments to exit status: patterns, files, sink, and one search after the other."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flashgrep.cli.rg import json_printer
from flashgrep.cli.rg.args import Arguments
from flashgrep.cli.rg.haystack import Declined, OnNul, haystack, read
from flashgrep.cli.rg.json_printer import JsonSink
from flashgrep.cli.rg.output import PATH, Output, Stats
from flashgrep.cli.rg.searcher import Searcher
from flashgrep.cli.rg.standard import Look, StandardSink
from flashgrep.cli.rg.summary import Kind, Summary, SummarySink
from flashgrep.cli.rg.targets import Project, Target, Targets
from flashgrep.errors import BadPattern, InvalidParams
from flashgrep.ingest.languages import types
from flashgrep.ingest.walk import Walker
from flashgrep.pattern import Matcher, Pattern
from flashgrep.search.exact import View
from flashgrep.search.rglike import Cover

FOUND, NOTHING, FAILED = 0, 1, 2
_KINDS: dict[str, Kind] = {
    "count": "count",
    "count_matches": "count_matches",
    "files_with_matches": "files_with_matches",
    "files_without_match": "files_without_match",
}
_NOTHING_SEARCHED = (
    "No files were searched, which means ripgrep probably applied a filter you didn't expect.\n"
    "Running with --debug will show why files are being skipped."
)
AnySink = StandardSink | SummarySink | JsonSink


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command runs: its folder, the project around it as known now, and the terminal it writes to."""

    cwd: bytes
    view: View | None = None
    walker: Walker | None = None
    tty: bool = False
    color: bool = False
    stopped: Callable[[], bool] = lambda: False


class Gone(Exception):
    """The caller has gone."""


class Command:
    """One command: what it has said on standard error, and its exit status."""

    def __init__(self, arguments: Arguments, place: Place, send: Callable[[bytes], None]) -> None:
        self.errors: list[str] = []
        self._arguments = arguments
        self._place = place
        color = arguments.color in {"always", "ansi"} or (arguments.color == "auto" and place.color)
        self.out = Output(send, color=color)
        self._errored = False

    def run(self) -> int:
        """Run the command and return its exit status; what is left of the output stays in ``out``.

        Raises:
            Gone: the caller has.

        """
        try:
            found = self._run()
        except BadPattern as error:
            return self._fail(f"regex parse error: {error.message}")
        except InvalidParams as error:
            return self._fail(error.message)
        if found and (self._arguments.quiet or not self._errored):
            return FOUND
        return FAILED if self._errored else NOTHING

    def _run(self) -> bool:
        mode = self._arguments.mode
        if mode == "type_list":
            return self._type_list()
        texts = () if mode == "files" else self._texts()
        paths = [os.fsencode(path) for path in self._arguments.positional[self._takes_pattern() :]]
        if b"-" in paths:
            raise InvalidParams("standard input cannot be searched: save it to a file first")
        if mode == "files":
            return self._files(self._targets(paths, None))
        if not texts or self._arguments.max_count == 0:
            return False
        return self._search(_pattern(self._arguments, texts), paths)

    def _fail(self, message: str) -> int:
        self.errors.append(f"rg: {message}")
        return FAILED

    def _complain(self, path: bytes, problem: str) -> None:
        self._errored = True
        if self._arguments.messages:
            self.errors.append(f"rg: {os.fsdecode(path)}: {problem}")

    # What is wanted

    def _takes_pattern(self) -> bool:
        return self._arguments.mode != "files" and not self._arguments.patterns

    def _texts(self) -> tuple[str, ...]:
        arguments = self._arguments
        if self._takes_pattern():
            if not arguments.positional:
                raise InvalidParams("ripgrep requires at least one pattern to execute a search")
            return (_utf8(arguments.positional[0]),)
        found: dict[str, None] = {}
        for kind, text in arguments.patterns:
            found.update(dict.fromkeys([_utf8(text)] if kind == "text" else self._patterns_of(text)))
        return tuple(found)

    def _patterns_of(self, path: str) -> list[str]:
        if path == "-":
            raise InvalidParams("patterns cannot be read from standard input: save them to a file first")
        try:
            raw = Path(os.fsdecode(self._place.cwd), path).read_bytes()
        except OSError as error:
            raise InvalidParams(f"{path}: {error.strerror} (os error {error.errno})") from None
        lines = raw.split(b"\n")
        return [_utf8(os.fsdecode(line.removesuffix(b"\r"))) for line in (lines if lines[-1] else lines[:-1])]

    def _targets(self, paths: list[bytes], pattern: Pattern | None) -> Targets:
        place = self._place
        project = None
        if place.view is not None and place.walker is not None:
            project = Project(place.view.root, place.walker, Cover(place.view, pattern))
        counted = self._arguments.mode == "json"
        return Targets(self._arguments, paths, place.cwd, project, self._complain, counted=counted)

    # Doing it

    def _type_list(self) -> bool:
        for name, globs in types().items():
            self.out.write(f"{name}: {', '.join(globs)}\n".encode())
        return True

    def _files(self, targets: Targets) -> bool:
        for target in targets:
            if not self._arguments.quiet:
                self.out.paint(PATH, target.shown)
                self.out.write(b"\0" if self._arguments.null else b"\n")
        return targets.seen > 0

    def _search(self, pattern: Pattern, paths: list[bytes]) -> bool:
        arguments = self._arguments
        matcher = pattern.matcher()
        targets = self._targets(paths, pattern if self._skips_what_cannot_match() else None)
        sink = self._sink(targets, matcher)
        before, after = arguments.context()
        searcher = Searcher(matcher=matcher, before=before, after=after, limit=arguments.max_count)
        total = Stats()
        found = self._each(targets, searcher, sink, total)
        if targets.implicit and not targets.seen:
            self._errored = True
            if arguments.messages:
                self.errors.append(f"rg: {_NOTHING_SEARCHED}")
        total.searches += targets.ruled_out
        total.bytes_searched += targets.ruled_out_bytes
        if arguments.mode == "json":
            self.out.write(json_printer.summary(total))
        elif arguments.stats:
            self.out.write(total.as_text())
        return found

    def _skips_what_cannot_match(self) -> bool:
        """Return whether files without a match leave no trace in the output, and binary ones are left as they are."""
        arguments = self._arguments
        counts_all = arguments.stats or arguments.include_zero or arguments.mode == "files_without_match"
        return arguments.binary == "auto" and not (counts_all or (arguments.mode == "json" and arguments.quiet))

    def _each(self, targets: Targets, searcher: Searcher, sink: AnySink, total: Stats) -> bool:
        arguments = self._arguments
        mapped = targets.mapped
        first = arguments.quiet and not arguments.stats and arguments.mode != "json"
        found = False
        for target in targets:
            if self._place.stopped():
                raise Gone
            if not self._one(target, searcher, sink, mapped=mapped):
                continue
            total.add(sink.stats)
            found |= sink.has_match
            if found and first:
                break
        return found

    def _one(self, target: Target, searcher: Searcher, sink: AnySink, *, mapped: bool) -> bool:
        try:
            raw = read(target.full, follow=target.explicit)
        except FileNotFoundError as error:
            if target.explicit:
                self._complain(target.shown, f"{error.strerror} (os error {error.errno})")
            return False
        except OSError as error:
            self._complain(target.shown, f"{error.strerror} (os error {error.errno})")
            return False
        except Declined as reason:
            self._complain(target.shown, str(reason))
            return False
        on_nul = self._on_nul(target)
        hay = haystack(raw, mapped=mapped, multiline=searcher.matcher.crosses_lines, on_nul=on_nul)
        searcher.search(hay, target.shown, sink)
        return True

    def _on_nul(self, target: Target) -> OnNul:
        if self._arguments.binary == "text":
            return "text"
        return "convert" if target.explicit or self._arguments.binary == "convert" else "quit"

    def _sink(self, targets: Targets, matcher: Matcher) -> AnySink:
        arguments = self._arguments
        line_end = b"\r\n" if arguments.crlf else b"\n"
        named = arguments.vimgrep or not targets.one_file
        path = named if arguments.with_filename is None else arguments.with_filename
        stats = arguments.stats or arguments.mode == "json"
        if arguments.quiet or arguments.mode in _KINDS:
            how = Summary(
                kind=self._kind(),
                quiet=arguments.quiet,
                path=path,
                null=arguments.null,
                include_zero=arguments.include_zero,
                line_end=line_end,
                stats=stats,
            )
            return SummarySink(self.out, how, matcher)
        if arguments.mode == "json":
            numbered = arguments.line_number is not False
            return JsonSink(self.out, matcher, _bytes(arguments.replace), line_number=numbered)
        return StandardSink(self.out, self._look(path=path, line_end=line_end), matcher)

    def _kind(self) -> Kind:
        mode = self._arguments.mode
        if mode == "count" and self._arguments.only_matching:
            return "count_matches"
        return _KINDS.get(mode, "files_with_matches")

    def _look(self, *, path: bool, line_end: bytes) -> Look:
        arguments = self._arguments
        column = arguments.vimgrep if arguments.column is None else arguments.column
        heading = (self._place.tty if arguments.heading is None else arguments.heading) and not arguments.vimgrep
        numbered = self._place.tty or column or arguments.vimgrep
        return Look(
            path=path,
            heading=heading,
            line_number=numbered if arguments.line_number is None else arguments.line_number,
            column=column,
            byte_offset=arguments.byte_offset,
            only_matching=arguments.only_matching,
            per_match=arguments.vimgrep,
            null=arguments.null,
            trim=arguments.trim,
            max_columns=arguments.max_columns,
            replace=_bytes(arguments.replace),
            separator=b"" if heading else b"--" if any(arguments.context()) else None,
            line_end=line_end,
            stats=arguments.stats,
        )


def _pattern(arguments: Arguments, texts: tuple[str, ...]) -> Pattern:
    return Pattern(
        texts=texts,
        mode="literal" if arguments.fixed else "regex",
        case=arguments.case,
        word=arguments.boundary == "word",
        line=arguments.boundary == "line",
        multiline=arguments.multiline,
        dotall=arguments.multiline and arguments.dotall,
        crlf=arguments.crlf,
    )


def _utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidParams("pattern given is not valid UTF-8") from None
    return text


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else os.fsencode(text)
