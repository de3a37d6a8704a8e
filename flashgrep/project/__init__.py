"""One project: joins files, index, indexer and search, and owns freshness."""

from flashgrep.project.project import UnsavedView, Workspace, WorkspaceOptions

__all__ = ["UnsavedView", "Workspace", "WorkspaceOptions"]
