"""Grammars and our tags queries, one ``.scm`` file per language; loaded once, when first needed."""

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

from flashgrep.base.checkpoint import Abandoned, Expired, checkpoint

_QUERIES: Final = resources.files(__package__) / "queries"
_REFERENCES: Final = "; references\n"
_BINDINGS: Final = resources.files(__package__) / "bindings"
_MEMBERS: Final = (
    "(pair ",
    "(object ",
    "(public_field_definition",
    "(property_signature",
    "(field_de",
)
"""Patterns of names that are members of an object or a type, and are never looked up by themselves."""
_BROKEN: Final = "\n(ERROR) @error\n"
INHERITS: Final = re.compile(r"^; inherits: (\w+)$", re.MULTILINE)
_PATTERN: Final = re.compile(r"^[(\[].*(?:\n[ \t].*)*", re.MULTILINE)
_OPTIONAL: Final = re.compile(r" *\w+: \(_\)\? *")
_CAPTURE: Final = re.compile(r"@(\w+)")
MATCH_LIMIT: Final = 1 << 16
"""Matches in progress; a pathological file loses tags instead of exhausting the memory."""
DEPTH: Final = 1_000
"""Deeper nodes get no tags: a cursor's cost is quadratic in depth, and a callback cannot stop it."""
LENT_BYTES: Final = 1 << 16
"""Bytes that the parser reads at a time; when it goes back, it copies no more than this again."""
_lent: Final[list[bytearray]] = []


class NoGrammar(Exception):
    """A grammar's library is not available now: no space to unpack it, or no descriptor to read it."""


class ParseTimeout(Exception):
    """A grammar took too long over a file."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language and its tags query; immutable, so threads share it."""

    language: Language
    query: Query
    definitions: int
    """How many of the query's patterns are of definitions; these come first, then those of references."""
    reads_text: bool
    """Whether a query compares the text of nodes."""
    captures_bound: bool
    """Whether the query captures names that scopes bind."""


@cache
def grammar_of(name: str) -> Grammar:
    """Return a grammar with its query, as ``Language.symbols`` names it.

    Raises:
        NoGrammar: its library is not available; the next call tries again.

    """
    try:
        loaded = load_language(name)
    except (GrammarLoadError, UnsupportedPlatformError, OSError) as error:
        raise NoGrammar(name) from error
    definitions, references = _read_query(name)
    # One query, since walking a tree costs as much as matching its nodes. All captures
    # of bound names become one, and the parts of their patterns that are not needed
    # here are removed.
    bindings = ""
    for pattern in _PATTERN.findall(read_bindings(name)):
        marked = _CAPTURE.sub(
            lambda one: "@bound" if one[1] in {"name", "parameter"} else "", pattern
        )
        bindings += (
            _OPTIONAL.sub("", marked) + "\n"
            if "@bound" in marked and not pattern.startswith(_MEMBERS)
            else ""
        )
    query = Query(loaded, definitions + references + _BROKEN + bindings)
    last = len(definitions.encode())
    first_reference = sum(
        query.start_byte_for_pattern(pattern) < last
        for pattern in range(query.pattern_count)
    )
    return Grammar(
        loaded, query, first_reference, "(#" in definitions + references, bool(bindings)
    )


def _read_query(name: str) -> tuple[str, str]:
    """Return a query's definitions and references, each followed by those that it inherits, if any."""
    text = (_QUERIES / f"{name}.scm").read_text("utf-8")
    definitions, _, references = text.partition(_REFERENCES)
    if (base := INHERITS.search(text)) is None:
        return definitions, references
    more_definitions, more_references = _read_query(base[1])
    return definitions + more_definitions, references + more_references


def read_bindings(name: str) -> str:
    """Return the query for scopes and bindings; empty for a grammar whose names are not resolved."""
    file = _BINDINGS / f"{name}.scm"
    if file.is_file():
        text = file.read_text("utf-8")
    else:
        text = ""
    while base := INHERITS.search(text):
        text = text.replace(base[0], "") + (_BINDINGS / f"{base[1]}.scm").read_text(
            "utf-8"
        )
    return text


def unpack_grammars(names: Collection[str]) -> None:
    """Unpack the libraries of several grammars in one pass over their archive; failures are left to ``load_language``.

    The bundle unpacks them one by one, each time reading the archive (77 MB unpacked) from its beginning: 0.15 s.
    """
    for file in _manifests():
        manifest = json.loads(file.read_bytes())
        entries = [
            entry
            for name in names
            if (entry := manifest["languages"].get(name)) is not None
        ]
        folder = cache_dir() / manifest["platform"]
        grammars = {
            entry["file"]: entry["sha256"]
            for entry in entries
            if not (folder / entry["file"]).exists()
        }
        if not grammars:
            continue
        with (
            suppress(OSError, tarfile.TarError),
            tarfile.open(file.with_name(manifest["archive"]), "r:gz") as archive,
        ):
            # Not the state folder around it, which may just have been uninstalled.
            folder.parent.mkdir(exist_ok=True)
            folder.mkdir(exist_ok=True)
            for member in archive:
                if member.name in grammars:
                    packed = archive.extractfile(member)
                else:
                    packed = None
                if packed is not None:
                    library = packed.read()
                else:
                    library = b""
                if not library or hashlib.sha256(library).hexdigest() != grammars.pop(
                    member.name
                ):
                    continue
                # Renamed when complete, since other processes look for it, and unpack
                # it, at the same time.
                with tempfile.NamedTemporaryFile(
                    dir=folder, prefix=f".{member.name}.", delete=False
                ) as new:
                    try:
                        new.write(library)
                        new.close()
                        os.replace(new.name, folder / member.name)
                    except OSError:
                        os.unlink(new.name)
                        raise
                if not grammars:
                    break


def _manifests() -> Iterator[Path]:
    return Path(str(resources.files("semble_grammars"))).glob(
        "grammars/*/manifest.json"
    )


def load_language(name: str) -> Language:
    """Return a grammar from the package that has it.

    The bundle unpacks a library into ``cache_dir()`` when it is first needed. A damaged one, cut short by a full disk
    or a crash, is unpacked again.

    Raises:
        GrammarLoadError: a library cannot be unpacked or loaded.
        UnsupportedPlatformError: there are no libraries for this system.

    """
    if name == "ocaml_interface":
        return Language(tree_sitter_ocaml.language_ocaml_interface())
    if (
        name == "kotlin"
    ):  # the bundle's grammar loses what follows a ``}`` that is not alone on its line
        if find_spec("tree_sitter_kotlin") is None:  # no wheel for this system
            packed: Language = import_module("tree_sitter_language_pack").get_language(
                "kotlin"
            )
            return packed
        capsule = (
            ctypes.pythonapi.PyCapsule_New
        )  # the package returns an address, which Language no longer accepts
        capsule.restype = ctypes.py_object
        capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return Language(
            capsule(
                import_module("tree_sitter_kotlin").language(),
                b"tree_sitter.Language",
                None,
            )
        )
    for file in _manifests():
        manifest = json.loads(file.read_bytes())
        entry = manifest["languages"][name]
        library = cache_dir() / manifest["platform"] / entry["file"]
        with suppress(FileNotFoundError):
            if hashlib.sha256(library.read_bytes()).hexdigest() != entry["sha256"]:
                library.unlink()
    language: Language = get_language(name)
    return language


def parse_tree(
    grammar: Grammar, data: bytes, seconds: float, spans: Sequence[tuple[int, int]] = ()
) -> Tree:
    """Parse within a bound on time. The nodes of the tree have ``text`` only if the grammar's queries read it.

    ``spans``: the bytes to parse, as if there were no others; offsets stay the same.

    Raises:
        ParseTimeout: the bound was reached.

    """
    # A parser is a state machine without a lock: if two threads use one, the process
    # crashes. Making one costs 0.3 µs.
    ranges = [
        Range((0, start), (0, end), start, end) for start, end in spans
    ]  # line numbers are not used
    if ranges:
        parser = Parser(grammar.language, included_ranges=ranges)
    else:
        parser = Parser(grammar.language)
    tree = _parse_in_time(parser, data, seconds)
    if tree is None:
        checkpoint()  # raises if a checkpoint, not the bound on time, stopped the parser
        raise ParseTimeout
    if not grammar.reads_text:
        return tree
    # A tree that was parsed from a callable calls it for each text that a query
    # compares. So parse again, from bytes, which reuses everything parsed without an
    # error. A query raises if it compares text that is not UTF-8.
    return parser.parse(
        data.decode("utf-8", "surrogateescape").encode("utf-8", "replace"),
        old_tree=tree,
    )


def _parse_in_time(parser: Parser, data: bytes, seconds: float) -> Tree | None:
    deadline = time.monotonic() + seconds
    processor_deadline = time.thread_time() + seconds
    try:
        lent = _lent.pop()
    except IndexError:  # there are as many as threads have parsed at once
        lent = bytearray()

    def is_over(_offset: int, _has_error: bool) -> bool:  # noqa: FBT001 - the parser's interface
        try:
            checkpoint()
        except (Abandoned, Expired):  # no exception may pass through the parser
            return True
        # The bound is on the file's own cost, without waits at checkpoints and other
        # load on the machine. Processor time is read last, since only that is a system
        # call.
        return time.monotonic() > deadline and time.thread_time() > processor_deadline

    def read(offset: int, _point: object) -> bytearray:
        lent[:] = whole[
            offset : offset + LENT_BYTES
        ]  # raises after the parse, when the buffer may be another's
        return lent

    # A callable source, since the progress callback is only called for one. What the
    # source returns is never freed (py-tree-sitter 0.26.1 keeps a reference), so all
    # parses use the same few buffers.
    with memoryview(data) as whole:
        try:
            return parser.parse(read, progress_callback=is_over)
        except ValueError:  # the callback stopped it
            return None
        finally:
            lent.clear()
            _lent.append(lent)
