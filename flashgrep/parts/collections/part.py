"""Search in the collections that a connection is bound to."""

from flashgrep.api.part import Part
from flashgrep.parts.collections import methods

PART = Part(
    name="collections",
    summary="Search in the collections that a connection is bound to.",
    requires=("meaning",),
    handlers=(*methods.HANDLERS,),
)
