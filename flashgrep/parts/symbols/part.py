"""Definitions and references by tree-sitter; outlines, a map of a project, syntax at positions."""

from flashgrep.api.part import Part
from flashgrep.parts.symbols import methods, syntax

PART = Part(
    name="symbols",
    summary="Definitions and references by tree-sitter; outlines, a map of a project, syntax at positions.",
    handlers=(
        *methods.HANDLERS,
        *syntax.HANDLERS,
    ),
)
