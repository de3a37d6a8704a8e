"""A server for the official conformance suite: our HTTP application without a token, and a few tools the suite calls.

Run as a program it prints its URL and serves until its input ends: ``python tests/mcp/fixture_server.py FOLDER``.
"""

import sys
from pathlib import Path

import anyio
import anyio.to_thread
from typing_extensions import TypedDict

from flashgrep.base.config import Settings
from flashgrep.base.errors import InvalidParams, MissingCapability
from flashgrep.base.registry import Call, Params, Registry, handler
from flashgrep.daemon.log import Log
from flashgrep.mcp.binding import client_of
from flashgrep.mcp.service import Service
from flashgrep.parts.built_in import BUILT_IN, REGISTRY
from flashgrep.parts.http.wire.server import Options, application, listen, server
from flashgrep.project.catalogue import Catalogue
from flashgrep.rpc.dispatch import Dispatcher


class Nothing(Params):
    """No parameters."""


class Text(TypedDict):
    """A text."""

    text: str


@handler("test_simple_text", listing="by_default")
async def simple_text(_call: Call[Catalogue], params: Nothing) -> Text:  # noqa: ARG001 - the hint of params is what the registry reads
    """Return a text."""
    return {"text": "This is a simple text response for testing."}


@handler("test_error_handling", listing="by_default")
async def error_handling(_call: Call[Catalogue], params: Nothing) -> Text:  # noqa: ARG001 - the hint of params is what the registry reads
    """Fail."""
    raise InvalidParams("This tool intentionally returns an error for testing")


@handler("test_tool_with_progress", listing="by_default")
async def with_progress(call: Call[Catalogue], params: Nothing) -> Text:  # noqa: ARG001 - the hint of params is what the registry reads
    """Report progress three times."""
    for done in (0, 50, 100):
        call.progress(done, 100, f"at {done}")
        await anyio.sleep(0.06)  # no report comes within 50 ms of another
    return {"text": "done"}


@handler("test_missing_capability", listing="by_default")
async def missing_capability(call: Call[Catalogue], params: Nothing) -> Text:  # noqa: ARG001 - as above
    """Refuse clients that cannot sample."""
    if "sampling" not in client_of(call.session).capabilities:
        raise MissingCapability(
            "sampling is needed", requiredCapabilities={"sampling": {}}
        )
    return {"text": "can sample"}


@handler("test_logging_tool", listing="by_default")
async def logging_tool(_call: Call[Catalogue], params: Nothing) -> Text:  # noqa: ARG001 - as above
    """Succeed, which is worth a line to whoever wants to read of it."""
    return {"text": "logged"}


@handler("test_streaming_elicitation", listing="by_default")
async def streaming(call: Call[Catalogue], params: Nothing) -> Text:  # noqa: ARG001 - as above
    """Report progress, and ask nothing."""
    call.progress(1, 1, "asking nobody")
    return {"text": "asked nobody"}


FIXTURES = (
    simple_text,
    error_handling,
    with_progress,
    missing_capability,
    logging_tool,
    streaming,
)


async def main(folder: Path) -> None:
    """Serve until standard input ends."""
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    (folder / "state").mkdir(mode=0o700, exist_ok=True)
    (project / "a.py").write_text("def parse():\n    return 1\n")
    async with Catalogue(
        parts=BUILT_IN, state_dir=folder / "state", settings=Settings()
    ) as catalogue:
        await catalogue.open(str(project))
        service = Service(catalogue, {"name": "flashgrep", "version": "0"})
        service.dispatcher = Dispatcher(
            Registry([*REGISTRY, *FIXTURES]),
            catalogue,
            log=Log(Path("/dev/stderr"), level="info", max_bytes=1),
        )
        listener = listen(0)
        port = listener.getsockname()[1]
        options = Options(
            port=port,
            token=None,
            max_body=1024 * 1024,
            may_write=True,
            speaks_mcp=True,
            seen=lambda: None,
        )
        running = server(application(service, options))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.serve, [listener])
            await running.ready.wait()
            sys.stdout.write(f"http://127.0.0.1:{port}/mcp\n")
            sys.stdout.flush()
            await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)
            running.stop()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
