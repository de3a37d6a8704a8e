"""pygls's protocol, made stricter: every request is answered, in every state and however malformed.

pygls does not answer requests with invalid parameters, reads files that were never opened, and splits lines where the
protocol does not.
"""

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, lsp_method

from flashgrep.parts.lsp.convert import Plain
from flashgrep.parts.lsp.wire import Unreadable

if TYPE_CHECKING:
    from flashgrep.parts.lsp.server import Server

INTERNAL_ERROR: Final = -32603
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
NOT_INITIALIZED: Final = -32002


class Protocol(LanguageServerProtocol):
    """One editor's messages."""

    _server: "Server"

    def receive(self, message: dict[str, Any] | Unreadable) -> None:
        """Handle a received message."""
        if isinstance(message, Unreadable):
            self._refuse(None, PARSE_ERROR, str(message))
            return
        number = message.get("id")
        method = message.get("method", "")
        # Checked here, since pygls raises and does not answer. The id comes first: an
        # answer needs it.
        if "id" in message and (
            not isinstance(number, int | str) or isinstance(number, bool)
        ):
            self._refuse(None, INVALID_REQUEST, "id: a number or a string is required")
        elif isinstance(number, str) and has_lone_surrogate(number):
            self._refuse(None, INVALID_REQUEST, "id: a lone surrogate is no character")
        elif not isinstance(method, str):
            self._refuse(number, INVALID_REQUEST, "method: a string is required")
        elif has_lone_surrogate(method):
            if number is not None:
                self._refuse(number, METHOD_NOT_FOUND, "method: no such method")
        elif "method" not in message:
            if number in self._request_futures:  # the answer to a request of ours
                self._take(message)
        elif problem := self._find_problem(method):
            # A notification is dropped, as the protocol requires.
            if number is not None:
                self._refuse(number, *problem)
        else:
            self._take(message)

    @property
    def is_initialized(self) -> bool:
        """Whether ``initialize`` was received."""
        return self._workspace is not None

    def _find_problem(self, method: str) -> tuple[int, str] | None:
        """Return the error if a method is not allowed in the current state."""
        if not self.is_initialized:
            allowed = {types.INITIALIZE, types.EXIT}
            if method in allowed:
                return None
            return (NOT_INITIALIZED, "the server is not initialized")
        if method == types.INITIALIZE:
            return INVALID_REQUEST, "the server is already initialized"
        if self._shutdown and method != types.EXIT:
            return INVALID_REQUEST, "the server has been shut down"
        return None

    def _take(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        method = message.get("method")
        try:
            # Some clients leave out "jsonrpc"; pygls would reject the message.
            structured = self.structure_message({**message, "jsonrpc": self.VERSION})
        except (JsonRpcException, RecursionError):
            if number is not None and method is not None:
                self._refuse(number, INVALID_PARAMS, f"invalid parameters of {method}")
            elif (
                number is not None
                and not (waiting := self._request_futures.pop(number)).done()
            ):
                waiting.set_exception(JsonRpcException("invalid answer to a request"))
            return
        if number is not None and not hasattr(structured, "id"):
            self._refuse(number, INVALID_REQUEST, f"{method} is a notification")
            return
        self.handle_message(structured)

    def _send_data(self, data: Any) -> None:
        """Send a message; an answer that cannot be serialized becomes an error, since the editor waits for one."""
        # A plain list bypasses the converter, which would visit each item.
        if isinstance(plain := getattr(data, "result", None), Plain):
            data = {"jsonrpc": self.VERSION, "id": data.id, "result": plain}
        try:
            body = json.dumps(data, default=self._serialize_message)
        except Exception as error:  # noqa: BLE001 - whatever a converter raises
            self._server.report_server_error(error, type(error))
            if (number := getattr(data, "id", None)) is None or not hasattr(
                data, "result"
            ):
                return
            refused = {"code": INTERNAL_ERROR, "message": "flashgrep: internal error"}
            body = json.dumps({"jsonrpc": self.VERSION, "id": number, "error": refused})
        if self.writer is not None:
            self.writer.write(f"Content-Length: {len(body)}\r\n\r\n{body}".encode())

    def _send_response(
        self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        """Send an answer; an internal error tells the editor nothing of our code, as pygls's would."""
        if error is not None and error.code == INTERNAL_ERROR:
            self._server.report_server_error(RuntimeError(error.message), RuntimeError)
            error = types.ResponseError(INTERNAL_ERROR, "flashgrep: internal error")
        super()._send_response(msg_id, result, error)

    def _refuse(self, number: Any, code: int, message: str) -> None:
        error = {"code": code, "message": message}
        self._send_data(
            {"jsonrpc": self.VERSION, "id": number, "error": error}
        )  # pygls would leave out a null id

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        """Choose UTF-8 for positions if the editor supports it, since files are bytes."""
        general = params.capabilities.general
        if general and types.PositionEncodingKind.Utf8 in (
            general.position_encodings or ()
        ):
            # pygls takes the client's first known encoding; leaving only one makes it
            # take this one.
            general.position_encodings = [types.PositionEncodingKind.Utf8]
        self._server.configure(params)
        return (yield from super().lsp_initialize(params))

    @lsp_method(types.INITIALIZED)
    def lsp_initialized(self, *_params: Any) -> Generator[Any, Any, None]:
        """Connect to the folders before the first request arrives."""
        self._server.connect_folders()
        yield from ()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_params: Any) -> Generator[Any, Any, None]:
        """End the process with the exit status that the protocol prescribes."""
        self._server.end(0 if self._shutdown else 1)
        yield from ()

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(
        self, params: types.DidOpenTextDocumentParams
    ) -> None:
        """Open a document."""
        self._server.texts.open(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(
        self, params: types.DidChangeTextDocumentParams
    ) -> None:
        """Apply changes to a document."""
        self._server.texts.change(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(
        self, params: types.DidCloseTextDocumentParams
    ) -> None:
        """Close a document."""
        self._server.texts.close(params.text_document.uri)

    @lsp_method(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def lsp_workspace__did_change_workspace_folders(
        self, params: types.DidChangeWorkspaceFoldersParams
    ) -> None:
        """Connect to added folders, and disconnect from removed ones."""
        self._server.change_folders(params.event.added, params.event.removed)


def has_lone_surrogate(text: str) -> bool:
    """Return whether a text has half a character, which only an escape in JSON can bring."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
