"""Every method, in the order in which they are listed."""

from flashgrep.handlers import (
    bootstrap,
    collections,
    files,
    glob,
    indexing,
    meaning,
    overview,
    query,
    reading,
    research,
    specs,
    symbols,
    watching,
    writing,
)
from flashgrep.registry import Registry

MODULES = (
    query,
    reading,
    symbols,
    overview,
    glob,
    writing,
    bootstrap,
    meaning,
    research,
    indexing,
    watching,
    collections,
    specs,
    files,
)
REGISTRY = Registry(handler for module in MODULES for handler in module.HANDLERS)
