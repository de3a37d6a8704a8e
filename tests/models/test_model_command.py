"""``fgrep model``: models are added from folders and by name, measured on a history, chosen, and removed."""

import io
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request

import onnx
import pytest

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.base.paths import config_file
from flashgrep.parts.meaning.embed.model_folder import read_model_folder
from flashgrep.parts.models.choosing import choose_model, forget_model
from flashgrep.parts.models.comparing import Measured
from flashgrep.parts.models.hub import (
    Listed,
    Listing,
    _CheckedRedirects,
    check_address,
)
from flashgrep.parts.models.model_command import _find_doubt
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
    path = Path(config_file(daemon.environ))
    return path.read_text() if path.exists() else ""


def ask(daemon: DaemonAtHand, root: Path) -> Any:
    with closing(daemon.wire("unix", root)) as wire:
        return wire.call("search_code", query="where is the socket read")


def wait_ready(daemon: DaemonAtHand, root: Path) -> Any:
    done = daemon.run("index-codebase", ".", "--json", cwd=root)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


@pytest.mark.timeout(300)
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

    done = cold_daemon.run(
        "model",
        "add",
        str(folder),
        "--questions",
        "9",
        cwd=root,
        seconds=180,
    )

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
        ("~nobody.of.this.name/b", "neither a folder nor a name"),
        (".", "no model of model2vec, ONNX or sentence-transformers"),
        ("models/a.onnx", "a file; give the folder it is in"),
    ],
)
def test_what_is_no_model_is_refused(
    cold_daemon: DaemonAtHand, tmp_path: Path, source: str, problem: str
) -> None:
    # A path with one slash could be a name on a hub.
    file = tmp_path / "models" / "a.onnx"
    file.parent.mkdir()
    file.write_bytes(b"")
    done = cold_daemon.run("model", "add", source, cwd=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr
    assert not ModelStore(Path(cold_daemon.paths.state)).list_models()


def test_a_graph_whose_weights_are_elsewhere_in_its_folder_is_not_added(
    cold_daemon: DaemonAtHand, tmp_path: Path
) -> None:
    folder = make_encoder(tmp_path / "model")
    path = folder / "onnx" / "model.onnx"
    onnx.save(
        onnx.load(str(path)),
        str(path),
        save_as_external_data=True,
        location="rows.bin",
        size_threshold=0,
    )
    assert (folder / "onnx" / "rows.bin").exists()
    done = cold_daemon.run("model", "add", str(folder), "--questions", "0")
    assert done.returncode == 2
    assert f"{folder}/onnx/model.onnx: not a graph to be run here" in done.stderr
    assert not ModelStore(Path(cold_daemon.paths.state)).list_models()


def test_the_folder_of_models_is_the_users_own_whatever_the_umask(
    tmp_path: Path,
) -> None:
    store = ModelStore(tmp_path)
    before = os.umask(0o002)
    try:
        with store.making():
            assert store.folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_a_model_that_was_half_removed_is_whole_when_it_is_added_again(
    tmp_path: Path,
) -> None:
    store = ModelStore(tmp_path)
    folder = make_model2vec(tmp_path / "made")
    for _ in range(2):
        with store.making() as fresh:
            made = read_model_folder(folder)
            copied = replace(made, path=store.copy(made, fresh))
            name = store.take(copied, "mine")
        # Killed before it was described, and when it was being removed.
        kept = store.path_of(name)
        assert set(read_model_folder(kept).files()) == set(made.files())
        (kept / "tokenizer.json").unlink()


def test_what_is_forgotten_of_the_settings_is_what_names_the_model(
    tmp_path: Path,
) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    file = Path(config_file(environ))
    file.parent.mkdir(parents=True, exist_ok=True)
    head = '[embedding]\nprovider = "ollama"\nmodel = "a"\n\n# of mine\n'
    tail = "[query]\ndefault_limit = 7\n"
    file.write_text(head + tail)
    model = tmp_path / "model"
    choose_model(environ, "cross-encoder", model)
    assert f'model = "{model}"' in file.read_text()
    assert forget_model(environ, model)
    assert not forget_model(environ, model)
    assert file.read_text() == head + tail
    choose_model(environ, "encoder", model)
    lines = [line for line in file.read_text().split("\n") if line]
    assert lines[2:4] == [f'model = "{model}"', "# of mine"]
    assert forget_model(environ, model)
    lines = [line for line in file.read_text().split("\n") if line]
    assert lines == ["[embedding]", "# of mine", *tail.splitlines()]


def test_a_model_that_could_not_be_measured_is_not_used() -> None:
    assert _find_doubt(None) == ""
    assert _find_doubt(Measured({"default": [1] * 8, "mine": [1] * 8})) == ""
    assert "worse" in _find_doubt(Measured({"default": [1] * 8, "mine": [0] * 8}))
    assert "measured" in _find_doubt(Measured({"default": [1]}, problem="too slow"))


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
        # A machine behind a proxy would ask it for this address, too.
        cold_daemon.environ["no_proxy"] = "127.0.0.1"
        yield served


def test_nothing_is_fetched_before_the_user_says_yes(
    cold_daemon: DaemonAtHand, hub: FakeHub, tmp_path: Path
) -> None:
    done = cold_daemon.run(
        "model",
        "add",
        NAME,
        "--questions",
        "0",
        cwd=tmp_path,
        stdin="",
    )
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


def test_only_files_of_the_model_s_own_names_are_chosen() -> None:
    files = dict.fromkeys(("model.onnx", "/tokenizer.json", "../x"), Listed(1, ""))
    listing = Listing(
        name=NAME,
        revision="1",
        licence="",
        files=files,
        tags=frozenset(),
    )
    assert set(listing.choose()) == {"model.onnx"}


@pytest.mark.parametrize("address", ["http://example.org", "https://[x", "ftp://a", ""])
def test_only_https_is_asked(address: str) -> None:
    with pytest.raises(ProviderUnavailable):
        check_address(address)


def test_a_hub_elsewhere_does_not_lead_to_this_machine() -> None:
    redirects = _CheckedRedirects()
    for origin, refused in (("https://hub.example", True), ("http://localhost", False)):
        request = Request(f"{origin}/weights")  # noqa: S310 - nothing is opened
        follow = partial(
            redirects.redirect_request,
            request,
            io.BytesIO(),
            302,
            "",
            HTTPMessage(),
        )
        if refused:
            with pytest.raises(ProviderUnavailable, match="only https is used"):
                follow("http://127.0.0.1:8080/")
        else:
            assert follow("http://127.0.0.1:8080/") is not None
        assert follow("https://files.example/weights") is not None


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
