"""``fgrep install``, ``fgrep uninstall``: flashgrep in the settings of agents and editors, and in rules for agents.

``uninstall`` also ends the daemon, removes everything flashgrep ever wrote, and checks that nothing is left.
"""

import difflib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from flashgrep.base.errors import FlashgrepError, InvalidParams
from flashgrep.base.own_folders import LIBRARIES, PROJECTS, STORES
from flashgrep.base.paths import (
    CACHE_FOLDER,
    GRAMMARS_FOLDER,
    MODELS_FOLDER,
    PROJECT_FOLDER,
    config_file,
    from_latin1,
)
from flashgrep.base.plain_files import read_plain_file
from flashgrep.base.program_name import tell
from flashgrep.cli.daemon_client import fail, failing_cleanly, find_user_paths
from flashgrep.cli.launcher import TABLE
from flashgrep.cli.project_files import clear_project, find_ours
from flashgrep.cli.service_command import (
    describe_service,
    remove_service,
    serves_this_state,
)
from flashgrep.cli.stopping import stop_daemon
from flashgrep.daemon import lifecycle
from flashgrep.parts.hosts.hooks import HOOK_PLACES, is_ours, plan_hook
from flashgrep.parts.hosts.host_settings import (
    NOTES,
    Change,
    ChangedHostFile,
    find_entries,
    list_installs,
    plan_entry,
    read_text,
    take_back,
    write_change,
)
from flashgrep.parts.hosts.hosts import HOSTS, find_command, locate_folders

ALL: Final = "all"
RULES: Final = "rules"
"""The owner of rules, in notes."""
HOOK: Final = "hook of "
"""Before the name of a host: the owner of its hook, in notes."""
_BEGIN = "<!-- flashgrep -->"
_END = "<!-- /flashgrep -->"
_RULES: Final = """\
- Search code with the flashgrep tools, not with grep, find or cat: `query` for text, `search_code` for meaning.
- `get_symbol` finds a definition and its uses; `outline` shows a file; `read_code` reads a symbol or a range.
- Answers match the disk at this moment; a note in brackets says what was left out.
"""
_RULES_FILES: Final = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
NEOVIM: Final = "nvim"
HOW_TO_ADD: Final = (
    "fgrep: fgrep install NAME adds it to one, fgrep install all to all of these\n"
)
_PLUGIN_FOLDERS: Final = (
    Path(__file__).parents[2] / "editors" / NEOVIM,
    Path(__file__).parents[3] / "editors" / NEOVIM,
)
"""Where the plugin for Neovim is: in an installed package, in a checkout."""
_NEOVIM_LINES: Final = """\
-- lazy.nvim:
{{ dir = "{folder}", cmd = "Flashgrep", opts = {{}} }}
-- without a plugin manager, in init.lua:
vim.opt.runtimepath:prepend("{folder}")
-- then :checkhealth flashgrep and :help flashgrep"""
_CURSOR_FOLDER: Final = ".cursor"
_CURSOR_RULES: Final = ".cursor/rules/flashgrep.mdc"
_CURSOR_HEAD: Final = "---\ndescription: Searching code\nalwaysApply: true\n---\n"
MINE = frozenset(
    {
        "daemon.sock",
        "daemon.lock",
        "start.lock",
        "token",
        "token.new",
        "daemon.log",
        "daemon.log.1",
        "crash.log",
        "gain.json",
        "gain.new",
    }
    | {TABLE, "commands.new"}
)
PROJECTS_FILE = "projects.json"


def install(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help=f"{', '.join(HOSTS)}, or all found on this machine; default: ask about each of those. "
            f"{NEOVIM} prints the lines for its plugin.",
            show_default=False,
        ),
    ] = "",
    *,
    everywhere: Annotated[
        bool,
        typer.Option(
            "--global",
            help="For all projects, in your user settings; default: this folder's settings.",
        ),
    ] = False,
    rules: Annotated[
        bool,
        typer.Option(
            "--rules",
            help="Tell agents to use it: three lines in this folder's AGENTS.md and the like.",
        ),
    ] = False,
    show: Annotated[
        bool, typer.Option("--print", help="Print the entry and change nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the change without making it.")
    ] = False,
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Remove flashgrep again.")
    ] = False,
) -> None:
    """Add flashgrep to the settings of coding agents and editors, and leave everything else in them alone.

    Called again, it brings the entry up to date and keeps what you added to it.
    """
    if host == NEOVIM:
        folder = next(
            (
                str(current_folder)
                for current_folder in _PLUGIN_FOLDERS
                if current_folder.is_dir()
            ),
            None,
        )
        typer.echo(
            _NEOVIM_LINES.format(folder=folder)
            if folder
            else fail("the plugin is not installed: reinstall")
        )
        return
    if host not in {"", ALL, *HOSTS}:
        names = [*HOSTS, NEOVIM]
        near = difflib.get_close_matches(host, [*names, ALL], n=1)
        if near:
            meant = f" (did you mean {near[0]}?)"
        else:
            meant = ""
        fail(f"unknown host {host!r}{meant}; known: {', '.join(names)}")
    if show and host not in HOSTS:
        fail("name the host whose entry to print")
    with _failing_cleanly():
        if show:
            typer.echo(print_entry(host, in_project=not everywhere))
            return
        for change in _plan(
            host,
            everywhere=everywhere,
            rules=rules,
            uninstall=uninstall,
        ):
            _carry_out(change, dry_run=dry_run, uninstall=uninstall)


def install_hook(
    host: Annotated[str, typer.Argument(metavar="HOST", help=", ".join(HOOK_PLACES))],
    *,
    everywhere: Annotated[
        bool,
        typer.Option("--global", help="For all projects, in your user settings."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the change without making it.")
    ] = False,
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Take the hook out again.")
    ] = False,
) -> None:
    """Answer the recursive grep and rg that an agent types in a shell: add a hook to its host's settings.

    flashgrep hook --explain 'COMMAND' says what would happen to a command. Gemini's hook comes with its extension.
    """
    if host not in HOOK_PLACES:
        fail(f"unknown host {host!r}; hooks are known of {', '.join(HOOK_PLACES)}")
    with _failing_cleanly():
        planned = _plan_hook(host, everywhere=everywhere, uninstall=uninstall)
        _carry_out(planned, dry_run=dry_run, uninstall=uninstall)


@contextmanager
def _failing_cleanly() -> Iterator[None]:
    """End the command with a readable error if settings cannot be read or written."""
    with failing_cleanly():
        try:
            yield
        except FlashgrepError as error:
            fail(error.message)


class PlannedChange(NamedTuple):
    """A change, the host it is for, and what to say once it is made."""

    change: Change
    owner: str
    advice: str = ""


def _plan(
    host: str, *, everywhere: bool, rules: bool, uninstall: bool
) -> Iterator[PlannedChange]:
    """Yield the changes a call asks for; ask the user if it names no host."""
    if host in HOSTS:
        yield _plan_host(host, everywhere=everywhere, uninstall=uninstall)
    if uninstall and host in HOOK_PLACES:
        yield _plan_hook(host, everywhere=everywhere, uninstall=uninstall)
    if rules:
        for change in plan_rules(Path.cwd(), remove=uninstall):
            yield PlannedChange(change, RULES)
    # --rules alone is about rules only.
    if host in HOSTS or (rules and not host):
        return
    if uninstall:
        # A list: taking an entry out removes the note that the generator reads.
        for entry in list(find_own_changes([Path.cwd()])):
            yield PlannedChange(plan_removal(entry), entry.owner)
    else:
        yield from _offer_hosts(ask=host != ALL)


def _offer_hosts(*, ask: bool) -> Iterator[PlannedChange]:
    """Yield the changes for the hosts of this machine; where each should be asked for and nobody can be, list them."""
    folders = locate_folders(os.environ, Path.home())
    asking = sys.stdin.isatty()
    found = {
        name: host.file(folders, None)
        for name, host in HOSTS.items()
        if host.is_here(folders)
    }
    if not found:
        fail(f"no host was found on this machine; known: {', '.join(HOSTS)}")
    for name, path in found.items():
        if not ask or (
            asking
            and typer.confirm(
                f"Add flashgrep to {HOSTS[name].title} ({path})?", default=True
            )
        ):
            yield _plan_host(name, everywhere=True, uninstall=False)
            if (
                ask
                and name in HOOK_PLACES
                and typer.confirm(
                    "Also answer the recursive grep and rg that its agent types (a hook)?",
                    default=False,
                )
            ):
                yield _plan_hook(name, everywhere=True, uninstall=False)
        elif not asking:
            typer.echo(f"{name:15} {path}")
    if ask and not asking:
        tell(HOW_TO_ADD)


def _plan_host(name: str, *, everywhere: bool, uninstall: bool) -> PlannedChange:
    host = HOSTS[name]
    in_project = not everywhere and bool(host.project_file)
    path = host.file(
        locate_folders(os.environ, Path.home()), Path.cwd() if in_project else None
    )
    if uninstall:
        command = None
    else:
        command = find_command(shared=in_project)
    if everywhere or in_project:
        advice = []
    else:
        advice = [f"{host.title} has no project settings; these are your user settings"]
    advice += [
        host.hint or f"restart {host.title} to see it",
        *([host.approval] if in_project and host.approval else []),
    ]
    change = plan_entry(host, path, command, in_project=in_project)
    if uninstall:
        return PlannedChange(change, name, "")
    return PlannedChange(change, name, "\n".join(advice))


def _plan_hook(name: str, *, everywhere: bool, uninstall: bool) -> PlannedChange:
    place = HOOK_PLACES[name]
    folders = locate_folders(os.environ, Path.home())
    path = place.file(folders, None if everywhere else Path.cwd())
    program = None
    if not uninstall:
        # Without the subcommand for the protocol.
        program = shlex.join(find_command(shared=not everywhere)[:-1])
    advice = (
        "" if uninstall else f"restart {HOSTS[name].title}: it may ask about the hook"
    )
    return PlannedChange(plan_hook(name, path, program), HOOK + name, advice)


def _carry_out(planned: PlannedChange, *, dry_run: bool, uninstall: bool) -> None:
    """Make a change, or show it, and say so."""
    change = planned.change
    path = planned.change.path
    if change.before == change.after:
        typer.echo(f"{path}: nothing to change")
        return
    if dry_run:
        before, after = (
            text.splitlines(keepends=True) for text in (change.before, change.after)
        )
        typer.echo(
            "".join(difflib.unified_diff(before, after, str(path), "after")).rstrip(
                "\n"
            )
        )
        return
    state = Path(find_user_paths().state)
    if uninstall:
        take_back(change, state)
    else:
        write_change(change, state, planned.owner)
    outcome = "removed" if uninstall else "added"
    typer.echo(f"{path}: flashgrep {outcome}")
    if planned.advice:
        sys.stderr.write(f"{planned.advice}\n")


def print_entry(name: str, *, in_project: bool) -> str:
    """Return the entry of a host with the members around it, as its settings file has it, and the file above it."""
    host = HOSTS[name]
    in_project = in_project and bool(host.project_file)
    path = host.file(
        locate_folders(os.environ, Path.home()), Path.cwd() if in_project else None
    )
    command = find_command(shared=in_project)
    empty = plan_entry(host, Path(os.devnull), command, in_project=in_project)
    return f"# {path}\n{empty.after.rstrip()}"


def plan_rules(folder: Path, *, remove: bool) -> Iterator[Change]:
    """Yield the changes that put our lines into the rules agents read here, or take them out.

    AGENTS.md is made if there is none; the others are written to where they are, Cursor's where its folder is.

    Raises:
        InvalidParams: a file cannot be changed safely.

    """
    paths = [
        folder / name
        for name in _RULES_FILES
        if name == _RULES_FILES[0] or (folder / name).exists()
    ]
    if (folder / _CURSOR_FOLDER).is_dir():
        paths.append(folder / _CURSOR_RULES)
    for path in paths:
        yield plan_rules_file(path, remove=remove)


def plan_rules_file(path: Path, *, remove: bool) -> Change:
    """Return the change that puts our lines into one file of rules, or takes them out.

    Raises:
        InvalidParams: the mark at the end of our lines is gone.

    """
    text = read_text(path)
    if path.name == Path(_CURSOR_RULES).name:  # all of it is ours
        return Change(path, text, "" if remove else _CURSOR_HEAD + _RULES)
    head, begin, rest = text.partition(f"{_BEGIN}\n")
    _, end, tail = rest.partition(f"{_END}\n")
    if begin and not end:
        raise InvalidParams(
            f"{path}: {_BEGIN} without {_END}; it is left as it was", path=str(path)
        )
    if not head or head.endswith("\n\n") or begin:
        gap = ""
    elif head.endswith("\n"):
        gap = "\n"
    else:
        gap = "\n\n"
    if begin:
        without = head + tail
    else:
        without = text
    within = f"{head}{gap}{_BEGIN}\n{_RULES}{_END}\n{tail}"
    return Change(path, text, without if remove else within, text if gap else "")


def find_own_changes(projects: list[Path]) -> Iterator[ChangedHostFile]:
    """Yield every file with something of ours in it, settings or rules, in these folders or anywhere noted."""
    state = Path(find_user_paths().state)
    folders = locate_folders(os.environ, Path.home())
    files = {
        host.file(folders, project): name
        for name, host in HOSTS.items()
        for project in (None, *projects)
        if project is None or host.project_file
    }
    yield from find_entries(files, state, find_command(shared=False))
    for current_install in list_installs(state):
        if current_install.owner == RULES and current_install.path.exists():
            text = read_plain_file(current_install.path)
            if (
                _BEGIN.encode() in text
                or current_install.path.name == Path(_CURSOR_RULES).name
            ):
                yield current_install
        elif current_install.owner.startswith(HOOK) and current_install.path.exists():
            if is_ours(
                read_plain_file(current_install.path).decode("utf-8", "replace")
            ):
                yield current_install


def plan_removal(entry: ChangedHostFile) -> Change:
    """Return the change that takes out what is ours in a file.

    Raises:
        InvalidParams: it cannot be changed safely.

    """
    if entry.owner == RULES:
        return plan_rules_file(entry.path, remove=True)
    if entry.owner.startswith(HOOK):
        return plan_hook(entry.owner.removeprefix(HOOK), entry.path, None)
    return plan_entry(HOSTS[entry.owner], entry.path, None)


def _list_programs_to_end() -> list[str]:
    """Return the programs that ``uninstall`` ends, as its steps."""
    steps: list[str] = []
    pid = lifecycle.find_holder(find_user_paths())
    if pid:
        steps.append(f"stop the daemon (process {pid})")
    service = describe_service().file
    if service.exists() and serves_this_state(service.read_bytes()):
        steps.append(f"end the service {service}")
    return steps


def uninstall(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only list what would be removed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """End the daemon and remove its state, every index, your settings and its files in projects; sources stay.

    A project's .flashgrep/config.toml is kept: it may belong to the repository.
    What `fgrep install` added to the settings of agents and editors is removed again.
    Remove the program itself the way it was installed: pipx uninstall flashgrep, uv tool uninstall flashgrep, or pip.
    """
    # Read before the state folder goes: it alone knows where projects are.
    folders = sorted({Path.cwd(), *_read_roots()})
    hosts = list(find_own_changes(folders))
    files = list(find_leftovers())
    steps = _list_programs_to_end()
    steps += [f"take flashgrep out of {entry.path}" for entry in hosts]
    steps += [f"remove {path}" for path in files]
    if not steps:
        typer.echo("nothing to remove", err=True)
        return
    typer.echo("\n".join(steps))
    if dry_run:
        typer.echo("nothing was removed: this was a dry run", err=True)
        return
    if not yes and not sys.stdin.isatty():
        fail(
            "nothing was removed: standard input is not a terminal, so nobody can confirm; pass --yes"
        )
    if not yes and not typer.confirm("Go on?"):
        raise typer.Exit(1)
    # First: a running daemon would write its files again.
    remove_service()
    stop_daemon()
    left: list[str] = []
    for entry in hosts:
        try:
            take_back(plan_removal(entry), Path(find_user_paths().state))
        except InvalidParams as error:
            left.append(error.message)
        except OSError as error:
            left.append(f"{entry.path}: {error.strerror}")
    for path in files:
        remove(path)
    # Look again instead of trusting that every removal worked.
    left += map(str, find_leftovers())
    if left:
        fail("could not be removed: " + ", ".join(left))
    sys.stderr.write("clean: no process, no index, no state, no settings is left\n")


def find_leftovers() -> Iterator[Path]:
    """Yield every file and folder of ours that exists: projects' folders first, since the state lists them."""
    paths = find_user_paths()
    state = Path(paths.state)
    cache = Path(paths.cache)
    settings = Path(config_file(os.environ))
    yield from (root / PROJECT_FOLDER for root in _read_roots() if find_ours(root))
    if settings.exists():
        yield settings
    if cache.is_dir() and cache.parent != state:
        yield cache
    if state.is_dir():
        yield state


def _read_roots() -> list[Path]:
    """Return the roots of all known projects."""
    try:
        file = Path(find_user_paths().state, PROJECTS_FILE)
        roots = json.loads(read_plain_file(file))["projects"].values()
        return [Path(from_latin1(root)) for root in roots]
    except (OSError, ValueError, KeyError, AttributeError):
        return []


def remove(path: Path) -> None:
    """Remove a file, or a folder; of a folder the user named, only what is ours, for it may hold other things."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        if path == Path(config_file(os.environ)):
            with suppress(OSError):  # something else lies in it
                path.parent.rmdir()
        return
    if path.name == PROJECT_FOLDER:
        clear_project(path.parent)
        return
    folders = [path]
    if path == Path(find_user_paths().state):
        for name in (*MINE, PROJECTS_FILE):
            (path / name).unlink(missing_ok=True)
        for name in (GRAMMARS_FOLDER, MODELS_FOLDER, NOTES):
            shutil.rmtree(path / name, ignore_errors=True)
        # A cache below a state folder that was named for itself (FLASHGREP_STATE_DIR).
        folders = [path / CACHE_FOLDER, path]
    for folder in folders:
        for name in (STORES, PROJECTS, LIBRARIES):
            shutil.rmtree(folder / name, ignore_errors=True)
        with suppress(OSError):  # something else is in it
            folder.rmdir()
