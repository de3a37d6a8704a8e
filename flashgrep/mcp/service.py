"""The Model Context Protocol's tools, resources and prompts, on any transport and in any revision.

Also texts for models: the instructions that every client gets, and the prompts that a user can choose.
"""

import base64
import binascii
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, unquote_to_bytes

from anyio.to_thread import run_sync

from flashgrep.api.host import Host
from flashgrep.api.service import ServedAnswer
from flashgrep.base.errors import (
    Cancelled,
    FlashgrepError,
    Forbidden,
    InvalidParams,
    MissingCapability,
    NotFound,
    clip,
)
from flashgrep.base.model import Encoded
from flashgrep.base.registry import MOST_NAME, Handler, Progress, Session
from flashgrep.mcp.binding import client_of
from flashgrep.mcp.tool_schema import input_schema, output_schema
from flashgrep.methods.bootstrap import packaged_skill
from flashgrep.methods.text import render_error, render_text
from flashgrep.rpc.dispatch import Dispatcher
from flashgrep.rpc.message import encode

INSTRUCTIONS = """\
flashgrep answers questions about this project's code from a live index, exactly as a full scan of the disk would now. \
Prefer it to grep, find, ls and cat.

Text or regex: query. Code by what it does: search_code. Definition or references of a name: get_symbol. Callers of \
callers, what implements what: code_research. Files by name or glob: list_files. Lines, files or a symbol's code: \
read_code. What a file defines, or a map of the project: outline. What changed: changes. Change one place: write_code; \
several, all or none: batch_write_code.

Paths are from the project's root, lines count from 1, globs are like src/**/*.py; rev is a git revision, or a..b. Hits \
stand below their file as line:text. What is unusual stands in [brackets]: for the rest, call again with the same \
arguments and the cursor or continuation named there. [nothing found in N files]: it is not there. A read's header \
gives the file's #hash: pass it as expected_file_hash when you write."""
USERS_WIRE = "unix"
"""The wire on which only the user's own processes are."""
PAGE = 50
"""Most tools or resources in one answer: any sensible choice of toolsets fits."""
MOST_RESULT_CHARS = 300_000
"""For hosts that truncate results unless a tool declares a larger size (Claude Code does): the largest read allowed,
plus the overhead of JSON. By default answers are far smaller, each method has its own limit."""
SIZED_BY = frozenset({"end_line"})
"""Parameters with which a caller can request such a large result."""
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "prompts": {"listChanged": False},
}
METHODS = (
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
)
SCHEME = "flashgrep://"
MARKDOWN = "text/markdown"
JSON = "application/json"
TEXT = "text/plain"
MOST_URI = 16 * 1024
"""Characters: a path of 4 KiB with each byte escaped, and its project."""
TEMPLATES = [
    {
        "uriTemplate": SCHEME + "{project}/file/{+path}",
        "name": "file",
        "title": "File",
        "description": "A file of a project, by its path relative to the root; only the first part of a long file.",
        "mimeType": TEXT,
    }
]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message template that a user can fill in and send."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]
    """Names of its arguments, each with a description for the user."""
    text: str
    """The template, with arguments in braces."""

    def describe(self) -> dict[str, Any]:
        """Return the prompt as prompts/list has it."""
        arguments = [
            {"name": name, "description": text, "required": True}
            for name, text in self.arguments.items()
        ]
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "arguments": arguments,
        }


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            "bootstrap",
            "Start with flashgrep",
            "Teach the model flashgrep's methods.",
            {},
            "Call flashgrep's bootstrap_skill and follow what it returns for every search, read and write in this "
            "project. Then call stats and tell in one line how far the index is.",
        ),
        Prompt(
            "explore",
            "Explore the code",
            "Answer a question about the code, with places.",
            {"question": "What you want to know."},
            "Answer this question about the project: {question}\n\n"
            "Find entry points with query and get_symbol (output: files first when there may be many hits), read the "
            "lines around the best hits with read_code, and follow the names that matter. Cite each claim as "
            "path:line. Say what you did not look at.",
        ),
        Prompt(
            "trace",
            "Trace a symbol",
            "Follow a function, type or variable to its callers and callees.",
            {"symbol": "The name to follow."},
            "Trace {symbol} through the project.\n\n"
            "get_symbol gives its definition and uses; read each with read_code. Tell who calls it, what "
            "it calls, and what data goes in and out, as a list from callers down to callees with path:line for each "
            "step.",
        ),
    )
}


def get_prompt(name: Any, arguments: Any) -> dict[str, Any]:
    """Return a prompt as prompts/get has it.

    Raises:
        InvalidParams: no prompt has the name, or an argument is missing.

    """
    prompt = None
    if isinstance(name, str):
        prompt = PROMPTS.get(name)
    if prompt is None:
        raise InvalidParams(f"unknown prompt: {name}", allowed=list(PROMPTS))
    if isinstance(arguments, dict):
        values: Mapping[str, Any] = arguments
    else:
        values = {}
    given = {argument: values.get(argument) for argument in prompt.arguments}
    for each, value in given.items():
        if not isinstance(value, str) or not value.strip():
            raise InvalidParams(
                f"{prompt.name}: {each}: a text is required", field=each
            )
    content = {"type": "text", "text": prompt.text.format(**given)}
    return {
        "description": prompt.description,
        "messages": [{"role": "user", "content": content}],
    }


@dataclass(slots=True)
class Service:
    """Lists and calls tools, resources and prompts; shared by all wires."""

    host: Host
    server: Mapping[str, str]
    """The server's name and version, as reported to clients."""
    structured: bool = False
    """Whether every client gets structured content; else only those that request it."""
    page: int = PAGE
    dispatcher: Dispatcher = field(init=False)
    """Set after construction, since the dispatcher needs the adapter of this service."""
    _descriptors: dict[tuple[str, bool, bool], dict[str, Any]] = field(
        default_factory=dict
    )

    async def answer(
        self,
        name: str,
        session: Session,
        params: Mapping[str, Any],
        progress: Progress | None = None,
        note_failure: Callable[[FlashgrepError], None] | None = None,
    ) -> dict[str, Any]:
        """Return the result of one of METHODS; ``note_failure`` gets errors that are returned as results.

        Raises:
            FlashgrepError: as ``call_tool``, ``read_resource`` and ``get_prompt`` do, or the cursor is not ours.

        """
        if name == "tools/call":
            return await self.call_tool(
                session,
                params.get("name"),
                params.get("arguments"),
                progress,
                note_failure,
            )
        if name == "resources/read":
            return await self.read_resource(session, params.get("uri"))
        if name == "prompts/get":
            return get_prompt(params.get("name"), params.get("arguments"))
        field, find = self._lists[name]
        items = find(session)
        start = read_cursor(params.get("cursor"))
        end = start + self.page
        page: dict[str, Any] = {field: items[start:end]}
        if end < len(items):
            page["nextCursor"] = base64.urlsafe_b64encode(b"from %d" % end).decode()
        return page

    @property
    def _lists(
        self,
    ) -> dict[str, tuple[str, Callable[[Session], list[dict[str, Any]]]]]:
        """Return, by method, the field of a list's result and the function that finds its items."""
        return {
            "tools/list": ("tools", self.list_tools),
            "resources/list": ("resources", self.list_resources),
            "resources/templates/list": (
                "resourceTemplates",
                lambda _session: TEMPLATES,
            ),
            "prompts/list": (
                "prompts",
                lambda _session: [prompt.describe() for prompt in PROMPTS.values()],
            ),
        }

    def list_tools(self, session: Session) -> list[dict[str, Any]]:
        """Return the tools that the client chose; those that write only if the client may write."""
        client = client_of(session)
        is_bound = len(session.projects) == 1
        indexed = set(session.indexed) - set(session.visited)
        has_project = bool(session.projects or indexed)
        structured = self.structured or client.structured
        return [
            self._descriptors.get((handler.name, is_bound, structured))
            or self._describe(handler, is_bound=is_bound, structured=structured)
            for handler in self.dispatcher.registry
            # Do not show tools that would be refused: models try what they see.
            if client.tools.shows(handler, has_project=has_project)
            and (session.may_write or not handler.writes)
        ]

    def _describe(
        self, handler: Handler, *, is_bound: bool, structured: bool
    ) -> dict[str, Any]:
        """Return a method's entry in tools/list; ``is_bound``: the connection cannot name another project."""
        meta: dict[str, Any] = {}
        if not handler.writes and SIZED_BY & handler.params.model_fields.keys():
            # Otherwise the host would truncate answers within the caller's budget.
            meta["anthropic/maxResultSizeChars"] = MOST_RESULT_CHARS
        if handler.aliases:
            meta["flashgrep/aliases"] = list(handler.aliases)
        self._descriptors[handler.name, is_bound, structured] = descriptor = {
            "name": handler.name,
            "title": handler.title,
            "description": handler.doc,
            "inputSchema": input_schema(handler, bound=is_bound, complete=structured),
            **({"outputSchema": output_schema(handler)} if structured else {}),
            "annotations": annotations_of(handler),
            **({"_meta": meta} if meta else {}),
        }
        return descriptor

    def _find_tool(self, session: Session, name: Any) -> Handler:
        """Return the method that is a tool, by its name or alias."""
        if isinstance(name, str) and name in self.dispatcher.registry:
            return self.dispatcher.registry.get(name)
        # The message lists the tools, so that a model can correct itself.
        shown = clip(str(name), MOST_NAME)
        tools = [tool["name"] for tool in self.list_tools(session)]
        raise InvalidParams(
            f"unknown tool: {shown}; known are {', '.join(tools)}",
            reason="unknown_tool",
            tool=shown,
        )

    async def call_tool(
        self,
        session: Session,
        name: Any,
        arguments: Any,
        progress: Progress | None = None,
        note_failure: Callable[[FlashgrepError], None] | None = None,
    ) -> dict[str, Any]:
        """Call a method by name or alias; errors are returned as results, so that a model can read them.

        Methods that only read can be called whatever the client's toolsets. A model gets only the text of the method's
        renderer: many hosts would show it the structured content instead. Programs get the structured content, as
        ``Encoded``, since the text next to it is its JSON.

        Raises:
            InvalidParams: no such tool, or the arguments are not an object.
            Cancelled: the caller cancelled it.
            MissingCapability: the tool needs what the client has not declared.

        """
        handler = self._find_tool(session, name)
        given = {} if arguments is None else arguments
        if not isinstance(given, dict):
            raise InvalidParams("arguments: an object is required", field="arguments")
        client = client_of(session)
        is_error = False
        structured = self.structured or client.structured
        render = handler.render
        if structured:
            render = None
        text = ""
        started = time.perf_counter()
        try:
            # Otherwise the user has not enabled it for the model.
            if handler.writes and handler.toolset not in client.tools.usable:
                raise Forbidden(
                    f"{handler.name} writes, and its toolset was not requested: {handler.toolset}",
                    reason="toolset_required",
                    suggestion=f"start the server with --toolsets {','.join([*client.tools.names, handler.toolset])}",
                )
            as_text = render is not None
            result = await self.dispatcher.call(
                session,
                name,
                given,
                progress=progress,
                as_text=as_text,
            )
            if render is not None:
                # In a thread: rendering a long answer would block the loop for
                # milliseconds.
                text = await run_sync(render_text, result, render)
        except (Cancelled, MissingCapability):
            raise
        except FlashgrepError as error:
            self._name_roots(session, error)
            result = dict(error.to_object())
            is_error = True
            if note_failure is not None:
                note_failure(error)
            text = render_error(error.to_object())
        if render is not None:
            self._note_answer(session, handler.name, started, len(text.encode()))
            return {"content": [{"type": "text", "text": text}], "isError": is_error}
        encoded = Encoded(encode(result))
        self._note_answer(session, handler.name, started, len(encoded.json))
        content = [{"type": "text", "text": encoded.json.decode()}]
        return {
            "content": content,
            **({"structuredContent": encoded} if structured else {}),
            "isError": is_error,
        }

    def _name_roots(self, session: Session, error: FlashgrepError) -> None:
        """Say in the error for a path outside the project where that is, and which known project has the path."""
        path = PurePosixPath(str(error.data.get("target_path", "")))
        is_outside = error.reason == "outside_root" and path.is_absolute()
        # With a path map, the client's folders are not those that are compared here.
        if not is_outside or session.path_map is not None:
            return
        own = self.host.find_roots(session, session.projects or session.indexed)
        advice = f"paths are relative to {', '.join(own)}"
        # On its own socket the user may ask about any of the user's projects.
        if session.wire == USERS_WIRE:
            for project in self.host.list_projects():
                if path.is_relative_to(project.root):
                    advice += f"; it is in {project.name}: start the client there, or with --project"
                    break
        error.data["suggestion"] = advice

    def list_resources(self, session: Session) -> list[dict[str, Any]]:
        """Return what can be attached to a conversation: each project's skill and statistics."""
        resources = []
        for project in self.host.list_bound(session):
            for kind, title, description, mime_type in (
                (
                    "skill",
                    "flashgrep skill",
                    "How to use flashgrep's methods, with worked calls.",
                    MARKDOWN,
                ),
                (
                    "stats",
                    f"{project}: index",
                    "Files, index size, stage and progress.",
                    JSON,
                ),
            ):
                uri = f"{SCHEME}{quote(project, safe='')}/{kind}"
                described = {
                    "title": title,
                    "description": description,
                    "mimeType": mime_type,
                }
                resources.append({"uri": uri, "name": f"{project}/{kind}", **described})
        return resources

    def _note_answer(
        self, session: Session, name: str, started: float, size: int
    ) -> None:
        """Tell the parts of an answer of ``size`` bytes to a call that began at ``started``."""
        projects = self.host.list_bound(session)
        answer = ServedAnswer(
            name,
            projects[0] if len(projects) == 1 else "",
            time.perf_counter() - started,
            size,
        )
        self.host.note_answer(answer)

    async def read_resource(self, session: Session, uri: Any) -> dict[str, Any]:
        """Return a resource.

        Raises:
            InvalidParams: there is no such resource.
            FlashgrepError: reading it fails.

        """
        uri = str(uri)
        address = parse_uri(uri)
        # One error for both: a URI must not reveal which projects exist.
        if address is None or address.project not in self.host.list_reachable(session):
            raise _no_resource(uri)
        meta: dict[str, Any] = {}
        if address.kind == "skill":
            mime_type, text = MARKDOWN, await run_sync(packaged_skill)
        elif address.kind == "stats":
            stats = await self.dispatcher.call(
                session, "stats", {"project": address.project}
            )
            mime_type = JSON
            text = encode(stats).decode()
        else:
            path = base64.b64encode(address.path).decode()
            params = {"project": address.project, "path_bytes": path}
            try:
                found = await self.dispatcher.call(session, "read_code", params)
            except NotFound:
                raise _no_resource(uri) from None
            suffix = PurePosixPath(address.path.decode("utf-8", "replace")).suffix
            mime_type = {".md": MARKDOWN, ".json": JSON}.get(suffix, TEXT)
            text = found["content"]
            # A resource has no parameters, so the rest of a long file is read with the
            # tool.
            meta = (
                {"_meta": {"continuation": found["continuation"]}}
                if found["truncated"]
                else {}
            )
        return {"contents": [{"uri": uri, "mimeType": mime_type, "text": text, **meta}]}


def annotations_of(handler: Handler) -> dict[str, bool]:
    """Return a tool's hints, without defaults; where a tool only reads, hosts ask about nothing else."""
    if handler.safety == "reads":
        return {"readOnlyHint": True}
    hints = {"destructiveHint": False} if handler.safety != "destructive" else {}
    return {
        **hints,
        **({"idempotentHint": True} if handler.idempotent else {}),
        "openWorldHint": False,
    }


def read_cursor(cursor: Any) -> int:
    """Return the position at which a cursor's page begins.

    Raises:
        InvalidParams: the cursor is not one of ours.

    """
    if cursor is None:
        return 0
    try:
        word, _, number = base64.urlsafe_b64decode(cursor).partition(b" ")
    except (TypeError, ValueError, binascii.Error):
        word = b""
        number = b""
    if word != b"from" or not number.isdigit():
        raise InvalidParams("cursor: not one of ours", field="cursor")
    return int(number)


class Address(NamedTuple):
    """The parts of a resource's URI; ``path`` is for files, as bytes."""

    project: str
    kind: str
    path: bytes = b""


def parse_uri(uri: str) -> Address | None:
    """Parse a resource's URI; None: it is not ours."""
    if len(uri) > MOST_URI or not uri.startswith(SCHEME):
        return None
    project, _, rest = uri.removeprefix(SCHEME).partition("/")
    kind, _, path = rest.partition("/")
    if project and kind == "file" and path:
        return Address(unquote(project), "file", unquote_to_bytes(path))
    if project and rest in {"skill", "stats"}:
        return Address(unquote(project), rest)
    return None


def _no_resource(uri: str) -> InvalidParams:
    uri = clip(uri, MOST_URI)
    return InvalidParams(
        f"resource not found: {uri}", reason="resource_not_found", uri=uri
    )
