"""The models that the user has added: folders of their own, below the state folder.

A model is copied, so that it stays as it was measured, whatever becomes of the folder it came from. Its name ends with a
hash of its files: another model never takes its place. A copy appears whole or not at all.
"""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Final

import orjson

from flashgrep.base.errors import InvalidParams
from flashgrep.base.paths import MODELS_FOLDER, make_private
from flashgrep.base.plain_files import (
    read_plain_file,
    replace_plain_file,
)
from flashgrep.parts.meaning.embed.model_folder import ModelFolder

NEW: Final = ".new"
"""Where a model is put together; what a killed command left there is removed by the next one."""
_NAME: Final = re.compile(r"[^\w.-]+")
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """A model that was added; its description is a file beside its folder."""

    name: str
    kind: str
    dims: int
    """Width of a vector; 0: it makes none."""
    milliseconds: float
    """For a chunk, on one core."""
    size: int
    licence: str
    source: str
    added: float
    """Seconds since 1970."""
    measured: str = ""
    """What was measured, in a line; empty: nothing was."""


class ModelStore:
    """The folder of the user's models."""

    def __init__(self, state: Path) -> None:
        self.folder = state / MODELS_FOLDER

    def path_of(self, name: str) -> Path:
        """Return the folder of a model."""
        return self.folder / name

    def list_models(self) -> list[StoredModel]:
        """Return the models, the newest first; a damaged description is left out."""
        # By the descriptions: a folder without one was being removed, or never finished.
        models = []
        for path in self.folder.glob("*.json"):
            with suppress(OSError, ValueError, TypeError):
                models.append(StoredModel(**orjson.loads(read_plain_file(path))))
        return sorted(models, key=lambda model: (-model.added, model.name))

    def find(self, name: str) -> StoredModel:
        """Return the model of a name, or of the only one that begins so.

        Raises:
            InvalidParams: there is none, or several begin so.

        """
        models = self.list_models()
        matching = [model for model in models if model.name == name]
        if not matching:
            matching = [model for model in models if model.name.startswith(name)]
        if len(matching) == 1:
            return matching[0]
        names = ", ".join(model.name for model in models) or "none was added"
        problem = "several models begin with" if matching else "no model of the name"
        raise InvalidParams(f"{problem} {name}: {names}", field="name")

    @contextmanager
    def making(self) -> Iterator[Path]:
        """Lend an empty folder for a model that is put together; one command at a time.

        Raises:
            InvalidParams: another command adds a model.

        """
        make_private(str(self.folder))
        lock = os.open(
            self.folder / ".lock",
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
            0o600,
        )
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidParams("another command adds a model now") from None
            fresh = self.folder / NEW
            # A command that was killed had no chance to remove its own.
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(mode=0o700)
            yield fresh
        finally:
            shutil.rmtree(self.folder / NEW, ignore_errors=True)
            os.close(lock)

    def copy(self, model: ModelFolder, fresh: Path) -> Path:
        """Copy a model's files into the folder of ``making``; return the copy."""
        copy = fresh / "copy"
        for inner in model.files():
            target = copy / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model.path / inner, target)
        return copy

    def take(self, model: ModelFolder, name: str) -> str:
        """Give a copy its place in the store; return its full name."""
        digest = sha256()
        for inner in model.files():
            with (model.path / inner).open("rb") as file:
                content = file_digest(file, "sha256").hexdigest()
                # Before the name is given: a crash may not leave half a file below it.
                os.fsync(file.fileno())
            digest.update(f"{inner}\0{content}\0".encode())
        clean = _NAME.sub("-", name).strip("-.") or "model"
        full = f"{clean[:60]}-{digest.hexdigest()[:_DIGITS]}"
        target = self.path_of(full)
        # The same files have the same name, so adding a model twice keeps the first. One
        # without a description was being removed, and may lack files.
        if not self._description(full).exists():
            shutil.rmtree(target, ignore_errors=True)
        if not target.exists():
            model.path.rename(target)
        return full

    def describe(self, model: StoredModel) -> None:
        """Write a model's description."""
        text = json.dumps(asdict(model), indent=1)
        replace_plain_file(self._description(model.name), text)

    def remove(self, model: StoredModel) -> None:
        """Remove a model."""
        # First what makes it a model of the list; the rest is only room.
        self._description(model.name).unlink(missing_ok=True)
        shutil.rmtree(self.path_of(model.name), ignore_errors=True)

    def _description(self, name: str) -> Path:
        return self.folder / f"{name}.json"
