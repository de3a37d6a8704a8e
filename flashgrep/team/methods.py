"""What a team's server answers itself, where the local daemon's method asks a folder or a clone."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from flashgrep import __version__
from flashgrep.errors import Unavailable
from flashgrep.git.repository import list_addresses, name_address
from flashgrep.handlers.common import ProjectParams
from flashgrep.handlers.history import MOST_NAMES, RevisionsResult
from flashgrep.handlers.indexing import StatsResult
from flashgrep.registry import Call, Handler
from flashgrep.team.catalogue import TeamCatalogue, TeamProject
from flashgrep.team.clones import TAGS

HOW: Final = "name a repository by `project`, or several by `projects`"


async def list_revisions(call: Call[TeamCatalogue], params: ProjectParams) -> RevisionsResult:
    """Return the branches and tags of a repository, the newest first."""
    project = await call.host.workspace(call, params.project)
    query = (
        "SELECT name, encode(commit, 'hex'), seconds FROM flashgrep.branch JOIN flashgrep.revision "
        "USING (repository, commit) WHERE repository = %s ORDER BY seconds DESC, name LIMIT %s::bigint"
    )
    rows = await _fetch(project, query, [project.row.id, MOST_NAMES])
    kinds = {True: "tag", False: "branch"}
    return {
        "results": [
            {"name": name.removeprefix(TAGS), "kind": kinds[name.startswith(TAGS)], "commit": commit, "time": at}
            for name, commit, at in rows
        ]
    }


def ask_clone(method: Handler) -> Callable[[Call[TeamCatalogue], Any], Awaitable[Any]]:
    """Return a method of the past that asks at a commit of the store: the clone may have branches nobody is to see."""

    async def ask(call: Call[TeamCatalogue], params: Any) -> Any:
        project = await call.host.workspace(call, params.project)
        commit = (await project.at(params.rev)).revision.commit.decode("ascii")
        return await method.run(call, params.model_copy(update={"rev": commit}))

    return ask


async def stats(call: Call[TeamCatalogue], params: ProjectParams) -> StatsResult:
    """Return the repositories that are to be seen, or figures of one, at HEAD."""
    known = call.host.list_reachable(call.session)
    if params.project is None and len(call.session.projects) != 1:
        return {"project": None, "version": __version__, "projects": known, "message": HOW}
    project = await call.host.workspace(call, params.project)
    query = (
        "SELECT extract(epoch FROM synced)::float8, (SELECT coalesce(sum(bytes), 0)::bigint FROM flashgrep.segment "
        "WHERE segment.repository = repository.id) FROM flashgrep.repository WHERE id = %s"
    )
    rows = await _fetch(project, query, [project.row.id])
    synced, posting_bytes = rows[0] if rows else (None, 0)
    result: StatsResult = {
        "project": project.name,
        "version": __version__,
        "projects": known,
        "stage": "ready" if project.row.generation else "waiting",
        "generation": project.generation,
        "gram_bytes": posting_bytes,
        "last_update": synced,
        "problem": project.row.problem,
    }
    address = name_address(project.row.source)
    if not address:  # of a bare clone, what that is fetched from
        with suppress(Unavailable):
            address = next(iter(await project.ask_repository(lambda clone: list_addresses(clone.git))), "")
    if address:
        result["address"] = address
    if project.row.generation:
        table = (await project.at("HEAD")).table
        result["total_files"] = len(table)
        result["files_skipped"] = dict(Counter(table.skipped.values()))
    return result


async def _fetch(project: TeamProject, query: str, params: list[Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, as the one who asks sees them."""

    def read() -> list[tuple[Any, ...]]:
        with project.asking.read() as reading:
            return reading.fetch(query, params)

    return await project.in_turn(read)
