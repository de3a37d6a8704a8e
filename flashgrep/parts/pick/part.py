"""Search as you type, in a terminal."""

from flashgrep.api.part import Part

PART = Part(
    name="pick",
    summary="Search as you type, in a terminal.",
    commands={"pick": "flashgrep.parts.pick.pick:pick"},
)
