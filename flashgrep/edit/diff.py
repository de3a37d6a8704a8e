"""Unified diffs that ``git apply`` takes; only the part between the first and the last change is compared."""

from collections.abc import Iterable
from difflib import SequenceMatcher

_CONTEXT = 3
_MOST_COMPARED = 4_000
"""Lines on either side: comparing is quadratic at worst; more are shown as one replaced block."""

Opcode = tuple[str, int, int, int, int]


def unified(old: str, new: str, path: str, *, created: bool = False) -> str:
    """Return the difference of two texts, or "" when they are equal."""
    before, after = _lines(old), _lines(new)
    hunks = [_hunk(before, after, group) for group in _grouped(_opcodes(before, after))]
    if not hunks:
        return ""
    source = "/dev/null" if created else f"a/{path}"
    return "".join([f"--- {source}\n+++ b/{path}\n", *hunks])


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _opcodes(before: list[str], after: list[str]) -> list[Opcode]:
    """Return how one becomes the other, comparing only what lies between the equal head and the equal tail."""
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    tail = next((at for at in range(most - head) if before[-1 - at] != after[-1 - at]), most - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    middle: list[Opcode] = [("replace", 0, len(old), 0, len(new))] if old or new else []
    if max(len(old), len(new)) <= _MOST_COMPARED:
        middle = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    shifted = [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in middle]
    ends = (len(before), len(after))
    return [("equal", 0, head, 0, head), *shifted, ("equal", ends[0] - tail, ends[0], ends[1] - tail, ends[1])]


def _grouped(opcodes: Iterable[Opcode]) -> list[list[Opcode]]:
    """Cut long equal runs to their context; each group is a hunk."""
    groups: list[list[Opcode]] = [[]]
    for tag, i, j, k, m in opcodes:
        if tag != "equal":
            groups[-1].append((tag, i, j, k, m))
            continue
        after = min(_CONTEXT, j - i) if groups[-1] else 0
        if groups[-1] and j - i <= 2 * _CONTEXT:
            groups[-1].append((tag, i, j, k, m))
            continue
        groups[-1].append((tag, i, i + after, k, k + after))
        groups.append([(tag, max(i, j - _CONTEXT), j, max(k, m - _CONTEXT), m)])
    return [group for group in map(_trimmed, groups) if group]


def _trimmed(group: list[Opcode]) -> list[Opcode]:
    """Return the group with at most the context after its last change, or nothing if it changes nothing."""
    if all(tag == "equal" for tag, *_ in group):
        return []
    tag, i, j, k, m = group[-1]
    if tag == "equal":
        group = [*group[:-1], (tag, i, min(j, i + _CONTEXT), k, min(m, k + _CONTEXT))]
    return group


def _hunk(before: list[str], after: list[str], group: list[Opcode]) -> str:
    i, j, k, m = group[0][1], group[-1][2], group[0][3], group[-1][4]
    parts = [f"@@ -{_range(i, j)} +{_range(k, m)} @@\n"]
    for tag, start, end, new_start, new_end in group:
        if tag == "equal":
            parts += [_shown(" ", line) for line in before[start:end]]
            continue
        parts += [_shown("-", line) for line in before[start:end]]
        parts += [_shown("+", line) for line in after[new_start:new_end]]
    return "".join(parts)


def _range(start: int, end: int) -> str:
    length = end - start
    return f"{start + 1 if length else start},{length}"


def _shown(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
