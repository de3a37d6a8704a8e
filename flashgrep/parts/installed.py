"""The parts of this installation: those that come with flashgrep, then those of other packages.

A package offers a part by the entry-point group ``flashgrep.parts``. Only the daemon, doctor, and the help of commands,
look for them: reading the entry points takes 30 ms.
"""

import logging
from collections.abc import Iterator
from importlib.metadata import EntryPoint

from flashgrep.api.part import CheckResult, Part, make_registry
from flashgrep.api.service import check_names
from flashgrep.base.registry import Registry
from flashgrep.parts.built_in import BUILT_IN
from flashgrep.parts.entries import read_entries

logger = logging.getLogger(__name__)


class PartLeftOut(Exception):
    """A part of another package cannot be used; says why."""


def find_parts() -> tuple[Part, ...]:
    """Return the parts; one that cannot be loaded, or that clashes with an earlier one, is left out and logged."""
    parts = BUILT_IN
    for entry in read_entries():
        try:
            parts = (*parts, load_part(entry, parts))
        except PartLeftOut:
            logger.exception("the part %s is left out", entry.name)
    return parts


def load_registry() -> Registry:
    """Return the methods of all parts, for the help of a command that does not come with flashgrep."""
    return make_registry(find_parts())


def load_part(entry: EntryPoint, parts: tuple[Part, ...]) -> Part:
    """Return a part of another package, which comes after ``parts``.

    Raises:
        PartLeftOut: importing it fails, it is no part, its name, or that of a method or a service, is taken, or a part
            that it requires is missing.

    """
    try:
        part: Part = entry.load()
        check_part(part, parts)
    # Its module may raise anything, and so does looking at a part made wrongly.
    except Exception as error:
        message = f"{entry.value}: {type(error).__name__}: {error}"
        raise PartLeftOut(message) from error
    return part


def check_part(part: object, parts: tuple[Part, ...]) -> None:
    """Raise TypeError if it is no part, ValueError if it cannot come after ``parts``."""
    if not isinstance(part, Part):
        raise TypeError(f"no Part, but {type(part).__name__}")
    names = {other.name for other in parts}
    if part.name in names:
        raise ValueError(f"the name {part.name} is taken")
    missing = sorted(set(part.requires) - names)
    if missing:
        raise ValueError(f"it requires {', '.join(missing)}")
    together = (*parts, part)
    make_registry(together)
    check_names(key for other in together for key in other.project_services)
    check_names(key for other in together for key in other.host_services)


def check_parts() -> Iterator[CheckResult]:
    """Check what other packages offer: each part, and what it checks itself."""
    parts = BUILT_IN
    for entry in read_entries():
        try:
            part = load_part(entry, parts)
        except PartLeftOut as error:
            yield CheckResult("bad", "part", f"{entry.name} is left out: {error}")
            continue
        parts = (*parts, part)
        yield CheckResult("ok", "part", f"{entry.name}: {part.summary}")
        for check in part.checks:
            yield from check()
