"""Search by meaning: chunks of code ranked by words and vectors."""

from flashgrep.api.part import Part
from flashgrep.parts.meaning import methods

PART = Part(
    name="meaning",
    summary="Search by meaning: chunks of code ranked by words and vectors.",
    requires=("symbols",),
    handlers=(*methods.HANDLERS,),
)
