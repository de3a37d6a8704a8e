"""Every method, in the order in which they are listed."""

from flashgrep.handlers import bootstrap, overview, query, reading, writing
from flashgrep.registry import Registry

REGISTRY = Registry([*query.HANDLERS, *reading.HANDLERS, *overview.HANDLERS, *writing.HANDLERS, *bootstrap.HANDLERS])
