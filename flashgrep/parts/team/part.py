"""A server over repositories that a team keeps in PostgreSQL."""

from collections.abc import Mapping

from flashgrep.api.part import Part
from flashgrep.base.config import Settings
from flashgrep.base.registry import Registry
from flashgrep.parts.team.team_link import TeamLink, join_team


def forward_to_team(
    registry: Registry, settings: Settings, environ: Mapping[str, str]
) -> Registry:
    """Return the methods; those about revisions ask the team's server about projects unknown here, if there is one."""
    if not settings.team.url:
        return registry
    return join_team(registry, TeamLink(settings, environ))


PART = Part(
    name="team",
    summary="A server over repositories that a team keeps in PostgreSQL.",
    requires=(
        "git",
        "http",
        "meaning",
        "symbols",
        "navigation",
        "edit",
    ),
    commands={"team": "flashgrep.parts.team.team_command:app"},
    extend_registry=forward_to_team,
)
