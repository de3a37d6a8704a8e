"""A team's server, asked by the daemon about repositories that are not here (docs/team.md).

Only a method that reads, and only a call that names one project that nobody here knows, goes there. The address and the
token are the user's own settings: a repository's cannot set them, and the token goes to that address alone.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from flashgrep.config import Settings
from flashgrep.embed.endpoint import Endpoint, RetryPolicy
from flashgrep.errors import (
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
from flashgrep.paths import TEAM_TOKEN_VARIABLE
from flashgrep.registry import Call, Handler, Registry

AVOID_SECONDS: Final = 15.0
"""A server that did not answer is not asked for so long: each further question would wait for it, too."""
MOST_ASKED: Final = 8
"""Questions at a time: each holds a thread."""
MOST_TOKEN: Final = 4096
ERRORS: Final = {
    one.code: one for one in (InvalidParams, NotFound, Unavailable, TooLarge, DeadlineExceeded, Busy, Forbidden)
}


@dataclass(slots=True)
class TeamLink:
    """The way to a team's server."""

    settings: Settings
    environ: Mapping[str, str]
    _away_until: float = 0.0
    _limit: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(MOST_ASKED))

    async def ask(self, method: str, params: Mapping[str, Any], deadline: float | None) -> dict[str, Any]:
        """Return a method's result; ``deadline`` on the clock of time.monotonic().

        Raises:
            FlashgrepError: what the server answers.
            Unavailable: team_away, it does not answer, or not in time, or refuses the token.

        """
        team, now = self.settings.team, time.monotonic()
        if now < self._away_until:
            raise self.away("it did not answer a moment ago")
        seconds = team.timeout_seconds if deadline is None else max(0.1, min(team.timeout_seconds, deadline - now))
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

        def post() -> Any:
            retries = RetryPolicy(timeout=seconds, attempts=1)
            endpoint = Endpoint(
                provider="the team's server", url=team.url, key=self._read_token(), key_name="team.token_file",
                retries=retries,
            )  # fmt: skip
            return endpoint.request("/rpc", body)

        answer = None
        with anyio.move_on_after(seconds):  # a name that is looked up has no other bound
            try:
                answer = await anyio.to_thread.run_sync(post, abandon_on_cancel=True, limiter=self._limit)
            except (ProviderUnavailable, OSError) as error:
                self._away_until = time.monotonic() + AVOID_SECONDS
                raise self.away(str(error)) from error
        if answer is None:
            self._away_until = time.monotonic() + AVOID_SECONDS
            raise self.away(f"no answer within {seconds:g} s")
        found = answer if isinstance(answer, dict) else {}
        if isinstance(result := found.get("result"), dict):
            return result
        raise self._read_error(found.get("error"))

    def away(self, why: str) -> Unavailable:
        """Return the error that says that the server could not be asked."""
        return Unavailable(f"the team's server cannot be asked: {why}", reason="team_away", team=self.settings.team.url)

    def _read_token(self) -> str:
        named = self.settings.team.token_file
        if not named:
            return self.environ.get(TEAM_TOKEN_VARIABLE, "").strip()
        with Path(named).expanduser().open(encoding="ascii", errors="replace") as file:
            return file.read(MOST_TOKEN).strip()

    def _read_error(self, error: Any) -> FlashgrepError:
        """Return an error that the server answered as one of ours."""
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            return self.away("its answer is none of JSON-RPC")
        data = error.get("data")
        told = {str(name): value for name, value in data.items()} if isinstance(data, dict) else {}
        reason = told.pop("reason", None)
        told.pop("message", None)
        code: Any = error.get("code")
        kind = ERRORS.get(code, Unavailable) if isinstance(code, int) else Unavailable
        return kind(error["message"], reason=reason if isinstance(reason, str) else None, **told)


def join_team(registry: Registry, link: TeamLink) -> Registry:
    """Return the methods; those that read revisions ask the team about a project that is not known here."""
    return Registry(
        replace(one, run=partial(_ask_here_first, link, one.name, one.run)) if _is_asked_there(one) else one
        for one in registry
    )


def _is_asked_there(handler: Handler) -> bool:
    fields = handler.params.model_fields
    return handler.safety == "reads" and "project" in fields and ("rev" in fields or handler.name == "list_revisions")


async def _ask_here_first(
    link: TeamLink, name: str, run: Callable[[Any, Any], Awaitable[Any]], call: Call[Any], params: Any
) -> Any:
    """Answer a call here, or there where it names a project that is none here."""
    try:
        return await run(call, params)
    except NotFound as error:
        project = params.project
        # A path is a folder's of this machine, whether it is there or not: no other machine is told of it.
        if error.reason != "project_not_found" or not project or project[0] in "/~." or "\\" in project:
            raise
        given = params.model_dump(mode="json", exclude_unset=True)
        try:
            result = await link.ask(name, given, call.deadline)
        except NotFound as there:
            raise (error if there.reason == "project_not_found" else there) from None
        except Unavailable as away:
            raise type(away)(f"{error.message}; {away.message}", reason=away.reason, **away.data) from None
    coverage = result.get("coverage")
    if isinstance(coverage, dict):
        source = f"answered by {link.settings.team.url}"
        coverage["detail"] = "; ".join(filter(None, [coverage.get("detail"), source]))
    return {**result, "answered_by": link.settings.team.url}
