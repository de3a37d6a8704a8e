"""The features of the language server, one module per family of protocol methods."""

from typing import Final

from flashgrep.parts.lsp.features import navigation, rename, symbols
from flashgrep.parts.lsp.folders import Feature

FEATURES: Final[tuple[Feature, ...]] = (
    *navigation.FEATURES,
    *symbols.FEATURES,
    *rename.FEATURES,
)
