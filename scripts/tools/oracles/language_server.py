"""What names in a folder refer to, as its language's own server says: rows like those of typescript/uses.cjs.

For a sample of the definitions that the server lists, by kind. A use is a call where a parenthesis follows.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from scripts.tools.eval_uses import draw
from scripts.tools.language_servers import LanguageServer


class Server(NamedTuple):
    """How a language server is started, the files it reads, and their language as it names it."""

    command: list[str]
    endings: dict[str, str]
    opens_all: bool = False
    """Whether it knows the uses only in open files, or in those of a project's own build."""
    has_status: bool = False
    """Whether it answers before it has read the project, and says when it has."""


SERVERS: Final = {
    "pyright": Server(["pyright-langserver", "--stdio"], {".py": "python"}),
    "tsserver": Server(
        ["typescript-language-server", "--stdio"],
        {".ts": "typescript", ".tsx": "typescriptreact"},
        opens_all=True,
    ),
    "gopls": Server(["gopls"], {".go": "go"}),
    "rust-analyzer": Server(["rust-analyzer"], {".rs": "rust"}, has_status=True),
    "clangd": Server(["clangd", "--log=error"], {".c": "c", ".h": "c"}, opens_all=True),
    "intelephense": Server(
        ["intelephense", "--stdio"], {".php": "php"}, opens_all=True
    ),
}
KINDS: Final = {
    5: "class", 6: "method", 9: "method", 10: "type", 11: "type", 12: "function", 14: "constant", 22: "constant",
    23: "type",
}  # fmt: skip
"""Kinds of definitions, by their numbers in the protocol."""
HOLDING: Final = {2, 3, 4, 5, 10, 11, 19, 23}
"""Kinds whose members are definitions of a project; what is in functions is local."""
CONSTRUCTORS: Final = frozenset({"__init__", "__new__"})
"""Pyright counts the calls of their types as uses of the types alone."""
BODIED: Final = frozenset({5, 10, 12, 23})
"""Kinds of C's definitions that have a body."""
PROTOTYPED: Final = frozenset({".c", ".h"})
ECMA: Final = frozenset({".ts", ".tsx"})
UNWRITTEN: Final = PROTOTYPED | {".rs"}
"""Files in which a use need not have the name that it means."""
NOT_OVERLOADED: Final = frozenset({".go", ".rs"})
"""Languages without overloads: a line with the name, beside a definition, is another one's."""
RECEIVER: Final = re.compile(r"\(\*?(\w+)(?:\[.*\])?\)\.(\w+)")
"""How Go's server names a method."""
UNNAMED: Final = re.compile(r"(?:super|this)\b")
"""Uses of TypeScript's classes and constructors that name neither."""
TYPEDEF: Final = re.compile(r"\s*typedef\b")
HEADS: Final = re.compile(r"\s*(?:unsafe\s+)?impl\b")
BUILT: Final = frozenset({"node_modules", "target"})
"""Folders of what is downloaded or built."""
TARGETS: Final = 40
"""Definitions per kind whose uses are asked for."""
MOST_WORDS: Final = 200
"""Occurrences of a name, outside its uses, at which the server is asked whether it knows what is meant."""
CALLED: Final = re.compile(r"\s*(?:<[^<>()]*>|\?\.)?\s*\(")
DECORATES: Final = re.compile(r"\s*@[\w.]*\Z")
IMPORTS: Final = re.compile(
    r"\s*(?:import|from|export\s*(?:type\s*)?[{*]|(?:pub(?:\([^)]*\))?\s+)?use\s)"
)
COMMENTS: Final = re.compile(r"\s*(?:\*[\s/]|/\*|//|#(?!\[))")
LISTS: Final = re.compile(r"[\s\w,.:*{}()$]*(?:from\s*[\"'][^\"']*[\"'];?)?(?:[#/].*)?")
"""A line of an import over several lines."""
MOST_LINES: Final = 100
IMPLEMENTS: Final = re.compile(r"impl\b(?:.*\bfor\s+|.*?\s)(?:\w+::)*(\w+)(?:<.*>)?\Z")
"""How Rust's server names what holds the methods of a type."""


class Named(NamedTuple):
    """A definition: its kind, its file and position as the protocol counts, its name and its container's."""

    kind: str
    file: str
    line: int
    column: int
    name: str
    container: str


def read_texts(server: Server, root: Path) -> dict[Path, str]:
    """Return the texts in a folder that a server reads, without what is downloaded or built."""
    return {
        path: path.read_text("utf-8", "replace")
        for path in sorted(root.rglob("*"))
        if path.suffix in server.endings
        and path.is_file()
        and BUILT.isdisjoint(path.relative_to(root).parts)
    }


def make_options(texts: Collection[Path]) -> dict[str, Any]:
    """Return a server's options: every folder with headers is an include path, as there may be no record of a build."""
    headers = {path.parent for path in texts if path.suffix == ".h"}
    return {"fallbackFlags": [f"-I{folder}" for folder in sorted(headers)]}


def find_uses(oracle: str, root: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each use of a sample of the definitions in a folder."""
    server = SERVERS[oracle]
    texts = read_texts(server, root)
    lines = {path: text.split("\n") for path, text in texts.items()}
    options = make_options(texts)
    environ = dict(os.environ)
    with closing(LanguageServer(server.command, root, environ, options)) as connection:
        opened = set[Path]()

        def open_file(path: Path) -> None:
            if path not in opened:
                opened.add(path)
                connection.open(path, texts[path], server.endings[path.suffix])

        for path in texts if server.opens_all else ():
            open_file(path)
        if server.has_status:
            connection.wait_until_loaded()
        by_kind = defaultdict[str, list[Named]](list)
        defined = dict[tuple[Path, int, int], str]()
        for path in texts:
            open_file(path)
            asked = {"textDocument": {"uri": path.as_uri()}}
            symbols = connection.ask("textDocument/documentSymbol", asked)
            for named in _list_definitions(symbols or [], root, path, lines[path]):
                by_kind[named.kind].append(named)
                defined[path, named.line, named.column] = named.container
        words = Counter(re.findall(r"\w+", "\n".join(texts.values())))
        for each in by_kind.values():
            # Of overloads the last, which is the one with a body.
            last = {(one.file, one.name, one.container): one for one in each}
            each[:] = [
                named
                for named in last.values()
                if words[named.name] > 1 and named.name not in CONSTRUCTORS
            ]
        for named in (one for each in by_kind.values() for one in draw(each)[:TARGETS]):
            whole = _find_body(connection, named, root, lines)
            yield from _ask_uses(connection, whole, root, lines, defined)


def _list_definitions(
    symbols: list[dict[str, Any]],
    root: Path,
    path: Path,
    lines: list[str],
    around: str = "",
) -> Iterator[Named]:
    for symbol in symbols:
        start = symbol["selectionRange"]["start"]
        received = RECEIVER.fullmatch(symbol["name"])
        name = received[2] if received else symbol["name"].partition("(")[0]
        at = start["character"]
        is_defined = path.suffix not in PROTOTYPED or _is_defined(symbol, lines)
        is_named = lines[start["line"]].startswith(name, at)
        if symbol["kind"] in KINDS and is_named and is_defined:
            file = path.relative_to(root).as_posix()
            kind = KINDS[symbol["kind"]]
            container = received[1] if received else around
            yield Named(kind, file, start["line"], at, name, container)
        if symbol["kind"] not in HOLDING:
            continue
        inside = symbol.get("children") or []
        implemented = IMPLEMENTS.match(name)
        container = implemented[1] if implemented else name
        yield from _list_definitions(inside, root, path, lines, container)


def _is_defined(symbol: dict[str, Any], lines: list[str]) -> bool:
    """Whether a symbol of C has a body: prototypes, and the first mentions of a structure, are listed, too."""
    start, end = symbol["range"]["start"], symbol["range"]["end"]
    is_typedef = TYPEDEF.match(lines[start["line"]], start["character"])
    if symbol["kind"] not in BODIED or is_typedef:
        return True
    last_line: str = lines[end["line"]]
    return last_line.endswith("}", 0, end["character"])


def _find_body(
    connection: LanguageServer, named: Named, root: Path, lines: dict[Path, list[str]]
) -> Named:
    """Return the last of TypeScript's overloads, which has the body: its server lists the first."""
    path = root / named.file
    if path.suffix not in ECMA or named.kind not in {"function", "method"}:
        return named
    meant = ask_definitions(connection, path, named.line, named.column)
    behind = [line for file, line in meant if file == path and line > named.line]
    if len(behind) != 1 or named.name not in lines[path][behind[0]]:
        return named
    column = lines[path][behind[0]].index(named.name)
    return named._replace(line=behind[0], column=column)


def _ask_uses(
    connection: LanguageServer,
    named: Named,
    root: Path,
    lines: dict[Path, list[str]],
    defined: Mapping[tuple[Path, int, int], str],
) -> Iterator[dict[str, Any]]:
    where = {
        **_position(root / named.file, named.line, named.column),
        "context": {"includeDeclaration": False},
    }
    used = set[tuple[Path, int, int]]()
    for place in connection.ask("textDocument/references", where) or ():
        path = _read_path(place["uri"])
        start, end = place["range"]["start"], place["range"]["end"]
        at = (path, start["line"], start["character"])
        used.add(at)
        # An implementation's own name is no use of what it implements.
        is_named = (path, start["line"]) == (root / named.file, named.line)
        if path not in lines or is_named or at in defined:
            continue
        text = lines[path][start["line"]]
        # What a macro is expanded to is no text, and Rust's Self is no name.
        is_written = text.startswith(named.name, start["character"])
        if path.suffix in UNWRITTEN and not is_written:
            continue
        if path.suffix in ECMA and UNNAMED.match(text, start["character"]):
            continue
        # The head of its own implementation belongs to a type.
        if path.suffix == ".rs" and HEADS.match(text) and named.kind != "method":
            yield _hide(path, root, start["line"])
            continue
        is_quoted = text[: start["character"]].endswith(('"', "'"))
        is_prose = is_quoted or COMMENTS.match(text) is not None
        if is_prose:
            # In a string it may be a type, which others count and some do not.
            yield _hide(path, root, start["line"])
        if is_prose or _is_import(lines[path], start["line"]):
            continue
        # References of a method are those of all that it overrides or implements; of
        # Rust's also where it is called without a value.
        if named.kind == "method" or (path.suffix == ".rs" and named.container):
            meant = ask_definitions(connection, *at)
            if meant and not _is_among(named, root, lines, meant, defined):
                continue
        is_type = path.suffix in PROTOTYPED and named.kind != "function"
        is_called = not is_type and CALLED.match(text, end["character"]) is not None
        yield {
            "kind": named.kind,
            "target": [named.file, named.line + 1],
            "name": named.name,
            "container": named.container,
            "use": [path.relative_to(root).as_posix(), start["line"] + 1],
            "call": is_called
            or DECORATES.match(text[: start["character"]]) is not None,
        }
    name = re.escape(named.name)
    places = (
        (path, number, match.start())
        for path, texts in lines.items()
        for word in (re.compile(rf"(?<!\w)(?:{_list_names(name, texts)})(?!\w)"),)
        for number, text in enumerate(texts)
        for match in word.finditer(text)
    )
    others = (place for place in places if place not in used)
    for path, number, column in islice(others, MOST_WORDS):
        meant = ask_definitions(connection, path, number, column)
        # In macros a server may go to what it does not list the use of.
        if not meant or _is_among(named, root, lines, meant, defined):
            yield _hide(path, root, number)


def _list_names(name: str, lines: list[str]) -> str:
    """Return a pattern of a name and of what a file imports it as: a server may not list the uses of an alias."""
    alias = re.compile(rf"(?<!\w){name}\s+as\s+(\w+)")
    return "|".join([name, *alias.findall("\n".join(lines))])


def _hide(path: Path, root: Path, number: int) -> dict[str, Any]:
    """Return a row that says that a line is not judged."""
    return {"unseen": [path.relative_to(root).as_posix(), number + 1, number + 1]}


def _read_path(uri: str) -> Path:
    """Return the path of a file's address, in which a server writes ``+`` and the like by their numbers."""
    return Path(unquote(uri.removeprefix("file://")))


def _position(path: Path, line: int, column: int) -> dict[str, Any]:
    return {
        "textDocument": {"uri": path.as_uri()},
        "position": {"line": line, "character": column},
    }


def ask_definitions(
    connection: LanguageServer, path: Path, line: int, column: int
) -> list[tuple[Path, int]]:
    """Return the files and lines of what a name means; none: the server does not know."""
    answer = connection.ask("textDocument/definition", _position(path, line, column))
    if isinstance(answer, dict):
        answer = [answer]
    return [
        (
            _read_path(place.get("uri") or place["targetUri"]),
            (place.get("range") or place["targetSelectionRange"])["start"]["line"],
        )
        for place in answer or ()
    ]


def _is_among(
    named: Named,
    root: Path,
    lines: dict[Path, list[str]],
    meant: list[tuple[Path, int]],
    defined: Mapping[tuple[Path, int, int], str],
) -> bool:
    """Whether a definition is among those that a server goes to, or an overload of it beside it."""
    own = root / named.file
    places = [line for path, line in meant if path == own]
    if named.line in places or own.suffix in NOT_OVERLOADED:
        return named.line in places
    for line in places:
        column = lines[own][line].find(named.name)
        # Another type's method of the name is none.
        if column >= 0 and defined.get((own, line, column)) in {None, named.container}:
            return True
    return False


def _is_import(lines: list[str], number: int) -> bool:
    """Whether a line belongs to an import or a re-export."""
    for line in reversed(lines[max(0, number - MOST_LINES) : number + 1]):
        if IMPORTS.match(line):
            return True
        # The head of a class may follow an import, after a blank line.
        if LISTS.fullmatch(line) is None or not line.strip():
            return False
    return False
