"""The HTTP wire, off until asked for: what it stands on costs a second to import and 70 MB to keep."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from flashgrep.config import Settings
from flashgrep.errors import InvalidParams, Unavailable
from flashgrep.mcp.service import Service
from flashgrep.rpc.context import RequestContext

SERVER_MODULE = "flashgrep.mcp.http.server"
READY_SECONDS = 20.0
HIGHEST_PORT = 65_535


class Web:
    """Opens and closes the HTTP wire of one daemon."""

    def __init__(
        self,
        service: Service,
        settings: Settings,
        tasks: TaskGroup,
        *,
        token: Callable[[], str],
        seen: Callable[[], None],
    ) -> None:
        self._service = service
        self._settings = settings
        self._tasks = tasks
        self._token = token
        self._seen = seen
        self._server: Any = None
        self._ended = anyio.Event()
        self._lock = anyio.Lock()
        self._holders = 0
        self.port: int | None = None

    async def open(self, port: int) -> int:
        """Listen on a loopback port (0: any free one), unless that is done already, and return it.

        Raises:
            Unavailable: the port is taken.

        """
        async with self._lock:
            if self.port is not None:
                return self.port
            module: Any = await run_sync(import_module, SERVER_MODULE)
            try:
                listener = module.listen(port)
            except OSError as error:
                reason = f"no HTTP on port {port}: {error.strerror}"
                raise Unavailable(reason, reason="port_unavailable", suggestion="name another with --port") from None
            self.port = int(listener.getsockname()[1])
            self._server = module.server(module.application(self._service, self._options(module, self.port)))
            self._ended = anyio.Event()
            self._tasks.start_soon(self._serve, self._server, listener)
            with anyio.fail_after(READY_SECONDS):
                await self._server.ready.wait()
            return self.port

    async def close(self) -> None:
        """Finish what is in flight and listen no more."""
        async with self._lock:
            if self.port is not None:
                self._server.stop()
                await self._ended.wait()  # uvicorn's own grace bounds this
                self.port = None

    async def serve(self, _context: RequestContext, params: Any) -> dict[str, Any]:
        """Answer ``$/serve``: ``{port}`` opens (default: the setting), ``{stop: true}`` closes with its last caller."""
        given = params if isinstance(params, dict) else {}
        if given.get("stop"):
            self._holders = max(0, self._holders - 1)
            if not self._holders and not self._settings.http.enabled:
                await self.close()
            return {"port": self.port}
        port = given.get("port", self._settings.http.port)
        if not isinstance(port, int) or not 0 <= port <= HIGHEST_PORT:
            raise InvalidParams("port: a number up to 65535 is required", field="port")
        opened = await self.open(port)
        self._holders += 1
        return {"port": opened}

    async def _serve(self, server: Any, listener: Any) -> None:
        try:
            await server.serve(sockets=[listener])
        finally:
            listener.close()
            self._ended.set()

    def _options(self, module: Any, port: int) -> Any:
        settings = self._settings
        return module.Options(
            port=port,
            token=self._token,
            max_body=settings.max_line_bytes,
            may_write=not settings.read_only,
            speaks_mcp=settings.mcp.enabled and settings.mcp.transport in {"http", "both"},
            seen=self._seen,
        )
