"""What a name means where it is used: references, callers, research."""

from flashgrep.api.host import Host
from flashgrep.api.part import Part
from flashgrep.parts.navigation import methods, research_methods
from flashgrep.parts.navigation.compiled_sources import (
    IMPORTED_INDEXES,
    LANGUAGE_SERVERS,
    PROJECT_SERVERS,
    ImportedIndexes,
    LanguageServers,
    ProjectServers,
)
from flashgrep.parts.navigation.qualified_targets import find_targets
from flashgrep.parts.navigation.servers.pool import ServerPool
from flashgrep.parts.symbols.qualified_names import NAME_RESOLUTION, NameResolution
from flashgrep.project import Workspace


def open_servers(host: Host) -> LanguageServers:
    """Return the language servers that the user's settings allow."""
    languages = host.settings.servers.languages
    if not languages:
        return LanguageServers(None)
    return LanguageServers(ServerPool(languages, host.environ))


def open_project_servers(project: Workspace) -> ProjectServers:
    """Return the language servers of a project."""
    host = project.host
    if host is None:
        return ProjectServers(None, project.root)
    return ProjectServers(host.service(LANGUAGE_SERVERS).pool, project.root)


PART = Part(
    name="navigation",
    summary="What a name means where it is used: references, callers, research.",
    requires=("symbols",),
    handlers=(
        *methods.HANDLERS,
        *research_methods.HANDLERS,
    ),
    commands={"scip": "flashgrep.parts.navigation.scip_command:app"},
    project_services={
        NAME_RESOLUTION: lambda _project: NameResolution(find_targets),
        IMPORTED_INDEXES: lambda project: ImportedIndexes(project.own_folder),
        PROJECT_SERVERS: open_project_servers,
    },
    host_services={LANGUAGE_SERVERS: open_servers},
)
