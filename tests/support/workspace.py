"""A project opened like in the daemon, in its own repository."""

import os
import shutil
import subprocess
import tempfile
import types
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio

from flashgrep.api.part import Part
from flashgrep.base.model import path_from_json
from flashgrep.base.own_folders import INDEX, store_folder
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.pattern import Pattern
from flashgrep.project import Workspace, WorkspaceOptions
from flashgrep.search.exact import Question
from flashgrep.search.ripgrep import ripgrep_of
from tests.support.truth import Found

BOUND = 60.0
"""Timeout in seconds; the events take milliseconds."""


def user_folder(root: Path) -> Path:
    """Return the folder, next to the root, used as the user's state and cache folders."""
    return root.parent / f"{root.name}-user"


def index_of(root: Path) -> Path:
    """Return a project's database."""
    return store_folder(user_folder(root) / "cache", os.fsencode(root)) / INDEX


def options_for(root: Path, **more: Any) -> WorkspaceOptions:
    """Return the options of a project with its state and index next to it."""
    user = user_folder(root)
    return WorkspaceOptions(
        state_dir=user / "state", cache_dir=user / "cache", workers=1, **more
    )


@contextmanager
def repository() -> Iterator[Path]:
    """Create a folder that git and ripgrep treat as a repository."""
    folder = Path(tempfile.mkdtemp(prefix="fg"))
    try:
        subprocess.run(["git", "init", "-q", folder], check=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(user_folder(folder), ignore_errors=True)


@asynccontextmanager
async def opened(
    root: Path, *, parts: Sequence[Part] = BUILT_IN, **options: Any
) -> AsyncIterator[Workspace]:
    """Open a project at a folder, like the daemon; ``options``: further fields of ``WorkspaceOptions``."""
    async with anyio.create_task_group() as tasks:
        ripgrep = ripgrep_of(os.environ)
        workspace = Workspace(
            "test",
            os.fsencode(root),
            options_for(root, **options),
            ripgrep=ripgrep,
            parts=parts,
        )
        await workspace.open(tasks)
        try:
            yield workspace
        finally:
            await workspace.close()
            tasks.cancel_scope.cancel()


def put(root: Path, files: dict[str, bytes]) -> None:
    """Write files, making folders as needed."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


async def ask(
    workspace: Workspace, mode: str, text: str, *, use_index: bool = True
) -> Found:
    """Return (path, line number) of every hit, from a fresh and complete answer."""
    pattern = Pattern(
        texts=(text,),
        mode="literal" if mode == "literal" else "regex",
        case="sensitive",
    )
    assert await workspace.refresh()
    found: Found = set()
    answer = await workspace.search(
        Question(pattern=pattern, limit=10_000, max_chars=10**9, use_index=use_index)
    )
    assert answer.complete
    for hit in answer.results:
        path = path_from_json(hit["file_path"], hit.get("file_path_bytes"))
        found.add((path, hit["start_line"]))
    assert answer.total == len(answer.results) == len(found)
    return found


async def files_with(workspace: Workspace, text: str) -> set[bytes]:
    """Return the files that have a literal text."""
    return {path for path, _ in await ask(workspace, "literal", text)}


async def cancelled_at(number: int, body: Coroutine[Any, Any, object]) -> bool:
    """Run a coroutine and cancel it at its ``number``-th wait; return whether it got that far."""
    reached = False
    with anyio.CancelScope() as scope:

        @types.coroutine
        def counted() -> Generator[Any, Any, None]:
            nonlocal reached
            waits = 0
            step, told = body.send, None
            while True:
                try:
                    waited = step(told)
                except StopIteration:
                    return
                waits += 1
                if waits == number:
                    reached = True
                    scope.cancel()
                try:
                    step, told = body.send, (yield waited)
                except BaseException as thrown:  # noqa: BLE001 - handed on to the coroutine
                    step, told = body.throw, thrown

        await counted()
    return reached
