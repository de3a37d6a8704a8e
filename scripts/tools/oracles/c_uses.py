"""Prints what each name in a folder of C refers to, by Clang, as JSON lines like those of typescript/uses.cjs.

PYTHON_WITH_LIBCLANG c_uses.py ROOT [CLANG_OPTION …]

Every .c file is a translation unit, every folder with headers an include path. Code that no unit compiles (another
system's branch of an ``#if``, the body of a macro), or only with errors, is reported as {"unseen": [file, first line,
last line]}. Without the compiler's own headers (-isystem …/gcc/…/include) nothing compiles.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from ctypes import POINTER, Structure, byref, c_uint, c_void_p
from importlib import import_module
from pathlib import Path
from typing import Any

clang = import_module(
    "clang.cindex"
)  # of the interpreter that runs this, not of the project's environment
LAST_LINE = 1 << 30
RECORDED = clang.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
KINDS = {
    "FUNCTION_DECL": "function",
    "STRUCT_DECL": "type",
    "UNION_DECL": "type",
    "ENUM_DECL": "type",
    "TYPEDEF_DECL": "type",
    "ENUM_CONSTANT_DECL": "constant",
}


class RangeList(Structure):
    """Clang's CXSourceRangeList."""

    _fields_ = (("count", c_uint), ("ranges", POINTER(clang.SourceRange)))


def declare(library: Any) -> None:
    """Declare the two functions that Clang's own binding lacks."""
    pointers = [
        POINTER(clang.c_object_p),
        POINTER(c_uint),
        POINTER(c_uint),
        POINTER(c_uint),
    ]
    library.clang_getFileLocation.argtypes = [clang.SourceLocation, *pointers]
    library.clang_getAllSkippedRanges.argtypes = [c_void_p]
    library.clang_getAllSkippedRanges.restype = POINTER(RangeList)


class Uses:
    """The uses of a folder, read unit by unit."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.texts: dict[str, bytes] = {}
        self.found: list[tuple[tuple[str, int], Any, Any, bool]] = []
        """Uses: position, definition or Clang's id of it, kind and name, whether it is a call."""
        self.defined: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.left_out: dict[str, list[set[int]]] = defaultdict(list)
        """Per file, the lines that each unit left out."""

    def place(self, location: Any, name: str) -> tuple[str, int] | None:
        """Return a name's file and line; None if it is in a macro's body or in another folder."""
        file, line, _column, offset = clang.c_object_p(), c_uint(), c_uint(), c_uint()
        clang.conf.lib.clang_getFileLocation(
            location, byref(file), byref(line), byref(_column), byref(offset)
        )
        path = Path(clang.File(file).name).resolve() if file else self.root
        if self.root not in path.parents:
            return None
        shown = str(path.relative_to(self.root))
        text = self.texts.setdefault(shown, path.read_bytes())
        after = text[offset.value + len(name.encode()) :][:1]
        is_written = text.startswith(name.encode(), offset.value) and not (
            after.isalnum() or after == b"_"
        )
        return (shown, int(line.value)) if is_written else None

    def read(self, unit: Any) -> None:
        """Read the uses, definitions and skipped lines of a unit."""
        left_out: dict[str, set[int]] = {
            str(Path(unit.spelling).relative_to(self.root)): set()
        }
        for one in unit.get_includes():
            path = Path(one.include.name).resolve()
            if self.root in path.parents:
                left_out.setdefault(str(path.relative_to(self.root)), set())
        skipped = clang.conf.lib.clang_getAllSkippedRanges(unit).contents
        for one in (skipped.ranges[at] for at in range(skipped.count)):
            path = Path(one.start.file.name).resolve()
            if self.root in path.parents:
                branch = range(one.start.line, one.end.line + 1)
                left_out.setdefault(str(path.relative_to(self.root)), set()).update(
                    branch
                )
        # In a unit with errors Clang drops expressions that it cannot type, without
        # saying which.
        if all(one.severity < clang.Diagnostic.Error for one in unit.diagnostics):
            for shown, lines in left_out.items():
                self.left_out[shown].append(lines)
        for cursor, parents in walk(unit.cursor, ()):
            if (
                cursor.kind.name == "MACRO_DEFINITION"
                and cursor.extent.start.file is not None
            ):
                path = Path(cursor.extent.start.file.name).resolve()
                if self.root in path.parents:
                    body = range(cursor.extent.start.line, cursor.extent.end.line + 1)
                    left_out[str(path.relative_to(self.root))].update(body)
            self.read_cursor(cursor, parents)

    def read_cursor(self, cursor: Any, parents: tuple[Any, ...]) -> None:
        """Read one node of a unit's syntax tree; ``parents``: the nodes around it, innermost last."""
        if cursor.is_definition() and cursor.kind.name in KINDS and cursor.spelling:
            where = self.place(cursor.location, cursor.spelling)
            if where is not None:
                self.defined[cursor.get_usr()].add(where)
        if (
            cursor.kind.name not in {"DECL_REF_EXPR", "TYPE_REF"}
            or cursor.referenced is None
        ):
            return
        meant = cursor.referenced
        kind, name = KINDS.get(meant.kind.name), meant.spelling
        # ``struct a`` and its name are one node: the name is what is used.
        where = self.place(cursor.location, name) if kind and name else None
        if where is not None:
            own = (
                meant.get_definition()
            )  # of two programs' structures of a name, the unit has one
            target = self.place(own.location, name) if own is not None else None
            self.found.append(
                (
                    where,
                    target or meant.get_usr(),
                    (kind, name),
                    is_called(cursor, parents),
                )
            )

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the uses of unique definitions, and the lines that no unit compiles."""
        written = (one for one in set(self.found) if one[0][0].endswith((".c", ".h")))
        for where, meant, (kind, name), is_call in sorted(written, key=str):
            targets = (
                self.defined.get(meant, set()) if isinstance(meant, str) else {meant}
            )
            if (
                len(targets) == 1
            ):  # of two programs' functions of a name, the linker alone knows which is meant
                [target] = targets
                yield {
                    "use": where,
                    "target": target,
                    "name": name,
                    "container": "",
                    "kind": kind,
                    "call": is_call,
                }
            elif targets:
                yield {"unseen": [*where, where[1]]}
        for path in sorted([*self.root.rglob("*.c"), *self.root.rglob("*.h")]):
            shown = str(path.relative_to(self.root))
            if shown not in self.left_out:
                yield {"unseen": [shown, 1, LAST_LINE]}
            else:
                never = set.intersection(*self.left_out[shown])
                yield from ({"unseen": [shown, line, line]} for line in sorted(never))


def walk(node: Any, parents: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the descendants of a node, each with its ancestors."""
    for child in node.get_children():
        yield child, (*parents, node)
        yield from walk(child, (*parents, node))


def is_called(node: Any, parents: tuple[Any, ...]) -> bool:
    """Return whether a name is called, and not an argument; ``parents``: its ancestors."""
    for parent in reversed(parents):
        if parent.kind.name == "CALL_EXPR":
            return bool(next(parent.get_children(), None) == node)
        if parent.kind.name not in {"UNEXPOSED_EXPR", "PAREN_EXPR"}:
            return False
        node = parent
    return False


def main() -> None:
    """Print the uses of a folder."""
    root = Path(sys.argv[1]).resolve()
    declare(clang.conf.lib)
    included = sorted({path.parent for path in root.rglob("*.h")})
    options = [
        *(f"-I{folder}" for folder in included),
        "-ferror-limit=0",
        *sys.argv[2:],
    ]
    uses = Uses(root)
    for path in sorted(root.rglob("*.c")):
        uses.read(clang.Index.create().parse(str(path), args=options, options=RECORDED))
    for row in uses.rows():
        print(json.dumps(row))


if __name__ == "__main__":
    main()
