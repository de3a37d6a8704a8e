"""``fgrep scip``: what a compiler knows about a project's names, imported from SCIP files.

The command reads the file itself and writes into the project's part of the state folder, which the daemon reads: only
the user can import, no client and no project.
"""

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from flashgrep.base.errors import InvalidParams
from flashgrep.base.own_folders import writes_folder
from flashgrep.base.paths import as_latin1, from_latin1
from flashgrep.cli.daemon_client import (
    ask_daemon,
    fail,
    failing_cleanly,
    find_user_paths,
)
from flashgrep.parts.navigation.scip.importing import forget_index, import_index
from flashgrep.parts.navigation.scip.scip_store import Source, list_sources

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Import, list and remove indexes that compilers have made.",
)
EACH: int = 100
"""Documents between two progress updates on a terminal."""
Project = Annotated[
    Path, typer.Option(help="Any folder of the project or of its git work tree.")
]


@app.command("import")
def import_file(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file written by scip-typescript, scip-python, scip-go …"
        ),
    ] = Path("index.scip"),
    *,
    project: Project = Path(),
    below: Annotated[
        str | None,
        typer.Option(
            help="The project's folder that the index is of; default: as the index says, else the root."
        ),
    ] = None,
) -> None:
    """Import what a compiler knows of names.

    definition, references and hover then use it for files that have not changed since it was made; files edited since
    are answered for without it. Import again after the indexer has run again.
    """

    def tell(count: int) -> None:
        if sys.stderr.isatty() and count % EACH == 0:
            sys.stderr.write(f"\r{count:,} documents")

    with failing_cleanly():
        root = _find_root(project)
        if not file.is_file():
            fail(f"no such file: {file}")
        try:
            source = import_index(
                file, os.fsencode(root), _find_folder(root), below, tell
            )
        except InvalidParams as error:
            fail(error.message)
        if sys.stderr.isatty():
            sys.stderr.write("\r")
        typer.echo(_describe(source))
        if not source.documents:
            fail(
                "it describes no file in its current state: run the indexer again, or name its folder with --below"
            )


@app.command("list")
def list_indexes(project: Project = Path()) -> None:
    """List a project's imported indexes."""
    with failing_cleanly():
        for source in list_sources(_find_folder(_find_root(project))):
            typer.echo(_describe(source))


@app.command()
def remove(
    file: Annotated[
        Path, typer.Argument(help="The file that was imported, as list names it.")
    ],
    *,
    project: Project = Path(),
) -> None:
    """Remove what was imported from a file."""
    with failing_cleanly():
        if not forget_index(str(file.resolve()), _find_folder(_find_root(project))):
            fail(f"nothing was imported from {file.resolve()}")
        typer.echo(f"removed {file.resolve()}")


def _find_root(project: Path) -> Path:
    if not project.is_dir():
        fail(f"no such folder: {project}")
    return Path(
        from_latin1(
            ask_daemon("$/open", folder=as_latin1(str(project.resolve())), adopt=True)[
                "root"
            ]
        )
    )


def _find_folder(root: Path) -> Path:
    return writes_folder(Path(find_user_paths().state), os.fsencode(root))


def _describe(source: Source) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(source.imported))
    counts = [
        f"{count:,} {what}"
        for count, what in (
            (source.stale, "changed since it was made"),
            (source.missing, "not in the project"),
        )
        if count
    ]
    return f"{source.file}  {source.tool}, imported {when}, {', '.join([f'{source.documents:,} files', *counts])}"
