"""Edits that are applied together: all of them, or none."""

import os
from collections.abc import Mapping
from typing import Any

from flashgrep.base.errors import Conflict
from flashgrep.client.questions import Request, Steps
from flashgrep.client.values import Text, name_path
from flashgrep.client.wire_types import BatchResult, RenameResult, StrPath


class Edits:
    """Edits of a project's files; line numbers refer to the files as they are before any of them."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.operations: list[dict[str, Any]] = []

    def replace(
        self, file: StrPath | Text, old: str, new: str, *, everywhere: bool = False
    ) -> None:
        """Replace a text that occurs once, or ``everywhere`` it occurs.

        A ``Text`` that was read stands for its file, which must not have changed since.
        """
        self._add(
            file,
            old_text=old,
            new_text=new,
            replace_all=everywhere,
        )

    def replace_lines(
        self, file: StrPath | Text, start_line: int, end_line: int, new: str
    ) -> None:
        """Replace lines, both inclusive; ``end_line = start_line - 1`` inserts before the first."""
        self._add(
            file,
            start_line=start_line,
            end_line=end_line,
            replacement=new,
        )

    def create(self, path: StrPath, text: str) -> None:
        """Make a new file, in a folder that exists."""
        self._add(path, replacement=text)

    def rename(
        self, symbol: str, new_name: str, *, include_possible: bool | None = None
    ) -> None:
        """Rename a symbol wherever it is used: a name, ``path:NAME``, or a place, ``FILE:LINE:COLUMN``.

        ``include_possible``: whether uses that only may be meant are renamed too; None: then the edits are refused.
        """
        self.operations.append(
            {
                "symbol_name": symbol,
                "new_name": new_name,
                "include_possible": include_possible,
            }
        )

    def apply(self, *, dry_run: bool = False) -> Steps[BatchResult]:
        """Apply them all; ``dry_run``: check them and return the diff.

        Raises:
            Conflict: one of them does not fit the files, so nothing was written; `data` has the outcome of each.

        """
        operations: list[dict[str, Any]] = []
        for operation in self.operations:
            if "new_name" not in operation:
                operations.append(operation)
                continue
            asked = {**operation, "dry_run": True, "edits": True, "project": self._root}
            renamed: RenameResult = yield Request("rename_symbol", asked, repeats=True)
            operations += ({**edit} for edit in renamed["edits"])
        params: Mapping[str, Any] = {
            "operations": operations,
            "mode": "atomic",
            "dry_run": dry_run,
            "project": self._root,
        }
        request = Request("batch_write_code", params, repeats=dry_run)
        result: BatchResult = yield request
        if not result["ok"]:
            for outcome in result["results"]:
                if outcome["status"] in {"failed", "conflict"}:
                    message = f"{outcome['file_path']}: {outcome['message']}"
                    raise Conflict(
                        message,
                        reason=outcome["reason_code"],
                        results=result["results"],
                    )
        return result

    def _add(self, file: StrPath | Text, **change: Any) -> None:
        if isinstance(file, Text):
            if file.hash is not None:
                change["precondition"] = {"expected_file_hash": file.hash}
            file = file.path
        self.operations.append({**name_path(os.fspath(file)), **change})
