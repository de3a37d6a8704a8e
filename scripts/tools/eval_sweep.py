"""Look in the text for the calls of names that a project defines once, and count those that ``who calls`` does not tell.

    scripts/eval_symbols sweep FOLDER …

No language server is needed: ctags says what is defined once, Pygments which words are code, and a call is a word before
a parenthesis. Names that are also bound by parameters or assignments are left out, and calls on a name that the file
imports are counted apart (``imported``), since they may mean a library. What is printed as lost has to be read: it may
still be a library's, by a type.
"""

import collections
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import Name
from pygments.util import ClassNotFound

from flashgrep.base.languages import language_of
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import NAME
from scripts.tools.eval_definitions import CTAGS, JUDGED, ctags
from scripts.tools.eval_uses import Folder, Place

NAMES: Final = 40
"""Names per folder."""
LEAST_CALLS, MOST_CALLS = 2, 40
_DISTINCT: Final = re.compile(r"\w*[a-z0-9](?:[A-Z]|_[a-zA-Z])\w*")
"""Names of two words: those of one are mostly a library's, too."""
SHOWN, SHOWN_LETTERS = 40, 90
ALL_TOLD, ALL_FOUND = 1.0, 0.97
"""The least share of calls that are told or counted, and that are told."""
_CALLABLE: Final = frozenset(
    {"function", "method", "member", "func", "methodSpec", "singletonMethod"}
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*(?=\s?\()")
_IMPORT: Final = re.compile(r"\s*(?:import|from|use|using|#\s*include|require)\b")
_IMPORTS: Final = re.compile(rf"{_IMPORT.pattern}|\s*\w*\s*\"[\w./-]+\"$")
"""An import, in Go also one of a list."""
_BINDS: Final = (
    r"\b(?:def|function|fn|func|fun|sub|lambda)\b[^\n(]*\([^\n]*\b%s\b(?!\s?\()"
    r"|\([^\n()]*\b%s\b[^\n()]*\)\s*(?:=>|->|:\s*\w+\s*=>)|(?<![\w.])%s\s*(?::\s*[\w.\[\]]+\s*)?:?=(?![=>])"
)
"""A parameter or an assigned variable, by the text."""
_ON: Final = r"\b(\w+)(?:\.\w+)*(?:\.|::|->)%s\s?\("
_OPENS: Final = re.compile(r"\s?\(")


def sweep(folders: list[Path]) -> int:
    """Print for each folder the share of calls told and counted; return 1 if a bar is missed."""
    total = collections.Counter[str]()
    for folder in folders:
        counts = sweep_folder(folder)
        total.update(counts)
        print(f"{folder.name}: {_describe(counts)}", flush=True)
    print(f"all: {_describe(total)}")
    return int(
        _share(total, "told", "possible") < ALL_TOLD
        or _share(total, "told") < ALL_FOUND
    )


def sweep_folder(folder: Path) -> collections.Counter[str]:
    """Print the calls in a folder that are neither told nor counted; return the numbers of all."""
    source = Folder(folder)
    texts = {
        os.fsdecode(path): text.decode("utf-8", "replace")
        for path, text in source.texts.items()
        if language_of(path, text).nature == "code"
    }
    all_calls = _Calls(texts)
    counts, lost = collections.Counter[str](), list[str]()
    for name, defined in _choose_names(folder, texts):
        calls = set(all_calls.find(name)) - {defined} - _find_declared(source, name)
        if not LEAST_CALLS <= len(calls) <= MOST_CALLS:
            continue
        counts["names"] += 1
        research = Research(f"callers of {name}", 1)
        while research.advance(source):
            pass
        told = {(os.fsdecode(edge.path), edge.line) for edge in research.graph.edges}
        possible = {(os.fsdecode(use.path), use.line) for use in research.vague} - told
        rest = calls - told - possible
        imported = {place for place in rest if _is_imported(name, place, texts)}
        missing = rest - imported
        counts.update(
            told=len(calls & told),
            possible=len(calls & possible),
            imported=len(imported),
            lost=len(missing),
        )
        place = f"{name}@{defined[0]}:{defined[1]}"
        lost += [
            f"   {place} at {file}:{line} {_show_line(texts[file], line)}"
            for file, line in sorted(missing)
        ]
        if counts["names"] == NAMES:
            break
    print("\n".join(lost[:SHOWN]))
    return counts


def _choose_names(folder: Path, texts: dict[str, str]) -> Iterator[tuple[str, Place]]:
    """Yield the functions and methods whose name is defined once, with their places, in pseudo-random order."""
    words = collections.Counter(
        word for text in texts.values() for word in _WORD.findall(text)
    )
    places = collections.defaultdict[str, set[Place]](set)
    kinds = dict[str, str]()
    for language in CTAGS:
        files = [
            folder / file
            for file in texts
            if language_of(file.encode()).name == language
        ]
        for tag, kind in ctags(language, files).items() if files else ():
            kinds[tag.name] = kind.split()[0]
            is_real = JUDGED.get(
                (language, "ctags", kind), JUDGED.get(("*", "ctags", kind), (True, ""))
            )[0]
            if is_real:
                places[tag.name].add(
                    (str(Path(tag.file).relative_to(folder)), tag.line)
                )
    names = sorted(
        name
        for name, defined in places.items()
        if len(defined) == 1
        and kinds[name] in _CALLABLE
        and _DISTINCT.fullmatch(name)
        and LEAST_CALLS < words[name] <= 2 * MOST_CALLS
    )
    random.Random(5).shuffle(names)  # noqa: S311 - a sample
    for name in names:
        binds = re.compile(_BINDS.replace("%s", name))
        if any(name in text and binds.search(text) for text in texts.values()):
            continue
        yield name, next(iter(places[name]))


def _find_declared(source: Folder, name: str) -> set[Place]:
    """Return where a name is declared beside its definition, as by prototypes."""
    declared = set[Place]()
    for path in source.candidates(name, fold=False):
        read = source.open(path)
        if isinstance(read, FileSymbols):
            declared |= {
                (os.fsdecode(path), read.lines.line(read.row(index)[NAME]))
                for index in range(read.count)
                if read.name(index) == name
            }
    return declared


def _is_imported(name: str, place: Place, texts: dict[str, str]) -> bool:
    """Whether a call is on a name that the file imports."""
    lines = texts[place[0]].split("\n")
    on = re.search(_ON.replace("%s", name), lines[place[1] - 1])
    if on is None:
        return False
    word = re.compile(rf"\b{re.escape(on[1])}\b")
    return any(_IMPORTS.match(line) and word.search(line) for line in lines)


class _Calls:
    """Where the words of some texts are called; each text is read once, when it is first needed."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        self._lines = dict[str, dict[str, set[int]]]()

    def find(self, name: str) -> Iterator[Place]:
        """Yield the file and line of each word before a parenthesis, outside comments and strings."""
        for file, text in self._texts.items():
            if name not in text:
                continue
            if file not in self._lines:
                self._lines[file] = _find_called(file, text)
            for line in self._lines[file].get(name, ()):
                yield file, line


def _find_called(file: str, text: str) -> dict[str, set[int]]:
    """Return the lines of a text's words before a parenthesis, outside comments, strings and imports."""
    lexer = _find_lexer(file)
    lines, line, behind = text.split("\n"), 1, 0
    called = collections.defaultdict[str, set[int]](set)
    for start, kind, value in lexer.get_tokens_unprocessed(text) if lexer else ():
        is_word = kind in Name and kind not in Name.Decorator
        if not is_word or not _OPENS.match(text, start + len(value)):
            continue
        line += text.count("\n", behind, start)
        behind = start
        if not _IMPORT.match(lines[line - 1]):
            called[value].add(line)
    return called


def _find_lexer(file: str) -> Lexer | None:
    try:
        return get_lexer_for_filename(file)
    except ClassNotFound:
        return None


def _show_line(text: str, line: int) -> str:
    return text.split("\n")[line - 1].strip()[:SHOWN_LETTERS]


def _describe(counts: collections.Counter[str]) -> str:
    return f"told {_share(counts, 'told'):.3f}, told or possible {_share(counts, 'told', 'possible'):.3f} {dict(counts)}"


def _share(counts: collections.Counter[str], *kinds: str) -> float:
    calls = counts["told"] + counts["possible"] + counts["lost"]
    return sum(counts[kind] for kind in kinds) / max(1, calls)
