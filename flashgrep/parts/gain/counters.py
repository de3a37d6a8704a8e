"""Counters of what models were served, by day, project and method, in one small file of the state folder.

They stay on this machine. A day, a project and a method have four numbers; days beyond DAYS and projects beyond
MOST_PROJECTS a day are not kept, so the file has at most a few hundred kilobytes.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from flashgrep.api.service import HostService, ServedAnswer, ServiceKey
from flashgrep.base.plain_files import read_plain_file, replace_plain_file

FILE: Final = "gain.json"
DAYS: Final = 90
MOST_PROJECTS: Final = 100
"""Of a day; the others are counted together, without a name."""
_FIELDS: Final = 4

logger = logging.getLogger(__name__)


class Row(NamedTuple):
    """What was served on one day in one project by one method."""

    day: str
    project: str
    name: str
    calls: int
    milliseconds: int
    size: int
    unread: int


class Counters(HostService):
    """Counts in memory, and adds to the file now and then and at the end."""

    def __init__(self, file: Path, now: Callable[[], float] = time.time) -> None:
        """``file``: where they are kept; ``now``: the time in seconds."""
        self._file = file
        self._now = now
        self._days = read_days(file)
        self._is_changed = False

    def note_answer(self, answer: ServedAnswer) -> None:
        """Count one answer."""
        day = time.strftime("%Y-%m-%d", time.localtime(self._now()))
        projects = self._days.setdefault(day, {})
        project = answer.project
        if project not in projects and len(projects) >= MOST_PROJECTS:
            project = ""
        numbers = projects.setdefault(project, {}).setdefault(
            answer.name, [0] * _FIELDS
        )
        numbers[0] += 1
        numbers[1] += round(answer.seconds * 1000)
        numbers[2] += answer.size
        numbers[3] += answer.unread
        self._is_changed = True

    def rest(self) -> None:
        """Write what has been counted, every minute: a daemon that is killed loses so much."""
        self.save()

    def close(self) -> None:
        """Write what has been counted."""
        self.save()

    def save(self) -> None:
        """Write the counters, if there is anything new; a full disk loses them and nothing else."""
        if not self._is_changed:
            return
        for day in sorted(self._days)[:-DAYS]:
            del self._days[day]
        try:
            text = json.dumps(self._days, separators=(",", ":"))
            replace_plain_file(self._file, text)
        except OSError as error:
            logger.warning("the counters are not written: %s", error)
            return
        self._is_changed = False


COUNTERS: Final = ServiceKey[Counters]("gain")


def read_days(file: Path) -> dict[str, dict[str, dict[str, list[int]]]]:
    """Return the numbers of a file by day, project and method; none if it is not there or not ours."""
    try:
        days: Any = json.loads(read_plain_file(file))
        for projects in days.values():
            for methods in projects.values():
                for numbers in methods.values():
                    if [type(number) for number in numbers] != [int] * _FIELDS:
                        return {}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
    counted: dict[str, dict[str, dict[str, list[int]]]] = days
    return counted


def list_rows(file: Path) -> Iterator[Row]:
    """Yield what a file has, by day, project and method."""
    for day, projects in sorted(read_days(file).items()):
        for project, methods in sorted(projects.items()):
            for name, numbers in sorted(methods.items()):
                yield Row(day, project, name, *numbers)
