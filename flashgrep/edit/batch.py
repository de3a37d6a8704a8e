"""Several edits of several files: all checked before anything is written, then applied together or one by one."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from flashgrep.edit.change import LineEdit, Span, overlap
from flashgrep.edit.commit import Change, NotCommitted, commit_all, commit_one
from flashgrep.edit.editor import Editor, Key
from flashgrep.edit.faults import shown
from flashgrep.edit.hashing import digest
from flashgrep.edit.root import Place
from flashgrep.edit.write import Loaded, Order, changes_of, check_size, load, new_text, preview
from flashgrep.errors import Conflict, FlashgrepError, TooLarge

Mode = Literal["atomic", "best_effort"]
Status = Literal["applied", "failed", "conflict", "skipped"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One order of a batch, by the caller's name for it."""

    id: str
    order: Order


class OperationResult(TypedDict):
    """What became of one operation; the hashes are its file's, before and after all that was applied to it."""

    id: str
    status: Status
    reason_code: str | None
    message: str | None
    file_path: str
    start_line: int | None
    end_line: int | None
    file_hash_before: str | None
    file_hash_after: str | None
    data: NotRequired[dict[str, object]]


class BatchResult(TypedDict):
    """What became of a batch, operations in the order asked; ``diff``: what would change (dry_run)."""

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
class _Case:
    """An operation on its way."""

    operation: Operation
    status: Status | None = None
    reason: str | None = None
    message: str | None = None
    data: dict[str, object] = field(default_factory=dict)
    before: str | None = None
    after: str | None = None
    spans: tuple[Span, ...] = ()

    def settle(self, status: Status, reason: str | None = None, message: str | None = None) -> None:
        self.status, self.reason, self.message = status, reason, message

    def refuse(self, error: FlashgrepError) -> None:
        self.settle("conflict" if isinstance(error, Conflict) else "failed", error.reason, error.message)
        self.data = error.data


@dataclass(slots=True)
class _File:
    """A file of the batch with its operations; ``loaded`` once it could be read."""

    place: Place
    cases: list[_Case] = field(default_factory=list)
    loaded: Loaded | None = None

    def open_cases(self) -> list[_Case]:
        return [case for case in self.cases if case.status is None]

    def new_data(self) -> bytes | None:
        """Return the file's new bytes, or None when nothing is left to do to it."""
        cases = self.open_cases()
        if self.loaded is None or not cases:
            return None
        data = self.loaded.data_after([span for case in cases for span in case.spans])
        for case in cases:
            case.before, case.after = self.loaded.hash, digest(data)
        return data

    def change(self) -> Change | None:
        """Return what is left to do to the file."""
        data = self.new_data()
        return None if self.loaded is None or data is None else Change(self.place, self.loaded.original, data)


def write_batch(
    editor: Editor, operations: Sequence[Operation], mode: Mode, *, dry_run: bool = False
) -> tuple[BatchResult, list[bytes]]:
    """Carry out a batch; returns the result and the paths that changed.

    Nothing is raised for what is wrong with one operation: its result says so. ``atomic``: all or none, whatever
    happens.

    Raises:
        TooLarge: more operations than one batch takes.

    """
    _check_count(editor, operations)
    cases = [_Case(operation) for operation in operations]
    with ExitStack() as opened:
        files = _preflight(editor, cases, opened)
        result = _Outcome()
        if mode == "atomic" and any(case.status for case in cases):
            _skip(cases, "atomic_aborted_preflight")
        elif dry_run:
            result.diff = _preview(editor, files)
            _skip(cases, "dry_run")
        elif mode == "atomic":
            result.paths = _apply_together(editor, files)
        else:
            result.paths = [path for file in files for path in _apply(editor, file)]
    return _result(editor, mode, cases, result.diff), result.paths


@dataclass(slots=True)
class _Outcome:
    paths: list[bytes] = field(default_factory=list)
    diff: str | None = None


def _check_count(editor: Editor, operations: Sequence[Operation]) -> None:
    observed, most = len(operations), editor.limits.batch_operations
    if observed > most:
        guidance = "send several batches"
        message = f"batch of {observed} operations, limit {most}"
        raise TooLarge(message, operation="batch_write_code", observed=observed, limit=most, guidance=guidance)


def _preflight(editor: Editor, cases: Sequence[_Case], opened: ExitStack) -> list[_File]:
    """Check every operation against the files as they are, and hold those from now on."""
    seen: set[str] = set()
    for case in cases:
        _check_alone(editor, case, seen)
    files = _open_files(editor, cases, opened)
    opened.enter_context(editor.locks.hold([file.place for file in files]))
    for file in files:
        _load(editor, file)
        _check_overlaps(file.open_cases())
    return files


def _check_alone(editor: Editor, case: _Case, seen: set[str]) -> None:
    name, order = case.operation.id, case.operation.order
    if name in seen:
        case.settle("failed", "duplicate_operation_id", f"id taken twice: {name}")
        return
    seen.add(name)
    try:
        check_size(editor, order.path, new_text(order.edit), "batch_write_code")
    except TooLarge as error:
        case.refuse(error)


def _open_files(editor: Editor, cases: Sequence[_Case], opened: ExitStack) -> list[_File]:
    """Return the files the operations are about, each once, whatever paths lead to it."""
    files: dict[Key, _File] = {}
    for case in cases:
        if case.status is not None:
            continue
        try:
            place = editor.root.place(case.operation.order.path, write=True)
        except FlashgrepError as error:
            case.refuse(error)
            continue
        key = place.key()
        if key in files:
            place.close()
        else:
            files[key] = _File(opened.enter_context(place))
        files[key].cases.append(case)
    return list(files.values())


def _load(editor: Editor, file: _File) -> None:
    for case in file.cases:
        try:
            if file.loaded is None:
                file.loaded = load(editor, file.place)
            case.before = file.loaded.hash
            case.spans = changes_of(file.loaded, case.operation.order)
        except FlashgrepError as error:
            case.refuse(error)


def _check_overlaps(cases: Iterable[_Case]) -> None:
    """Refuse, all of them, operations that touch the same text."""
    spans = sorted(((span, case) for case in cases for span in case.spans), key=lambda pair: pair[0])
    farthest: tuple[Span, _Case] | None = None
    for at, (span, case) in enumerate(spans):
        for other in (farthest, spans[at - 1] if at else None):
            if other is not None and other[1] is not case and overlap(span, other[0]):
                _refuse_both(case, other[1])
        if farthest is None or span.end > farthest[0].end:
            farthest = (span, case)


def _refuse_both(left: _Case, right: _Case) -> None:
    edits = (left.operation.order.edit, right.operation.order.edit)
    same = all(isinstance(edit, LineEdit) for edit in edits) and left.spans[0].lines == right.spans[0].lines
    reason = "duplicate_target" if same else "overlapping_operations"
    for case, other in ((left, right), (right, left)):
        case.settle("failed", reason, f"touches the same text as {other.operation.id}")


def _skip(cases: Iterable[_Case], reason: str) -> None:
    for case in cases:
        if case.status is None:
            case.settle("skipped", reason)


def _preview(editor: Editor, files: Iterable[_File]) -> str:
    return "".join(
        preview(editor, file.loaded, data)[0]
        for file in files
        if file.loaded is not None and (data := file.new_data()) is not None
    )


def _apply_together(editor: Editor, files: Sequence[_File]) -> list[bytes]:
    pairs = [(file, change) for file in files if (change := file.change()) is not None]
    try:
        commit_all(editor, [change for _, change in pairs])
    except NotCommitted as error:
        for case in pairs[error.at][0].open_cases():
            case.refuse(error.cause)
        _give_up(files, "atomic_rolled_back" if error.begun else "atomic_aborted")
        return []
    except FlashgrepError as error:  # the journal could not be written
        for case in pairs[0][0].open_cases():
            case.refuse(error)
        _give_up(files, "atomic_aborted")
        return []
    _settle_applied(files)
    return [change.place.path for _, change in pairs]


def _apply(editor: Editor, file: _File) -> list[bytes]:
    try:
        change = file.change()
        if change is None:
            return []
        commit_one(editor, change)
    except FlashgrepError as error:
        for case in file.open_cases():
            case.refuse(error)
            case.after = None
        return []
    _settle_applied([file])
    return [file.place.path]


def _give_up(files: Iterable[_File], reason: str) -> None:
    for file in files:
        _skip(file.cases, reason)
        for case in file.cases:
            case.after = None


def _settle_applied(files: Iterable[_File]) -> None:
    for file in files:
        for case in file.open_cases():
            case.settle("applied")


def _result(editor: Editor, mode: Mode, cases: Sequence[_Case], diff: str | None) -> BatchResult:
    statuses: tuple[Status, ...] = ("applied", "failed", "conflict", "skipped")
    count = {status: sum(case.status == status for case in cases) for status in statuses}
    result = BatchResult(
        ok=count["failed"] == count["conflict"] == 0,
        mode=mode,
        results=[_operation_result(case) for case in cases],
        applied_count=count["applied"],
        failed_count=count["failed"],
        conflict_count=count["conflict"],
        skipped_count=count["skipped"],
    )
    if diff is not None:
        most = editor.limits.read_bytes
        result["diff"], result["diff_truncated"] = diff[:most], len(diff) > most
    return result


def _operation_result(case: _Case) -> OperationResult:
    edit = case.operation.order.edit
    lines = case.spans[0].lines if case.spans else (None, None)
    start, end = (edit.start, edit.end) if isinstance(edit, LineEdit) else lines
    result = OperationResult(
        id=case.operation.id,
        status=case.status or "failed",
        reason_code=case.reason,
        message=case.message,
        file_path=shown(case.operation.order.path),
        start_line=start,
        end_line=end,
        file_hash_before=case.before,
        file_hash_after=case.after if case.status == "applied" else None,
    )
    if case.data:
        result["data"] = case.data
    return result
