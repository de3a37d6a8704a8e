"""Revisions of a project, what changed, and its history."""

from flashgrep.api.part import Part
from flashgrep.api.searchers import Searchers
from flashgrep.parts.git import changes_methods, history_methods
from flashgrep.parts.git.revisions import (
    BOUND_REVISIONS,
    REVISIONS,
    Revisions,
    open_revision,
)

PART = Part(
    name="git",
    summary="Revisions of a project, what changed, and its history.",
    requires=(
        "symbols",
        "navigation",
        "meaning",
        "edit",
    ),
    handlers=(
        *changes_methods.HANDLERS,
        *history_methods.HANDLERS,
    ),
    searchers=Searchers(revision=open_revision),
    project_services={
        REVISIONS: lambda project: Revisions(
            project, project.folder, project.options.environ
        ),
        BOUND_REVISIONS: lambda project: Revisions(
            project, project.folder, project.options.environ, is_confined=True
        ),
    },
    indexer_functions={"keep": "flashgrep.parts.git.revision_texts:keep_texts"},
)
