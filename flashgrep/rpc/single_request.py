"""What jsonrpcserver does for one request, imported without the rest of it.

Its package imports a validator of whole messages, unused by ``rpc/dispatch.py``, and jsonschema: a twentieth of the
daemon's start time, and 8 MB. Its modules are loaded by path, without the package.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec


@contextmanager
def _open_package(name: str) -> Iterator[None]:
    """Import modules of a package in the block without running the package's own code; others still may."""
    spec = find_spec(name)
    if spec is None or name in sys.modules:
        yield
        return
    sys.modules[name] = module_from_spec(spec)
    try:
        yield
    finally:
        del sys.modules[name]


with _open_package("jsonrpcserver"):
    from jsonrpcserver.async_dispatcher import dispatch_request
    from jsonrpcserver.codes import ERROR_METHOD_NOT_FOUND
    from jsonrpcserver.dispatcher import to_response
    from jsonrpcserver.request import Request
    from jsonrpcserver.response import to_serializable_one
    from jsonrpcserver.result import Error, Success

__all__ = [
    "ERROR_METHOD_NOT_FOUND",
    "Error",
    "Request",
    "Success",
    "dispatch_request",
    "to_response",
    "to_serializable_one",
]
