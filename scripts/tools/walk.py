"""Trace one real call through a daemon: the package's files that it enters, in order.

The daemon runs in this process on a copy of the package as its project, with all stages of the index ready, and all
its threads are traced during the call. The call is made twice and the second one is traced, so that imports and files
opened at first use do not count.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import flashgrep
from flashgrep.base.paths import Paths, as_latin1, cache_folder, state_folder
from flashgrep.cli.run_daemon import run
from flashgrep.rpc.connect import send_request

PACKAGE = str(Path(flashgrep.__file__).parent) + "/"

FEW = 10
"""Files with fewer executed lines are counted separately: a reader understands them by the function's name."""
READY_SECONDS = 120
"""The package is indexed in about 10 s."""

EXAMPLES = {
    "query": {"text": "def connect", "limit": 5},
    "search_code": {"query": "where are stale sockets removed"},
    "write_code": {
        "file_path": "errors.py",
        "start_line": 1,
        "end_line": 1,
        "replacement": '"""Errors."""',
    },
    "get_symbol": {"symbol_name": "Registry"},
    "read_code": {"file_path": "errors.py"},
    "get_slice": {"file_path": "errors.py", "start_line": 1, "end_line": 5},
    "list_files": {"filter": "reader"},
    "glob": {"pattern": "**/*.py"},
}
"""Default parameters of methods."""


TraceFunction = Callable[[FrameType, str, Any], Any]


class Trace:
    """The package's files, functions and lines that any thread executed while ``active``."""

    def __init__(self) -> None:
        self.active = False
        self.files: dict[str, dict[str, set[int]]] = {}

    def enter(
        self, frame: FrameType, _event: str, _given: object
    ) -> TraceFunction | None:
        """Record a call, and return the tracer of its lines (for ``sys.settrace``)."""
        name = frame.f_code.co_filename
        if not self.active or not name.startswith(PACKAGE):
            return None
        lines = self.files.setdefault(name[len(PACKAGE) :], {}).setdefault(
            frame.f_code.co_qualname, set()
        )

        def note(frame: FrameType, event: str, _given: object) -> TraceFunction:
            if event == "line":
                lines.add(frame.f_lineno)
            return note

        return note


def wait_ready(connection: socket.socket, project: str) -> None:
    """Wait until every stage of the index is ready."""
    until = time.monotonic() + READY_SECONDS
    while True:
        state = send_request(connection, "$/indexing", {"root": project})["result"]
        if state["done"]:
            return
        if time.monotonic() > until:
            raise TimeoutError(state)
        time.sleep(0.1)


def call_twice(
    trace: Trace, paths: Paths, project: str, method: str, params: dict[str, object]
) -> None:
    """Make the call, repeat it with tracing, and stop the daemon."""
    sys.settrace(None)  # this thread is the client
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(READY_SECONDS)
        connection.connect(paths.socket)
        params = {**params, "project": project}
        send_request(
            connection, "$/open", {"folder": as_latin1(project), "adopt": True}
        )
        wait_ready(connection, project)
        send_request(connection, method, params)
        trace.active = True
        answer = send_request(connection, method, params)
        trace.active = False
        if "error" in answer:
            print(answer["error"]["message"])
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Run the daemon, make the call, and print the trace."""
    parser = argparse.ArgumentParser(
        prog="scripts/walk", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("method")
    parser.add_argument(
        "params", nargs="?", type=json.loads, help="a JSON object; `project` is added"
    )
    parser.add_argument(
        "--functions",
        action="store_true",
        help="name each function, in the order of first entry",
    )
    given = parser.parse_args()
    params = given.params or EXAMPLES.get(given.method, {})
    trace = Trace()
    with tempfile.TemporaryDirectory(prefix="walk-") as folder:
        environ = {
            **os.environ,
            "FLASHGREP_STATE_DIR": f"{folder}/state",
            "FLASHGREP_CACHE_DIR": f"{folder}/cache",
        }
        project = f"{folder}/project"
        shutil.copytree(
            PACKAGE, project, ignore=shutil.ignore_patterns("__pycache__", "data")
        )
        paths = Paths(state_folder(environ), cache_folder(environ))
        threading.settrace(trace.enter)
        sys.settrace(trace.enter)

        def start_call(_: str) -> None:
            arguments = (trace, paths, project, given.method, params)
            threading.Thread(target=call_twice, args=arguments, daemon=True).start()

        run(environ, {"tcp": {"enabled": False}}, start_call)
        sys.settrace(None)
    # A coroutine that is only resumed to pass on a result executes no line of its own.
    walked = {
        file: functions
        for file, functions in trace.files.items()
        if any(functions.values())
    }
    lines = {
        file: sum(map(len, functions.values())) for file, functions in walked.items()
    }
    print("functions  lines  file")
    for file, functions in walked.items():
        print(f"{len(functions):9}  {lines[file]:5}  {file}")
        if given.functions:
            print(
                *(f"{len(ran):16}      {name}" for name, ran in functions.items()),
                sep="\n",
            )
    packages = {file.partition("/")[0] for file in walked}
    print(
        f"{len(walked)} files ({sum(count >= FEW for count in lines.values())} of them run {FEW} lines or more), "
        f"{len(packages)} packages, {sum(map(len, walked.values()))} functions, {sum(lines.values())} lines"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
