"""Specifications in OpenSpec's Markdown: listing, searching and validating them."""

from flashgrep.api.part import Part
from flashgrep.parts.specs import methods
from flashgrep.parts.specs.search import SPEC_VECTORS, SpecVectors

PART = Part(
    name="specs",
    summary="Specifications in OpenSpec's Markdown: listing, searching and validating them.",
    requires=("meaning",),
    handlers=(*methods.HANDLERS,),
    project_services={SPEC_VECTORS: lambda _project: SpecVectors()},
)
