"""Taking flashgrep out of the settings of hosts that `fgrep install` put it into."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from flashgrep.errors import InvalidParams
from flashgrep.mcp import jsonc
from flashgrep.mcp.hosts import BACKUP, HOSTS, NAME, Host, own_command, plan


class Entry(NamedTuple):
    """Settings that start us: whose they are, and the folder of the user or the project they lie in or below."""

    host: Host
    folder: Path
    path: Path


def installed(folders: Iterable[Path], home: Path) -> Iterator[Entry]:
    """Yield the settings, of these folders and the user's own, that start this very installation.

    An entry that starts another one is not ours to remove: a project may have it for everybody who works on it.
    """
    command = own_command()
    for host in HOSTS.values():
        places = {host.file(folder, home, everywhere=False): folder for folder in folders}
        places[host.file(home, home, everywhere=True)] = home
        for path, folder in sorted(places.items()):
            entry = _servers(host, path).get(NAME)
            if isinstance(entry, Mapping) and entry.get("command") == host.entry(command)["command"]:
                yield Entry(host, folder, path)


def take_out(entry: Entry) -> None:
    """Remove our entry and the copy made when it was added; file and folders too, where nothing else is left in them.

    Raises:
        InvalidParams: the file cannot be changed safely; it is left alone.
        OSError: it cannot be written.

    """
    host, folder, path = entry
    copy = path.resolve().with_name(path.resolve().name + BACKUP)
    was_there = copy.exists()
    plan(host, path, None).carry_out()
    copy.unlink()
    if not was_there and not any(_read(host, path).values()):
        path.resolve().unlink()
        with suppress(OSError):  # something else lies in it
            for below in takewhile(lambda parent: parent != folder, path.parents):
                below.rmdir()


def _servers(host: Host, path: Path) -> Mapping[str, Any]:
    found = _read(host, path).get(host.key)
    return found if isinstance(found, Mapping) else {}


def _read(host: Host, path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_bytes().decode()
        value = tomllib.loads(text) if host.form == "toml" else jsonc.parse(text).value
    except (OSError, ValueError, InvalidParams):  # nothing there, or nothing that `fgrep install` would have changed
        return {}
    return value if isinstance(value, Mapping) else {}
