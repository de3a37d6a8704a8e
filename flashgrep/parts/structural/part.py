"""Search by syntax, and rewriting of what it finds."""

from flashgrep.api.part import Part
from flashgrep.parts.structural import methods

PART = Part(
    name="structural",
    summary="Search by syntax, and rewriting of what it finds.",
    requires=("edit",),
    handlers=(*methods.HANDLERS,),
)
