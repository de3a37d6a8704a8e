"""Compare the definition that we go to from random uses of names with that of the language's own server.

    scripts/eval_symbols positions ORACLE=FOLDER …

A use is a name in code, as Pygments reads it, that no definition has there. If the server leads out of the folder,
nothing should be told. Any of a family of overloads is right. Not judged: names of modules and packages that the server
leads to their import.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from pygments.lexers import get_lexer_for_filename
from pygments.token import Name

from flashgrep.parts.navigation.navigation import Navigator, Place
from flashgrep.parts.symbols.name_at_position import NameAtPosition, find_name_at
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS, NAME
from scripts.tools.eval_uses import Folder
from scripts.tools.language_servers import LanguageServer
from scripts.tools.oracles.language_server import (
    SERVERS,
    ask_definitions,
    make_options,
    read_texts,
)

POSITIONS: Final = 300
SHOWN: Final = 40
LEAST_RIGHT: Final = 0.93
LEAST_SILENT: Final = 0.95
Position = tuple[Path, int, int]


def compare_positions(pairs: list[tuple[str, str]]) -> int:
    """Print for each folder how often the first answer is right; return 1 if a bar is missed."""
    return max([_compare(oracle, Path(source).resolve()) for oracle, source in pairs])


def _compare(oracle: str, root: Path) -> int:
    server = SERVERS[oracle]
    texts = read_texts(server, root)
    source = Folder(root)
    counts = Counter[str]()
    shown = list[str]()
    command = LanguageServer(
        server.command, root, dict(os.environ), make_options(texts)
    )
    with closing(command) as connection:
        for path, text in texts.items():
            connection.open(path, text, server.endings[path.suffix])
        if server.has_status:
            connection.wait_until_loaded()
        for position in _draw_positions(texts):
            meant = ask_definitions(connection, *position)
            path, line, _column = position
            inside = {
                (file.relative_to(root).as_posix(), number + 1)
                for file, number in meant
                if file in texts
            }
            named = _find_name(source, root, position)
            if not meant or (path, line) in meant or _is_not_judged(named, inside):
                continue
            places = _find_places(source, named)
            told = [
                (place.path.decode(), place.symbols.lines.line(place.start))
                for place in places
            ]
            alike = {place for place in told if _is_overload(source, place, inside)}
            result = _judge(told, inside | alike)
            counts[result] += 1
            if result not in {"first", "silent"}:
                how = places[0].resolution if places else ""
                word = texts[path].split("\n")[line][position[2] :][:30]
                shown.append(
                    f"   {result} {path.relative_to(root)}:{line + 1} {word!r}: {told[:2]} {how}, not {sorted(inside)}"
                )
    right = counts["first"] / max(
        1, sum(counts[result] for result in ("first", "later", "none", "wrong"))
    )
    silent = counts["silent"] / max(1, counts["silent"] + counts["told"])
    print("\n".join(shown[:SHOWN]))
    print(
        f"{root.name}: first right {right:.3f}, silent outside {silent:.3f} {dict(counts)}"
    )
    return int(right < LEAST_RIGHT or silent < LEAST_SILENT)


def _judge(told: list[tuple[str, int]], inside: set[tuple[str, int]]) -> str:
    if not inside:
        return "told" if told else "silent"
    if not told:
        return "none"
    if told[0] in inside:
        return "first"
    return "wrong" if inside.isdisjoint(told) else "later"


def _find_name(source: Folder, root: Path, position: Position) -> NameAtPosition | None:
    path, line, column = position
    file = path.relative_to(root).as_posix().encode()
    named = find_name_at(source, file, line + 1, column + 1, "utf-16")
    return named if isinstance(named, NameAtPosition) else None


def _find_places(source: Folder, named: NameAtPosition | None) -> list[Place]:
    if named is None:
        return []
    return Navigator(source).find_definitions(named).places


def _is_not_judged(named: NameAtPosition | None, inside: set[tuple[str, int]]) -> bool:
    """Whether a name is a definition's own, or a module's that the server leads to its import."""
    if named is None:
        return False
    symbols = named.symbols
    if symbols.index_at(named.start) >= 0:
        return True
    if {file for file, _ in inside} != {named.path.decode()}:
        return False
    imports = {
        number
        for start, end in symbols.parsed.statements.tolist()
        for number in range(symbols.lines.line(start), symbols.lines.line(end) + 1)
    }
    return {line for _, line in inside} <= imports


def _is_overload(
    source: Folder, told: tuple[str, int], inside: set[tuple[str, int]]
) -> bool:
    """Whether a place is a definition of the same name, in the same type, as one that the server leads to."""
    symbols = source.open(told[0].encode())
    if not isinstance(symbols, FileSymbols):
        return False
    names = {
        (symbols.lines.line(symbols.row(index)[NAME]), symbols.qualified(index))
        for index in range(symbols.count)
        if symbols.kind(index) in CALLABLE_KINDS
    }
    own = {name for line, name in names if line == told[1]}
    return any((told[0], line) in inside and name in own for line, name in names)


def _draw_positions(texts: dict[Path, str]) -> list[Position]:
    positions = [
        (path, line, column)
        for path, text in texts.items()
        for line, column in _list_names(path, text)
    ]
    random.Random(7).shuffle(positions)  # noqa: S311 - a sample
    return positions[:POSITIONS]


def _list_names(path: Path, text: str) -> Iterator[tuple[int, int]]:
    """Yield the line and column of each name in code, in lines of ASCII, where all ways to count columns agree."""
    lines = text.split("\n")
    line = 0
    behind = 0
    for start, kind, value in get_lexer_for_filename(path.name).get_tokens_unprocessed(
        text
    ):
        if kind not in Name or not value.isidentifier():
            continue
        line += text.count("\n", behind, start)
        behind = start
        column = start - text.rfind("\n", 0, start) - 1
        if lines[line].isascii():
            yield line, column
