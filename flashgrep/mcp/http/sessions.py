"""A session for each HTTP request: what it is bound to stands in its URL, nothing is kept between requests."""

from collections.abc import Mapping
from dataclasses import dataclass

from flashgrep.catalogue import Catalogue
from flashgrep.mcp.toolsets import named
from flashgrep.registry import Session, Toolset


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

    async def bound(self, query: Mapping[str, str]) -> Bound:
        """Return the session a request's query string asks for.

        Raises:
            InvalidParams: no such toolset.
            NotFound: no such project.

        """
        names = [name for name in (query.get("collection"), *query.get("collections", "").split(",")) if name]
        if not names and "project" in query:
            names = [query["project"]]
        projects = tuple([(await self.catalogue.open(name)).name for name in names])
        may_write = self.may_write and query.get("read_only", "0").lower() in {"0", "false", ""}
        session = Session(projects=projects, collections=projects, may_write=may_write, wire="http")
        session.notes["auth"] = True
        return Bound(session, named(query.get("toolsets", "").split(",")))
