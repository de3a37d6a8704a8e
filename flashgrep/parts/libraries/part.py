"""The libraries that a project uses, reached from its own files: definitions, hover, references."""

import os

from flashgrep.api.libraries import LIBRARIES
from flashgrep.api.part import Part
from flashgrep.parts.libraries.lookup import Libraries
from flashgrep.project import Workspace


def open_libraries(project: Workspace) -> Libraries:
    """Return the libraries of a project, found by the daemon's environment."""
    options = project.options
    cache = os.path.realpath(os.fsencode(options.cache_dir))
    return Libraries(project.root, options.environ, cache + b"/libraries", project.host)


PART = Part(
    name="libraries",
    summary="The libraries that a project uses, found in its environment and lock files: read, never run or written.",
    requires=("symbols",),
    project_services={LIBRARIES: open_libraries},
)
