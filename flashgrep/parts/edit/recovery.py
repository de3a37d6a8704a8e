"""Writes that a killed daemon left unfinished are finished or undone when their project is opened."""

from typing import Final

from flashgrep.api.service import ProjectService, ServiceKey
from flashgrep.files.root import Root
from flashgrep.parts.edit.journal import recover


class Recovery(ProjectService):
    """Recovers a project's writes."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def recover(self) -> None:
        """Finish or undo every write whose process died."""
        recover(self._root)


RECOVERY: Final = ServiceKey[Recovery]("recovery of writes")
