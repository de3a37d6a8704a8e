"""``fgrep team``: a shared server over repositories stored in PostgreSQL (docs/team.md)."""

import json
import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from flashgrep.base import config
from flashgrep.base.cores import count_cores
from flashgrep.base.errors import FlashgrepError, Unavailable
from flashgrep.base.paths import TEAM_DATABASE_VARIABLE, config_file
from flashgrep.cli.daemon_client import fail, find_user_paths
from flashgrep.daemon.log import Log
from flashgrep.parts.team import access, migrations
from flashgrep.parts.team.database import connect
from flashgrep.parts.team.jobs import Team
from flashgrep.parts.team.store_connection import Store
from flashgrep.parts.team.team_catalogue import TeamCatalogue

if TYPE_CHECKING:
    from psycopg import Connection

LOG_BYTES = 16 << 20
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Serve a team's repositories from PostgreSQL.",
)
Database = Annotated[
    str,
    typer.Option(
        envvar=TEAM_DATABASE_VARIABLE,
        help="The store's address, e.g. postgresql://user@host/name.",
        show_default=False,
    ),
]
NEXT_STEPS = {
    "database_away": f"{TEAM_DATABASE_VARIABLE} or --database names it: postgresql://user@host/name",
    "project_not_found": "fgrep team status lists the repositories",
}
"""By the reason of a failure: what the administrator can do."""
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@contextmanager
def _failing_cleanly() -> Iterator[None]:
    try:
        yield
    except FlashgrepError as error:
        suggestion = error.data.get("suggestion", NEXT_STEPS.get(error.reason, ""))
        message = error.message
        if suggestion and suggestion not in message:
            message += f"\nfgrep: {suggestion}"
        fail(message)


@contextmanager
def _connect(database: str) -> "Iterator[Connection[Any]]":
    with _failing_cleanly(), closing(_team(database).open()) as connection:
        yield connection


def _team(database: str) -> Team:
    embedding = _load_settings().embedding.model_dump_json()
    return Team(database, _find_cache(), os.environ, count_cores(), embedding)


def _find_cache() -> Path:
    """Return where this machine's clones of addresses are kept."""
    return Path(find_user_paths().cache) / "team"


def _load_settings() -> config.Settings:
    return config.load(
        user_file=Path(config_file(os.environ)), environ=os.environ
    ).settings


@app.command()
def init(
    database: Database = "",
    shard: Annotated[
        list[str] | None,
        typer.Option(
            help="A part of the texts, as NAME (here) or NAME=ADDRESS (on another server); given once."
        ),
    ] = None,
) -> None:
    """Create the store's tables, or migrate them to this version."""
    parts = [part.partition("=") for part in shard or ()]
    with _failing_cleanly(), closing(connect(database)) as connection:
        steps = migrations.migrate(
            connection, {name: address or None for name, _, address in parts}
        )
    typer.echo("\n".join(steps) or "nothing to do")


@app.command()
def add(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Bare clones by path, or addresses that your git can fetch."
        ),
    ],
    database: Database = "",
    name: Annotated[
        str,
        typer.Option(
            help="Name of the repository; default: the last part of its address."
        ),
    ] = "",
    branch: Annotated[
        list[str] | None, typer.Option(help="Index only this branch; may be repeated.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(help="Also index matching tags, e.g. 'v1.*'; may be repeated."),
    ] = None,
) -> None:
    """Add repositories; `sync` indexes them."""
    if name and len(sources) > 1:
        fail("--name is for one repository")
    with _failing_cleanly():
        for source in sources:
            typer.echo(
                _team(database).add(source, name, tuple(branch or ()), tuple(tag or ()))
            )


@app.command()
def remove(name: str, database: Database = "") -> None:
    """Delete a repository and everything stored for it."""
    with _failing_cleanly():
        _team(database).remove(name)


@app.command()
def sync(
    names: Annotated[
        list[str] | None, typer.Argument(help="Repositories; default: all.")
    ] = None,
    database: Database = "",
    every: Annotated[
        int,
        typer.Option(min=0, help="Keep running: check again every so many seconds."),
    ] = 0,
) -> None:
    """Fetch repositories and index what is new. Any number of machines may do it at once."""
    with _failing_cleanly():
        team = _team(database)
        event = threading.Event()
        while True:
            try:
                team.request(tuple(names or ()))
                team.work(partial(typer.echo, err=True))
            except Unavailable as error:
                if not every or error.reason != "database_away":
                    raise
                typer.echo(error.message, err=True)
            if not every or event.wait(every):
                break


@app.command()
def status(database: Database = "", *, as_json: AsJson = False) -> None:
    """Show the repositories: branches, texts, last fetch, and problems."""
    with _connect(database) as connection:
        rows = access.describe(connection)
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        typer.echo("no repository yet; add one with: fgrep team add", err=True)
    for row in rows:
        state = row["problem"] or (
            f"{row['waiting']} waiting" if row["waiting"] else "ready"
        )
        typer.echo(
            f"{row['name']:<30} {row['branches']:>5} branches {row['texts']:>9} texts  {row['synced'] or '-'}  {state}"
        )


@app.command()
def token(
    subject: Annotated[
        str, typer.Argument(help="The person or program that it identifies.")
    ],
    database: Database = "",
    days: Annotated[
        int | None,
        typer.Option(min=1, help="How long it is valid; default: until it is revoked."),
    ] = None,
    *,
    proxy: Annotated[
        bool,
        typer.Option(
            "--proxy",
            help="For a proxy: it acts for the users it names and sees nothing itself.",
        ),
    ] = False,
    revoke: Annotated[
        bool,
        typer.Option("--revoke", help="Delete all tokens of this subject instead."),
    ] = False,
) -> None:
    """Create a token, print it, and store only its hash."""
    with _connect(database) as connection:
        if revoke:
            typer.echo(f"{access.revoke_tokens(connection, subject)} revoked")
        else:
            typer.echo(
                access.make_token(
                    connection, subject, days, "proxy" if proxy else "own"
                )
            )


@app.command()
def allow(
    subject: Annotated[str, typer.Argument(help="The subject of a token, or a group.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Repositories; default: all, including those added later."),
    ] = None,
    database: Database = "",
    group: Annotated[
        list[str] | None, typer.Option(help="Put the subject into this group instead.")
    ] = None,
    *,
    none: Annotated[
        bool, typer.Option("--none", help="Revoke all its rights instead.")
    ] = False,
) -> None:
    """Give a user or a group access to repositories."""
    with _connect(database) as connection:
        for current_group in group or ():
            access.join(connection, subject, current_group)
        if none:
            access.forbid(connection, subject)
        elif not group:
            access.allow(connection, subject, names or None)


@app.command()
def serve(
    database: Database = "",
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; put a TLS proxy in front of anything but loopback."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 7780,
    public: Annotated[
        str,
        typer.Option(
            help="Public address of the page, e.g. https://code.example.org.",
            show_default=False,
        ),
    ] = "",
    proxy_header: Annotated[
        str,
        typer.Option(
            help="Header in which a proxy names the signed-in user, e.g. X-Forwarded-User.",
            show_default=False,
        ),
    ] = "",
    groups_header: Annotated[
        str,
        typer.Option(
            help="Header in which it names the user's groups.", show_default=False
        ),
    ] = "",
) -> None:
    """Serve HTTP until interrupted.

    The page is at /, MCP at /mcp, JSON-RPC at /rpc, methods at /call, web hooks at /hook.
    """
    if public and not re.fullmatch(r"https?://[A-Za-z0-9.\[\]:-]+", public):
        fail("--public takes a scheme and a host, e.g. https://code.example.org")
    for header in filter(None, (proxy_header, groups_header)):
        if not re.fullmatch(r"[A-Za-z0-9-]+", header):
            fail(f"not a header name: {header}")
    with (
        _failing_cleanly(),
        tempfile.TemporaryDirectory(prefix="fgrep-team-") as folder,
        suppress(KeyboardInterrupt),
    ):
        settings = _load_settings()
        store = Store(database)
        store.open()
        log = Log(
            Path(find_user_paths().state) / "team.log",
            level=settings.log.level,
            max_bytes=LOG_BYTES,
        )
        with (
            closing(
                TeamCatalogue(store, settings, Path(folder), os.environ, _find_cache())
            ) as catalogue,
            socket.create_server((host, port)) as listener,
        ):
            anyio.run(
                partial(
                    _serve,
                    catalogue,
                    settings,
                    log,
                    listener,
                    public,
                    (proxy_header, groups_header),
                )
            )


async def _serve(
    catalogue: TeamCatalogue,
    settings: config.Settings,
    log: Log,
    listener: socket.socket,
    public: str,
    headers: tuple[str, str],
) -> None:
    from flashgrep.parts.team.guard import AccessRules  # noqa: PLC0415 - takes a second to import
    from flashgrep.parts.team.server import make_application, serve  # noqa: PLC0415 - as above

    host, port = listener.getsockname()[:2]
    here = [f"http://{name}:{port}" for name in (host, "127.0.0.1", "localhost")]
    rules = AccessRules(
        tuple(dict.fromkeys([*filter(None, [public.lower()]), *here])),
        *(header.lower() for header in headers),
    )

    def say() -> None:
        typer.echo(here[0])
        sys.stdout.flush()

    # Told to end, it answers what is in flight and leaves no folder behind.
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        await serve(
            make_application(catalogue, settings, log, rules),
            listener,
            say,
            anext(signals),
        )
