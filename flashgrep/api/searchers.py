"""Questions about a view that the core asks and parts answer: words, the best definition of a name, a revision."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self, TypeAlias

from flashgrep.api.service import PART_LEFT_OUT
from flashgrep.api.view import Project, View
from flashgrep.base.errors import Unavailable
from flashgrep.base.registry import Session
from flashgrep.files.globs import PathFilter
from flashgrep.search.exact import Answer, Ranking

Holds: TypeAlias = Callable[[bytes], bool]
"""Whether a file, by its path in a view, is of what is asked."""


class BestDefinition(NamedTuple):
    """The best definition of a name, and the locations of some others as ``path:line``."""

    path: bytes
    start_line: int
    end_line: int
    others: list[str]


class SyntaxErrors(NamedTuple):
    """How many places of a text do not parse, and the line of the first."""

    places: int
    line: int


async def _refuse_definition(
    _view: View, _name: str, _under: bytes, _holds: Holds | None
) -> BestDefinition:
    raise Unavailable(
        "symbols are not installed: the part `symbols` is left out",
        reason=PART_LEFT_OUT,
    )


async def _refuse_embedding(_host: object, _provider: object) -> object:
    raise Unavailable(
        "search by meaning is not installed: the part `meaning` is left out",
        reason=PART_LEFT_OUT,
    )


async def _refuse_revision(_project: Project, _rev: str, _session: Session) -> View:
    raise Unavailable(
        "revisions are not installed: the part `git` is left out", reason=PART_LEFT_OUT
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Searchers:
    """One function for each kind of question; where no part answers it raises ``Unavailable``, or is None."""

    words: Callable[[View, str, int, PathFilter | None], Awaitable[Answer]] | None = (
        None
    )
    """Returns the best lines for words; at most so many, of the files that the filter wants. None: nobody does."""
    definition: Callable[
        [View, str, bytes, Holds | None], Awaitable[BestDefinition]
    ] = _refuse_definition
    """Returns the best definition of a name in a file or below a folder (empty: anywhere), in a file that is held (None:
    in any); raises NotFound."""
    near_names: Callable[[View, str], Awaitable[list[str]]] | None = None
    """Returns names with a definition that are similar to one that has none. None: nobody does."""
    syntax_errors: Callable[[bytes, bytes], SyntaxErrors | None] | None = None
    """Returns what does not parse in a text, by a path and the text; None: no grammar can say. None: nobody does."""
    ranking: Ranking | None = None
    """Answers an exact question for lines, best first; a function of a module, since lookup workers call it, too."""
    embedding: Callable[[Any, Any], Awaitable[Any]] = _refuse_embedding
    """Given a host and a provider's name, returns its settings; raises ProviderUnavailable if it does not work here."""
    revision: Callable[[Project, str, Session], Awaitable[View]] = _refuse_revision
    """Returns a project as it is in a revision, as far as the connection may read it; raises NotFound, InvalidParams,
    Forbidden, Unavailable."""

    @classmethod
    def join(cls, several: Iterable[Self]) -> Self:
        """Return the searchers of several parts together; of two that answer one kind, the later one is taken."""
        nobody = cls()
        answered = {}
        for searchers in several:
            for field in fields(cls):
                function = getattr(searchers, field.name)
                if function is not getattr(nobody, field.name):
                    answered[field.name] = function
        return cls(**answered)
