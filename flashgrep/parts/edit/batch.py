"""Several edits of several files: all checked before anything is written, then applied together or one by one."""

import codecs
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, NotRequired

import orjson
from typing_extensions import TypedDict

from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import Conflict, FlashgrepError, TooLarge
from flashgrep.base.model import Document, SkipReason
from flashgrep.files.editor import Editor
from flashgrep.files.root import Place
from flashgrep.files.system import HASH_SHOWN, digest, format_path
from flashgrep.parts.edit.edits import (
    Edit,
    LineEdit,
    Precondition,
    Span,
    TextEdit,
    overlap,
)
from flashgrep.parts.edit.replace import Change, NotCommitted, commit_all, commit_one
from flashgrep.parts.edit.syntax_check import SyntaxCheck, SyntaxReport
from flashgrep.parts.edit.write import (
    LoadedFile,
    WriteRequest,
    check_size,
    load_file,
    resolve_edit,
)

JOINED: Final = 16_384
"""Replacements this close, in characters, are merged into one operation, since a batch is limited."""
_MARKS: Final = {
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
Mode = Literal["atomic", "best_effort"]
Status = Literal["applied", "failed", "conflict", "skipped"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One request of a batch, by the caller's name for it; one edit of several files has one name for all of them."""

    id: str
    request: WriteRequest


class OperationResult(TypedDict):
    """The outcome of one operation in one file; the hashes are the file's, before and after all operations on it.

    ``occurrences``: the number of texts replaced, if there may be several.
    """

    id: str
    status: Status
    reason_code: str | None
    message: str | None
    file_path: str
    start_line: int | None
    end_line: int | None
    file_hash_before: str | None
    file_hash_after: str | None
    occurrences: NotRequired[int]
    data: NotRequired[dict[str, object]]


class BatchResult(SyntaxReport):
    """The outcome of a batch, operations in the requested order; ``diff``: what would change (dry_run)."""

    ok: bool
    mode: Mode
    results: list[OperationResult]
    applied_count: int
    failed_count: int
    conflict_count: int
    skipped_count: int
    diff: NotRequired[str]
    diff_truncated: NotRequired[bool]


@dataclass(slots=True)
class _Task:
    """An operation in progress; ``status`` None: not applied yet."""

    operation: Operation
    status: Status | None = None
    reason: str | None = None
    message: str | None = None
    data: dict[str, object] = field(default_factory=dict)
    before: str | None = None
    after: str | None = None
    spans: tuple[Span, ...] = ()

    def settle(
        self, status: Status, reason: str | None = None, message: str | None = None
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message

    def refuse(self, error: FlashgrepError) -> None:
        self.settle(
            "conflict" if isinstance(error, Conflict) else "failed",
            error.reason,
            error.message,
        )
        self.data = error.data


@dataclass(slots=True)
class _File:
    """A file of the batch with its operations; ``loaded`` once it could be read."""

    place: Place
    tasks: list[_Task] = field(default_factory=list)
    loaded: LoadedFile | None = None

    def pending(self) -> list[_Task]:
        return [task for task in self.tasks if task.status is None]

    def change(self) -> tuple[LoadedFile, bytes] | None:
        """Return the file and its new bytes, or None if nothing is left to do to it."""
        tasks = self.pending()
        if self.loaded is None or not tasks:
            return None
        data = self.loaded.encode_with([span for task in tasks for span in task.spans])
        for task in tasks:
            task.before = self.loaded.hash
            task.after = digest(data)
        return self.loaded, data


def _preview(files: Iterable[_File], most: int) -> str:
    """Return the diffs of what is going to be written; ``most``: bytes of each."""
    changes = filter(None, (file.change() for file in files))
    return "".join(loaded.preview(data, most)[0] for loaded, data in changes)


def _check_count(observed: int, most: int) -> None:
    """Refuse a batch of more operations than it may have."""
    if observed > most:
        guidance = "send several batches"
        message = f"batch of {observed} operations, limit {most}"
        raise TooLarge(
            message,
            operation="batch_write_code",
            observed=observed,
            limit=most,
            guidance=guidance,
        )


def write_batch(
    editor: Editor,
    operations: Sequence[Operation],
    mode: Mode,
    *,
    dry_run: bool = False,
    check: SyntaxCheck | None = None,
) -> tuple[BatchResult, list[bytes]]:
    """Carry out a batch; returns the result and the paths that changed.

    A failing operation does not raise: its result has the error. ``atomic``: all or none, whatever
    happens.

    Raises:
        TooLarge: more operations than a batch may have.

    """
    _check_count(len(operations), editor.limits.batch_operations)
    tasks = [_Task(operation) for operation in operations]
    diff: str | None = None
    paths: list[bytes] = []
    with ExitStack() as stack:
        files = _open_files(editor, tasks, stack)
        # Held to the end: no other call may write these files between their check and
        # their replacement.
        stack.enter_context(editor.locks.hold([file.place for file in files]))
        for file in files:
            _check_tasks(editor, file)
        # Nothing is written yet: an operation that already failed ends an atomic batch
        # without a rollback.
        if mode == "atomic" and any(task.status for task in tasks):
            _skip(tasks, "atomic_aborted_preflight")
        elif dry_run:
            diff = _preview(files, editor.limits.read_bytes)
            _skip(tasks, "dry_run")
        elif mode == "atomic":
            paths = _apply_all(editor, files)
        else:
            paths = [file.place.path for file in files if _apply(editor, file)]
        if check is not None:
            _note(files, check)
    count = Counter(task.status for task in tasks)
    result = BatchResult(
        ok=count["failed"] == count["conflict"] == 0,
        mode=mode,
        results=[_format_task(task) for task in tasks],
        applied_count=count["applied"],
        failed_count=count["failed"],
        conflict_count=count["conflict"],
        skipped_count=count["skipped"],
    )
    if diff is not None:
        most = editor.limits.read_bytes
        result["diff"] = diff[:most]
        result["diff_truncated"] = len(diff) > most
    return result, paths


def _note(files: Iterable[_File], check: SyntaxCheck) -> None:
    """Note the texts that were written."""
    for file in files:
        spans: list[Span] = []
        for task in file.tasks:
            if task.status == "applied":
                spans += task.spans
        if file.loaded is not None and spans:
            after = file.loaded.encode_with(spans)
            check.add(file.place.path, file.loaded.original.data, after)


def _open_files(
    editor: Editor, tasks: Sequence[_Task], stack: ExitStack
) -> list[_File]:
    """Return the files of the operations, each once, whatever paths lead to it."""
    seen: dict[str, Edit] = {}
    files: dict[tuple[int, int, bytes], _File] = {}
    for task in tasks:
        name = task.operation.id
        request = task.operation.request
        # By identity: an edit of several files comes as one object with one id. An
        # equal edit sent twice is a duplicate.
        if seen.setdefault(name, request.edit) is not request.edit:
            task.settle("failed", "duplicate_operation_id", f"id taken twice: {name}")
            continue
        try:
            check_size(editor, request, "batch_write_code")
            place = editor.root.place(request.path, write=True)
        except FlashgrepError as error:
            task.refuse(error)
            continue
        # By device, inode and name, so that two spellings of one path, or a link to it,
        # share a _File and its check for overlaps. One descriptor a file stays open
        # until the batch is done.
        key = place.key()
        if key in files:
            place.close()
        else:
            files[key] = _File(stack.enter_context(place))
        files[key].tasks.append(task)
    return list(files.values())


def _refuse_both(task: _Task, other: _Task) -> None:
    # Two edits of the same lines are most likely one edit sent twice: a reason of its
    # own lets a caller drop one.
    edits = (task.operation.request.edit, other.operation.request.edit)
    are_of_lines = all(isinstance(edit, LineEdit) for edit in edits)
    reason = "overlapping_operations"
    if are_of_lines and task.spans[0].lines == other.spans[0].lines:
        reason = "duplicate_target"
    for refused, cause in ((task, other), (other, task)):
        refused.settle(
            "failed", reason, f"touches the same text as {cause.operation.id}"
        )


def _check_tasks(editor: Editor, file: _File) -> None:
    """Find what each operation replaces in the file as it is; refuse all operations that touch the same text."""
    for task in file.tasks:
        try:
            if file.loaded is None:
                file.loaded = load_file(editor, file.place)
            # Before the edit is resolved, so that a conflict, too, reports the hash
            # that the caller should have expected.
            task.before = file.loaded.hash
            task.spans = resolve_edit(file.loaded, task.operation.request)
        except FlashgrepError as error:
            task.refuse(error)
    spans = sorted(
        ((span, task) for task in file.pending() for span in task.spans),
        key=lambda pair: pair[0],
    )
    # In this order a span can overlap the one that reaches farthest, or be an insertion
    # where the last one is.
    farthest: tuple[Span, _Task] | None = None
    for at, (span, task) in enumerate(spans):
        for other in (farthest, spans[at - 1] if at else None):
            if other is not None and other[1] is not task and overlap(span, other[0]):
                _refuse_both(task, other[1])
        if farthest is None or span.end > farthest[0].end:
            farthest = (span, task)


def _skip(tasks: Iterable[_Task], reason: str) -> None:
    for task in tasks:
        if task.status is None:
            task.settle("skipped", reason)


def _apply_all(editor: Editor, files: Sequence[_File]) -> list[bytes]:
    """Replace all files or none; returns the paths that changed."""
    pairs = [(file, change) for file in files if (change := file.change()) is not None]
    # ``at`` stays 0 where the journal itself could not be written: the first file
    # reports the cause then.
    at = 0
    reason = "atomic_aborted"
    try:
        commit_all(
            editor,
            [
                Change(file.place, loaded.original, data)
                for file, (loaded, data) in pairs
            ],
        )
    except NotCommitted as error:
        at = error.at
        cause = error.cause
        if error.begun:
            reason = "atomic_rolled_back"
    except FlashgrepError as error:  # the journal could not be written
        cause = error
    else:
        for file in files:
            for task in file.pending():
                task.settle("applied")
        return [file.place.path for file, _ in pairs]
    # change() set the hash after the edit in every task; none of these contents exists
    # on disk. The operations of the file that failed say why; all others, that they
    # were given up for it.
    for task in pairs[at][0].pending():
        task.refuse(cause)
    for file in files:
        _skip(file.tasks, reason)
        for task in file.tasks:
            task.after = None
    return []


def _apply(editor: Editor, file: _File) -> bool:
    """Replace one file; returns whether it changed."""
    try:
        change = file.change()
        if change is None:
            return False
        loaded, data = change
        # Each file has a journal of its own: best_effort makes a file whole or not at
        # all, never the batch.
        commit_one(editor, Change(file.place, loaded.original, data))
    except FlashgrepError as error:
        for task in file.pending():
            task.refuse(error)
            task.after = None
        return False
    for task in file.pending():
        task.settle("applied")
    return True


def _format_task(task: _Task) -> OperationResult:
    request = task.operation.request
    lines: tuple[int, int] | tuple[None, None] = (None, None)
    if task.spans:
        lines = task.spans[0].lines
    # A conflict leaves no spans, and its lines are the request's; a text that was not
    # found has none.
    start, end = lines
    if isinstance(request.edit, LineEdit):
        start = request.edit.start
        end = request.edit.end
    result = OperationResult(
        id=task.operation.id,
        status=task.status or "failed",
        reason_code=task.reason,
        message=task.message,
        file_path=format_path(request.path),
        start_line=start,
        end_line=end,
        file_hash_before=task.before,
        file_hash_after=task.after if task.status == "applied" else None,
    )
    if isinstance(request.edit, TextEdit) and request.edit.everywhere and task.spans:
        result["occurrences"] = len(task.spans)
    if task.data:
        result["data"] = task.data
    return result


class Replacement(NamedTuple):
    """Characters ``start`` to ``end`` of a text become ``new``."""

    start: int
    end: int
    new: str


@dataclass(slots=True)
class Rewriting:
    """The operations that replace all places, and what cannot be rewritten."""

    operations: list[Operation] = field(default_factory=list)
    files: int = 0
    skipped: dict[SkipReason, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Digits that tell this from every other rewriting: of other files, other texts of them, or other places."""
        requests = [operation.request for operation in self.operations]
        parts = [
            (request.path.hex(), request.expected.file_hash, repr(request.edit))
            for request in requests
        ]
        return digest(orjson.dumps(parts))[:HASH_SHOWN]


def read_text(document: Document) -> str | None:
    """Return a document's text; None: it has bytes that are not text, or of which a part was not searched."""
    try:
        # The search has decoded UTF-16 to UTF-8 already.
        text = document.data.decode(
            "latin-1" if document.encoding == "latin-1" else "utf-8"
        )
    except UnicodeDecodeError:
        return None
    is_wide = document.encoding.startswith("utf-16")
    if document.binary_at is not None or (is_wide and "\ufffd" in text):
        return None
    return text


def hash_text(document: Document, text: str) -> str:
    """Return the hash of the bytes on disk, with the mark that decoding dropped, from the text that was read."""
    raw = document.data
    if document.encoding.startswith("utf-16"):
        raw = text.encode(document.encoding)
    return digest(_MARKS.get(document.encoding, b"") + raw)


def plan_rewriting(
    files: Iterable[tuple[bytes, Document, Sequence[Replacement]]],
) -> Rewriting:
    """Return how to replace places in files; of places that overlap the first one counts, as ast-grep has it.

    Left out: files with bytes that are not text, and those with NUL bytes, of which a part was not searched.
    """
    rewriting = Rewriting()
    for path, document, replacements in files:
        checkpoint()
        text = read_text(document)
        if text is None:
            reason: SkipReason = "encoding" if document.binary_at is None else "binary"
            rewriting.skipped[reason] = rewriting.skipped.get(reason, 0) + 1
            continue
        # The edit is refused if the file has changed since, although nothing is read
        # again here.
        expected = Precondition(file_hash=hash_text(document, text))
        edits = edit_lines(text, replacements)
        rewriting.files += bool(edits)
        for edit in edits:
            name = str(len(rewriting.operations) + 1)
            rewriting.operations.append(
                Operation(name, WriteRequest(path, edit, expected))
            )
    return rewriting


def edit_lines(text: str, replacements: Sequence[Replacement]) -> list[LineEdit]:
    """Return edits of whole lines that replace places of a text, which are given by their starts."""
    reach = (
        0 if "\r" in text else JOINED
    )  # what is joined gets the line ends of its first line
    groups: list[list[Replacement]] = []
    for replacement in replacements:
        if groups:
            last = groups[-1]
        else:
            last = []
        # Overlaps the place before it.
        if last and replacement.start < last[-1].end:
            continue
        # Places on one line have to be one edit, since edits are of whole lines.
        if last and (
            replacement.end - last[0].start <= reach
            or "\n" not in text[last[-1].end : replacement.start]
        ):
            last.append(replacement)
        else:
            groups.append([replacement])
    edits: list[LineEdit] = []
    line = 1
    at = 0
    for group in groups:
        begin = text.rfind("\n", 0, group[0].start) + 1
        stop = text.find("\n", group[-1].end)
        if stop < 0:
            stop = len(text)
        # Counted from the last group's first line: the whole text is gone through once.
        line += text.count("\n", at, begin)
        parts = []
        at = begin
        for replacement in group:
            parts += [text[at : replacement.start], replacement.new]
            at = replacement.end
        new = "".join([*parts, text[at:stop]]) + "\n"
        edits.append(LineEdit(line, line + text.count("\n", begin, stop), new))
        at = begin
    return edits
