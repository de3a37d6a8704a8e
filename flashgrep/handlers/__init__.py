"""Every method, in the order in which they are listed."""

from flashgrep.handlers import (
    bootstrap,
    buffers,
    changes,
    collections,
    editing,
    files,
    indexing,
    listing,
    meaning,
    navigation,
    query,
    research,
    specs,
    symbols,
)
from flashgrep.registry import Registry

MODULES = (
    query,
    symbols,
    navigation,
    editing,
    listing,
    indexing,
    bootstrap,
    meaning,
    research,
    changes,
    collections,
    specs,
    files,
    buffers,
)
REGISTRY = Registry(handler for module in MODULES for handler in module.HANDLERS)
