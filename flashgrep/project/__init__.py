"""One project: joins index, ingest, search and edit, and owns freshness."""

from flashgrep.parts.git.revisions import RevisionView
from flashgrep.project.project import Workspace, WorkspaceOptions
from flashgrep.project.unsaved import UnsavedView

CurrentView = Workspace | UnsavedView
"""A project as it is now: on disk, or in the asking client's editor."""
View = CurrentView | RevisionView
"""The object of a question: a project as it is now, or in a revision."""

__all__ = ["CurrentView", "RevisionView", "UnsavedView", "View", "Workspace", "WorkspaceOptions"]
