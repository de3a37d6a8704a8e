"""A server over repositories that a team keeps in PostgreSQL."""

from flashgrep.api.part import Part

PART = Part(
    name="team",
    summary="A server over repositories that a team keeps in PostgreSQL.",
    requires=(
        "git",
        "http",
        "meaning",
        "symbols",
        "edit",
    ),
    commands={"team": "flashgrep.parts.team.team_command:app"},
)
