"""``fgrep lsp``: starts the server. Imports here add to every start, so there are few.

lsprotocol declares 554 attrs classes; generating ``__eq__``, ``__repr__`` and slots for them takes 0.25 s of a start's
0.45 s. The server needs none of these, so the classes are declared without them; this process does nothing else.
"""

import os
from importlib import import_module
from typing import Any

from flashgrep.base.program_name import name_program, tell

USAGE = """usage: fgrep lsp

Speak the Language Server Protocol over stdin and stdout; start the daemon if it is not running. Your editor runs this
command alongside the language's own server: see docs/editors.md. The editor passes options (initializationOptions):

  {"disabled": ["rename", "hover"]}   features to leave to other servers, by their names in the protocol
"""
ERROR = 2


def main(arguments: list[str]) -> int:
    """Serve an editor until it ends; return the exit status of the protocol: 0 after ``shutdown``."""
    if "--help" in arguments or "-h" in arguments:
        os.write(1, name_program(USAGE).encode())
        return 0
    # Some editors pass --stdio to every server.
    if unknown := [argument for argument in arguments if argument != "--stdio"]:
        note = f"fgrep: lsp: no such option: {unknown[0]}; see fgrep lsp --help\n"
        tell(note)
        return ERROR
    import_plain_types()
    return int(import_module("flashgrep.parts.lsp.server").serve())


def import_plain_types() -> None:
    """Import lsprotocol with classes that lack comparison, representation and slots."""
    attrs: Any = import_module("attrs")
    define = attrs.define

    def define_plain(declared: Any = None, **options: Any) -> Any:
        return define(
            declared, **{**options, "eq": False, "repr": False, "slots": False}
        )

    attrs.define = define_plain
    try:
        import_module("lsprotocol.types")
    finally:
        attrs.define = define
