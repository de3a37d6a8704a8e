"""A small registry and its clients, for the tests of the wires; run as a program it serves standard input."""

import json
import os
import socket
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import anyio
import anyio.to_thread
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.streams.stapled import StapledByteStream
from pydantic import BaseModel, Field

from flashgrep.base.errors import FlashgrepError, NotFound
from flashgrep.base.registry import Call, Handler, Params, Registry, Session, handler
from flashgrep.parts.http.wire.routes import Caller
from flashgrep.rpc.connect import connect_unix
from flashgrep.rpc.connection import Calls, Connection
from flashgrep.rpc.context import Extension, Log, RequestContext
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.message import Request, encode, error_line, read_message
from flashgrep.rpc.sockets import SocketStream
from flashgrep.rpc.tcp import FindUid, auth_extension, serve_tcp
from flashgrep.rpc.unix import serve_unix
from flashgrep.rpc.wire import Limits

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-for-tests"  # noqa: S105 - it opens nothing
BOUND = 10.0
"""Seconds after which a test gives up waiting."""
LIMITS = Limits(
    max_line=256 * 1024,
    max_line_before_auth=4096,
    in_flight=8,
    waiting=8,
    batch_items=50,
)


@dataclass
class Gates:
    """The host of the test methods: gates by name, and what has happened."""

    gates: dict[str, anyio.Event] = field(
        default_factory=lambda: defaultdict(anyio.Event)
    )
    running: int = 0
    most: int = 0
    ended: list[str] = field(default_factory=list)
    changed: anyio.Event = field(default_factory=anyio.Event)

    def change(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()


class Nothing(Params):
    """No parameters."""


class Two(Params):
    """The operands of the specification's examples."""

    minuend: float
    subtrahend: float


class Numbers(Params):
    """Up to three numbers."""

    a: float = 0
    b: float = 0
    c: float = 0


class Value(Params):
    """Anything."""

    value: Any = None


class Gate(Params):
    """A gate by name."""

    name: str = Field(min_length=1)


class Size(Params):
    """How much, and (to tell answers apart) for whom."""

    size: int


class Steps(Params):
    """How many reports, and whether from a worker thread."""

    steps: int
    thread: bool = False


class Modelled(BaseModel):
    """A result that is a model."""

    name: str
    path: Path


ODD_ANSWERS: dict[str, Any] = {
    "set": {1, 2},
    "strings": {"lone": "a\ud800b", "pair": "\ud83d\ude00", "key\udfff": 1},
    "numbers": [float("nan"), float("inf"), 2**70],
    "model": Modelled(name="x", path=Path("a/b")),
    "models": [2**70, Modelled(name="x", path=Path("a/b"))],
}


class State(TypedDict):
    """What the gates saw."""

    running: int
    most: int
    ended: list[str]


@handler("subtract")
async def subtract(_call: Call[Gates], params: Two) -> Any:
    """Subtract."""
    return _whole(params.minuend - params.subtrahend)


@handler("sum")
async def add(_call: Call[Gates], params: Numbers) -> Any:
    """Add."""
    return _whole(params.a + params.b + params.c)


@handler("get_data")
async def get_data(_call: Call[Gates], params: Nothing) -> Any:
    """Answer the list of the specification's example."""
    del params
    return ["hello", 5]


@handler("echo", "update", "notify_hello")
async def echo(_call: Call[Gates], params: Value) -> Any:
    """Answer the value."""
    return params.value


@handler("hold")
async def hold(call: Call[Gates], params: Gate) -> Any:
    """Answer once the gate is open."""
    host = call.host
    host.running += 1
    host.most = max(host.most, host.running)
    host.change()
    try:
        await host.gates[params.name].wait()
    finally:
        host.running -= 1
        host.ended.append(params.name)
        host.change()
    return params.name


@handler("release")
async def release(call: Call[Gates], params: Gate) -> Any:
    """Open the gate."""
    call.host.gates[params.name].set()
    return True


@handler("until_running")
async def until_running(call: Call[Gates], params: Size) -> State:
    """Answer once so many calls are held."""
    host = call.host
    while host.running != params.size:
        await host.changed.wait()
    return {"running": host.running, "most": host.most, "ended": host.ended}


@handler("fail")
async def fail(_call: Call[Gates], params: Value) -> Any:
    """Raise what has no name."""
    raise RuntimeError(f"secret {params.value}")


@handler("missing")
async def missing(_call: Call[Gates], params: Value) -> Any:
    """Raise an error of the tree."""
    raise NotFound(
        f"no such file: {params.value}", reason="file_not_found", path=params.value
    )


@handler("answer")
async def answer(_call: Call[Gates], params: Gate) -> Any:
    """Answer a value that is not plain JSON, by name."""
    return ODD_ANSWERS[params.name]


@handler("big")
async def big(_call: Call[Gates], params: Size) -> Any:
    """Answer that many characters."""
    return "x" * params.size


@handler("progress")
async def progress(call: Call[Gates], params: Steps) -> Any:
    """Report progress."""

    def report() -> None:
        for step in range(params.steps):
            call.progress(step, params.steps, f"step {step}")

    if params.thread:
        await anyio.to_thread.run_sync(report)
    else:
        report()
    return params.steps


@handler("shout")
async def shout(_call: Call[Gates], params: Value) -> Any:
    """Print to standard output, as a careless library might."""
    sys.stdout.write(f"{params.value}\n")
    sys.stdout.flush()
    os.write(1, b"and to its descriptor\n")


@handler("scribble", safety="writes")
async def scribble(_call: Call[Gates], params: Value) -> Any:
    """Write nothing, but be called a writer."""
    return params.value


HANDLERS: tuple[Handler, ...] = (
    subtract,
    add,
    get_data,
    echo,
    hold,
    release,
    until_running,
    fail,
    missing,
    answer,
    big,
    progress,
    shout,
    scribble,
)


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number


async def twice(context: RequestContext, params: Any) -> Any:
    """Call ``echo`` within this request, and notify the client of it."""
    context.notify("note", {"of": context.request.id})
    result = await context.call_method("echo", {"value": params["value"]})
    return [result, result]


async def ask(context: RequestContext, params: Any) -> Any:
    """Ask the client back."""
    return {"client_said": await context.peer.request("roots/list", params)}


class Notes:
    """A logger that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.calls: list[dict[str, Any]] = []

    def debug(self, event: str, **values: Any) -> None:
        """Keep a note, those of single calls apart."""
        if event == "call":
            self.calls.append(values)
        else:
            self.notes.append((event, values))

    warning = debug

    def exception(self, event: str, **values: Any) -> None:
        """Keep a note with the trace of the exception being handled."""
        self.notes.append((event, {**values, "trace": traceback.format_exc()}))


def make_dispatcher(limits: Limits = LIMITS, log: Log | None = None) -> Dispatcher:
    """Return a dispatcher of the test methods."""
    extensions: dict[str, Extension] = {
        "twice": twice,
        "ask": ask,
        "auth": auth_extension(lambda: TOKEN),
    }
    return Dispatcher(
        Registry(HANDLERS),
        Gates(),
        log=log or Notes(),
        limits=limits,
        extensions=extensions,
    )


class Client:
    """One end of a wire, which knows of lines and of nothing else."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._lines = BufferedByteReceiveStream(stream)

    async def send(self, *values: Any) -> None:
        """Send values as JSON lines."""
        await self.send_raw(
            b"".join(json.dumps(value).encode() + b"\n" for value in values)
        )

    async def send_raw(self, data: bytes) -> None:
        """Send bytes."""
        with anyio.fail_after(BOUND):
            await self.stream.send(data)

    async def send_eof(self) -> None:
        """Say that nothing more comes, and go on receiving."""
        sink = (
            self.stream.send_stream
            if isinstance(self.stream, StapledByteStream)
            else None
        )
        await (self.stream.send_eof() if sink is None else sink.aclose())

    async def receive(self) -> Any:
        """Return the next line's value."""
        with anyio.fail_after(BOUND):
            return json.loads(await self._lines.receive_until(b"\n", 64 * 1024 * 1024))

    async def receive_by_id(self, count: int) -> dict[Any, Any]:
        """Return that many answers by their ids."""
        answers = [await self.receive() for _ in range(count)]
        return {answer["id"]: answer for answer in answers}

    async def call(
        self, method: str, params: Any = None, *, request_id: Any = "call"
    ) -> Any:
        """Send a request and return its whole answer, which must be the next line."""
        request = {"jsonrpc": "2.0", "method": method, "id": request_id}
        await self.send(request if params is None else {**request, "params": params})
        return await self.receive()

    async def result(self, method: str, params: Any = None) -> Any:
        """Return the result of a request."""
        return (await self.call(method, params))["result"]

    async def at_end(self) -> bool:
        """Tell whether the other end closes without a further byte."""
        with anyio.fail_after(BOUND):
            try:
                await self._lines.receive(1)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.IncompleteRead):
                return True
        return False


class MemoryStream(ByteStream):
    """One end of a pipe within the process."""

    def __init__(
        self,
        sink: MemoryObjectSendStream[bytes],
        source: MemoryObjectReceiveStream[bytes],
    ) -> None:
        self._sink = sink
        self._source = source

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Return the next chunk as it was sent."""
        del max_bytes
        return await self._source.receive()

    async def send(self, item: bytes) -> None:
        """Send a chunk."""
        await self._sink.send(item)

    async def send_eof(self) -> None:
        """End the sending side."""
        await self._sink.aclose()

    async def aclose(self) -> None:
        """Close both sides."""
        await self._sink.aclose()
        await self._source.aclose()

    async def hung_up(self) -> bool:
        """Tell whether nobody can receive what is sent."""
        return not self._sink.statistics().open_receive_streams


Connect: TypeAlias = Callable[[], Awaitable[Client]]
Serve: TypeAlias = Callable[[Dispatcher, Path], AbstractAsyncContextManager[Connect]]


@asynccontextmanager
async def memory(dispatcher: Dispatcher, _folder: Path) -> AsyncIterator[Connect]:
    """Serve pipes within the process."""
    async with anyio.create_task_group() as tasks:

        async def connect() -> Client:
            to_server, from_client = anyio.create_memory_object_stream[bytes](10)
            to_client, from_server = anyio.create_memory_object_stream[bytes](10)
            far = MemoryStream(to_client, from_client)
            tasks.start_soon(Connection(far, Session(), dispatcher, far.hung_up).serve)
            return Client(MemoryStream(to_server, from_server))

        yield connect
        await dispatcher.shutdown(0)


@asynccontextmanager
async def unix(dispatcher: Dispatcher, folder: Path) -> AsyncIterator[Connect]:
    """Serve a Unix socket."""
    path = folder / "mcp.sock"
    async with anyio.create_task_group() as tasks:
        await tasks.start(serve_unix, path, dispatcher, partial(Session, wire="unix"))

        async def connect() -> Client:
            return Client(SocketStream(connect_unix(str(path), BOUND)))

        yield connect
        await dispatcher.shutdown(0)


@asynccontextmanager
async def tcp(
    dispatcher: Dispatcher, _folder: Path, find_uid: FindUid | None = None
) -> AsyncIterator[Connect]:
    """Serve a free TCP port."""
    async with anyio.create_task_group() as tasks:
        port = await tasks.start(
            partial(serve_tcp, dispatcher, Session, port=0, find_uid=find_uid)
        )

        async def connect() -> Client:
            return Client(
                SocketStream(socket.create_connection(("127.0.0.1", port), BOUND))
            )

        yield connect
        await dispatcher.shutdown(0)


WIRES: dict[str, Serve] = {"memory": memory, "unix": unix, "tcp": tcp}


async def answer_once(
    dispatcher: Dispatcher, session: Session, body: bytes
) -> bytes | None:
    """Return the line that answers a request or batch, without a connection; None where only notifications came."""
    try:
        message = await dispatcher.reader.read(body)
    except FlashgrepError as error:
        return error_line(None, error)
    calls = Calls(dispatcher, Caller(session))
    jobs = calls.admit(message)
    return await calls.answer(jobs, is_batch=message.is_batch) if jobs else None


async def dispatch_overhead(calls: int = 5000) -> dict[str, float]:
    """Return microseconds of processor time from a line to its answer: through jsonrpcserver, and around it."""
    dispatcher, session = make_dispatcher(), Session()
    line = b'{"jsonrpc":"2.0","method":"echo","params":{"value":1},"id":1}'

    async def around() -> None:
        request = read_message(line, LIMITS.batch_items).items[0]
        assert isinstance(request, Request)
        result = await dispatcher.call(session, request.method, request.params)
        encode({"jsonrpc": "2.0", "result": result, "id": request.id})

    async def best(run: Callable[[], Awaitable[object]]) -> float:
        rounds = []
        for _ in range(5):
            started = time.process_time()
            for _ in range(calls):
                await run()
            rounds.append((time.process_time() - started) / calls * 1e6)
        return min(rounds)

    through = await best(partial(answer_once, dispatcher, session, line))
    return {"jsonrpcserver_us": through, "plain_us": await best(around)}
