"""What a name means where it is used: references, callers, research."""

from flashgrep.api.part import Part
from flashgrep.parts.navigation import methods, research_methods

PART = Part(
    name="navigation",
    summary="What a name means where it is used: references, callers, research.",
    requires=("symbols",),
    handlers=(
        *methods.HANDLERS,
        *research_methods.HANDLERS,
    ),
    commands={"scip": "flashgrep.parts.navigation.scip_command:app"},
)
