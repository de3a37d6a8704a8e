"""Which files a caller wants, for every method that takes globs and languages."""

from collections.abc import Sequence
from functools import partial

from flashgrep.ingest.globs import PathFilter
from flashgrep.workspace import Workspace


async def path_filter(
    workspace: Workspace, include: Sequence[str], exclude: Sequence[str] = (), languages: Sequence[str] = ()
) -> PathFilter | None:
    """Return the filter, made off the event loop (64 KB of globs take 60 ms); None: every file.

    Raises:
        InvalidParams: a bad glob, or a language nobody knows.

    """
    if not (include or exclude or languages):
        return None
    return await workspace.in_turn(partial(PathFilter, include, exclude, languages=languages))
