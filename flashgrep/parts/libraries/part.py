"""The libraries that a project uses, reached from its own files: definitions, hover, references."""

from flashgrep.api.libraries import LIBRARIES
from flashgrep.api.part import Part
from flashgrep.parts.libraries.lookup import Libraries
from flashgrep.project import Workspace


def open_libraries(project: Workspace) -> Libraries:
    """Return the libraries of a project, found by the daemon's environment."""
    return Libraries(project.root, project.options.environ)


PART = Part(
    name="libraries",
    summary="The libraries that a project uses, found in its environment and lock files: read, never run or written.",
    project_services={LIBRARIES: open_libraries},
)
