"""What agents' hosts do with the plugin: their own programs, with a model of ours in place of theirs.

The model asks for one search in the host's shell, then for nothing more. So no account is needed to see which of our
tools a model is told of, whether the skill is named, and whether the hook changed the search: its result then has the
line with which ``flashgrep hook rg`` says what it left out. Programs that are not on PATH are left out (from npm:
@anthropic-ai/claude-code, @openai/codex, @google/gemini-cli, opencode-ai).
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple

from scripts.benchmarks.private import FGREP, Client, adopt, private_daemon, wait_until

PLUGIN: Final = Path(__file__).parents[2] / "plugins" / "flashgrep"
SEARCH: Final = "rg -n needle"
MATCH: Final = "a.py:1:needle = 1"
NOTE: Final = "flashgrep: rg did not search"
OURS: Final = "flashgrep"
WAIT: Final = 3.0
"""Seconds before the first answer: Codex asks its model before its servers are there."""
BOUND: Final = 120.0
Json = dict[str, Any]


@dataclass(slots=True)
class Seen:
    """What a model has been told."""

    tools: set[str] = field(default_factory=set)
    has_skill: bool = False
    result: str = ""
    """Of the search."""


class Turn(NamedTuple):
    """A request to a model: its tools, the results in it, and the events that answer it."""

    tools: set[str]
    results: list[Any]
    events: list[Json]


def read_messages(body: Json) -> Turn:
    """Read a request as Claude Code sends it."""
    tools = {tool.get("name", "") for tool in body.get("tools", ())}
    content = body["messages"][-1]["content"]
    results: list[Any] = []
    if isinstance(content, list):
        results = [part for part in content if part.get("type") == "tool_result"]
    block: Json = {"type": "text", "text": ""}
    delta: Json = {"type": "text_delta", "text": "done"}
    if "Bash" in tools and not results:
        block = {"type": "tool_use", "id": "1", "name": "Bash", "input": {}}
        words = json.dumps({"command": SEARCH, "description": "search"})
        delta = {"type": "input_json_delta", "partial_json": words}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "1", "type": "message", "role": "assistant", "content": []}
    reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
    events: list[Json] = [
        {
            "type": "message_start",
            "message": {**message, "model": "m", "usage": usage},
        },
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]
    return Turn(tools, results, events)


def read_responses(body: Json) -> Turn:
    """Read a request as Codex sends it."""
    tools = set[str]()
    for tool in body.get("tools", ()):
        # A server's tools are in a namespace of its name.
        inner = [
            f"{tool['name']}.{function['name']}" for function in tool.get("tools", ())
        ]
        tools.update(inner or [tool.get("name", "")])
    results = [
        item for item in body.get("input", ()) if "output" in item.get("type", "")
    ]
    item: Json = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "done"}],
    }
    if not results:
        item = {
            "type": "function_call",
            "call_id": "1",
            "name": "exec_command",
            "arguments": json.dumps({"cmd": SEARCH}),
        }
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "1", "output": [], "usage": usage}
    events: list[Json] = [
        {"type": "response.created", "response": {"id": "1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    return Turn(tools, results, events)


def read_contents(body: Json) -> Turn:
    """Read a request as Gemini sends it."""
    tools = {
        function["name"]
        for tool in body.get("tools", ())
        for function in tool.get("functionDeclarations", ())
    }
    parts = [part for entry in body["contents"] for part in entry.get("parts", ())]
    results = [part for part in parts if "functionResponse" in part]
    part: Json = {"text": "done"}
    shell = "run_shell_command"
    if shell in tools and not results:
        call = {"name": shell, "args": {"command": SEARCH, "description": "search"}}
        part = {"functionCall": call}
    candidate = {
        "content": {"role": "model", "parts": [part]},
        "finishReason": "STOP",
    }
    return Turn(tools, results, [{"candidates": [candidate]}])


def read_completions(body: Json) -> Turn:
    """Read a request as OpenCode sends it."""
    tools = {tool["function"]["name"] for tool in body.get("tools", ())}
    results = [message for message in body["messages"] if message.get("role") == "tool"]
    delta: Json = {"role": "assistant", "content": "done"}
    reason = "stop"
    if "bash" in tools and not results:
        words = json.dumps({"command": SEARCH, "description": "search"})
        function = {"name": "bash", "arguments": words}
        call = {"index": 0, "id": "1", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call]}
        reason = "tool_calls"
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events: list[Json] = [
        {**chunk, "choices": [{"index": 0, "delta": delta}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ]
    return Turn(tools, results, events)


DIALECTS: Final[Mapping[str, Callable[[Json], Turn]]] = {
    "/messages": read_messages,
    "/responses": read_responses,
    "enerateContent": read_contents,
    "/chat/completions": read_completions,
}
"""How a request is read, by a part of its path."""


class Model(ThreadingHTTPServer):
    """Answers every host in its own dialect, and remembers what it was told."""

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__(("127.0.0.1", 0), _Answering)
        self.seen = Seen()
        self.address = f"http://127.0.0.1:{self.server_port}"


class _Answering(BaseHTTPRequestHandler):
    server: Model

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer with an empty object: a list of models, or a check that somebody is there."""
        self._send("application/json", b"{}")

    def do_HEAD(self) -> None:
        """Answer as to GET, without a body."""
        self.do_GET()

    def do_POST(self) -> None:
        """Answer a turn."""
        body = json.loads(self._read() or b"{}")
        for part, read in DIALECTS.items():
            if part in self.path and "count" not in self.path:
                self._answer(body, read)
                return
        self._send("application/json", b"{}")

    def _answer(self, body: Json, read: Callable[[Json], Turn]) -> None:
        turn = read(body)
        seen = self.server.seen
        seen.tools |= turn.tools
        seen.has_skill |= f"{OURS}:" in json.dumps(body)
        if turn.results:
            seen.result = json.dumps(turn.results)
        else:
            time.sleep(WAIT)
        if read is read_contents and "stream" not in self.path:
            self._send("application/json", json.dumps(turn.events[0]).encode())
            return
        lines = []
        for event in turn.events:
            if "type" in event:
                lines.append(f"event: {event['type']}\n")
            lines.append(f"data: {json.dumps(event)}\n\n")
        if read is read_completions:
            lines.append("data: [DONE]\n\n")
        self._send("text/event-stream", "".join(lines).encode())

    def _read(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        pieces: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class Host(NamedTuple):
    """How a host gets the plugin, and our model; ``{plugin}`` and ``{model}`` stand for where they are."""

    program: str
    files: Mapping[str, str]
    """What is written below the home folder, before anything runs."""
    setup: Sequence[str]
    environ: Mapping[str, str]
    run: str
    has_hook: bool = True


CODEX: Final = """
model = "m"
model_provider = "ours"
[model_providers.ours]
name = "ours"
base_url = "{model}/v1"
wire_api = "responses"
env_key = "MODEL_KEY"
"""
GEMINI: Final = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'
OPENCODE: Final = """{
  "model": "ours/m", "small_model": "ours/m",
  "provider": {"ours": {"npm": "@ai-sdk/openai-compatible", "models": {"m": {"tool_call": true}},
    "options": {"baseURL": "{model}/v1", "apiKey": "x"}}}
}"""
HOSTS: Final = (
    Host(
        "claude",
        {},
        (
            "claude plugin marketplace add {plugin}",
            "claude plugin install flashgrep@flashgrep",
        ),
        {"ANTHROPIC_BASE_URL": "{model}", "ANTHROPIC_API_KEY": "x"},
        "claude -p search --allowedTools Bash",
    ),
    Host(
        "codex",
        {".codex/config.toml": CODEX},
        (
            "codex plugin marketplace add {plugin}",
            "codex plugin add flashgrep@flashgrep",
        ),
        {"MODEL_KEY": "x"},
        "codex exec --dangerously-bypass-hook-trust --dangerously-bypass-approvals-and-sandbox search",
    ),
    Host(
        "gemini",
        {".gemini/settings.json": GEMINI},
        ("yes | gemini extensions install {plugin}/gemini --consent",),
        {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": "{model}"},
        "gemini -y --skip-trust -p search",
    ),
    Host(
        "opencode",
        {".config/opencode/opencode.json": OPENCODE},
        ("flashgrep install opencode --global",),
        {},
        "opencode run search",
        has_hook=False,
    ),
)


def main(names: Sequence[str]) -> int:
    """Try the hosts that are on PATH, and print what each does; return 1 if one lacks something."""
    failed = False
    for host in HOSTS:
        if names and host.program not in names:
            continue
        if shutil.which(host.program) is None:
            print(f"{host.program}: not on PATH")
            continue
        seen = try_host(host)
        ours = [name for name in seen.tools if OURS in name]
        is_answered = MATCH in seen.result
        is_changed = NOTE in seen.result
        failed |= not ours or not is_answered or is_changed != host.has_hook
        print(
            f"{host.program}: {len(ours)} tools, skill {'named' if seen.has_skill else 'not named'}, "
            f"search {'answered' if is_answered else 'not answered'}, "
            f"{'by the hook' if is_changed else 'as it was typed'}",
            flush=True,
        )
    return int(failed)


def try_host(host: Host) -> Seen:
    """Return what a model is told by a host, in a home of its own with a daemon of its own."""
    # What hosts start in the background may still write.
    with tempfile.TemporaryDirectory(
        prefix="hosts", ignore_cleanup_errors=True
    ) as temporary:
        base = Path(temporary)
        tree = base / "tree"
        make_tree(tree)
        with private_daemon(base / "state") as daemon, serve() as model:
            adopt(daemon, tree)
            client = Client(daemon.socket)
            wait_until(client, {"listing", "indexing"})
            client.close()
            values = {"plugin": str(PLUGIN), "model": model.address}
            home = base / "home"
            home.mkdir()
            for name, text in host.files.items():
                file = home / name
                file.parent.mkdir(parents=True)
                file.write_text(fill(text, values))
            environ = {
                **daemon.environ,
                "HOME": str(home),
                "PATH": f"{Path(FGREP).parent}{os.pathsep}{os.environ['PATH']}",
            }
            for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
                environ.pop(name, None)
            for name, text in host.environ.items():
                environ[name] = fill(text, values)
            for line in (*host.setup, host.run):
                run(fill(line, values), tree, environ)
            return model.seen


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a text with what stands for the plugin and the model in place."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def make_tree(tree: Path) -> None:
    """Make a repository with something to find, and something that ripgrep leaves out."""
    (tree / "build").mkdir(parents=True)
    (tree / "a.py").write_text("needle = 1\n")
    (tree / "build" / "b.py").write_text("needle = 2\n")
    (tree / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q", str(tree)], check=True)


@contextmanager
def serve() -> Iterator[Model]:
    """Yield a model that listens."""
    with Model() as model:
        thread = threading.Thread(target=model.serve_forever)
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join()


def run(line: str, folder: Path, environ: Mapping[str, str]) -> None:
    """Run a line of shell; what it says is shown only if it fails."""
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=BOUND,
    )
    if done.returncode:
        print(f"{line}: status {done.returncode}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
