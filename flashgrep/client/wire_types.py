"""Options of the client's methods and shapes of the daemon's answers, as TypedDicts.

Generated from the registry of methods by ``scripts/generate``; do not edit.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, NotRequired, TypedDict

StrPath = str | PathLike[str]


class QueryOptions(TypedDict, total=False):
    """Options of `query`."""

    any_of: str | Sequence[str]
    """Further texts: a line with any of them matches."""
    mode: Literal["smart", "literal", "regex"]
    """smart: the text itself, best hits first; if nothing has it, as a regex if it
    looks like one."""
    case: Literal["sensitive", "insensitive", "smart"]
    """smart: insensitive unless the text has a capital letter."""
    word: bool
    """Match whole words only."""
    line: bool
    """Match whole lines only."""
    multiline: bool
    """Let matches span lines."""
    dotall: bool
    """With multiline: let . match line ends."""
    engine: Literal["linear", "backtracking"]
    """backtracking: look-around and back-references, by Python's re; reads every
    file."""
    path: StrPath | None
    """Only this file or folder; globs may start there."""
    include: str | Sequence[str]
    """Only files that match one of these globs, e.g. src/**/*.py."""
    exclude: str | Sequence[str]
    """Exclude files that match one of these globs."""
    language: str | Sequence[str]
    """Only files of these languages, e.g. py or rust."""
    owner: str | Sequence[str]
    """Only files that CODEOWNERS gives to one of these, e.g. @team or
    me@example.org."""
    order: Literal["relevance", "path"] | None
    """relevance: definitions and sources first (smart mode's default). path: by path
    and line."""
    context: int
    """Lines of context before and after each hit."""
    before: int | None
    """Lines of context before; overrides `context`."""
    after: int | None
    """Lines of context after; overrides `context`."""
    spans: bool
    """Return all matches of each hit, up to 1,000 (not in words mode)."""
    limit: int | None
    """Most results in all; without it, all there are."""
    deadline_ms: int
    """After this time, what was found so far is sent."""
    max_file_size: int | None
    """Largest file searched, in bytes; overrides the setting."""
    fresh: bool
    """Include everything saved before this call."""
    use_index: bool
    """False: bypass the index and read every file."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""
    projects: StrPath | Sequence[StrPath] | Literal["*"] | None
    """Several projects at once, by name or root, or `*` for all known ones; instead of
    `project`."""
    library: str | None
    """A library that the project uses, instead of the project: requests, or
    requests@2.31."""
    libraries: bool
    """All libraries that the project's environments and lock files name, instead of the
    project."""
    regex: bool
    """Another name of `mode`."""
    ignore_case: bool
    """Another name of `case`."""
    glob: str | Sequence[str]
    """Another name of `include`."""


class Coverage(TypedDict):
    """What an answer covered, so that an empty list never hides a timeout."""

    complete: bool
    fresh: bool
    files_searched: int
    files_skipped: dict[str, int]
    stage: str
    generation: int
    took_ms: float
    detail: NotRequired[str]
    revision: NotRequired[str]
    unsaved: NotRequired[int]
    projects: NotRequired[dict[str, str]]


class Explanation(TypedDict):
    """How a question was understood and planned."""

    pattern: str
    grams: str
    candidates: int
    files_read: int
    scanned: bool


class QueryHit(TypedDict):
    """A hit."""

    project: NotRequired[str]
    library: NotRequired[str]
    file_path: NotRequired[str]
    file_path_bytes: NotRequired[str]
    start_line: NotRequired[int]
    end_line: NotRequired[int]
    column: NotRequired[int]
    byte_column: NotRequired[int]
    spans: NotRequired[list["Range"]]
    spans_left_out: NotRequired[int]
    text: NotRequired[str]
    text_column: NotRequired[int]
    cut: NotRequired[bool]
    before: NotRequired[list[str]]
    after: NotRequired[list[str]]
    score: NotRequired[float]
    count: NotRequired[int]


class Range(TypedDict):
    """Lines and columns from 1."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int


class QueryResult(TypedDict):
    """Hits in order, their total if known, and what was covered."""

    results: list["QueryHit"]
    total: int | None
    next: str | None
    mode: str
    fallback: NotRequired[Literal["regex", "grep", "words"]]
    coverage: "Coverage"
    suggestions: NotRequired[list[str]]
    explained: NotRequired["Explanation"]


class ListFilesOptions(TypedDict, total=False):
    """Options of `list_files`."""

    path: StrPath | None
    """Only this file or folder; globs may start there."""
    include: str | Sequence[str]
    """Only files that match one of these globs, e.g. src/**/*.py."""
    exclude: str | Sequence[str]
    """Exclude files that match one of these globs."""
    language: str | Sequence[str]
    """Only files of these languages, e.g. py or rust."""
    owner: str | Sequence[str]
    """Only files that CODEOWNERS gives to one of these, e.g. @team or
    me@example.org."""
    sort_by: Literal["path", "name", "modified", "size"]
    """Other than by path, `query` is a glob."""
    sort_order: Literal["asc", "desc"]
    """Ascending or descending; ties by path, ascending."""
    max_depth: int | None
    """Folders to descend; 0: only the files directly in `path`."""
    include_hidden: bool
    """Hidden files, too."""
    respect_ignore: bool
    """false: ignored files, too."""
    limit: int
    """Most results in all; without it, all there are."""
    fresh: bool
    """Include everything saved before this call."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""
    projects: StrPath | Sequence[StrPath] | Literal["*"] | None
    """Several projects at once, by name or root, or `*` for all known ones; instead of
    `project`."""
    glob: str | Sequence[str]
    """Another name of `include`."""


class ListedFile(TypedDict):
    """A file."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    size: NotRequired[int]
    modified_unix: NotRequired[int]


class ListFilesResult(TypedDict):
    """Files in the order asked for (with a fuzzy filter: nearest first), and `files`, the bare paths."""

    results: list["ListedFile"]
    files: list[str]
    total: int
    next: str | None
    fuzzy: bool
    coverage: "Coverage"
    sort_by: NotRequired[str]


class GlobOptions(TypedDict, total=False):
    """Options of `glob`."""

    path: StrPath | None
    """Folder to search, within the project; default: its root."""
    include: str | Sequence[str]
    """Patterns, one of which must match."""
    exclude: str | Sequence[str]
    """Patterns, none of which may match; a matching folder is not entered."""
    extensions: str | Sequence[str]
    """Only files with this ending, e.g. rs or .rs, in either case."""
    max_depth: int | None
    """Folders to descend; 0: only the files directly in `path`."""
    recursive: bool
    """False: same as max_depth 0."""
    include_hidden: bool
    """Include hidden files, and files in hidden folders."""
    follow_symlinks: bool
    """Follow links that stay in the project."""
    case_sensitive: bool
    """False: patterns ignore the case of ASCII letters."""
    respect_ignore: bool | None
    """False: include what .gitignore excludes; the default with follow_symlinks."""
    sort_by: Literal["path", "name", "modified", "size"]
    """Sort key, then the path."""
    sort_order: Literal["asc", "desc"]
    """Ascending or descending; ties by path, ascending."""
    limit: int | None
    """Most results in all; without it, all there are."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""
    projects: StrPath | Sequence[StrPath] | Literal["*"] | None
    """Several projects at once, by name or root, or `*` for all known ones; instead of
    `project`."""
    glob: str | Sequence[str]
    """Another name of `include`."""


class GlobFile(TypedDict):
    """A file: `file_path` from the project's root, `relative_path` from the folder searched, size in bytes."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    name: str
    relative_path: str
    size: int
    modified_unix: int


class GlobResult(TypedDict):
    """A page of files."""

    results: list["GlobFile"]
    total: int
    returned: int
    next_offset: int | None
    next: str | None
    completed: bool
    options: dict[str, Any]
    coverage: "Coverage"


class GetSymbolOptions(TypedDict, total=False):
    """Options of `get_symbol`."""

    match: Literal["exact", "prefix", "fuzzy"]
    """prefix: definitions whose name starts so. fuzzy: similar names."""
    case: Literal["sensitive", "insensitive"]
    """How letter case is compared."""
    kind: (
        Literal[
            "function",
            "method",
            "constructor",
            "class",
            "struct",
            "union",
            "interface",
            "trait",
            "enum",
            "enumerator",
            "type",
            "constant",
            "variable",
            "field",
            "property",
            "event",
            "macro",
            "module",
            "namespace",
            "object",
            "extension",
            "heading",
            "package",
        ]
        | Sequence[
            Literal[
                "function",
                "method",
                "constructor",
                "class",
                "struct",
                "union",
                "interface",
                "trait",
                "enum",
                "enumerator",
                "type",
                "constant",
                "variable",
                "field",
                "property",
                "event",
                "macro",
                "module",
                "namespace",
                "object",
                "extension",
                "heading",
                "package",
            ]
        ]
    )
    """Only definitions of these kinds, as function, class."""
    role: (
        Literal[
            "definition", "declaration", "implementation", "import", "call", "reference"
        ]
        | Sequence[
            Literal[
                "definition",
                "declaration",
                "implementation",
                "import",
                "call",
                "reference",
            ]
        ]
    )
    """Only these occurrences."""
    body: bool
    """Include the code of definitions."""
    path: StrPath | None
    """Only this file or folder; globs may start there."""
    include: str | Sequence[str]
    """Only files that match one of these globs, e.g. src/**/*.py."""
    exclude: str | Sequence[str]
    """Exclude files that match one of these globs."""
    language: str | Sequence[str]
    """Only files of these languages, e.g. py or rust."""
    limit: int
    """Most results in all; without it, all there are."""
    deadline_ms: int
    """After this time, what was found so far is sent."""
    fresh: bool
    """Include everything saved before this call."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""
    projects: StrPath | Sequence[StrPath] | Literal["*"] | None
    """Several projects at once, by name or root, or `*` for all known ones; instead of
    `project`."""
    library: str | None
    """A library that the project uses, instead of the project: requests, or
    requests@2.31."""
    libraries: bool
    """All libraries that the project's environments and lock files name, instead of the
    project."""
    ignore_case: bool
    """Another name of `case`."""
    glob: str | Sequence[str]
    """Another name of `include`."""


class SymbolHit(TypedDict):
    """One occurrence: lines of the whole construct, `line_number` and `column` of the name."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    library: NotRequired[str]
    symbol_name: str
    start_line: int
    end_line: int
    line_number: int
    column: int
    end_column: NotRequired[int]
    role: str
    kind: NotRequired[str]
    symbol_type: str
    container: NotRequired[str]
    signature: NotRequired[str]
    doc: NotRequired[str]
    body: NotRequired[str]
    language: str


class GetSymbolResult(TypedDict):
    """Occurrences, definitions first and sources before tests."""

    symbol_name: str
    results: list["SymbolHit"]
    total: int | None
    next: str | None
    coverage: "Coverage"
    suggestions: NotRequired[list[str]]
    namesakes: NotRequired[int]
    unsure: NotRequired[int]
    as_text: NotRequired[int]


class SearchCodeOptions(TypedDict, total=False):
    """Options of `search_code`."""

    limit: int
    """Most chunks of code to return."""
    semantic_weight: float | None
    """Weight of meaning against words, 0 to 1; default: 0.7 for questions in words, 0.3
    for names."""
    path: StrPath | None
    """Only this file or folder; globs may start there."""
    include: str | Sequence[str]
    """Only files that match one of these globs, e.g. src/**/*.py."""
    exclude: str | Sequence[str]
    """Exclude files that match one of these globs."""
    language: str | Sequence[str]
    """Only files of these languages, e.g. py or rust."""
    owner: str | Sequence[str]
    """Only files that CODEOWNERS gives to one of these, e.g. @team or
    me@example.org."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""
    threshold: float
    """Minimum score of a result."""
    fresh: bool
    """Include everything saved before this call."""
    projects: StrPath | Sequence[StrPath] | Literal["*"] | None
    """Several projects at once, by name or root, or `*` for all known ones; instead of
    `project`."""
    library: str | None
    """A library that the project uses, instead of the project: requests, or
    requests@2.31."""
    libraries: bool
    """All libraries that the project's environments and lock files name, instead of the
    project."""
    glob: str | Sequence[str]
    """Another name of `include`."""


class CodeMatch(TypedDict):
    """A chunk of code."""

    project: NotRequired[str]
    library: NotRequired[str]
    content: str
    shown: NotRequired[list[list[Any]]]
    path: str
    startLine: int
    endLine: int
    score: float
    kind: str
    name: str
    language: str
    file_path: str
    file_path_bytes: NotRequired[str]
    start_line: int
    end_line: int


class FileMatch(TypedDict):
    """One of the best files, with its best functions, best first."""

    project: NotRequired[str]
    library: NotRequired[str]
    path: str
    file_path: str
    file_path_bytes: NotRequired[str]
    functions: list["FunctionPlace"]


class FunctionPlace(TypedDict):
    """A function of a file, by its lines from 1, both inclusive."""

    name: str
    start_line: int
    end_line: int


class SearchCodeResult(TypedDict):
    """Chunks of code, best first."""

    results: list["CodeMatch"]
    files: list["FileMatch"]
    ranked_by: str
    chunks_searched: int
    coverage: "Coverage"


class ReadCodeOptions(TypedDict, total=False):
    """Options of `read_code`."""

    include_hash: bool | None
    """Whether to hash the file for a later precondition; default: if it is at most 1
    MiB."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""
    library: str | None
    """A library that the project uses, instead of the project: requests, or
    requests@2.31."""
    libraries: bool
    """All libraries that the project's environments and lock files name, instead of the
    project."""
    symbol_name: str | None
    """Symbol whose definition to read."""
    tail: int | None
    """This many lines from the end."""
    symbol_context_lines: int
    """Lines shown on either side of the symbol; default: none if the answer is text."""


class AppliedLimits(TypedDict):
    """The budgets in force and what this answer used of them."""

    max_lines: int | None
    max_bytes: int
    max_tokens: int | None
    server_max_bytes: int
    consumed_lines: int
    consumed_bytes: int
    consumed_tokens: int


class Continuation(TypedDict):
    """Where the rest begins (no cursor: there is none), and which chunk this was."""

    cursor: "Cursor | None"
    chunk_index: int
    completed: bool


class Cursor(TypedDict):
    """What to pass back for the rest."""

    file_path: str
    file_path_bytes: NotRequired[str]
    continuation_start_line: int
    continuation_start_byte: NotRequired[int]
    end_line: NotRequired[int]


class MissingTarget(TypedDict):
    """A target that could not be read, and why."""

    target: str
    error: dict[str, Any]


class SliceResult(TypedDict):
    """Lines of a file: ``content`` keeps their line ends, and encodes back to the file's very bytes."""

    file_path: str
    file_path_bytes: NotRequired[str]
    start_line: int
    end_line: int
    content: str
    truncated: bool
    continuation_start_line: int | None
    continuation: "Continuation"
    applied_limits: "AppliedLimits"
    encoding: Literal["utf-8", "utf-16-le", "utf-16-be", "latin-1"]
    bom: bool
    line_ending: Literal["lf", "crlf", "cr", "mixed", "none"]
    file_hash: str | None
    file_size: int
    invalid_bytes: NotRequired[int]
    cut: NotRequired[bool]
    start_byte_column: NotRequired[int]
    end_byte_column: NotRequired[int]
    notes: NotRequired[list[str]]
    mode: NotRequired[str]
    total_lines_available: NotRequired[int | None]
    library: NotRequired[str]
    symbol_name: NotRequired[str]
    also_defined: NotRequired[list[str]]
    more: NotRequired[list["SliceResult"]]
    missing: NotRequired[list["MissingTarget"]]


class OutlineOptions(TypedDict, total=False):
    """Options of `outline`."""

    mentions: str | Sequence[str]
    """A map around these names or parts of paths."""
    everything: bool
    """Include fields, variables and enumerators."""
    fresh: bool
    """Include everything saved before this call."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""
    projects: StrPath | Sequence[StrPath] | Literal["*"] | None
    """Several projects at once, by name or root, or `*` for all known ones; instead of
    `project`."""


class OutlineEntry(TypedDict):
    """A symbol of a structured outline."""

    name: str
    kind: str
    depth: int
    range: "Range"
    selection_range: "Range"
    signature: str


class OutlineFile(TypedDict):
    """A file's symbols, one a line, indented by nesting, each with its lines."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    symbols: list[str]
    entries: NotRequired[list["OutlineEntry"]]


class OutlineResult(TypedDict):
    """Files with their symbols."""

    path: str
    results: list["OutlineFile"]
    files: int
    left_out: int
    files_skipped: dict[str, int]
    fresh: bool
    unmapped: NotRequired[dict[str, int]]
    coverage: "Coverage"


class ChangesOptions(TypedDict, total=False):
    """Options of `changes`."""

    lines: bool
    """Include the changed lines, as a diff without context."""
    callers: bool
    """List the callers of changed functions and types."""
    include: str | Sequence[str]
    """Only files that match one of these globs, e.g. src/**/*.py."""
    exclude: str | Sequence[str]
    """Exclude files that match one of these globs."""
    language: str | Sequence[str]
    """Only files of these languages, e.g. py or rust."""
    owner: str | Sequence[str]
    """Only files that CODEOWNERS gives to one of these, e.g. @team or
    me@example.org."""
    limit: int
    """Most results in all; without it, all there are."""
    deadline_ms: int
    """After this time, what was found so far is sent."""
    fresh: bool
    """Include everything saved before this call."""
    projects: StrPath | Sequence[StrPath] | Literal["*"] | None
    """Several projects at once, by name or root, or `*` for all known ones; instead of
    `project`."""
    glob: str | Sequence[str]
    """Another name of `include`."""


class CallerEntry(TypedDict):
    """A call: its line, and the definition it is in."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    line_number: int
    container: str


class ChangedFileEntry(TypedDict):
    """A file that differs: `status` is added, deleted, modified, renamed or untracked."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    status: str
    old_path: NotRequired[str]
    added: int
    removed: int
    hunks: list["HunkEntry"]
    symbols: list["ChangedSymbolEntry"]
    owners: NotRequired[list[str]]
    note: NotRequired[str]
    left_out: NotRequired[int]


class ChangedSymbolEntry(TypedDict):
    """A touched definition: `change` is added, modified or deleted."""

    symbol_name: str
    kind: str
    change: str
    start_line: int
    end_line: int
    callers: NotRequired[list["CallerEntry"]]
    callers_total: NotRequired[int | None]
    callers_unsure: NotRequired[int]


class CommitEntry(TypedDict):
    """A commit by its full hash."""

    commit: str
    parents: list[str]
    time: int
    author: str
    subject: str


class HunkEntry(TypedDict):
    """Lines that differ: `start_line` and `lines` now, `old_start_line` and `old_lines` before."""

    start_line: int
    lines: int
    old_start_line: int
    old_lines: int
    diff: NotRequired[str]


class ChangesResult(TypedDict):
    """Files that differ, by path, and their total."""

    rev: str
    commits: NotRequired[list["CommitEntry"]]
    results: list["ChangedFileEntry"]
    total: int
    next: str | None
    coverage: "Coverage"


class DefinitionOptions(TypedDict, total=False):
    """Options of `definition`."""

    deadline_ms: int
    """After this time, what was found so far is sent."""
    fresh: bool
    """Include everything saved before this call."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""


class NamedPlace(TypedDict):
    """A definition, or a use, of a name."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    symbol_name: str
    kind: NotRequired[str]
    role: str
    container: NotRequired[str]
    signature: NotRequired[str]
    range: "Range"
    selection_range: "Range"
    text: NotRequired[str]
    confidence: float
    resolved: str
    source: NotRequired[str]
    library: NotRequired[str]
    language: str


class PlacesResult(TypedDict):
    """What was asked about the name at a position, most certain first."""

    symbol_name: str | None
    range: "Range | None"
    results: list["NamedPlace"]
    reason: NotRequired[str]
    detail: NotRequired[str]
    unsure: NotRequired[int]
    next: NotRequired[str | None]
    coverage: "Coverage"


class ReferencesOptions(TypedDict, total=False):
    """Options of `references`."""

    deadline_ms: int
    """After this time, what was found so far is sent."""
    fresh: bool
    """Include everything saved before this call."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""
    include_declaration: bool
    """Include the definitions and declarations."""
    limit: int
    """Most results in all; without it, all there are."""
    only_here: bool
    """Only those in this file."""


class CallersOptions(TypedDict, total=False):
    """Options of `callers`."""

    deadline_ms: int
    """After this time, what was found so far is sent."""
    fresh: bool
    """Include everything saved before this call."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""


class StepPlace(TypedDict):
    """A definition one step away."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    symbol_name: str
    kind: NotRequired[str]
    role: str
    container: NotRequired[str]
    signature: NotRequired[str]
    range: "Range"
    selection_range: "Range"
    text: NotRequired[str]
    confidence: float
    resolved: str
    source: NotRequired[str]
    library: NotRequired[str]
    language: str
    uses: list["Range"]


class StepsResult(TypedDict):
    """The definitions one step away, by path and line."""

    symbol_name: str | None
    range: "Range | None"
    results: list["StepPlace"]
    reason: NotRequired[str]
    detail: NotRequired[str]
    unsure: NotRequired[int]
    coverage: "Coverage"


class CallsOptions(TypedDict, total=False):
    """Options of `calls`."""

    deadline_ms: int
    """After this time, what was found so far is sent."""
    fresh: bool
    """Include everything saved before this call."""
    rev: str | None
    """Revision, e.g. main, HEAD~3 or :index; a..b: what differs in b."""


class OperationResult(TypedDict):
    """The outcome of one operation in one file."""

    id: str
    status: Literal["applied", "failed", "conflict", "skipped"]
    reason_code: str | None
    message: str | None
    file_path: str
    start_line: int | None
    end_line: int | None
    file_hash_before: str | None
    file_hash_after: str | None
    occurrences: NotRequired[int]
    data: NotRequired[dict[str, Any]]


class UnparsedFile(TypedDict):
    """A file that no longer parses, and the line of the first error."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    line: int


class BatchResult(TypedDict):
    """The outcome of a batch, operations in the requested order."""

    unparsed: NotRequired[list["UnparsedFile"]]
    unchecked: NotRequired[int]
    ok: bool
    mode: Literal["atomic", "best_effort"]
    results: list["OperationResult"]
    applied_count: int
    failed_count: int
    conflict_count: int
    skipped_count: int
    diff: NotRequired[str]
    diff_truncated: NotRequired[bool]


class Mentions(TypedDict):
    """How often comments, strings or documents, or a file that cannot be parsed, have the name: they are not changed."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    count: int


class RenameEdit(TypedDict):
    """One place, in characters, and its file's hash."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    start_line: int
    end_line: int
    start_column: int
    end_column: int
    replacement: str
    expected_file_hash: str


class RenamedFile(TypedDict):
    """A file with renamed places, and its hash after."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    places: int
    file_hash_after: str | None


class UsePlace(TypedDict):
    """A use that is not certain: its line, and how certain (0 to 1) by which rule."""

    project: NotRequired[str]
    file_path: str
    file_path_bytes: NotRequired[str]
    line: int
    text: str
    confidence: float
    resolved: str


class RenameResult(TypedDict):
    """What was renamed, or would be (`dry_run`: with the `diff`, its `change`, and what stands against it)."""

    unparsed: NotRequired[list["UnparsedFile"]]
    unchecked: NotRequired[int]
    ok: bool
    old_name: str
    new_name: str
    places: int
    files: list["RenamedFile"]
    possible: list["UsePlace"]
    possible_count: int
    includes_possible: bool
    unlikely: list["UsePlace"]
    unlikely_count: int
    mentions: list["Mentions"]
    mention_count: int
    dry_run: NotRequired[bool]
    diff: NotRequired[str]
    diff_truncated: NotRequired[bool]
    change: NotRequired[str]
    edits: NotRequired[list["RenameEdit"]]
    obstacles: NotRequired[list[str]]


class IndexCodebaseOptions(TypedDict, total=False):
    """Options of `index_codebase`."""

    provider: (
        Literal[
            "static",
            "minilm",
            "local",
            "ollama",
            "openai",
            "voyage",
            "lmstudio",
            "vllm",
            "llamacpp",
            "mlx",
            "swift-embeddings",
        ]
        | None
    )
    """Embedding provider; default: as in the settings."""
    include_tests: bool
    """Include test files in `files`; they are indexed in any case."""
    rebuild: bool
    """Delete the index and rebuild it."""
    deadline_ms: int
    """After this time the answer reports the progress; indexing continues."""


class Incremental(TypedDict):
    """Number of files by their change since this connection last asked, or since the project was opened."""

    added: int
    changed: int
    removed: int
    unchanged: int


class IndexCodebaseResult(TypedDict):
    """What the index holds."""

    project: str
    path: str
    complete: bool
    stage: str
    files: int
    test_files: int
    files_skipped: dict[str, int]
    chunks: int
    lines: int
    index_size_bytes: int
    duration_seconds: float
    rebuilt: bool
    provider: str
    incremental: "Incremental"
    detail: NotRequired[str]


class StatsResult(TypedDict):
    """The live state of a project and its index."""

    project: str | None
    version: str
    projects: list[str]
    message: NotRequired[str]
    address: NotRequired[str]
    pid: NotRequired[int]
    root: NotRequired[str]
    total_files: NotRequired[int]
    total_chunks: NotRequired[int]
    total_lines: NotRequired[int]
    index_size_bytes: NotRequired[int]
    gram_bytes: NotRequired[int]
    vector_bytes: NotRequired[int]
    store_projects: NotRequired[int]
    shared_texts: NotRequired[int]
    shared_bytes: NotRequired[int]
    revision_texts: NotRequired[int]
    revision_bytes: NotRequired[int]
    last_update: NotRequired[float | None]
    stage: NotRequired[str]
    stage_since: NotRequired[float]
    stage_detail: NotRequired[str]
    generation: NotRequired[int]
    files_pending: NotRequired[int]
    files_skipped: NotRequired[dict[str, int]]
    indexing: NotRequired[dict[str, Any]]
    problem: NotRequired[str]
    settings_warnings: NotRequired[list[str]]
    watching: NotRequired[bool]
    watch_problem: NotRequired[str]
    failures: NotRequired[dict[str, int]]


FIELDS: dict[str, frozenset[str]] = {
    # Of the parameters that the client sets itself, those that each method has.
    "query": frozenset(["project", "rev", "cursor", "limit", "max_tokens"]),
    "get_slice": frozenset(["project", "rev"]),
    "read_code": frozenset(["project", "rev", "max_tokens"]),
    "list_files": frozenset(["project", "rev", "cursor", "limit", "max_tokens"]),
    "glob": frozenset(["project", "rev", "cursor", "limit", "max_tokens"]),
    "index_codebase": frozenset([]),
    "watch_codebase": frozenset(["limit"]),
    "stats": frozenset(["project"]),
    "bootstrap_skill": frozenset(["project"]),
    "batch": frozenset(["max_tokens"]),
    "write_code": frozenset(["project"]),
    "batch_write_code": frozenset(["project"]),
    "fs_create": frozenset(["project"]),
    "fs_read": frozenset(["project"]),
    "fs_write": frozenset(["project"]),
    "fs_list": frozenset(["project", "limit"]),
    "fs_stat": frozenset(["project"]),
    "fs_copy": frozenset(["project"]),
    "fs_move": frozenset(["project"]),
    "fs_remove": frozenset(["project"]),
    "buffers": frozenset(["project"]),
    "get_symbol": frozenset(["project", "rev", "cursor", "limit", "max_tokens"]),
    "outline": frozenset(["project", "rev", "max_tokens"]),
    "repo_map": frozenset(["project", "rev", "max_tokens"]),
    "folds": frozenset(["project", "rev"]),
    "enclosing": frozenset(["project", "rev"]),
    "definition": frozenset(["project", "rev"]),
    "declaration": frozenset(["project", "rev"]),
    "implementations": frozenset(["project", "rev"]),
    "references": frozenset(["project", "rev", "cursor", "limit"]),
    "hover": frozenset(["project", "rev"]),
    "callers": frozenset(["project", "rev"]),
    "calls": frozenset(["project", "rev"]),
    "supertypes": frozenset(["project", "rev"]),
    "code_research": frozenset(["project", "cursor", "max_tokens"]),
    "rename_symbol": frozenset(["project"]),
    "edit_symbol": frozenset(["project"]),
    "search_code": frozenset(["project", "rev", "limit", "max_tokens"]),
    "semantic_search": frozenset(["limit"]),
    "structural": frozenset(["project", "rev", "cursor", "limit", "max_tokens"]),
    "structural_rewrite": frozenset(["project"]),
    "changes": frozenset(["project", "rev", "cursor", "limit", "max_tokens"]),
    "list_revisions": frozenset(["project"]),
    "history": frozenset(["project", "rev", "cursor", "limit"]),
    "blame": frozenset(["project", "rev"]),
    "list_folder": frozenset(["project", "rev"]),
    "search_code_semantic": frozenset([]),
    "search_code_fulltext": frozenset([]),
    "search_code_by_payload": frozenset([]),
    "list_specs": frozenset(["project"]),
    "get_spec_requirements": frozenset(["project"]),
    "get_scenario": frozenset(["project"]),
    "search_specs": frozenset(["project", "limit"]),
    "validate_specs": frozenset(["project"]),
}
