"""One project: joins files, index, indexer and search, and owns freshness."""

from flashgrep.project.project import Workspace, WorkspaceOptions
from flashgrep.project.unsaved import UnsavedView

__all__ = ["UnsavedView", "Workspace", "WorkspaceOptions"]
