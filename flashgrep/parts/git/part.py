"""Revisions of a project, what changed, and its history."""

from flashgrep.api.part import Part
from flashgrep.parts.git import changes_methods, history_methods

PART = Part(
    name="git",
    summary="Revisions of a project, what changed, and its history.",
    requires=(
        "symbols",
        "meaning",
        "edit",
    ),
    handlers=(
        *changes_methods.HANDLERS,
        *history_methods.HANDLERS,
    ),
)
