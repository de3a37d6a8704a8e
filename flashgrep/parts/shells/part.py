"""Completion in shells, and the manual page."""

from flashgrep.api.part import Part

PART = Part(
    name="shells",
    summary="Completion in shells, and the manual page.",
    commands={"completion": "flashgrep.parts.shells.completion:completion"},
)
