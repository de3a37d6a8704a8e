"""An editor: pygls's client in a thread with its own event loop, and our server in a process."""

import asyncio
import threading
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from tests.conftest import BOUND, FGREP, DaemonAtHand

CAPABILITIES = types.ClientCapabilities(
    general=types.GeneralClientCapabilities(position_encodings=["utf-16"]),
    window=types.WindowClientCapabilities(work_done_progress=True),
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(
            document_changes=True,
            change_annotation_support=types.ChangeAnnotationsSupportOptions(),
        )
    ),
    text_document=types.TextDocumentClientCapabilities(
        document_symbol=types.DocumentSymbolClientCapabilities(
            hierarchical_document_symbol_support=True
        ),
        hover=types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown]),
    ),
)


class Editor:
    """A client; its calls block."""

    def __init__(
        self,
        daemon: DaemonAtHand,
        *roots: Path,
        capabilities: types.ClientCapabilities = CAPABILITIES,
        options: Any = None,
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.client = LanguageClient("editor", "1")
        self.progress: dict[Any, list[Any]] = {}
        self.changed = threading.Condition()

        def take_progress(params: types.ProgressParams) -> None:
            with self.changed:
                self.progress.setdefault(params.token, []).append(params.value)
                self.changed.notify_all()

        self.client.feature(types.PROGRESS)(take_progress)
        self.client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(
            lambda _params: None
        )
        self.await_(self.client.start_io(FGREP, "lsp", env=daemon.environ, cwd="/"))
        folders = [types.WorkspaceFolder(root.as_uri(), root.name) for root in roots]
        params = types.InitializeParams(
            capabilities=capabilities,
            workspace_folders=folders,
            initialization_options=options,
        )
        self.offered = self.ask(types.INITIALIZE, params).capabilities
        self.tell(types.INITIALIZED, types.InitializedParams())

    def await_(self, what: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(BOUND)

    def ask(self, method: str, params: Any) -> Any:
        async def send() -> Any:
            return await self.client.protocol.send_request_async(method, params)

        return self.await_(send())

    def tell(self, method: str, params: Any) -> None:
        self.loop.call_soon_threadsafe(self.client.protocol.notify, method, params)

    def open(self, path: Path, text: str) -> None:
        document = types.TextDocumentItem(path.as_uri(), "x", 1, text)
        self.tell(
            types.TEXT_DOCUMENT_DID_OPEN, types.DidOpenTextDocumentParams(document)
        )

    def change(
        self, path: Path, version: int, text: str, where: types.Range | None = None
    ) -> None:
        change: Any = types.TextDocumentContentChangeWholeDocument(text)
        if where is not None:
            change = types.TextDocumentContentChangePartial(where, text)
        document = types.VersionedTextDocumentIdentifier(version, path.as_uri())
        self.tell(
            types.TEXT_DOCUMENT_DID_CHANGE,
            types.DidChangeTextDocumentParams(document, [change]),
        )

    def at(self, path: Path, line: int, column: int) -> dict[str, Any]:
        return {
            "text_document": types.TextDocumentIdentifier(path.as_uri()),
            "position": types.Position(line, column),
        }

    def wait_for_progress(self) -> list[dict[str, Any]]:
        """Return the reports of the first work that has ended."""

        def find() -> list[dict[str, Any]]:
            return next(
                (
                    told
                    for told in self.progress.values()
                    if told[-1].get("kind") == "end"
                ),
                [],
            )

        with self.changed:
            assert self.changed.wait_for(find, BOUND)
            return find()

    def close(self) -> int:
        server = self.client._server
        assert server is not None
        self.ask(types.SHUTDOWN, None)
        self.tell(types.EXIT, None)
        status = int(self.await_(server.wait()))
        self.await_(self.client.stop())  # type: ignore[no-untyped-call]  # pygls has no type for it
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(BOUND)
        self.loop.close()
        return status
