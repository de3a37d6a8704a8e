"""Forwards calls about repositories that are not on this machine to a team's server (docs/team.md).

Only methods that read are forwarded, and only for calls that name a project unknown here. The address and the token are
the user's own settings: a repository cannot set them, and the token is sent only to that address.
"""

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from flashgrep.base.config import Settings
from flashgrep.base.errors import (
    Busy,
    DeadlineExceeded,
    FlashgrepError,
    Forbidden,
    InvalidParams,
    NotFound,
    ProviderUnavailable,
    TooLarge,
    Unavailable,
)
from flashgrep.base.paths import TEAM_TOKEN_VARIABLE
from flashgrep.base.plain_files import read_plain_file
from flashgrep.base.registry import Call, Registry
from flashgrep.files.openat import RootFolder
from flashgrep.parts.git.program import Git
from flashgrep.parts.git.repository import list_addresses
from flashgrep.parts.meaning.embed.http_api import Endpoint, RetryPolicy

AVOID_SECONDS: Final = 15.0
"""A server that did not respond gets no calls for this long, since each one would have to wait for it."""
REMEMBERED_SECONDS: Final = 60.0
"""How long the address of a repository is cached."""
MOST_ASKED: Final = 8
"""Concurrent calls, each of which occupies a thread."""
MOST_TOKEN: Final = 4096
ERRORS: Final = {
    error.code: error
    for error in (
        InvalidParams,
        NotFound,
        Unavailable,
        TooLarge,
        DeadlineExceeded,
        Busy,
        Forbidden,
    )
}


@dataclass(slots=True)
class TeamLink:
    """The connection to a team's server."""

    settings: Settings
    environ: Mapping[str, str]
    _away_until: float = 0.0
    _addresses: dict[str, tuple[float, str]] = field(default_factory=dict)
    """A cache of the addresses of the team's repositories, each with its expiry."""
    _limit: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(MOST_ASKED)
    )

    async def ask(
        self, method: str, params: Mapping[str, Any], deadline: float | None
    ) -> dict[str, Any]:
        """Return a method's result from the server; ``deadline`` by time.monotonic().

        Raises:
            FlashgrepError: the server's own error.
            Unavailable: team_away, it does not respond in time, or rejects the token.

        """
        team = self.settings.team
        now = time.monotonic()
        if now < self._away_until:
            raise self.away("it did not respond a moment ago")
        if deadline is None:
            seconds = team.timeout_seconds
        else:
            seconds = max(0.1, min(team.timeout_seconds, deadline - now))
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

        def post() -> Any:
            key = self.environ.get(TEAM_TOKEN_VARIABLE, "")
            if team.token_file:
                file = Path(team.token_file).expanduser()
                key = read_plain_file(file, MOST_TOKEN).decode("ascii", "replace")
            endpoint = Endpoint(
                provider="the team's server", url=team.url, key=key.strip(), key_name="team.token_file",
                retries=RetryPolicy(timeout=seconds, attempts=1),
            )  # fmt: skip
            return endpoint.request("/rpc", body)

        answer = None
        with anyio.move_on_after(seconds):  # resolving a host name has no other timeout
            try:
                answer = await anyio.to_thread.run_sync(
                    post, abandon_on_cancel=True, limiter=self._limit
                )
            except (ProviderUnavailable, OSError) as error:
                self._away_until = time.monotonic() + AVOID_SECONDS
                raise self.away(str(error)) from error
        if answer is None:
            self._away_until = time.monotonic() + AVOID_SECONDS
            raise self.away(f"no response within {seconds:g} s")
        # Whatever listens at the address may answer anything.
        if isinstance(answer, dict):
            reply = answer
        else:
            reply = {}
        if isinstance(result := reply.get("result"), dict):
            return result
        raise self._read_error(reply.get("error"))

    async def find_here(self, call: Call[Any], project: str) -> str | None:
        """Return the name of a local project that is a clone of the team's repository, or None.

        Raises:
            NotFound, Unavailable: as ``ask``.

        """
        if (
            project not in self._addresses
            or time.monotonic() > self._addresses[project][0]
        ):
            statistics = await self.ask("stats", {"project": project}, call.deadline)
            self._addresses[project] = (
                time.monotonic() + REMEMBERED_SECONDS,
                str(statistics.get("address", "")),
            )
        address = self._addresses[project][1]
        if address:
            roots = [
                (current_project.name, os.fsencode(current_project.root))
                for current_project in call.host.list_projects()
            ]
        else:
            roots = []

        def find() -> str | None:
            clones = (
                (name, list_addresses(Git.find(RootFolder(root), self.environ)))
                for name, root in roots
            )
            return next(
                (name for name, addresses in clones if address in addresses), None
            )

        try:
            return await anyio.to_thread.run_sync(find, limiter=self._limit)
        except (FlashgrepError, OSError):
            return None

    def away(self, why: str) -> Unavailable:
        """Return the error that says that the server is unavailable."""
        return Unavailable(
            f"the team's server is unavailable: {why}",
            reason="team_away",
            team=self.settings.team.url,
        )

    def _read_error(self, error: Any) -> FlashgrepError:
        """Return an error response of the server as one of our errors."""
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            return self.away("its response is not JSON-RPC")
        data = error.get("data")
        if isinstance(data, dict):
            details = {str(name): value for name, value in data.items()}
        else:
            details = {}
        reason = details.pop("reason", None)
        details.pop("message", None)
        code: Any = error.get("code")
        if isinstance(code, int):
            kind = ERRORS.get(code, Unavailable)
        else:
            kind = Unavailable
        return kind(
            error["message"],
            reason=reason if isinstance(reason, str) else None,
            **details,
        )


def join_team(registry: Registry, link: TeamLink) -> Registry:
    """Return the methods; those that read revisions are forwarded for projects that are unknown here."""
    return Registry(
        replace(handler, run=partial(_ask_here_first, link, handler.name, handler.run))
        if handler.safety == "reads"
        and "project" in handler.params.model_fields
        and ("rev" in handler.params.model_fields or handler.name == "list_revisions")
        else handler
        for handler in registry
    )


async def _ask_here_first(
    link: TeamLink,
    name: str,
    run: Callable[[Any, Any], Awaitable[Any]],
    call: Call[Any],
    params: Any,
) -> Any:
    """Answer a call here, or forward it if it names a project that is unknown here.

    If a local project is a clone of the team's repository, it answers, provided that it has the revision.
    """
    try:
        return await run(call, params)
    except (NotFound, Forbidden) as error:
        project = params.project
        is_bound = (
            error.reason == "outside_root" and call.session.capabilities.asks_team
        )
        is_unknown = error.reason == "project_not_found" or (
            is_bound and project and not call.host.is_known(project)
        )
        # A path names a folder of this machine, existing or not, and is never sent to
        # another machine.
        if not project or project[0] in "/~." or "\\" in project or not is_unknown:
            raise
        arguments = params.model_dump(mode="json", exclude_unset=True)
        try:
            here = await link.find_here(call, project)
            if here is not None:
                with suppress(NotFound, Forbidden):
                    return _note(
                        await run(call, params.model_copy(update={"project": here})),
                        f"{project} is {here}",
                    )
            result = await link.ask(name, arguments, call.deadline)
        except NotFound as there:
            raise (error if there.reason == "project_not_found" else there) from None
        except Unavailable as away:
            raise type(away)(
                f"{error.message}; {away.message}", reason=away.reason, **away.data
            ) from None
    return {
        **_note(result, f"answered by {link.settings.team.url}"),
        "answered_by": link.settings.team.url,
    }


def _note(result: dict[str, Any], source: str) -> dict[str, Any]:
    """Add the source of an answer to its coverage."""
    coverage = result.get("coverage")
    if isinstance(coverage, dict):
        coverage["detail"] = "; ".join(filter(None, [coverage.get("detail"), source]))
    return result
