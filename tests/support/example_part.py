"""A part of another package: a method, a command, a check, and what it keeps for a project. CONTRIBUTING shows it.

Its package offers it in ``pyproject.toml``, a line for each part:

    [project.entry-points."flashgrep.parts"]
    greetings = "example_part:PART"
"""

from collections.abc import Iterator
from typing import Final, TypedDict

import typer
from pydantic import Field

from flashgrep.api.host import Host
from flashgrep.api.part import CheckResult, Part
from flashgrep.api.service import ProjectService, ServiceKey
from flashgrep.base.registry import Call, Params, handler


class Greetings(ProjectService):
    """Counts the greetings of one project."""

    def __init__(self) -> None:
        self.count = 0


GREETINGS: Final = ServiceKey[Greetings]("greetings")


class GreetParams(Params):
    """Whom to greet."""

    name: str = Field("you", max_length=100, description="Whom to greet.")


class GreetResult(TypedDict):
    """The greeting, and how many there were."""

    text: str
    count: int


@handler("greet")
async def greet(call: Call[Host], params: GreetParams) -> GreetResult:
    """Greet somebody in the name of the project."""
    project = await call.host.workspace(call, None)
    greetings = project.service(GREETINGS)
    greetings.count += 1
    return {"text": f"{project.name} greets {params.name}", "count": greetings.count}


def wave() -> None:
    """Wave."""
    typer.echo("o/")


def check_manners() -> Iterator[CheckResult]:
    """Check nothing that could be wrong."""
    yield CheckResult("ok", "greetings", "polite")


PART = Part(
    name="greetings",
    summary="Greets.",
    handlers=(greet,),
    commands={"wave": "example_part:wave"},
    checks=(check_manners,),
    project_services={GREETINGS: lambda _project: Greetings()},
)

TAKEN = Part(
    name="taken",
    summary="A part whose service has the name of another: it is refused.",
    project_services={ServiceKey[Greetings]("name resolution"): lambda _: Greetings()},
)
