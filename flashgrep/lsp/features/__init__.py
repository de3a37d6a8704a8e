"""What the server answers: one module a family of the protocol's methods."""

from typing import Final

from flashgrep.lsp.features import navigation, rename, symbols
from flashgrep.lsp.folders import Feature

FEATURES: Final[tuple[Feature, ...]] = (
    *navigation.FEATURES,
    *symbols.FEATURES,
    *rename.FEATURES,
)
