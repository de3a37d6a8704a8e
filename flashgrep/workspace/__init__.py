"""One project: joins index, ingest, search and edit, and owns freshness."""

from flashgrep.workspace.project import Workspace, WorkspaceOptions

__all__ = ["Workspace", "WorkspaceOptions"]
