"""Every method, in the order in which they are listed."""

from flashgrep.handlers import (
    bootstrap,
    buffers,
    changes,
    collections,
    editing,
    files,
    history,
    indexing,
    listing,
    meaning,
    navigation,
    query,
    research,
    specs,
    structural,
    symbols,
    syntax,
)
from flashgrep.registry import Registry

MODULES = (
    query,
    symbols,
    navigation,
    syntax,
    editing,
    listing,
    indexing,
    bootstrap,
    meaning,
    research,
    structural,
    changes,
    history,
    collections,
    specs,
    files,
    buffers,
)
REGISTRY = Registry(handler for module in MODULES for handler in module.HANDLERS)
