"""The parts of this installation: those that come with flashgrep, then those of other packages.

A package offers a part by the entry-point group ``flashgrep.parts``. Only the daemon, and the help of its commands,
look for them: reading the entry points takes 30 ms.
"""

import logging
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from flashgrep.api.part import Part, make_registry
from flashgrep.api.service import check_names
from flashgrep.base.registry import Registry
from flashgrep.parts.built_in import BUILT_IN

GROUP: Final = "flashgrep.parts"

logger = logging.getLogger(__name__)


def find_parts() -> tuple[Part, ...]:
    """Return the parts; one that cannot be loaded, or that clashes with an earlier one, is left out and logged."""
    parts = BUILT_IN
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            parts = (*parts, load_part(entry, parts))
        except Exception:
            logger.exception("the part %s is left out", entry.name)
    return parts


def load_registry() -> Registry:
    """Return the methods of all parts, for the help of a command that does not come with flashgrep."""
    return make_registry(find_parts())


def load_part(entry: EntryPoint, parts: tuple[Part, ...]) -> Part:
    """Return a part of another package, which comes after ``parts``.

    Raises:
        ValueError: it is no part, its name, or that of a method or a service, is taken, or a part that it requires is missing.
        Exception: whatever importing it raises.

    """
    part: Any = entry.load()
    if not isinstance(part, Part):
        raise TypeError(f"{entry.value} is no Part, but {type(part).__name__}")
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
    return part
