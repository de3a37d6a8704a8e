"""Grammars and our tags queries, one ``.scm`` file a language; loaded once, when first needed."""

import ctypes
import hashlib
import json
import os
import re
import tarfile
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import tree_sitter_ocaml
from semble_grammars import GrammarLoadError, UnsupportedPlatformError, get_language
from semble_grammars.cache import cache_dir
from tree_sitter import Language, Parser, Query, Range, Tree

from flashgrep.checkpoint import Abandoned, Expired, checkpoint

_QUERIES: Final = resources.files(__package__) / "queries"
_REFERENCES: Final = "; references\n"
_BINDINGS: Final = resources.files(__package__) / "bindings"
_MEMBERS: Final = ("(pair ", "(object ", "(public_field_definition", "(property_signature", "(field_de")
"""Patterns of names that are members of what they are in, and are never looked up by themselves."""
_BROKEN: Final = "\n(ERROR) @error\n"
INHERITS: Final = re.compile(r"^; inherits: (\w+)$", re.MULTILINE)
_PATTERN: Final = re.compile(r"^[(\[].*(?:\n[ \t].*)*", re.MULTILINE)
_OPTIONAL: Final = re.compile(r" *\w+: \(_\)\? *")
_CAPTURE: Final = re.compile(r"@(\w+)")
MATCH_LIMIT: Final = 1 << 16
"""Matches in progress; a pathological file loses tags instead of taking all memory."""
DEPTH: Final = 1_000
"""Deeper nodes have no tags: a cursor's cost is quadratic in depth, whatever its callback says."""
LENT_BYTES: Final = 1 << 16
"""Text that the parser is given at a time: where it goes back, no more is copied again."""
_lent: Final[list[bytearray]] = []


class NoGrammar(Exception):
    """A grammar's library cannot be had now: no room to unpack it, no descriptor to read it."""


class ParseTimeout(Exception):
    """A grammar took longer over one file than it may."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language and its tags query; none of it changes, so threads share it."""

    language: Language
    query: Query
    definitions: int
    """How many of the query's patterns, its first ones, are of definitions; the others are of references."""
    reads_text: bool
    """Whether a query compares the text of nodes."""
    tells_bound: bool
    """Whether the query captures what scopes bind."""


@cache
def grammar_of(name: str) -> Grammar:
    """Return a grammar with its query, as ``Language.symbols`` names it.

    Raises:
        NoGrammar: its library cannot be had; it is tried again at the next call.

    """
    try:
        loaded = load_language(name)
    except (GrammarLoadError, UnsupportedPlatformError, OSError) as error:
        raise NoGrammar(name) from error
    definitions, references = _read_query(name)
    # One query, since going through a tree costs as much as matching its nodes does.
    # Of what binds names all captures become one, and what nobody asks for here goes.
    bindings = ""
    for pattern in _PATTERN.findall(read_bindings(name)):
        marked = _CAPTURE.sub(lambda one: "@bound" if one[1] in {"name", "parameter"} else "", pattern)
        bindings += _OPTIONAL.sub("", marked) + "\n" if "@bound" in marked and not pattern.startswith(_MEMBERS) else ""
    query = Query(loaded, definitions + references + _BROKEN + bindings)
    last = len(definitions.encode())
    first_reference = sum(query.start_byte_for_pattern(pattern) < last for pattern in range(query.pattern_count))
    return Grammar(loaded, query, first_reference, "(#" in definitions + references, bool(bindings))


def _read_query(name: str) -> tuple[str, str]:
    """Return a query's definitions and references, each followed by those of the query it inherits from, if any."""
    text = (_QUERIES / f"{name}.scm").read_text("utf-8")
    definitions, _, references = text.partition(_REFERENCES)
    if (base := INHERITS.search(text)) is None:
        return definitions, references
    more_definitions, more_references = _read_query(base[1])
    return definitions + more_definitions, references + more_references


def read_bindings(name: str) -> str:
    """Return the query of scopes and of what binds a name; empty for a grammar whose names nobody resolves."""
    file = _BINDINGS / f"{name}.scm"
    text = file.read_text("utf-8") if file.is_file() else ""
    while base := INHERITS.search(text):
        text = text.replace(base[0], "") + (_BINDINGS / f"{base[1]}.scm").read_text("utf-8")
    return text


def unpack_grammars(names: Collection[str]) -> None:
    """Unpack the libraries of several grammars in one pass over their archive; what fails is left to ``load_language``.

    The bundle unpacks them one by one, and reads the archive, 77 MB when unpacked, from its beginning for each: 0.15 s.
    """
    for file in _manifests():
        manifest = json.loads(file.read_bytes())
        entries = [entry for name in names if (entry := manifest["languages"].get(name)) is not None]
        folder = cache_dir() / manifest["platform"]
        wanted = {entry["file"]: entry["sha256"] for entry in entries if not (folder / entry["file"]).exists()}
        if not wanted:
            continue
        with suppress(OSError, tarfile.TarError), tarfile.open(file.with_name(manifest["archive"]), "r:gz") as archive:
            folder.mkdir(parents=True, exist_ok=True)
            for member in archive:
                packed = archive.extractfile(member) if member.name in wanted else None
                library = packed.read() if packed is not None else b""
                if not library or hashlib.sha256(library).hexdigest() != wanted.pop(member.name):
                    continue
                # Under its own name it is whole at once: other processes look for it, and unpack it, at the same time.
                with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{member.name}.", delete=False) as new:
                    try:
                        new.write(library)
                        new.close()
                        os.replace(new.name, folder / member.name)
                    except OSError:
                        os.unlink(new.name)
                        raise
                if not wanted:
                    break


def _manifests() -> Iterator[Path]:
    return Path(str(resources.files("semble_grammars"))).glob("grammars/*/manifest.json")


def load_language(name: str) -> Language:
    """Return a grammar from the package that has it.

    The bundle unpacks a library into ``cache_dir()`` when it is first needed; one that is not as it was packed, cut
    short by a full disk or a crash, is unpacked again.

    Raises:
        GrammarLoadError: a library cannot be unpacked or loaded.
        UnsupportedPlatformError: there are no libraries for this system.

    """
    if name == "ocaml_interface":
        return Language(tree_sitter_ocaml.language_ocaml_interface())
    if name == "kotlin":  # the bundle's grammar loses what follows a ``}`` that does not stand on a line of its own
        if find_spec("tree_sitter_kotlin") is None:  # no wheel for this system
            packed: Language = import_module("tree_sitter_language_pack").get_language("kotlin")
            return packed
        capsule = ctypes.pythonapi.PyCapsule_New  # the package gives the number that Language no longer takes
        capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return Language(capsule(import_module("tree_sitter_kotlin").language(), b"tree_sitter.Language", None))
    for file in _manifests():
        manifest = json.loads(file.read_bytes())
        entry = manifest["languages"][name]
        library = cache_dir() / manifest["platform"] / entry["file"]
        with suppress(FileNotFoundError):
            if hashlib.sha256(library.read_bytes()).hexdigest() != entry["sha256"]:
                library.unlink()
    found: Language = get_language(name)
    return found


def parse_tree(grammar: Grammar, data: bytes, seconds: float, spans: Sequence[tuple[int, int]] = ()) -> Tree:
    """Parse within a bound on time. The nodes of a tree have ``text`` only where the grammar's queries read it.

    ``spans``: the bytes that are parsed, as if there were no others; places stay what they are.

    Raises:
        ParseTimeout: the bound was reached.

    """
    # A parser is a state machine without a lock: two threads in one end the process. Making one costs 0.3 µs.
    ranges = [Range((0, start), (0, end), start, end) for start, end in spans]  # nobody asks for lines here
    parser = Parser(grammar.language, included_ranges=ranges) if ranges else Parser(grammar.language)
    tree = _parse_in_time(parser, data, seconds)
    if tree is None:
        checkpoint()  # where it was not the parser's own bound that came
        raise ParseTimeout
    if not grammar.reads_text:
        return tree
    # With a callable for its source, a tree asks that for each text that a query compares: once more, from bytes, which
    # takes over all that was parsed without an error. A query raises where it compares what is not UTF-8.
    return parser.parse(data.decode("utf-8", "surrogateescape").encode("utf-8", "replace"), old_tree=tree)


def _parse_in_time(parser: Parser, data: bytes, seconds: float) -> Tree | None:
    deadline, processor_deadline = time.monotonic() + seconds, time.thread_time() + seconds
    try:
        lent = _lent.pop()
    except IndexError:  # as many are there as threads have parsed at once
        lent = bytearray()

    def is_over(_offset: int, _has_error: bool) -> bool:  # noqa: FBT001 - the parser calls it so
        try:
            checkpoint()
        except (Abandoned, Expired):  # nothing may be raised through the parser
            return True
        # The bound is for what the file costs: neither its waits at checkpoints nor the load of the machine is its own.
        # The processor's time is asked last, since only that is a system call.
        return time.monotonic() > deadline and time.thread_time() > processor_deadline

    def read(offset: int, _point: object) -> bytearray:
        lent[:] = whole[offset : offset + LENT_BYTES]  # raises once the parse is over: the buffer is another's then
        return lent

    # A callable source, because the callback is only asked for one. Whatever that gives is never freed
    # (py-tree-sitter 0.26.1 keeps a reference), so each parse is given the same few buffers.
    with memoryview(data) as whole:
        try:
            return parser.parse(read, progress_callback=is_over)
        except ValueError:  # the callback stopped it
            return None
        finally:
            lent.clear()
            _lent.append(lent)
