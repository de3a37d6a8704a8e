"""Notifications about a project: ``status``, on subscription."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import anyio

from flashgrep.catalogue import Catalogue
from flashgrep.errors import InvalidParams, Unavailable
from flashgrep.rpc.context import Extension, RequestContext
from flashgrep.workspace import Workspace

PAUSE: Final = 0.1
"""Seconds between two notifications: changes in between are combined."""


@dataclass(slots=True)
class Subscriptions:
    """Answers ``$/subscribe`` and ``$/unsubscribe``; a subscription ends with its connection, or with the project."""

    catalogue: Catalogue

    def extensions(self) -> Mapping[str, Extension]:
        """Return the two methods by name."""
        return {"$/subscribe": self.subscribe, "$/unsubscribe": self.unsubscribe}

    async def subscribe(self, context: RequestContext, params: Any) -> dict[str, Any]:
        """Return a project's state; a notification ``status`` with the same members follows each change of it.

        Raises:
            NotFound, Forbidden, InvalidParams: as ``Catalogue.workspace``.
            Unavailable: no_notifications, the wire cannot send any (HTTP).

        """
        workspace = await self._find(context, params)
        state = describe_state(workspace)
        if not context.peer.follow(_key_of(workspace), partial(_tell, context, workspace, state)):
            raise Unavailable("this wire cannot send notifications", reason="no_notifications")
        return _translate(context, state)

    async def unsubscribe(self, context: RequestContext, params: Any) -> dict[str, Any]:
        """End a subscription; return whether there was one. Raises as ``Catalogue.workspace``."""
        return {"ended": context.peer.unfollow(_key_of(await self._find(context, params)))}

    async def _find(self, context: RequestContext, params: Any) -> Workspace:
        project = params.get("project") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not (project is None or isinstance(project, str)):
            raise InvalidParams("project: a name or a root", field="project")
        if project is not None and context.session.path_map is not None:
            project = context.session.path_map.to_ours(project)
        return await self.catalogue.workspace(context.call, project)


def describe_state(workspace: Workspace) -> dict[str, Any]:
    """Return the state sent to subscribers: the stage of indexing, its progress, and the project's figures.

    ``changes`` grows with each file that was found changed, new or gone; ``generation`` with each batch indexed.
    """
    progress = workspace.progress
    eta = progress.eta_seconds()
    return {
        "project": workspace.name,
        "root": str(workspace.path),
        "stage": "closed" if workspace.is_closed else progress.stage,
        "share": round(progress.share(), 3),
        "eta_seconds": None if eta is None else round(eta),
        "files": workspace.tree.count(),
        "changes": workspace.tree.changes,
        "generation": workspace.generation,
        "detail": "; ".join(filter(None, (progress.detail, progress.problem))),
    }


async def _tell(context: RequestContext, workspace: Workspace, told: dict[str, Any]) -> None:
    """Notify of each change until the project is closed; a slow client gets only the latest state."""
    workspace.subscribers += 1
    try:
        while told["stage"] != "closed":
            change = workspace.progress.changed.next
            state = describe_state(workspace)
            if state == told:
                await change.wait()
            elif context.notify("status", _translate(context, state)):
                told = state
            await anyio.sleep(PAUSE)
    finally:
        workspace.subscribers -= 1


def _key_of(workspace: Workspace) -> str:
    return f"status of {workspace.path}"


def _translate(context: RequestContext, state: dict[str, Any]) -> dict[str, Any]:
    paths = context.session.path_map
    return state if paths is None else dict(paths.translate_result(state))
