"""Opens a model in a process of its own, with bounded memory and time: its files may be made to harm."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from flashgrep.base.child_process import limit_data
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed.local import open_folder
from flashgrep.parts.meaning.embed.model_folder import (
    ModelFolder,
    read_model_folder,
)
from flashgrep.parts.meaning.embed.onnx_model import open_pairs

SECONDS: Final = 120.0
MEMORY: Final = 2 << 30
"""Bytes beside three times the model's size: graphs are rearranged when they are opened."""
MOST_OUTPUT: Final = 100_000
TEXTS: Final = (
    "def read_config(path):\n    return json.load(open(path))",
    "class Socket:\n    def connect(self, host, port): ...",
    "static int parse_header(const char *line, size_t length) { return 0; }",
)
CHUNK: Final = 1_200
"""Characters of a usual chunk of code: the pace is measured with such texts."""


class Probed(NamedTuple):
    """What a model turned out to be."""

    dims: int
    """Width of a vector; 0 for a cross-encoder."""
    milliseconds: float
    """For a chunk, on one core."""


def probe_model(model: ModelFolder) -> Probed:
    """Return the width and the pace of a model.

    Raises:
        ProviderUnavailable: it cannot be opened, or not within the bounds.

    """
    command = [
        sys.executable,
        # Never a module of the folder that the user is in.
        "-P",
        "-m",
        "flashgrep.parts.models.probe",
        str(model.path),
    ]
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        limit_data(child.pid, MEMORY + 3 * model.size())
        printed, _ = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise ProviderUnavailable(
            f"{model.path}: not opened within {SECONDS:g} s"
        ) from None
    finally:
        # Interrupted, too: nothing may go on reading a folder that was given up.
        child.kill()
        child.wait()
    # A process that was ended for its memory has printed nothing.
    try:
        answer: Any = json.loads(printed[:MOST_OUTPUT])
    except ValueError:
        raise ProviderUnavailable(
            f"{model.path}: opening it ended the process (status {child.returncode}), perhaps for want of memory"
        ) from None
    if "problem" in answer:
        raise ProviderUnavailable(answer["problem"])
    return Probed(**answer)


def main() -> None:
    """Print what the model of a folder turns out to be."""
    folder = Path(sys.argv[1])
    try:
        print(json.dumps(_probe(folder)._asdict()))  # noqa: T201 - its parent reads it
    except (ProviderUnavailable, MemoryError) as error:
        print(json.dumps({"problem": str(error) or "not enough memory"}))  # noqa: T201


def _probe(folder: Path) -> Probed:
    model = read_model_folder(folder)
    chunks = [(text * CHUNK)[:CHUNK] for text in TEXTS]
    if model.kind == "cross-encoder":
        predict = open_pairs(model)
        width = 0
        started = time.perf_counter()
        predict([("where is a header parsed", chunk) for chunk in chunks])
    else:
        embedder = open_folder(str(folder), 0)
        width = embedder.dims
        started = time.perf_counter()
        # After opening, which is paid once.
        embedder.embed_code(chunks)
    milliseconds = (time.perf_counter() - started) * 1000 / len(chunks)
    return Probed(width, round(milliseconds, 2))


if __name__ == "__main__":
    main()
