"""Workspace folders and the daemon: each folder has a connection of its own, bound to its project; features ask by it.

A connection that ended is made again at the next question, and is told first of the texts that the editor has open.
"""

import asyncio
import os
import socket
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lsprotocol import types

from flashgrep.connect import as_latin1, connect_or_alone, from_latin1, send_request
from flashgrep.lsp.convert import path_of
from flashgrep.lsp.daemon_link import MOST_SENT, DaemonEnded, DaemonLink
from flashgrep.lsp.texts import Document
from flashgrep.paths import PATH_MAP_VARIABLE, Paths, state_folder

if TYPE_CHECKING:
    from flashgrep.lsp.server import Server


FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between two attempts to reach a daemon that cannot be started, twice as many each time."""
HANDSHAKE_SECONDS: Final = 20.0
Answer: TypeAlias = "Callable[[Server, Any], Awaitable[Any]]"


class OutsideProjects(Exception):
    """A file lies in no project, so nothing is known of it."""


class Folder:
    """A folder of the editor's and the project that it lies in."""

    def __init__(
        self,
        path: str,
        texts: Callable[["Folder"], Iterable[Document]],
        on_connect: Callable[["Folder"], None],
        *,
        adopt: bool = True,
    ) -> None:
        """``texts`` returns what is open of its files; ``on_connect`` is called when a daemon has been told of that.

        ``adopt``: it becomes a project if it lies in none. The home folder and those above it never become one, as with
        ``fgrep mcp``.
        """
        self.path = path
        self.root: str | None = None
        """The project's root, as the editor calls it; None: not known yet, or there is none."""
        self._texts, self._on_connect, self._adopt = texts, on_connect, adopt
        self._link = DaemonLink()
        self._connecting = asyncio.Lock()
        self._not_before, self._pause, self._problem = 0.0, FIRST_PAUSE, ""
        self._unconfirmed: set[asyncio.Future[Any]] = set()
        """Changes of texts that the daemon has not answered yet."""

    def has(self, path: str) -> bool:
        """Return whether a file lies in the folder, or in its project."""
        return lies_in(path, self.path) or (self.root is not None and lies_in(path, self.root))

    async def ask(self, method: str, params: dict[str, Any], path: str = "") -> Any:
        """Return the result of a method that reads, about a file or the project; the next daemon's if this one ends.

        Raises:
            DaemonError: the daemon's error.
            DaemonEnded: no daemon answers.
            OutsideProjects: the file, or the folder, is in no project.

        """
        # Once more with the next daemon: whatever is asked here only reads.
        for is_last in (False, True):
            await self._be_ready()
            named = self._name(path) if path else {}
            try:
                if self._unconfirmed:  # the question is about the texts as they are now
                    await asyncio.wait(self._unconfirmed)
                return await self._link.call(method, {**named, **params})
            except DaemonEnded:
                if is_last:
                    raise
        return None

    async def connect(self) -> None:
        """Connect before the first question comes; what goes wrong is told to that one."""
        with suppress(DaemonEnded, OutsideProjects):
            await self._be_ready()

    async def follow(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the project's state and each that follows, as ``$/subscribe`` tells them; ``closed`` is the last.

        Raises:
            DaemonError, DaemonEnded, OutsideProjects: as ``ask``.

        """
        await self._be_ready()
        link, states = self._link, asyncio.Queue[dict[str, Any]]()
        link.on_status = states.put_nowait
        try:
            yield await link.call("$/subscribe", {})
            while True:
                yield await states.get()
        finally:
            link.on_status = None
            if link.is_open:
                link.send("$/unsubscribe", {})

    def tell_open(self, document: Document) -> None:
        """Tell the daemon of a text that is open now."""
        self._tell(document, {"action": "open", "version": document.revision, "text": document.text})

    def tell_change(self, document: Document, edits: list[dict[str, Any]]) -> None:
        """Tell the daemon of edits."""
        self._tell(document, {"action": "change", "version": document.revision, "changes": edits})

    def tell_close(self, document: Document) -> None:
        """Tell the daemon that the disk counts again."""
        self._tell(document, {"action": "close"})

    def close(self) -> None:
        """Hang up."""
        self._link.close()

    def _tell(self, document: Document, params: dict[str, Any]) -> None:
        """Send what became of a text, if the daemon is there; the next one is told of all texts anyway."""
        if not self._link.is_open or self.root is None or not lies_in(document.path, self.root):
            return
        if len(document.text) > MOST_SENT and params["action"] != "close":
            params = {"action": "close"}  # too large: the disk counts
        _, answer = self._link.send("buffers", {**self._name(document.path), **params})
        self._unconfirmed.add(answer)

        def note(done: asyncio.Future[Any]) -> None:
            self._unconfirmed.discard(done)
            if done.cancelled() or done.exception() is None or not self._link.is_open:
                return
            if params["action"] == "change":  # what it has is another text than ours
                self.tell_open(document)
            elif params["action"] == "open":  # too large, or no text: the disk counts
                self.tell_close(document)

        answer.add_done_callback(note)

    def _name(self, path: str) -> dict[str, Any]:
        """Return how the daemon is told of a file."""
        if self.root is None or not lies_in(path, self.root):
            raise OutsideProjects(path)
        return {"path": os.path.relpath(path, self.root)}

    async def _be_ready(self) -> None:
        """Connect unless that is done, and tell of the texts."""
        async with self._connecting:
            if not self._link.is_open:
                # Each key asks something: without a pause an editor would start daemons all the time.
                if time.monotonic() < self._not_before:
                    raise DaemonEnded(self._problem)
                try:
                    # In a thread, since starting a daemon takes up to half a minute.
                    connected, self.root = await run_in_thread(lambda: connect_bound(self.path, adopt=self._adopt))
                    # What the last daemon did not confirm concerns nobody: this one is told of all texts.
                    self._link, self._unconfirmed = DaemonLink(), set()
                    await self._link.open(connected)
                except (OSError, ValueError) as error:
                    self._problem = str(error)
                    self._not_before = time.monotonic() + self._pause
                    self._pause = min(2 * self._pause, LONGEST_PAUSE)
                    raise DaemonEnded(self._problem) from None
                self._pause = FIRST_PAUSE
                for document in self._texts(self):
                    self.tell_open(document)
                if self.root is not None:
                    self._on_connect(self)
        if self.root is None:
            raise OutsideProjects(self.path)


def lies_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def connect_bound(path: str, *, adopt: bool) -> tuple[socket.socket, str | None]:
    """Return a connection bound to a folder's project, and that one's root; None: it lies in none.

    Raises:
        OSError, ValueError: no daemon answers, or it refuses.

    """
    try:
        return _bind(path, adopt=adopt)
    except ConnectionError:  # the daemon ended in between, as where a newer one takes its place; the next one answers
        return _bind(path, adopt=adopt)


def _bind(path: str, *, adopt: bool) -> tuple[socket.socket, str | None]:
    connected = connect_or_alone(Paths(state_folder(os.environ)), os.environ)
    try:
        connected.settimeout(HANDSHAKE_SECONDS)
        binding: dict[str, object] = {"folder": as_latin1(path)}
        if not adopt:
            found: Any = send_request(connected, "$/open", {"folder": as_latin1(path), "adopt": False}).get("result")
            if not found or found["root"] is None:
                return connected, None
            binding = {"project": found["root"]}
        if PATH_MAP_VARIABLE in os.environ:
            binding["path_map"] = [os.environ[PATH_MAP_VARIABLE]]
        answer: Any = send_request(connected, "$/bind", binding)
        if "error" in answer or not answer["result"]["roots"]:  # a folder that can be no project
            return connected, None
        root = from_latin1(answer["result"]["roots"][0])
        # By the name that the editor has for it: there may be links on the way.
        return connected, path if Path(path).resolve() == Path(root) else root
    except BaseException:
        connected.close()
        raise


async def run_in_thread(run: Callable[[], Any]) -> Any:
    """Return what a function returns that blocks; the process does not wait for it when it ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = run()
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is awaited
            error = raised
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    # Not asyncio.to_thread: at the end the loop would wait for its threads, and connecting may take half a minute.
    threading.Thread(target=work, daemon=True).start()
    return await done


@dataclass(frozen=True, slots=True)
class Feature:
    """One method of the protocol, and the coroutine that answers it."""

    name: str
    """By this it is switched off; several methods may be one feature."""
    method: str
    run: Answer
    options: Any = None


def find_file(server: "Server", uri: str) -> tuple[Folder, str]:
    """Return the folder a file lies in, and its path.

    Raises:
        OutsideProjects: it lies in none.

    """
    path = path_of(uri)
    folder = server.find_folder(path) if path is not None else None
    if path is None or folder is None:
        raise OutsideProjects(uri)
    return folder, path


async def ask_about(
    server: "Server", method: str, uri: str, position: types.Position, **more: Any
) -> tuple[Folder, dict[str, Any]]:
    """Ask a method about a place in a file; return the answer and the folder that gave it."""
    folder, path = find_file(server, uri)
    place = {"line": position.line + 1, "column": position.character + 1, "position_encoding": server.encoding}
    return folder, await folder.ask(method, {**place, **more}, path)
