"""A part of another package: one method, one command, and what it keeps for a project. CONTRIBUTING shows it."""

from typing import Final, TypedDict

import typer
from pydantic import Field

from flashgrep.api.part import Part
from flashgrep.api.service import ProjectService, ServiceKey
from flashgrep.base.registry import Call, Params, handler
from flashgrep.project.catalogue import Catalogue


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
async def greet(call: Call[Catalogue], params: GreetParams) -> GreetResult:
    """Greet somebody in the name of the project."""
    project = await call.host.workspace(call, None)
    greetings = project.service(GREETINGS)
    greetings.count += 1
    return {"text": f"{project.name} greets {params.name}", "count": greetings.count}


def wave() -> None:
    """Wave."""
    typer.echo("o/")


PART = Part(
    name="greetings",
    summary="Greets.",
    handlers=(greet,),
    commands={"wave": "example_part:wave"},
    project_services={GREETINGS: lambda _project: Greetings()},
)

TAKEN = Part(
    name="taken",
    summary="A part whose service has the name of another: it is refused.",
    project_services={ServiceKey[Greetings]("name resolution"): lambda _: Greetings()},
)
