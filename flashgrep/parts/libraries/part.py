"""The libraries that a project uses, reached from its own files, by name, and all at once."""

from flashgrep.api.libraries import LIBRARIES
from flashgrep.api.part import Part
from flashgrep.parts.libraries.library_uses import LIBRARY_USES, open_uses
from flashgrep.parts.libraries.lookup import Libraries

PART = Part(
    name="libraries",
    summary="The libraries that a project uses, found in its environment and lock files: read, never run or written.",
    requires=("symbols",),
    project_services={LIBRARIES: Libraries},
    host_services={LIBRARY_USES: open_uses},
)
