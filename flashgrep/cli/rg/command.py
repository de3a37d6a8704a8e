"""The daemon's side of ``fgrep rg``: what ripgrep is to be called with, if the index can spare it files at all."""

import os
from pathlib import Path
from typing import Any

from flashgrep.catalogue import Catalogue
from flashgrep.cli.rg.plan import Call, plan
from flashgrep.errors import NotFound
from flashgrep.rpc.context import RequestContext


async def answer(context: RequestContext, call: Call) -> dict[str, Any]:
    """Return ``{"plan": arguments}``, bytes as latin-1; ``{"plan": None}``: the call's own arguments serve best.

    Never waits for a project to be opened or listed: ripgrep has its answer sooner. Opening begins, for the next call.
    """
    catalogue: Catalogue = context.call.host
    try:
        root = catalogue.find_enclosing_root(Path(os.fsdecode(call.cwd)))
    except NotFound:
        return {"plan": None}
    workspace = next((each for each in catalogue.list_open() if each.path == root), None)
    if workspace is None:
        catalogue.open_later(str(root))
        return {"plan": None}
    if workspace.tree.listed_since is None or not workspace.index.is_open or not await workspace.refresh():
        return {"plan": None}
    planned = await workspace.in_thread(lambda snapshot: plan(call, snapshot, workspace.walker))
    return {"plan": planned and [word.decode("latin-1") for word in planned]}
