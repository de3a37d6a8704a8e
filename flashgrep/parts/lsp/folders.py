"""Workspace folders: each has its own connection to the daemon, bound to its project, which features use.

A lost connection is reopened at the next request, and first receives the documents that the editor has open.
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

from flashgrep.base.paths import (
    PATH_MAP_VARIABLE,
    Paths,
    as_latin1,
    from_latin1,
    state_folder,
)
from flashgrep.parts.lsp.convert import find_path, path_of
from flashgrep.parts.lsp.daemon_link import MOST_SENT, DaemonEnded, DaemonLink
from flashgrep.parts.lsp.texts import Document
from flashgrep.rpc.connect import connect_or_alone, send_request

if TYPE_CHECKING:
    from flashgrep.parts.lsp.server import Server


FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between attempts to reach a daemon that does not start; doubled each time."""
HANDSHAKE_SECONDS: Final = 20.0
MOST_LIBRARY_FILES: Final = 1_000
Answer: TypeAlias = "Callable[[Server, Any], Awaitable[Any]]"


class OutsideProjects(Exception):
    """A file is in no project, so nothing is known about it."""


class Folder:
    """A folder of the editor, and the project it belongs to."""

    def __init__(
        self,
        path: str,
        texts: Callable[["Folder"], Iterable[Document]],
        on_connect: Callable[["Folder"], None],
        *,
        adopt: bool = True,
    ) -> None:
        """``texts`` returns the folder's open documents; ``on_connect`` is called after a daemon has received them.

        ``adopt``: make the folder a project if it is in none. The home folder and its parents never become one, as with
        ``fgrep mcp``.
        """
        self.path = path
        self.root: str | None = None
        """The project's root, spelled as the editor spells it; None: not yet known, or there is no project."""
        self._texts = texts
        self._on_connect = on_connect
        self._adopt = adopt
        self._link = DaemonLink()
        self._connecting = asyncio.Lock()
        self._not_before = 0.0
        self._pause = FIRST_PAUSE
        self._problem = ""
        self._unconfirmed: set[asyncio.Future[Any]] = set()
        """Changes of documents that the daemon has not confirmed."""
        self.library_files: dict[str, None] = {}
        """Files of libraries that answers led to, the latest last: questions about them are the project's."""

    def has(self, path: str) -> bool:
        """Return whether a file is in the folder, or in its project."""
        return is_inside(path, self.path) or (
            self.root is not None and is_inside(path, self.root)
        )

    async def ask(self, method: str, params: dict[str, Any], path: str = "") -> Any:
        """Return the result of a read-only method about a file or the project; retried if the daemon ends.

        Raises:
            DaemonError: the daemon's error.
            DaemonEnded: no daemon answers.
            OutsideProjects: the file, or the folder, is in no project.

        """
        # Safe to repeat with the next daemon: these methods only read.
        for is_last in (False, True):
            await self._ensure_open()
            if path:
                named = self._path_params(path)
            else:
                named = {}
            try:
                if (
                    self._unconfirmed
                ):  # the request is about the documents as they are now
                    await asyncio.wait(self._unconfirmed)
                return await self._link.call(method, {**named, **params})
            except DaemonEnded:
                if is_last:
                    raise
        return None

    def note_libraries(self, places: Iterable[dict[str, Any]]) -> None:
        """Take note of the files of libraries among the places of an answer."""
        for place in places:
            if "library" in place:
                self.library_files[find_path("", place)] = None
        while len(self.library_files) > MOST_LIBRARY_FILES:
            del self.library_files[next(iter(self.library_files))]

    async def connect(self) -> None:
        """Connect before the first request arrives; that request will report a failure."""
        with suppress(DaemonEnded, OutsideProjects):
            await self._ensure_open()

    async def follow(self) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the project's status, then each update, as ``$/subscribe`` sends them; ``closed`` is the last.

        Raises:
            DaemonError, DaemonEnded, OutsideProjects: as ``ask``.

        """
        await self._ensure_open()
        link = self._link
        states = asyncio.Queue[dict[str, Any]]()
        link.on_status = states.put_nowait
        try:
            yield await link.call("$/subscribe", {})
            while True:
                yield await states.get()
        finally:
            link.on_status = None
            if link.is_open:
                link.send("$/unsubscribe", {})

    def send_open(self, document: Document) -> None:
        """Send a newly opened document to the daemon."""
        self._send_document(
            document,
            {"action": "open", "version": document.revision, "text": document.text},
        )

    def send_change(self, document: Document, edits: list[dict[str, Any]]) -> None:
        """Send edits of a document to the daemon."""
        self._send_document(
            document,
            {"action": "change", "version": document.revision, "changes": edits},
        )

    def send_close(self, document: Document) -> None:
        """Tell the daemon that the file on disk is valid again."""
        self._send_document(document, {"action": "close"})

    def close(self) -> None:
        """Close the connection."""
        self._link.close()

    def _send_document(self, document: Document, params: dict[str, Any]) -> None:
        """Send a document's change if connected; a later connection receives all documents anyway."""
        if (
            not self._link.is_open
            or self.root is None
            or not is_inside(document.path, self.root)
        ):
            return
        if len(document.text) > MOST_SENT and params["action"] != "close":
            params = {"action": "close"}  # too large: the file on disk is used instead
        _, answer = self._link.send(
            "buffers", {**self._path_params(document.path), **params}
        )
        self._unconfirmed.add(answer)

        def note(done: asyncio.Future[Any]) -> None:
            self._unconfirmed.discard(done)
            if done.cancelled() or done.exception() is None or not self._link.is_open:
                return
            if params["action"] == "change":  # the daemon's text differs from ours
                self.send_open(document)
            elif (
                params["action"] == "open"
            ):  # too large, or not text: the file on disk is used instead
                self.send_close(document)

        answer.add_done_callback(note)

    def _path_params(self, path: str) -> dict[str, Any]:
        """Return the parameter that names a file to the daemon."""
        if path in self.library_files:
            return {"path": path}
        if self.root is None or not is_inside(path, self.root):
            raise OutsideProjects(path)
        return {"path": os.path.relpath(path, self.root)}

    async def _ensure_open(self) -> None:
        """Connect if necessary, and send the open documents."""
        async with self._connecting:
            if not self._link.is_open:
                # Every keystroke sends a request: without a pause the editor would
                # start daemons constantly.
                if time.monotonic() < self._not_before:
                    raise DaemonEnded(self._problem)
                try:
                    # In a thread, since starting a daemon takes up to half a minute.
                    connected, self.root = await run_in_thread(
                        lambda: connect_bound(self.path, adopt=self._adopt)
                    )
                    # Changes that the last daemon did not confirm are dropped: this one
                    # receives all documents.
                    self._link = DaemonLink()
                    self._unconfirmed = set()
                    await self._link.open(connected)
                except (OSError, ValueError) as error:
                    self._problem = str(error)
                    self._not_before = time.monotonic() + self._pause
                    self._pause = min(2 * self._pause, LONGEST_PAUSE)
                    raise DaemonEnded(self._problem) from None
                self._pause = FIRST_PAUSE
                for document in self._texts(self):
                    self.send_open(document)
                if self.root is not None:
                    self._on_connect(self)
        if self.root is None:
            raise OutsideProjects(self.path)


def is_inside(path: str, folder: str) -> bool:
    """Return whether a path is a folder itself or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def connect_bound(path: str, *, adopt: bool) -> tuple[socket.socket, str | None]:
    """Return a connection bound to a folder's project, and the project's root; None: there is no project.

    Raises:
        OSError, ValueError: no daemon answers, or it refuses.

    """
    try:
        return _bind(path, adopt=adopt)
    except (
        ConnectionError
    ):  # the daemon ended just now, for example replaced by a newer one
        return _bind(path, adopt=adopt)


def _bind(path: str, *, adopt: bool) -> tuple[socket.socket, str | None]:
    connected = connect_or_alone(Paths(state_folder(os.environ)), os.environ)
    try:
        connected.settimeout(HANDSHAKE_SECONDS)
        binding: dict[str, object] = {"folder": as_latin1(path)}
        if not adopt:
            found_answer: Any = send_request(
                connected, "$/open", {"folder": as_latin1(path), "adopt": False}
            ).get("result")
            if not found_answer or found_answer["root"] is None:
                return connected, None
            binding = {"project": found_answer["root"]}
        if PATH_MAP_VARIABLE in os.environ:
            binding["path_map"] = [os.environ[PATH_MAP_VARIABLE]]
        answer: Any = send_request(connected, "$/bind", binding)
        if (
            "error" in answer or not answer["result"]["roots"]
        ):  # a folder that cannot be a project
            return connected, None
        root = from_latin1(answer["result"]["roots"][0])
        # As the editor spells it: its path may contain symbolic links.
        return connected, path if Path(path).resolve() == Path(root) else root
    except BaseException:
        connected.close()
        raise


async def run_in_thread(run: Callable[[], Any]) -> Any:
    """Run a blocking function in a daemon thread, and return its result; process exit does not wait for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        result = None
        error = None
        try:
            result = run()
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is awaited
            error = raised
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, error)

    # Not asyncio.to_thread: on exit the loop would wait for the thread, and connecting
    # may take half a minute.
    threading.Thread(target=work, daemon=True).start()
    return await future


@dataclass(frozen=True, slots=True)
class Feature:
    """A method of the protocol and the coroutine that answers it."""

    name: str
    """The name in ``disabled``; several methods may share one."""
    method: str
    run: Answer
    options: Any = None


def find_file(server: "Server", uri: str) -> tuple[Folder, str]:
    """Return the folder that a file is in, and the file's path.

    Raises:
        OutsideProjects: it is in none.

    """
    path = path_of(uri)
    if path is not None:
        folder = server.find_folder(path)
    else:
        folder = None
    if path is None or folder is None:
        raise OutsideProjects(uri)
    return folder, path


async def ask_about(
    server: "Server", method: str, uri: str, position: types.Position, **more: Any
) -> tuple[Folder, dict[str, Any]]:
    """Call a method for a position in a file; return the file's folder and the answer."""
    path = path_of(uri)
    for folder in server.folders:
        if path in folder.library_files:
            break
    else:
        folder, path = find_file(server, uri)
    place = {
        "line": position.line + 1,
        "column": position.character + 1,
        "position_encoding": server.encoding,
    }
    answer = await folder.ask(method, {**place, **more}, path or "")
    folder.note_libraries(answer["results"])
    return folder, answer
