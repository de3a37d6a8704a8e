"""``/raw``: a file as it is, byte for byte, such that no browser takes it for anything but text to look at or keep."""

import os
from typing import Final
from urllib.parse import quote

from anyio.to_thread import run_sync
from starlette.datastructures import QueryParams
from starlette.responses import Response

from flashgrep.catalogue import Catalogue
from flashgrep.edit.editor import Editor
from flashgrep.edit.system import read_all
from flashgrep.errors import InvalidParams, TooLarge
from flashgrep.handlers.common import view_of
from flashgrep.model import path_from_json, path_to_text
from flashgrep.registry import Call, Session
from flashgrep.web.site import HEADERS
from flashgrep.workspace import RevisionView

MOST_RAW: Final = 64 << 20
"""Bytes; all are held in memory while they are sent."""
PARAMETERS: Final = frozenset({"project", "path", "path_bytes", "rev"})
RAW_HEADERS: Final = {**HEADERS, "content-security-policy": "default-src 'none'; sandbox", "cache-control": "no-store"}


async def send_raw(catalogue: Catalogue, session: Session, query: QueryParams) -> Response:
    """Return a file of a project, at a revision where one is named, as its address says.

    Raises:
        FlashgrepError: as ``read_code``; TooLarge.

    """
    unknown = sorted(set(query) - PARAMETERS)
    if unknown:
        raise InvalidParams(f"no such parameter of an address: {unknown[0]}", allowed=sorted(PARAMETERS))
    path = path_from_json(query.get("path"), query.get("path_bytes"))
    workspace = await catalogue.workspace(Call(catalogue, session), query.get("project"))
    view = await view_of(Call(catalogue, session), workspace, query.get("rev"))
    if isinstance(view, RevisionView):
        data = await view.in_turn(lambda: view.read(path))
    else:
        data = await run_sync(read_file, workspace.editor, path)
    name = quote(path_to_text(path).rpartition("/")[2], errors="replace")
    headers = {**RAW_HEADERS, "content-disposition": f"inline; filename*=UTF-8''{name}"}
    # Never as HTML: a page of a hostile repository would run with our origin.
    return Response(data, headers=headers, media_type="text/plain")


def read_file(editor: Editor, path: bytes) -> bytes:
    """Return a file's bytes; raises as ``Root.open_file``, and TooLarge."""
    descriptor, status, _ = editor.root.open_file(path)
    try:
        if status.st_size > MOST_RAW:
            message = f"too large to be sent: {path_to_text(path)}"
            raise TooLarge(message, observed_bytes=status.st_size, limit_bytes=MOST_RAW)
        return read_all(descriptor, status.st_size)
    finally:
        os.close(descriptor)
