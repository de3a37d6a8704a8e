"""``fgrep config``: every setting with its value and origin."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from flashgrep.base import config
from flashgrep.base.errors import BadSetting
from flashgrep.base.paths import PROJECT_CONFIG, PROJECT_FOLDER, config_file
from flashgrep.base.program_name import tell
from flashgrep.base.project_settings import with_project
from flashgrep.cli.daemon_client import fail

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Show the settings."
)


@app.command()
def show(
    path: Annotated[
        Path,
        typer.Argument(help="A folder; the settings of its project are merged in."),
    ] = Path(),
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Show every setting with its value and its source.

    The source is the default, a file, the environment or a flag.
    """
    if not path.is_dir():
        fail(f"no such folder: {path}; fgrep config shows all settings")
    try:
        loaded = config.load(
            user_file=Path(config_file(os.environ)), environ=os.environ
        )
    except BadSetting as error:
        fail(error.message)
    folders = (path.resolve(), *path.resolve().parents)
    # lexists: a link in place of the file gets a warning instead of being skipped.
    root = next(
        (
            folder
            for folder in folders
            if os.path.lexists(folder / PROJECT_FOLDER / PROJECT_CONFIG)
        ),
        None,
    )
    if root is not None:
        loaded = with_project(loaded, root)
    for warning in loaded.warnings:
        tell(f"fgrep: {warning}\n")
    rows = [
        (key, config.get_value(loaded.settings, key), loaded.origins[key])
        for key, _ in config.list_settings()
    ]
    if as_json:
        typer.echo(
            json.dumps(
                {
                    key: {"value": value, "origin": origin}
                    for key, value, origin in rows
                },
                indent=2,
            )
        )
        return
    for key, value, origin in rows:
        typer.echo(f"{key:<22} {json.dumps(value):<12} {origin}")


@app.command()
def path() -> None:
    """Print the path of your config.toml, whether or not it exists."""
    typer.echo(config_file(os.environ))
