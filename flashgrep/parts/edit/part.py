"""Writing files, safely and in batches; and the unsaved text of editors."""

from flashgrep.api.part import Part
from flashgrep.parts.edit import buffer_methods, file_methods, methods
from flashgrep.parts.edit.recovery import RECOVERY, Recovery

PART = Part(
    name="edit",
    summary="Writing files, safely and in batches; and the unsaved text of editors.",
    handlers=(
        *methods.HANDLERS,
        *file_methods.HANDLERS,
        *buffer_methods.HANDLERS,
    ),
    project_services={RECOVERY: lambda project: Recovery(project.editor.root)},
)
