"""What a project declares about its files, as one question sees it."""

from typing import Final

from flashgrep.base.model import Document
from flashgrep.files.attributes import (
    NOTHING_DECLARED,
    PLACE,
    DeclaredKind,
    DeclaredKinds,
    parse_attributes,
)
from flashgrep.index.table import GENERATED, VENDORED, tier_of
from flashgrep.search.snapshot import Snapshot

TIER_OF_KIND: Final[dict[DeclaredKind, int]] = {
    "vendored": VENDORED,
    "generated": GENERATED,
}
"""The tier of what is declared; documentation has none of its own."""


def read_kinds(snapshot: Snapshot) -> DeclaredKinds:
    """Return what the ``.gitattributes`` at the top of a project declares now."""
    document = snapshot.read(PLACE)
    if not isinstance(document, Document):
        return NOTHING_DECLARED
    return parse_attributes(bytes(document.data))


def find_tier(kinds: DeclaredKinds, path: bytes) -> int:
    """Return a file's tier by its path, or a later one that is declared."""
    tier = tier_of(path)
    kind = kinds.find_kind(path)
    if kind is None:
        return tier
    return max(tier, TIER_OF_KIND.get(kind, tier))
