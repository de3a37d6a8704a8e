"""Set or remove one member in a JSON file written by hand: comments, order and layout of the rest stay.

Hosts read their settings as JSON with comments and trailing commas; so does this.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from flashgrep.base.errors import InvalidParams

INDENT: Final = "  "
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(slots=True)
class Node:
    """A value and its span; for an object also its members, with where each begins."""

    start: int
    end: int
    value: Any
    members: dict[str, tuple[int, "Node"]] = field(default_factory=dict)


def parse(text: str) -> Node:
    """Return the value of a file; an empty one holds an empty object.

    Raises:
        InvalidParams: it is not JSON with comments.

    """
    start = _skip_space(text, 0)
    if start == len(text):
        return Node(start, start, {})
    try:
        node = _parse_value(text, start)
    except RecursionError:
        raise InvalidParams("nested too deeply") from None
    if _skip_space(text, node.end) != len(text):
        raise _not_json(text, node.end)
    return node


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the member at ``path`` set; missing objects on the way are created."""
    node = parse(text)
    if node.start == node.end:
        return _format(_nest(path, value), 0) + "\n"
    for depth, name in enumerate(path):
        if not isinstance(node.value, dict):
            raise InvalidParams(
                f"{'.'.join(path[:depth]) or 'the file'}: not an object"
            )
        if name not in node.members:
            new = _format(_nest(path[depth + 1 :], value), depth + 1)
            member = f"\n{INDENT * (depth + 1)}{json.dumps(name)}: {new}"
            if not node.members:
                return f"{text[: node.start + 1]}{member}\n{INDENT * depth}{text[node.end - 1 :]}"
            last = list(node.members.values())[-1][1].end
            return f"{text[:last]},{member}{text[last:]}"
        node = node.members[name][1]
    return text[: node.start] + _format(value, len(path)) + text[node.end :]


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at ``path``, and without the object it was alone in."""
    nodes = [parse(text)]
    for name in path:
        if name not in nodes[-1].members:
            return text
        nodes.append(nodes[-1].members[name][1])
    depth = len(path) - 1
    while depth > 0 and len(nodes[depth].members) == 1:
        depth -= 1
    parent = nodes[depth]
    names = list(parent.members)
    at = names.index(path[depth])
    start, node = parent.members[path[depth]]
    if at > 0:  # from the end of the one before, so that its comma goes too
        return text[: parent.members[names[at - 1]][1].end] + text[node.end :]
    # The first member: its comma follows it.
    end = _skip_space(text, node.end)
    if text[end] == ",":
        return text[:start] + text[_skip_space(text, end + 1) :]
    # The only member: the braces stay, as they are.
    return text[: parent.start + 1] + text[parent.end - 1 :]


def _format(value: Any, depth: int) -> str:
    return json.dumps(value, indent=INDENT, ensure_ascii=False).replace(
        "\n", "\n" + INDENT * depth
    )


def _nest(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _parse_value(text: str, start: int) -> Node:
    opening = text[start : start + 1]
    if opening not in {"{", "["}:
        # The patterns are JSON's own grammar, so what matches is left to json.loads.
        match = (_STRING if opening == '"' else _SCALAR).match(text, start)
        if match is None:
            raise _not_json(text, start)
        return Node(start, match.end(), json.loads(match.group()))
    closing = "}" if opening == "{" else "]"
    items: list[Any] = []
    members: dict[str, tuple[int, Node]] = {}
    at = _skip_space(text, start + 1)
    while text[at : at + 1] != closing:
        key = _STRING.match(text, at) if opening == "{" else None
        colon = _skip_space(text, key.end()) if key else at
        if opening == "{" and (key is None or text[colon : colon + 1] != ":"):
            raise _not_json(text, at)
        inner = _parse_value(text, _skip_space(text, colon + 1) if key else at)
        items.append(inner.value)
        if key:
            members[json.loads(key.group())] = (at, inner)
        at = _skip_space(text, inner.end)
        if (
            text[at : at + 1] == ","
        ):  # also after the last item: hosts write and read that
            at = _skip_space(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _not_json(text, at)
    value = (
        {name: node.value for name, (_, node) in members.items()}
        if opening == "{"
        else items
    )
    return Node(start, at + 1, value, members)


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    if match:
        return match.end()
    return at


def _not_json(text: str, at: int) -> InvalidParams:
    line = text.count("\n", 0, at) + 1
    return InvalidParams(f"line {line}: not JSON", line=line)
