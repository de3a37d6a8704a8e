"""One member set or removed in a JSON file people write by hand: comments, order and layout of the rest stay.

Hosts read their settings as JSON with comments and trailing commas; so does this.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from flashgrep.errors import InvalidParams

INDENT: Final = "  "
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_PLAIN = re.compile(r"true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(slots=True)
class Node:
    """A value and where it stands; of an object also its members, with where each begins."""

    start: int
    end: int
    value: Any
    members: dict[str, tuple[int, "Node"]] = field(default_factory=dict)


def parse(text: str) -> Node:
    """Return the value of a file; an empty one holds an empty object.

    Raises:
        InvalidParams: it is not JSON with comments.

    """
    start = _skip(text, 0)
    if start == len(text):
        return Node(start, start, {})
    node = _value(text, start)
    if _skip(text, node.end) != len(text):
        raise _fault(text, node.end)
    return node


def set_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with the member at ``path`` set, objects on the way made where there are none."""
    node = parse(text)
    if node.start == node.end:
        return json.dumps(_nested(path, value), indent=INDENT, ensure_ascii=False) + "\n"
    for depth, name in enumerate(path):
        if not isinstance(node.value, dict):
            raise InvalidParams(f"{'.'.join(path[:depth]) or 'the file'}: not an object")
        if name not in node.members:
            return _inserted(text, node, depth, name, _nested(path[depth + 1 :], value))
        node = node.members[name][1]
    return text[: node.start] + _written(value, len(path)) + text[node.end :]


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
    return _without(text, nodes[depth], path[depth])


def _without(text: str, parent: Node, name: str) -> str:
    names = list(parent.members)
    at = names.index(name)
    start, node = parent.members[name]
    if at > 0:  # from the end of the one before, so that its comma goes too
        start = parent.members[names[at - 1]][1].end
        return text[:start] + text[node.end :]
    end = _skip(text, node.end)
    if text[end] == ",":
        end = _skip(text, end + 1)
        return text[:start] + text[end:]
    return text[: parent.start + 1] + text[parent.end - 1 :]


def _inserted(text: str, parent: Node, depth: int, name: str, value: Any) -> str:
    member = f"\n{INDENT * (depth + 1)}{json.dumps(name)}: {_written(value, depth + 1)}"
    if not parent.members:
        return f"{text[: parent.start + 1]}{member}\n{INDENT * depth}{text[parent.end - 1 :]}"
    last = list(parent.members.values())[-1][1].end
    return f"{text[:last]},{member}{text[last:]}"


def _written(value: Any, depth: int) -> str:
    return json.dumps(value, indent=INDENT, ensure_ascii=False).replace("\n", "\n" + INDENT * depth)


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _value(text: str, start: int) -> Node:
    opening = text[start : start + 1]
    if opening == "{":
        return _object(text, start)
    if opening == "[":
        return _array(text, start)
    match = (_STRING if opening == '"' else _PLAIN).match(text, start)
    if match is None:
        raise _fault(text, start)
    return Node(start, match.end(), json.loads(match.group()))


def _object(text: str, start: int) -> Node:
    node = Node(start, start, {})
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        key = _STRING.match(text, at)
        colon = _skip(text, key.end()) if key else at
        if key is None or text[colon : colon + 1] != ":":
            raise _fault(text, at)
        inner = _value(text, _skip(text, colon + 1))
        name = json.loads(key.group())
        node.members[name] = (at, inner)
        node.value[name] = inner.value
        at = _after(text, inner.end, "}")
    node.end = at + 1
    return node


def _array(text: str, start: int) -> Node:
    node = Node(start, start, [])
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        inner = _value(text, at)
        node.value.append(inner.value)
        at = _after(text, inner.end, "]")
    node.end = at + 1
    return node


def _after(text: str, end: int, closing: str) -> int:
    """Return where the next item or the closing bracket stands."""
    at = _skip(text, end)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise _fault(text, at)
    return at


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _fault(text: str, at: int) -> InvalidParams:
    line = text.count("\n", 0, at) + 1
    return InvalidParams(f"line {line}: not JSON", line=line)
