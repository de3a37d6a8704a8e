"""``fgrep web``: search and read code in the browser."""

import html
import os
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from flashgrep.base.paths import PRIVATE_FILE, as_latin1
from flashgrep.base.program_name import tell
from flashgrep.cli.daemon_client import ask_daemon, failing_cleanly, find_user_paths
from flashgrep.cli.daemon_commands import hold_http

OPENER = "web.html"
"""A file in the state folder that leads to the link. A link on a browser's command line could be read by all users."""


def web(
    path: Annotated[
        Path, typer.Argument(help="Any folder of the project or of its git work tree.")
    ] = Path(),
    *,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port instead of the configured one."),
    ] = None,
    browser: Annotated[
        bool, typer.Option(help="Open the browser as well as printing the link.")
    ] = True,
) -> None:
    """Search and read code in the browser: print a link that opens the page once, and serve it until interrupted."""
    is_folder_named = path != Path()
    opener = Path(find_user_paths().state) / OPENER
    with failing_cleanly():
        opened = ask_daemon(
            "$/open",
            folder=as_latin1(str(path.resolve(strict=True))),
            adopt=is_folder_named,
        )
    if opened["root"]:
        target = "/?" + urlencode({"project": opened["name"]})
    else:
        target = "/"

    def invite(served: Mapping[str, Any]) -> None:
        link = f"http://127.0.0.1:{served['port']}{served['link']}"
        if browser:
            write_opener(opener, link)
        typer.echo(link)
        if browser:
            webbrowser.open(opener.as_uri())

    try:
        hold_http(
            {"invite": target, **({} if port is None else {"port": port})},
            invite,
            renew,
        )
    finally:
        # The link signs in only once, but should not be left lying around anyway.
        opener.unlink(missing_ok=True)


def renew(served: Mapping[str, Any]) -> None:
    """Print a new link: a new daemon does not know browsers that signed in before."""
    address = f"http://127.0.0.1:{served['port']}{served['link']}"
    tell(f"fgrep: sign in again: {address}\n")


def write_opener(path: Path, link: str) -> None:
    """Write a page that leads to a link, readable by its user only."""
    # O_EXCL below makes the file again, so that one with other rights, or a link, is
    # never written to.
    path.unlink(missing_ok=True)
    refresh = f'<meta http-equiv="refresh" content="0;url={html.escape(link)}">'
    page = f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">{refresh}flashgrep\n'
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE
    )
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(page)
