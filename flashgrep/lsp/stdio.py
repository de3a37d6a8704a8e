"""``fgrep lsp``: start the server with as little as it needs. What is imported here counts for each start.

lsprotocol declares 554 classes by attrs, which compiles comparison, representation and slots of each: 0.25 s of 0.45.
The server compares and prints none of them, so they are declared without; in this process alone, which does nothing
else.
"""

import os
from importlib import import_module
from typing import Any

USAGE = """usage: fgrep lsp

Speak the Language Server Protocol over stdin and stdout; starts the daemon if none runs. Your editor runs it, beside
the language's own server: see docs/editors.md. Options are given by the editor (initializationOptions):

  {"disabled": ["rename", "hover"]}   features to leave to other servers, by the protocol's names for them
"""
ERROR = 2


def main(arguments: list[str]) -> int:
    """Serve an editor until it ends; its exit status is what the protocol says, 0 after ``shutdown``."""
    if "--help" in arguments or "-h" in arguments:
        os.write(1, USAGE.encode())
        return 0
    # Editors add it to every server of theirs.
    if unknown := [argument for argument in arguments if argument != "--stdio"]:
        os.write(2, f"fgrep lsp: no such option: {unknown[0]}; see fgrep lsp --help\n".encode(errors="replace"))
        return ERROR
    import_plain_types()
    return int(import_module("flashgrep.lsp.server").serve())


def import_plain_types() -> None:
    """Import lsprotocol's classes without what nobody here uses of them."""
    attrs: Any = import_module("attrs")
    define = attrs.define

    def define_plain(declared: Any = None, **options: Any) -> Any:
        return define(declared, **{**options, "eq": False, "repr": False, "slots": False})

    attrs.define = define_plain
    try:
        import_module("lsprotocol.types")
    finally:
        attrs.define = define
