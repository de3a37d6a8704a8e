"""Edits by symbol."""

from flashgrep.api.part import Part
from flashgrep.parts.refactoring import methods

PART = Part(
    name="refactoring",
    summary="Edits by symbol: renaming, and replacing, removing or adding definitions.",
    requires=("edit", "symbols", "navigation"),
    handlers=(*methods.HANDLERS,),
)
