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
    reading,
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
    reading,
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
