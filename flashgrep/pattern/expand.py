"""Replacement text: `$1`, `${name}` and `$$` of `rg -r`, filled from what a match captured."""

import re

from flashgrep.pattern.finders import Re2Finder, Span
from flashgrep.pattern.nodes import Chars, Group, Look, Node, Octet, Repeat
from flashgrep.pattern.translate import Kind, translate

_REFERENCE = re.compile(rb"\$(?:(\$)|\{([0-9A-Za-z_]+)\}|([0-9A-Za-z_]+))")


class Expander:
    """Fills templates for one pattern; a group that took no part, or is none of the pattern's, is empty."""

    def __init__(self, node: Node) -> None:
        translation = translate(node, Kind(ascii=False, carriage=True), captures=True)
        self._groups = translation.groups
        self._names = _names(node)
        self._finder = Re2Finder(translation.pattern)

    def expand(self, data: bytes, span: Span, template: bytes) -> bytes:
        """Return `template` with its references replaced, for the match at `span`."""
        texts = {b"0": data[slice(*span)]}
        spans = self._finder.captures(data, span)[1:]
        for index, group in zip(self._groups, spans, strict=False):
            if group[0] >= 0:  # of the copies of a group the last one that took part counts
                texts[str(index).encode()] = data[slice(*group)]
        texts |= {name: texts.get(number, b"") for name, number in self._names.items()}
        return _REFERENCE.sub(lambda found: _filled(found, texts), template)


def _filled(found: re.Match[bytes], texts: dict[bytes, bytes]) -> bytes:
    dollar, braced, bare = found.groups()
    reference: bytes = braced or bare or b""
    number = reference.lstrip(b"0") or b"0"
    return dollar or texts.get(number if reference.isdigit() else reference, b"")


def _names(node: Node) -> dict[bytes, bytes]:
    match node:
        case Chars() | Octet() | Look():
            return {}
        case Repeat(inner):
            return _names(inner)
        case Group(inner, index, name):
            own = {name.encode(): str(index).encode()} if name else {}
            return own | _names(inner)
    return {name: number for part in node.parts for name, number in _names(part).items()}
