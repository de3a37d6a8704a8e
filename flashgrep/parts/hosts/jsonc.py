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
            place = ".".join(path[:depth]) or "the file"
            raise InvalidParams(f"{place}: not an object")
        if name not in node.members:
            inner = path[depth + 1 :]
            new = _format(_nest(inner, value), depth + 1)
            indent = INDENT * (depth + 1)
            member = f"\n{indent}{json.dumps(name)}: {new}"
            return _add_member(text, node, member, depth)
        _, node = node.members[name]
    head = text[: node.start]
    tail = text[node.end :]
    return head + _format(value, len(path)) + tail


def _add_member(text: str, node: Node, member: str, depth: int) -> str:
    """Return the text with a member added at the end of an object."""
    if not node.members:
        head = text[: node.start + 1]
        tail = text[node.end - 1 :]
        return f"{head}{member}\n{INDENT * depth}{tail}"
    *_, (_, last) = node.members.values()
    head = text[: last.end]
    tail = text[last.end :]
    return f"{head},{member}{tail}"


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at ``path``, and without the object it was alone in."""
    nodes = [parse(text)]
    for name in path:
        members = nodes[-1].members
        if name not in members:
            return text
        _, node = members[name]
        nodes.append(node)
    depth = len(path) - 1
    while depth > 0 and len(nodes[depth].members) == 1:
        depth -= 1
    parent = nodes[depth]
    name = path[depth]
    names = list(parent.members)
    at = names.index(name)
    start, node = parent.members[name]
    if at > 0:  # from the end of the one before, so that its comma goes too
        earlier = names[at - 1]
        _, before = parent.members[earlier]
        return text[: before.end] + text[node.end :]
    # The first member: its comma follows it.
    end = _skip_space(text, node.end)
    if text[end] == ",":
        following = _skip_space(text, end + 1)
        return text[:start] + text[following:]
    # The only member: the braces stay, as they are.
    head = text[: parent.start + 1]
    tail = text[parent.end - 1 :]
    return head + tail


def _format(value: Any, depth: int) -> str:
    text = json.dumps(value, indent=INDENT, ensure_ascii=False)
    line = "\n" + INDENT * depth
    return text.replace("\n", line)


def _nest(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _parse_value(text: str, start: int) -> Node:
    opening = text[start : start + 1]
    if opening == "{":
        return _parse_object(text, start)
    if opening == "[":
        return _parse_list(text, start)
    # The patterns are JSON's own grammar, so what matches is left to json.loads.
    pattern = _SCALAR
    if opening == '"':
        pattern = _STRING
    match = pattern.match(text, start)
    if match is None:
        raise _not_json(text, start)
    value = json.loads(match.group())
    return Node(start, match.end(), value)


def _parse_object(text: str, start: int) -> Node:
    value: dict[str, Any] = {}
    members: dict[str, tuple[int, Node]] = {}
    at = _skip_space(text, start + 1)
    while not text.startswith("}", at):
        key = _STRING.match(text, at)
        if key is None:
            raise _not_json(text, at)
        colon = _skip_space(text, key.end())
        if not text.startswith(":", colon):
            raise _not_json(text, at)
        place = _skip_space(text, colon + 1)
        member = _parse_value(text, place)
        name = json.loads(key.group())
        value[name] = member.value
        members[name] = (at, member)
        at = _skip_comma(text, member.end, "}")
    return Node(start, at + 1, value, members)


def _parse_list(text: str, start: int) -> Node:
    items: list[Any] = []
    at = _skip_space(text, start + 1)
    while not text.startswith("]", at):
        item = _parse_value(text, at)
        items.append(item.value)
        at = _skip_comma(text, item.end, "]")
    return Node(start, at + 1, items)


def _skip_comma(text: str, end: int, closing: str) -> int:
    """Return where the next item begins, or the closing bracket is."""
    at = _skip_space(text, end)
    if text.startswith(",", at):
        # Also after the last item: hosts write and read that.
        return _skip_space(text, at + 1)
    if not text.startswith(closing, at):
        raise _not_json(text, at)
    return at


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    if match:
        return match.end()
    return at


def _not_json(text: str, at: int) -> InvalidParams:
    line = text.count("\n", 0, at) + 1
    return InvalidParams(f"line {line}: not JSON", line=line)
