"""Which lines of a function are shown if it does not fit: whole statements, those with the rarest words first."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

GAP: Final = 4
"""Extra bytes counted for a line of a cut passage, for the gap marker that may precede it."""
MOST_OF_STATEMENT: Final = 12
"""Lines of a statement that are shown only together; of a longer one, such as a table, so many at a time."""
AROUND: Final = (0, 1, -1, 2)
"""Lines after a relevant line explain it better than those before."""
_QUOTED: Final = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")
_CONTINUES: Final = re.compile(r"\s*(?:\?|\.(?!\.)|&&|\|\||\|>|\)|\])")
"""How a line begins that continues the statement above."""

Statements = Mapping[int, Sequence[int]]
"""By line: the lines of its statement."""


def choose_lines(
    texts: Mapping[int, str],
    head: Collection[int],
    part: Collection[int],
    words: Sequence[Sequence[bytes]],
    size: int,
) -> set[int]:
    """Return the lines to show of some lines by number: the head, and statements as far as they take ``size`` bytes.

    A line has a word if it contains one of its spellings. A word that n lines contain adds 1/n to each of them. Lines
    of ``part`` come before others; remaining space goes to its first lines.
    """
    encoded = {line: text.encode() for line, text in texts.items()}
    telling = _rank_lines(encoded, part, words)
    statements = join_statements(texts)
    lines = set(head)
    lines.update(telling[:1])
    sizes = {line: len(text) + 1 for line, text in encoded.items()}
    room = size
    for line in lines:
        room -= sizes.get(line, 1)
    for line in _propose(telling, part):
        new = set(statements.get(line, ()))
        new -= lines
        length = 0
        for new_line in new:
            length += sizes[new_line]
            length += GAP
        if length <= room:
            room -= length
            lines |= new
    return lines


def _rank_lines(
    encoded: Mapping[int, bytes],
    part: Collection[int],
    words: Sequence[Sequence[bytes]],
) -> list[int]:
    """Return the lines with some of the words, the best first."""
    scores = defaultdict[int, float](float)
    for spellings in words:
        having: list[int] = []
        for line, text in encoded.items():
            if any(map(text.lower().count, spellings)):
                having.append(line)
        # A word that is in every line does not distinguish them.
        for line in having:
            scores[line] += 1 / len(having)
    for line in scores:
        if line in part:
            scores[line] += 0.5
    return sorted(sorted(scores), key=scores.__getitem__, reverse=True)


def _propose(telling: Sequence[int], part: Collection[int]) -> Iterator[int]:
    """Yield lines in the order in which they are added."""
    for line in telling:
        for step in AROUND:
            yield line + step
    yield from part


def join_statements(texts: Mapping[int, str]) -> Statements:
    """Return the statements of some lines: one ends where all its parentheses and brackets are closed.

    Quoted parentheses do not count; those in comments do, which joins too many lines rather than too few.
    """
    group: list[int] = []
    groups = [group]
    depth = 0
    for line, text in texts.items():
        is_over = depth <= 0 and not _CONTINUES.match(text)
        if is_over or len(group) == MOST_OF_STATEMENT:
            group = []
            groups.append(group)
            depth = 0
        group.append(line)
        code = _QUOTED.sub("", text)
        depth += code.count("(")
        depth += code.count("[")
        depth -= code.count(")")
        depth -= code.count("]")
    statements = dict[int, list[int]]()
    for group in groups:
        statements.update(dict.fromkeys(group, group))
    return statements
