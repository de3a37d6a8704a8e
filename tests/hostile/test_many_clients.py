"""Many clients that save files and ask at the same moment: every answer is right, and the daemon outlives them."""

import os
import signal
import threading
import time
from contextlib import closing
from operator import attrgetter
from pathlib import Path

import pytest

from flashgrep.files.lines import SmallFile, VersionCache
from flashgrep.parts.symbols.parse import ParsedFile, pack, parse_symbols
from tests.conftest import BOUND, DaemonAtHand, MakeProject

CLIENTS = 16
SAMPLES = sorted((Path(__file__).parents[1] / "ingest" / "samples").glob("sample.*"))
SECONDS = 3.0
"""With parsers shared by threads, two clients ended the daemon within a second of this."""


def python_source(name: str, functions: int) -> str:
    """Return a module whose last function has the name; parsing takes about 50 µs a function."""
    body = "".join(
        f"def other_{at}(one, two):\n    return one + two * {at}\n\n\n"
        for at in range(functions)
    )
    return f"{body}def {name}():\n    return 1\n"


def save_and_ask(
    daemon: DaemonAtHand, root: Path, number: int, until: float, failures: list[str]
) -> None:
    """Save a file under ever new names and ask three methods for the newest, until the time is over."""
    wire = daemon.wire("unix", root)
    path = root / f"module_{number}.py"
    round_ = 0
    try:
        while time.monotonic() < until:
            round_ += 1
            name = f"newest_{number}_{round_}"
            path.write_text(python_source(name, 1_500))
            outlined = wire.call("outline", path=path.name, max_tokens=1_000_000)[
                "results"
            ][0]["symbols"]
            if not any(name in line for line in outlined):
                failures.append(f"outline: no {name}")
            if not wire.call("get_symbol", symbol_name=name)["results"]:
                failures.append(f"get_symbol: no {name}")
            if (
                len(wire.call("query", text=f"def {name}(", mode="literal")["results"])
                != 1
            ):
                failures.append(f"query: not one {name}")
    except (OSError, ValueError, AssertionError) as error:  # the daemon hung up
        failures.append(repr(error))
    finally:
        wire.close()


def test_clients_that_save_and_ask_at_once_all_get_what_they_saved(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"module_0.py": "x = 1\n"})
    daemon.add(root)
    before = daemon.status()["pid"]
    failures: list[str] = []
    until = time.monotonic() + SECONDS
    clients = [
        threading.Thread(
            target=save_and_ask, args=[daemon, root, number, until, failures]
        )
        for number in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join(SECONDS + BOUND)
    assert not failures
    assert daemon.status()["pid"] == before


@pytest.mark.slow
def test_threads_that_parse_at_once_get_what_one_alone_gets() -> None:
    work = [
        ("python", python_source(f"last_{number}", 1_500).encode())
        for number in range(4)
    ]
    alone = [parsed(*item) for item in work]
    found: list[list[object]] = []
    threads = [
        threading.Thread(target=lambda: found.append([parsed(*item) for item in work]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND)
    assert found == [alone] * 4


def parsed(language: str, data: bytes) -> object:
    found = parse_symbols(language, data)
    return pack(found) if isinstance(found, ParsedFile) else found


def test_files_read_by_two_threads_at_once_are_kept_once() -> None:
    cache = VersionCache[SmallFile](
        sum(path.stat().st_size for path in SAMPLES), attrgetter("size")
    )
    for path in SAMPLES:  # they are older than what is too fresh to be kept
        both = threading.Barrier(2)

        def read(path: Path = path, both: threading.Barrier = both) -> SmallFile:
            both.wait(BOUND)
            return SmallFile(path.read_bytes())

        threads = [
            threading.Thread(target=cache.get, args=[path.stat(), read])
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(BOUND)
    for path in SAMPLES:
        cache.get(path.stat(), unexpected)


def unexpected() -> SmallFile:
    raise AssertionError("read again")


def test_what_ends_the_daemon_in_c_is_in_the_crash_log(
    cold_daemon: DaemonAtHand,
) -> None:
    cold_daemon.start()
    with closing(cold_daemon.wire("unix")) as wire:
        os.kill(cold_daemon.status()["pid"], signal.SIGSEGV)
        assert wire.receive_line() == b""
    told = Path(cold_daemon.paths.crash_log).read_text()
    assert "Fatal Python error: Segmentation fault" in told
    # Of which thread depends: the interpreter reads the others while they run, and may end there.
    assert "(most recent call first)" in told
