"""Specifications in OpenSpec's Markdown: listing, searching and validating them."""

from flashgrep.api.part import Part
from flashgrep.parts.specs import methods

PART = Part(
    name="specs",
    summary="Specifications in OpenSpec's Markdown: listing, searching and validating them.",
    requires=("meaning",),
    handlers=(*methods.HANDLERS,),
)
