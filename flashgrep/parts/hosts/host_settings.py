"""Our entry in a host's settings: added, updated and removed without touching anything else in the file.

Each changed file has a note in the state folder that says what was added, so that removing the entry restores the file
to the byte, even if we created a folder, the file, or the member around the entry.
"""

import hashlib
import io
import json
import os
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from flashgrep.base.errors import InvalidParams
from flashgrep.base.paths import PRIVATE_FILE, make_private
from flashgrep.base.plain_files import read_plain_file
from flashgrep.parts.hosts import jsonc
from flashgrep.parts.hosts.hosts import HOSTS, SERVER, Format, Host

NOTES: Final = "installs"
"""The folder of notes, below the state folder."""


class Change(NamedTuple):
    """A change of one file, not carried out yet."""

    path: Path
    before: str
    after: str
    original: str = ""
    """The text without our entry, kept if removing the entry would not restore it to the byte."""


def plan_entry(
    host: Host, path: Path, command: Sequence[str] | None, *, in_project: bool = False
) -> Change:
    """Return the change that adds our server to a host's settings, or removes it if ``command`` is None.

    Raises:
        InvalidParams: the file is not in the host's format, or cannot be changed without touching anything else; it is
            left alone.

    """
    before = read_text(path)
    try:
        value = parse(host.format, before)
        servers = read_servers(host, value)
        present = servers.get(SERVER)
        if command is None:
            entry = None
        else:
            entry = host.merge_entry(present, command, in_project=in_project)
        if present == entry:
            return Change(path, before, before)
        after = _edit(host, before, entry)
        edited = parse(host.format, after)
        # Try it now, while the old text is available: if removal would not restore it,
        # the note keeps it.
        restored = _edit(host, after, None)
    except (InvalidParams, ValueError) as error:
        raise InvalidParams(
            f"{path}: {error}; it is left as it was", path=str(path)
        ) from None
    # Whatever the file looks like, only our entry may differ afterwards.
    servers_after = {name: item for name, item in servers.items() if name != SERVER}
    if entry:
        servers_after[SERVER] = entry
    # A list is compared by its servers' names, whatever their order.
    others = {**value, host.key: None}
    if {**edited, host.key: None} != others or (
        read_servers(host, edited) != servers_after
    ):
        why = "cannot be changed safely, add the server by hand (--print); it is left as it was"
        raise InvalidParams(f"{path}: {why}", path=str(path))
    return Change(
        path, before, after, before if present is None and restored != before else ""
    )


def read_servers(host: Host, value: Any) -> dict[str, Any]:
    """Return the servers by name.

    Raises:
        InvalidParams: the file is not in the host's form.

    """
    servers: Any = None
    if isinstance(value, dict):
        servers = value.get(host.key) or {}
    if host.is_list and isinstance(servers, list):
        return {str(server.get("name")): server for server in servers}
    if not isinstance(servers, dict):
        raise InvalidParams(f"{host.key}: not an object")
    return servers


def read_text(path: Path) -> str:
    """Return what a file holds, with its line ends; nothing if there is none.

    Raises:
        InvalidParams: it is not UTF-8.
        OSError: it cannot be read.

    """
    try:
        return read_plain_file(path).decode()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        raise InvalidParams(
            f"{path}: not UTF-8; it is left as it was", path=str(path)
        ) from None


def parse(form: Format, text: str) -> Any:
    """Return what a settings file holds.

    Raises:
        InvalidParams, ValueError: it is not in this format.

    """
    if form == "json":
        return jsonc.parse(text).value
    if form == "toml":
        return tomllib.loads(text)
    return _load_yaml(text)[0]


def _edit(host: Host, text: str, entry: Mapping[str, Any] | None) -> str:
    """Return the text with the entry set, or without one removed, together with the member it was alone in."""
    keys = (host.key, SERVER)
    if host.format == "json":
        if entry is None:
            return jsonc.remove_member(text, keys)
        return jsonc.set_member(text, keys, entry)
    if host.format == "toml":
        import tomlkit  # noqa: PLC0415  # 25 ms, for one host

        document: Any = tomlkit.parse(text)
        write: Callable[[], str] = partial(tomlkit.dumps, document)
    else:
        document, write = _load_yaml(text)
    if host.is_list:
        _edit_list(document, host.key, entry)
    elif entry is not None:
        _set_entry(document, keys, entry)
    elif not _remove_entry(document, keys):
        return text
    return write() if document else ""


def _set_entry(document: Any, keys: tuple[str, str], entry: Mapping[str, Any]) -> None:
    key, name = keys
    if not document.get(key):
        document[key] = {name: dict(entry)}
        return
    present = document[key].get(name)
    if not isinstance(present, dict):
        document[key][name] = dict(entry)
        return
    # Member by member, which keeps comments in between.
    for field, item in entry.items():
        if present.get(field) != item:
            present[field] = item


def _remove_entry(document: Any, keys: tuple[str, str]) -> bool:
    """Remove the entry, and its table if it was alone there; return whether there was one."""
    key, name = keys
    if name not in (document.get(key) or {}):
        return False
    del document[key][name]
    if not document[key]:
        del document[key]
    return True


def _edit_list(document: Any, key: str, entry: Mapping[str, Any] | None) -> None:
    """Set our entry in a list of servers, or take it out; a list that it was alone in goes with it."""
    servers = document.get(key)
    names = [server.get("name") for server in servers or ()]
    if SERVER in names and entry is not None:
        servers[names.index(SERVER)].update(entry)
    elif entry is not None and servers is not None:
        # Tables and inline tables alike: tomlkit writes what the list is made of.
        servers.append(dict(entry))
    elif entry is not None:
        document[key] = [dict(entry)]
    elif SERVER in names:
        del servers[names.index(SERVER)]
        if not servers:
            del document[key]


def _load_yaml(text: str) -> tuple[Any, Callable[[], str]]:
    """Return a file's content, to be changed in place, and a function that writes it with its comments and order."""
    from ruamel.yaml import YAML  # noqa: PLC0415  # 60 ms, for one host
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    yaml = YAML()
    out = io.StringIO()
    yaml.preserve_quotes = True
    # ruamel would wrap long lines again, also those that are not ours.
    yaml.width = 1 << 20
    try:
        document = yaml.load(text) or {}
    except YAMLError as error:
        raise InvalidParams(f"not YAML ({str(error).splitlines()[0]})") from None

    def write() -> str:
        yaml.dump(document, out)
        return out.getvalue()

    return document, write


def write_change(change: Change, state: Path, owner: str) -> None:
    """Write the file atomically, after noting how to undo the change.

    ``owner``: whose settings it is, for the note. Links stay links, modes stay.

    Raises:
        OSError: the file or the note cannot be written; nothing has changed.

    """
    target = change.path.resolve()
    old = _read_note(state, target)
    folders_made = old.get("made") or [
        str(path) for path in (target, *target.parents) if not path.exists()
    ]
    original = change.original
    if old.get("after") == _digest(change.before):  # nobody has changed the file since
        original = old.get("original", "")
    note = {
        "owner": owner,
        "after": _digest(change.after),
        "made": folders_made,
        "original": original,
    }
    make_private(str(state))
    make_private(str(state / NOTES))
    # The note before the file: killed in between, a note without a change is harmless,
    # a change without a note is not.
    _replace(
        _note_file(state, target),
        json.dumps({**note, "path": str(change.path)}),
        PRIVATE_FILE,
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    _replace(
        target,
        change.after,
        stat.S_IMODE(target.stat().st_mode) if target.exists() else None,
    )


def take_back(change: Change, state: Path) -> None:
    """Write a file without what was ours in it; remove it, and folders, that were made for it and are empty now.

    Raises:
        OSError: it cannot be written.

    """
    target = change.path.resolve()
    note = _read_note(state, target)
    after = change.after
    # Only if nobody has changed the file since: otherwise the old text would undo their
    # work.
    if note.get("original") and note.get("after") == _digest(change.before):
        after = note["original"]
    folders_made = note.get("made", [])
    # We made it, and nothing else is in it.
    if str(target) in folders_made and not after.strip(" \t\r\n{}"):
        target.unlink(missing_ok=True)
        with suppress(OSError):  # something else lies in it by now
            for folder in folders_made[1:]:
                Path(folder).rmdir()
    elif after != change.before:
        _replace(target, after, stat.S_IMODE(target.stat().st_mode))
    _note_file(state, target).unlink(missing_ok=True)
    with suppress(OSError):  # other notes are left
        (state / NOTES).rmdir()


class ChangedHostFile(NamedTuple):
    """A settings file that was changed, and for whom: a host's name, or ``rules``."""

    path: Path
    owner: str


def list_installs(state: Path) -> Iterator[ChangedHostFile]:
    """Yield the files that ``fgrep install`` changed and that were not restored since."""
    for note in sorted((state / NOTES).glob("*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError):
            value = json.loads(read_plain_file(note))
            yield ChangedHostFile(Path(value["path"]), str(value["owner"]))


def find_entries(
    files: Mapping[Path, str], state: Path, command: Sequence[str]
) -> Iterator[ChangedHostFile]:
    """Yield the settings that have our entry: those noted, and of ``files`` those that start this very installation.

    ``files``: settings files, each with its host's name. An entry that starts another installation is not ours: a
    project may have it for everybody who works on it.
    """
    noted = {
        install.path: install.owner
        for install in list_installs(state)
        if install.owner in HOSTS
    }
    for path, name in {**files, **noted}.items():
        host = HOSTS[name]
        with suppress(OSError, ValueError, InvalidParams):
            entry = read_servers(host, parse(host.format, read_text(path))).get(SERVER)
            if isinstance(entry, Mapping) and (
                path in noted or host.read_command(entry)[:1] == command[:1]
            ):
                yield ChangedHostFile(path, name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _note_file(state: Path, target: Path) -> Path:
    return (
        state / NOTES / f"{hashlib.sha256(os.fsencode(target)).hexdigest()[:20]}.json"
    )


def _read_note(state: Path, target: Path) -> dict[str, Any]:
    try:
        note = json.loads(read_plain_file(_note_file(state, target)))
    except (OSError, ValueError):
        return {}
    if isinstance(note, dict):
        return note
    return {}


def _replace(target: Path, text: str, mode: int | None) -> None:
    descriptor, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if (
            mode is None
        ):  # a new file: as any program makes it, since git and colleagues read some of them
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        Path(fresh).chmod(mode)
        Path(fresh).replace(target)
    except OSError:
        Path(fresh).unlink(missing_ok=True)
        raise
