"""The language server of one editor: its folders, documents and enabled features.

Also features about folders: the daemon's searches as commands for editor scripts, and indexing progress. A command
takes the query and optionally an object with further parameters of the method (``skills/reference.md``).
"""

import asyncio
import logging
import secrets
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from lsprotocol import converters, types
from pygls.exceptions import FeatureRequestError, JsonRpcException
from pygls.lsp.server import LanguageServer

from flashgrep import __version__
from flashgrep.parts.lsp.convert import find_path, path_of, uri_of
from flashgrep.parts.lsp.daemon_link import DaemonEnded, DaemonError
from flashgrep.parts.lsp.features import FEATURES
from flashgrep.parts.lsp.folders import Answer, Folder, OutsideProjects, is_inside
from flashgrep.parts.lsp.protocol import Protocol
from flashgrep.parts.lsp.texts import Document, Texts
from flashgrep.parts.lsp.wire import Input, Output, Received

INVALID_PARAMS: Final = -32602
PROGRESS: Final = "progress"
ENDED: Final = frozenset({"ready", "failed", "closed"})
COMMANDS: Final = {
    "flashgrep.search": "query",
    "flashgrep.searchByMeaning": "search_code",
}
"""The method of each command."""
REQUEST_FAILED: Final = -32803
NOTHING_TO_SAY: Final = frozenset(
    {"file_not_found", "path_not_found", "invalid_range", "outside_root"}
)
"""Error reasons that are answered with an empty result: the file or position does not exist."""
MOST_FOLDERS: Final = 200


async def run_command(
    server: "Server", method: str, arguments: tuple[Any, ...]
) -> list[dict[str, Any]]:
    """Return the daemon's answer for each folder, with the folder's URI, and with the file's URI in each result.

    Raises:
        JsonRpcException: invalid arguments.

    """
    question, options, *rest = (*arguments, None, None)
    if (
        not isinstance(question, str)
        or not isinstance(options, dict | None)
        or any(rest)
    ):
        raise JsonRpcException(
            "flashgrep: a command takes a query and an optional object", INVALID_PARAMS
        )

    async def ask(folder: Folder) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = await folder.ask(
                method, {**(options or {}), "query": question}
            )
        except OutsideProjects:
            return None
        for hit in answer["results"]:
            hit["uri"] = uri_of(find_path(folder.root or "", hit))
        return {"folder": uri_of(folder.path), **answer}

    answers = await asyncio.gather(*map(ask, server.folders))
    return [answer for answer in answers if answer is not None]


async def report_indexing(server: "Server", folder: Folder) -> None:
    """Report indexing progress of a folder's project until it is ready; report nothing if it already is."""
    token = f"flashgrep-{secrets.token_hex(4)}"
    progress = server.work_done_progress
    has_begun = False
    last = dict[str, Any]()
    try:
        async with aclosing(folder.follow()) as states:
            async for state in states:
                if state["stage"] in ENDED:
                    return
                report: dict[str, Any] = {
                    "message": state["stage"],
                    "percentage": int(100 * state["share"]),
                }
                if not has_begun:
                    await progress.create_async(token)
                    title = f"flashgrep: indexing {state['project']}"
                    progress.begin(
                        token, types.WorkDoneProgressBegin(title=title, **report)
                    )
                    has_begun = True
                elif report != last:
                    # Updates are more frequent than changes of the displayed
                    # percentage.
                    progress.report(token, types.WorkDoneProgressReport(**report))
                last = report
    except (OutsideProjects, DaemonError, DaemonEnded, JsonRpcException):
        pass  # the next request reports it, if it persists
    finally:
        if has_begun:
            progress.end(token, types.WorkDoneProgressEnd())


class Server(LanguageServer):
    """One editor's session."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__(
            "flashgrep",
            __version__,
            protocol_cls=Protocol,
            converter_factory=converters.get_converter,
        )
        self.texts = Texts(self)
        self.folders: list[Folder] = []
        self._has_no_folders = False
        self._reports_progress = True
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended: asyncio.Future[int] | None = None

    @property
    def encoding(self) -> str:
        """The negotiated position encoding."""
        return types.PositionEncodingKind(
            self.workspace.position_encoding or "utf-16"
        ).value

    async def run(self, source: int, sink: int) -> int:
        """Serve until the editor ends; return the exit status."""
        loop = asyncio.get_running_loop()
        future = self._ended = loop.create_future()

        def run_in_loop(callback: Callable[..., None], *arguments: Any) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(callback, *arguments)

        def take(message: Received | None) -> None:
            if message is None:
                self.end(1)
                return
            try:
                self.protocol.receive(message)
            finally:
                # Also after a failure: otherwise the reader would run out of slots and
                # stop.
                incoming.done()

        output = Output(sink, lambda: run_in_loop(self.end, 1))
        self.protocol.set_writer(output)
        incoming = Input(source, output, partial(run_in_loop, take))
        try:
            return int(await future)
        finally:
            for folder in self.folders:
                folder.close()
            output.close()

    def end(self, status: int) -> None:
        """End the session."""
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(status)

    def find_folder(self, path: str) -> Folder | None:
        """Return the innermost folder that contains a file.

        If the editor has no folders, use the project that contains the file, if there is one.
        """
        folders = [folder for folder in self.folders if folder.has(path)]
        if folders:
            # A folder that contains the file takes precedence over one whose project
            # does.
            return max(
                folders,
                key=lambda folder: (is_inside(path, folder.path), len(folder.path)),
            )
        if not self._has_no_folders or len(self.folders) >= MOST_FOLDERS:
            return None
        return self._add_folder(str(Path(path).parent), adopt=False)

    def change_folders(
        self,
        added: Iterable[types.WorkspaceFolder],
        removed: Iterable[types.WorkspaceFolder],
    ) -> None:
        """Add folders and, once initialized, connect to them; remove folders and close their connections."""
        gone = {path_of(folder.uri) for folder in removed}
        for folder in [folder for folder in self.folders if folder.path in gone]:
            folder.close()
            self.folders.remove(folder)
        for path in [path_of(folder.uri) for folder in added][
            : MOST_FOLDERS - len(self.folders)
        ]:
            if path is not None and all(folder.path != path for folder in self.folders):
                folder = self._add_folder(path)
                if self.protocol.is_initialized:
                    self._start_task(folder.connect())

    def configure(self, params: types.InitializeParams) -> None:
        """Take the editor's folders, and register the features that it has not disabled."""
        uris = [folder.uri for folder in params.workspace_folders or []] or [
            params.root_uri or ""
        ]
        if uris == [""] and params.root_path:
            uris = [f"file://{params.root_path}"]
        self.change_folders([types.WorkspaceFolder(uri, "") for uri in uris], [])
        self._has_no_folders = not self.folders
        options = params.initialization_options
        if isinstance(options, dict):
            disabled = options.get("disabled")
        else:
            disabled = None
        # Disabled features are left to the editor's other servers.
        if not isinstance(disabled, list):
            disabled = []
        self._reports_progress = PROGRESS not in disabled
        for feature in FEATURES:
            if feature.name not in disabled:
                self.feature(feature.method, feature.options)(
                    self._make_answer(feature.run)
                )
        if "executeCommand" not in disabled:
            for name, method in COMMANDS.items():
                self.command(name)(self._make_command(method))

    def connect_folders(self) -> None:
        """Connect to the folders before the first request arrives."""
        for folder in self.folders:
            self._start_task(folder.connect())

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Write an error that belongs to no request to stderr, which the editor logs."""
        if source is not FeatureRequestError:
            sys.stderr.write(f"fgrep lsp: {error!r}\n")

    def report_part(self, token: int | str, part: list[Any]) -> None:
        """Send a partial result; the final answer then has only the rest."""
        self.protocol.notify(types.PROGRESS, types.ProgressParams(token, part))

    def _make_answer(self, run: Answer) -> Callable[[Any], Awaitable[Any]]:
        """Return a coroutine function that translates the daemon's errors into None or an LSP error."""

        async def answer(params: Any) -> Any:
            try:
                return await run(self, params)
            except OutsideProjects:
                return None
            except DaemonError as error:
                if error.data.get("reason") in NOTHING_TO_SAY:
                    return None
                raise JsonRpcException(
                    f"flashgrep: {error}", REQUEST_FAILED, error.data
                ) from None
            except DaemonEnded as error:
                raise JsonRpcException(f"flashgrep: {error}", REQUEST_FAILED) from None
            except UnicodeEncodeError:  # no path and no word has half a character
                raise JsonRpcException(
                    "flashgrep: a text has a lone surrogate", INVALID_PARAMS
                ) from None

        return answer

    def _make_command(self, method: str) -> Callable[..., Awaitable[Any]]:
        answer = self._make_answer(
            lambda server, arguments: run_command(server, method, arguments)
        )

        async def run(*arguments: Any) -> Any:
            return await answer(arguments)

        return run

    def _report_progress(self, folder: Folder) -> None:
        """Report a folder's indexing progress, if the editor shows it."""
        client = self.client_capabilities.window
        if client and client.work_done_progress and self._reports_progress:
            self._start_task(report_indexing(self, folder))

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        # The loop holds tasks only by weak references.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _add_folder(self, path: str, *, adopt: bool = True) -> Folder:
        folder = Folder(path, self._find_texts, self._report_progress, adopt=adopt)
        self.folders.append(folder)
        return folder

    def _find_texts(self, folder: Folder) -> list[Document]:
        return [text for text in self.texts if self.find_folder(text.path) is folder]


def serve() -> int:
    """Serve an editor over standard input and output until it ends; return the exit status."""
    logging.getLogger("pygls").setLevel(
        logging.CRITICAL
    )  # it would log the editor's messages
    return asyncio.run(Server().run(0, 1))
