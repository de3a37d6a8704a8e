"""A session for each HTTP request: what it is bound to stands in its URL, nothing is kept between requests."""

from dataclasses import dataclass
from typing import Final

from starlette.datastructures import QueryParams

from flashgrep.catalogue import Catalogue
from flashgrep.errors import InvalidParams
from flashgrep.mcp.toolsets import named
from flashgrep.registry import Capabilities, Session, Toolset

PARAMETERS: Final = ("project", "collection", "collections", "toolsets", "read_only")
NO: Final = frozenset({"0", "false", "no", "off", ""})
"""What ``read_only`` may say to mean that it is not; said several times, one that means yes decides."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A session, and which tools it is shown."""

    session: Session
    toolsets: tuple[Toolset, ...]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Makes sessions: ``?project=P``, ``?collection=C``, ``?collections=A,B``, ``?toolsets=A,B``, ``?read_only=1``."""

    catalogue: Catalogue
    may_write: bool

    async def bound(self, query: QueryParams) -> Bound:
        """Return the session a request's query string asks for.

        Raises:
            InvalidParams: no such parameter or toolset, or several projects.
            NotFound: no such project.

        """
        unknown = query.keys() - set(PARAMETERS)
        if unknown:  # ?readonly=1 must not be a connection that may write
            field = min(unknown)[:100]
            raise InvalidParams(f"no such parameter of an address: {field}", field=field, allowed=list(PARAMETERS))
        listed = ",".join(query.getlist("collections")).split(",")
        names = [name for name in (*query.getlist("collection"), *listed) if name]
        named_once = set(query.getlist("project"))
        if len(named_once) > 1:
            raise InvalidParams("project: named more than once", field="project")
        projects = tuple([str((await self.catalogue.open(name)).path) for name in names or named_once])
        session = Session(
            projects=projects,
            collections=projects,
            capabilities=Capabilities(writes="always" if self.may_write else "never"),
            read_only=any(said.lower() not in NO for said in query.getlist("read_only")),
            has_token=True,
            wire="http",
        )
        return Bound(session, named(",".join(query.getlist("toolsets")).split(",")))
