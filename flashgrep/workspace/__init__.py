"""One project: joins index, ingest, search and edit, and owns freshness."""

from flashgrep.workspace.project import Workspace, WorkspaceOptions
from flashgrep.workspace.revisions import RevisionView

View = Workspace | RevisionView
"""What a question is asked of: a project as it is on disk, or as it is in a revision."""

__all__ = ["RevisionView", "View", "Workspace", "WorkspaceOptions"]
