"""``fgrep index``, ``projects`` and ``store``: which folders are projects, the state of their index, what is stored."""

import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from flashgrep.base.paths import as_latin1, from_latin1
from flashgrep.base.program_name import tell
from flashgrep.cli.commands import INTERRUPTED
from flashgrep.cli.daemon_client import (
    ask_daemon,
    ask_running,
    fail,
    failing_cleanly,
    show_name,
)
from flashgrep.cli.project_files import clear_project

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Add, list and remove projects."
)
store_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List what is stored, and clean up.",
)
MB = 1e6
LOOK_SECONDS = 0.1
PLAIN_SECONDS = 10.0
"""Seconds between progress lines when there is no terminal; most projects are done before the first."""
WaitStage = Literal["text", "symbols", "all"]
REACHED: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"symbols", "chunks", "vectors"}),
    "symbols": frozenset({"chunks", "vectors"}),
    "all": frozenset(),
}
"""The stages of indexing that begin when what is waited for is done."""
GOES_ON = "\nfgrep: indexing goes on in the background; fgrep index shows it again, fgrep projects remove ends it\n"
NO_FILES = "fgrep: no file is searched here: ignored and hidden ones are not, unless by fgrep query --no-ignore --hidden\n"
PathArgument = Annotated[
    Path, typer.Argument(help="Any folder of the project or of its git work tree.")
]


def index(
    path: PathArgument = Path(),
    *,
    background: Annotated[
        bool, typer.Option("--background", "-b", help="Return at once; keep indexing.")
    ] = False,
    wait: Annotated[
        WaitStage,
        typer.Option(
            help="Return when this much is done: text (exact search is fast), symbols, or all."
        ),
    ] = "all",
) -> None:
    """Make a folder a project, index it and show the progress; answers are right before it is done, only slower."""
    with failing_cleanly():
        opened = add_project(path)
        try:
            typer.echo(describe_new_project(opened))
            if not background:
                show_progress(opened["root"], wait)
        except KeyboardInterrupt:
            tell(GOES_ON)
            raise SystemExit(INTERRUPTED) from None


@app.command()
def add(path: PathArgument = Path()) -> None:
    """Make a folder a project; it is indexed in the background."""
    with failing_cleanly():
        opened = add_project(path)
        typer.echo(describe_new_project(opened))


@app.command("list")
def list_projects() -> None:
    """List the projects: name and folder."""
    with failing_cleanly():
        for project in ask_daemon("$/status")["projects"]:
            root = project["root"]
            typer.echo(show_name(f"{project['name']}  {root}"))
            if not Path(root).is_dir():
                forgetting = f"fgrep projects remove {shlex.quote(project['name'])}"
                note = show_name(f"fgrep: {root} is gone; {forgetting}")
                tell(f"{note}\n")


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="The project's name or folder.")],
) -> None:
    """Forget a project and delete its index. Its own files, and its .flashgrep/config.toml, are not touched."""
    with failing_cleanly():
        # As in --project: a slash or dots make it a path; a bare word is a name, even
        # if a folder here is called so.
        if "/" in name or name in {".", ".."}:
            project_name = str(Path(name).resolve())
        else:
            project_name = name
        for root in ask_daemon("$/remove", name=as_latin1(project_name))["removed"]:
            clear_project(Path(from_latin1(root)))
            typer.echo(show_name(f"removed {from_latin1(root)}"))


@store_app.command("list")
def list_stored() -> None:
    """List the stores and their projects.

    Shows the size, the folder that a store is named after, and the revisions kept.
    """
    with failing_cleanly():
        for store in ask_daemon("$/stores")["stores"]:
            owner = show_name(from_latin1(store["owner"]))
            typer.echo(
                f"{store['bytes'] / MB:.1f} MB  {owner}{', gone' * store['gone']}"
            )
            for project in store["projects"]:
                root = show_name(from_latin1(project["root"]))
                typer.echo(
                    f"    {root}, {project['files']:,} files{', gone' * project['gone']}"
                )
            if store["revision_texts"]:
                size = store["revision_bytes"] / MB
                typer.echo(
                    f"    revisions asked about, {store['revision_texts']:,} texts, {size:.1f} MB"
                )


@store_app.command()
def clean() -> None:
    """Remove the data of projects whose folder is gone."""
    with failing_cleanly():
        removed = ask_daemon("$/clean")["removed"]
        for root in removed:
            typer.echo(show_name(f"removed {from_latin1(root)}"))
        if not removed:
            tell("fgrep: nothing to remove\n")


def describe_new_project(opened: Mapping[str, str]) -> str:
    """Return the name and the folder of a project that was opened, as they are printed."""
    return show_name(f"{opened['name']}  {from_latin1(opened['root'])}")


def add_project(path: Path) -> Any:
    """Make the daemon open the project that contains ``path``, or ``path`` itself."""
    if path.is_file():
        fail(f"a file: {path}; name its folder")
    if not path.is_dir():
        fail(f"no such folder: {path}")
    return ask_daemon("$/open", folder=as_latin1(str(path.resolve())), adopt=True)


def show_progress(root: str, wait: WaitStage = "all") -> None:
    """Show indexing on stderr until what is waited for is done: a bar on a terminal, lines elsewhere."""
    console = Console(stderr=True)
    start = time.monotonic()
    state: Any = None
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[described]}"),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("listing", total=None, described="")
            for state in _follow(root, wait):
                total = None if state["stage"] == "listing" else 1.0
                progress.update(
                    task,
                    description=state["stage"],
                    completed=state["share"],
                    total=total,
                    described=_describe(state),
                )
    else:
        next_line = start + PLAIN_SECONDS
        for state in _follow(root, wait):
            # A log gets a line from time to time; a bar would fill it with control
            # characters.
            if time.monotonic() >= next_line and not state["done"]:
                sys.stderr.write(f"{state['stage']}: {_describe(state)}\n")
                next_line = time.monotonic() + PLAIN_SECONDS
    if state["stage"] == "failed":
        fail(f"indexing failed: {state['detail']}")
    noun = "file" if state["files"] == 1 else "files"
    count = f"{state['files']:,} {noun}"
    if state["done"]:
        outcome = "indexed"
    else:
        outcome = f"{wait} indexed, the rest goes on"
    seconds = time.monotonic() - start
    sys.stderr.write(f"{outcome}: {count}, after {seconds:.1f} s\n")
    if state["done"] and not state["files"]:
        tell(NO_FILES)


def _follow(root: str, wait: WaitStage) -> Iterator[Any]:
    """Yield the state of the index repeatedly until what is waited for is done."""
    while True:
        state = ask_running("$/indexing", root=root)
        if state is None:
            fail("the daemon ended while it was indexing; see fgrep daemon logs")
        yield state
        if state["done"] or state["stage"] in REACHED[wait]:
            return
        time.sleep(LOOK_SECONDS)


def _describe(state: Any) -> str:
    if state["stage"] == "listing":
        return "…"
    if state["eta_seconds"] is None:
        eta = ""
    else:
        eta = f", {state['eta_seconds']:.0f} s left"
    texts_left = state["left"].get(state["stage"])
    if texts_left is None:
        progress = f"{state['files_done']:,}/{state['files_total']:,} files"
    elif texts_left < 0:  # not known until the segments are merged
        progress = "merging"
    else:
        progress = f"{texts_left:,} texts to go"
    return f"{state['share']:.1%} of all, {progress}{eta}"
