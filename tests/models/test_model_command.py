"""``fgrep model``: models are added from folders and by name, measured on a history, chosen, and removed."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from flashgrep.parts.models.model_store import NEW, ModelStore
from tests.conftest import BOUND, FGREP, DaemonAtHand, MakeProject
from tests.models.folders import (
    make_cross_encoder,
    make_encoder,
    make_model2vec,
    write_json,
)
from tests.support.git import commit

NAME = "maker/small-model"
CHANGES = (
    ("sockets", "Close sockets when the other side goes away", "write the socket"),
    ("readers", "Read a file in pieces so that memory stays small", "read the file"),
    ("writers", "Write the whole file again after a failure", "write file"),
    ("sockets", "Wait for the other side before a socket is used", "socket read"),
    ("readers", "Stop to read when nobody waits for the answer", "read read"),
    ("writers", "Keep what was there while a new text is made", "file write"),
    ("sockets", "Answer every question of a peer in its order", "socket socket"),
    ("readers", "Count the lines of a text that has no end", "the file"),
    ("writers", "Never leave half of a text behind a crash", "write write"),
    ("sockets", "Give up on a peer that says nothing for long", "the socket"),
)
"""A file, what a commit says of it, and words that it then has."""


def make_history(root: Path) -> None:
    """Commit changes of three files."""
    for name in ("sockets", "readers", "writers"):
        (root / f"{name}.py").write_text(
            f'def work_{name}(given):\n    return "{name}"\n'
        )
    commit(root, "Begin")
    for number, (name, subject, words) in enumerate(CHANGES):
        with (root / f"{name}.py").open("a") as file:
            file.write(f'\ndef step_{number}(given):\n    return "{words}", given\n')
        commit(root, subject)


def read_config(daemon: DaemonAtHand) -> str:
    path = daemon.run("config", "path").stdout.strip()
    return Path(path).read_text() if Path(path).exists() else ""


def ask(daemon: DaemonAtHand, root: Path) -> Any:
    with closing(daemon.wire("unix", root)) as wire:
        return wire.call("search_code", query="where is the socket read")


def wait_ready(daemon: DaemonAtHand, root: Path) -> Any:
    done = daemon.run("index-codebase", ".", "--json", cwd=root)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_a_folder_is_measured_and_used_from_then_on(
    cold_daemon: DaemonAtHand, project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.py": "x = 1\n"})
    make_history(root)
    cold_daemon.add(root)
    config = Path(cold_daemon.run("config", "path").stdout.strip())
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("# mine\n[query]\ndefault_limit = 7\n")
    folder = make_encoder(tmp_path / "my model")

    done = cold_daemon.run("model", "add", str(folder), "--questions", "9", cwd=root)

    assert done.returncode == 0, done
    assert "encoder, 4 dimensions" in done.stdout
    assert "apache-2.0" in done.stdout
    assert "prompt for a query: 'ask: '" in done.stdout
    assert "9 questions from the history" in done.stdout
    name = done.stdout.split(":")[0]
    assert name.startswith("my-model-")
    told = cold_daemon.run("model", "list").stdout
    assert "in reciprocal rank to the default, 9 questions" in told
    text = read_config(cold_daemon)
    assert "# mine\n[query]\ndefault_limit = 7\n" in text
    if "worse here" in done.stdout:
        assert "[embedding]" not in text
        assert cold_daemon.run("model", "use", name[:12]).returncode == 0
    assert f"* {name}" in cold_daemon.run("model", "list").stdout
    assert 'provider = "local"' in read_config(cold_daemon)
    assert wait_ready(cold_daemon, root)["provider"] == "local"
    assert ask(cold_daemon, root)["ranked_by"] == "words and meaning"

    removed = cold_daemon.run("model", "remove", name)
    assert removed.returncode == 0, removed
    assert read_config(cold_daemon) == "# mine\n[query]\ndefault_limit = 7\n"
    assert name not in cold_daemon.run("model", "list").stdout
    assert ask(cold_daemon, root)["results"]


def test_the_default_serves_until_the_new_vectors_are_ready(
    cold_daemon: DaemonAtHand, project: MakeProject, tmp_path: Path
) -> None:
    root = project({"a.py": "def read_socket(file):\n    return file\n"})
    cold_daemon.add(root)
    wait_ready(cold_daemon, root)
    folder = make_model2vec(tmp_path / "model")
    done = cold_daemon.run("model", "add", str(folder), "--questions", "0")
    assert done.returncode == 0, done
    # Killed as it begins with the new vectors; and the model cannot be opened.
    daemon = cold_daemon.status()["pid"]
    os.kill(daemon, signal.SIGKILL)
    store = ModelStore(Path(cold_daemon.paths.state))
    (model,) = store.list_models()
    weights = store.path_of(model.name) / "model.safetensors"
    kept = weights.read_bytes()
    weights.write_bytes(b"")
    cold_daemon.start()
    answer = ask(cold_daemon, root)
    assert answer["ranked_by"] == "words and meaning"
    assert "not a safetensors file" in answer["coverage"]["detail"]
    weights.write_bytes(kept)
    cold_daemon.stop()
    cold_daemon.start()
    assert wait_ready(cold_daemon, root)["provider"] == "local"
    assert ask(cold_daemon, root)["ranked_by"] == "words and meaning"


def test_a_cross_encoder_orders_what_was_found(
    cold_daemon: DaemonAtHand, project: MakeProject, tmp_path: Path
) -> None:
    texts = {
        "a.py": "def read ( file ) :\n    the file\n",
        "b.py": "def write ( file ) :\n    socket write write\n",
    }
    root = project(texts)
    cold_daemon.add(root)
    wait_ready(cold_daemon, root)
    folder = make_cross_encoder(tmp_path / "pairs")
    done = cold_daemon.run("model", "add", str(folder), "--questions", "0", cwd=root)
    assert "pairs" in done.stdout, done
    assert "top = 30" in read_config(cold_daemon)
    with closing(cold_daemon.wire("unix", root)) as wire:
        found = wire.call("search_code", query="read the file")["results"]
    assert [piece["path"] for piece in found] == ["b.py", "a.py"]
    assert cold_daemon.run("model", "use", "default").returncode == 0
    assert read_config(cold_daemon) == ""


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("/no/such/folder", "neither a folder nor a name"),
        ("folder", "neither a folder nor a name"),
        ("a/../b", "neither a folder nor a name"),
        (".", "no model of model2vec, ONNX or sentence-transformers"),
    ],
)
def test_what_is_no_model_is_refused(
    cold_daemon: DaemonAtHand, tmp_path: Path, source: str, problem: str
) -> None:
    done = cold_daemon.run("model", "add", source, cwd=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr
    assert not ModelStore(Path(cold_daemon.paths.state)).list_models()


def test_weights_of_pytorch_alone_are_explained(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    write_json(tmp_path, {"modules.json": [], "config.json": {}})
    done = cold_daemon.run("model", "add", str(tmp_path))
    assert "optimum-cli export onnx" in done.stderr


# By name


@dataclass
class FakeHub:
    """A hub of one model."""

    folder: Path
    requests: list[str] = field(default_factory=list)
    stalls: threading.Event | None = None
    """Set once the weights are asked for; they never come."""
    damages: str = ""
    address: str = ""

    def list_files(self) -> dict[str, Any]:
        files = []
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                data = path.read_bytes()
                row: dict[str, Any] = {
                    "rfilename": str(path.relative_to(self.folder)),
                    "size": len(data),
                }
                if path.suffix in (".onnx", ".safetensors"):
                    row["lfs"] = {"sha256": sha256(data).hexdigest()}
                files.append(row)
        card = {"license": "mit"}
        return {
            "sha": "0123abcd",
            "siblings": files,
            "cardData": card,
            "tags": ["model2vec"],
        }


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.requests.append(self.path)
            if self.path.startswith("/api/models/"):
                self.reply(json.dumps(hub.list_files()).encode())
                return
            name = self.path.partition("/resolve/0123abcd/")[2]
            data = (hub.folder / name).read_bytes()
            if name.endswith(".safetensors"):
                if hub.damages == "redirect":
                    self.send_response(302)
                    self.send_header("Location", "http://example.org/weights")
                    self.end_headers()
                    return
                if hub.damages == "long":
                    data += b"x"
                if hub.damages == "changed":
                    data = data[:-1] + b"x"
                if hub.stalls is not None:
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(data[:10])
                    self.wfile.flush()
                    hub.stalls.set()
                    self.rfile.read(1)
                    return
            self.reply(data)

        def reply(self, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def hub(cold_daemon: DaemonAtHand, tmp_path: Path) -> Iterator[FakeHub]:
    folder = make_model2vec(tmp_path / "small")
    (folder / "training.bin").write_bytes(b"not asked for")
    with serving(FakeHub(folder)) as served:
        cold_daemon.environ["HF_ENDPOINT"] = served.address
        yield served


def test_nothing_is_fetched_before_the_user_says_yes(
    cold_daemon: DaemonAtHand, hub: FakeHub, tmp_path: Path
) -> None:
    done = cold_daemon.run("model", "add", NAME, "--questions", "0", cwd=tmp_path)
    assert done.returncode == 2
    assert f"list the files of {NAME} at {hub.address}?" in done.stderr
    assert "nothing was fetched" in done.stderr
    assert hub.requests == []


def test_a_named_model_is_fetched_as_it_was_listed(
    cold_daemon: DaemonAtHand, hub: FakeHub, tmp_path: Path
) -> None:
    done = cold_daemon.run(
        "model", "add", NAME, "--yes", "--questions", "0", cwd=tmp_path
    )
    assert done.returncode == 0, done
    printed = done.stdout
    assert printed.index("licence: mit") < printed.index("small-model-")
    assert "model.safetensors" in printed
    assert f"from {NAME}" in printed
    names = {path.rpartition("/")[2] for path in hub.requests[1:]}
    assert names == {
        "model.safetensors",
        "tokenizer.json",
        "config.json",
        "modules.json",
        "README.md",
    }


@pytest.mark.parametrize(
    ("damages", "problem"),
    [
        ("long", "not the file that was listed"),
        ("changed", "not the file that was listed"),
        ("redirect", "only https is used"),
    ],
)
def test_what_is_not_as_listed_is_refused(
    cold_daemon: DaemonAtHand, hub: FakeHub, tmp_path: Path, damages: str, problem: str
) -> None:
    hub.damages = damages
    done = cold_daemon.run(
        "model", "add", NAME, "--yes", "--questions", "0", cwd=tmp_path
    )
    assert done.returncode == 2
    assert problem in done.stderr
    store = ModelStore(Path(cold_daemon.paths.state))
    assert not store.list_models()
    assert not (store.folder / NEW).exists()
    assert read_config(cold_daemon) == ""


def test_a_command_that_is_killed_leaves_nothing_that_counts(
    cold_daemon: DaemonAtHand, hub: FakeHub, tmp_path: Path
) -> None:
    hub.stalls = threading.Event()
    command = [FGREP, "model", "add", NAME, "--yes", "--questions", "0"]
    child = subprocess.Popen(command, env=cold_daemon.environ, cwd=tmp_path)
    try:
        assert hub.stalls.wait(BOUND)
        second = cold_daemon.run("model", "add", str(hub.folder), "--questions", "0")
        assert "another command adds a model" in second.stderr
    finally:
        child.kill()
        child.wait()
    store = ModelStore(Path(cold_daemon.paths.state))
    assert not store.list_models()
    assert read_config(cold_daemon) == ""
    hub.stalls = None
    done = cold_daemon.run("model", "add", str(hub.folder), "--questions", "0")
    assert done.returncode == 0, done
    assert not (store.folder / NEW).exists()
    assert len(store.list_models()) == 1
