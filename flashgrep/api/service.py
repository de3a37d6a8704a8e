"""What a part keeps for a project, or for all projects of a host, between questions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

from flashgrep.base.errors import Unavailable

ServiceT = TypeVar("ServiceT")
KindT = TypeVar("KindT")

PART_LEFT_OUT: Final = "part_left_out"
"""The reason of errors about what a part would answer that is not there."""


class ServedAnswer(NamedTuple):
    """An answer that a model was given: by which method or program, about which project, what it took."""

    name: str
    project: str
    """The project's name; empty for a connection that is bound to none, or to several."""
    seconds: float
    size: int
    """Bytes of the text."""
    unread: int = 0
    """Files of a search that were not read, because the index proves that they have no match."""


class ServiceKey(Generic[ServiceT]):
    """Names a service and its type: ``project.service(KEY)`` returns one of this type."""

    def __init__(self, name: str) -> None:
        self.name = name


class ProjectService:
    """What a part keeps for one project while it is open. A hook does nothing unless the part overrides it."""

    problem: str = ""
    """What a reader of an answer about the project should know; empty if there is nothing."""

    def recover(self) -> None:
        """Repair what a killed daemon left; called in a thread, before the first question."""

    def open_source(self, snapshot: Any) -> Any:
        """Return what else knows the meaning of names, for one question about a snapshot; None: nothing."""
        del snapshot

    def change_embedding(self, embedding: str) -> None:
        """Use the embedder of these settings, as JSON, from now on."""

    def forget_index(self) -> None:
        """Drop what was read from the index, which is set aside."""

    def rest(self, seconds: float) -> bool:
        """Free memory that no question has needed for this long; return whether there was any."""
        del seconds
        return False

    def close(self) -> None:
        """Give back everything: the project is being closed."""


class HostService:
    """What a part keeps for all projects of a host. A hook does nothing unless the part overrides it."""

    def forget_caches(self) -> None:
        """Drop what only speeds up lookups: after many of them, memory is given back."""

    def rest(self) -> None:
        """End what has been idle; called every minute."""

    def note_answer(self, answer: "ServedAnswer") -> None:
        """Take note of an answer that a model was given."""
        del answer

    def forget_project(self, root: bytes) -> None:
        """Forget what is kept for a project, by its root: it was removed."""
        del root

    def find_leftovers(self) -> Mapping[Path, set[bytes]]:
        """Return what was stored and nobody uses any more: roots by their store's database; called in a thread."""
        return {}

    def forget_models(self) -> None:
        """Unload what only projects that have just come to rest needed."""

    def close(self) -> None:
        """Give back everything: the host ends."""


def check_names(keys: Iterable[ServiceKey[Any]]) -> None:
    """Raise ValueError if two keys have one name: one service would take the place of the other."""
    names: set[str] = set()
    for key in keys:
        if key.name in names:
            raise ValueError(f"the service {key.name} is taken")
        names.add(key.name)


MakeProjectService = Callable[[Any], ProjectService]
"""Makes a service for a project, which is given."""
MakeHostService = Callable[[Any], HostService]
"""Makes a service for a host, which is given."""


class Services(Generic[KindT]):
    """The services of one project, or of one host, by their keys."""

    def __init__(self, services: Mapping[ServiceKey[Any], KindT]) -> None:
        self._services: dict[str, Any] = {
            key.name: service for key, service in services.items()
        }

    @classmethod
    def make(
        cls,
        factories: Iterable[Mapping[ServiceKey[Any], Callable[[Any], KindT]]],
        owner: Any,
    ) -> "Services[KindT]":
        """Return what the parts keep for an owner: a project, or a host; raises as ``check_names``."""
        services: dict[ServiceKey[Any], KindT] = {}
        for several in factories:
            check_names([*services, *several])
            for key, make in several.items():
                services[key] = make(owner)
        return cls(services)

    def __iter__(self) -> Iterator[KindT]:
        return iter(self._services.values())

    def find(self, key: ServiceKey[ServiceT]) -> ServiceT:
        """Return a service.

        Raises:
            Unavailable: the part that keeps it is left out.

        """
        service: ServiceT | None = self._services.get(key.name)
        if service is None:
            raise Unavailable(
                f"not here: {key.name}; the part that has them is left out",
                reason=PART_LEFT_OUT,
            )
        return service
