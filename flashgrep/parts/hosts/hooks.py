"""The hook before a host's shell tool: the line of shell that it runs, and its place in the settings of each host.

The line lets a payload through only if the name of a search program is in it, so that other commands do not pay for an
interpreter. It fails open: whatever goes wrong, nothing is said and the command runs as it was typed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from flashgrep.base.errors import InvalidParams
from flashgrep.parts.hosts import jsonc
from flashgrep.parts.hosts.host_settings import Change, read_text

HOOK: Final = "hook"
MARK: Final = f"flashgrep {HOOK} "
"""In every line of ours, by which it is known again."""
SECONDS: Final = 10
"""Until a host gives up on the hook; an answer takes 0.1 s, and at most two."""
_GUARD: Final = (
    "p=; while IFS= read -r l; do p=$p$l; done; p=$p$l; "
    'case $p in *grep*|*rg*|*find*) printf %s "$p" | {program} hook {host} 2>/dev/null || {nothing};; *) {nothing};; esac'
)


@dataclass(frozen=True, slots=True)
class HookPlace:
    """Where a host's hooks are: a file of the user's, one of a project, and the list in them."""

    user_file: str
    project_file: str
    event: str
    is_versioned: bool = False
    """Whether the file begins with the number of its form."""

    def file(self, folders: Mapping[str, Path], project: Path | None) -> Path:
        """Return the file of a project, or the user's if none is given."""
        if project is not None:
            return project / self.project_file
        return Path(self.user_file.format_map(folders))


HOOK_PLACES: Final[Mapping[str, HookPlace]] = {
    "claude-code": HookPlace(
        "{home}/.claude/settings.json", ".claude/settings.json", "PreToolUse"
    ),
    "codex": HookPlace("{codex}/hooks.json", ".codex/hooks.json", "PreToolUse"),
    "copilot": HookPlace(
        "{copilot}/hooks/flashgrep.json",
        ".github/hooks/flashgrep.json",
        "preToolUse",
        is_versioned=True,
    ),
    "cursor": HookPlace(
        "{home}/.cursor/hooks.json",
        ".cursor/hooks.json",
        "preToolUse",
        is_versioned=True,
    ),
    "grok": HookPlace(
        "{home}/.grok/hooks/flashgrep.json",
        ".grok/hooks/flashgrep.json",
        "PreToolUse",
    ),
    "qwen": HookPlace(
        "{home}/.qwen/settings.json", ".qwen/settings.json", "PreToolUse"
    ),
}
"""Hosts whose hooks have a file of their own. Gemini's come with its extension, in plugins/flashgrep/gemini."""


def make_guard(host: str, program: str = "flashgrep") -> str:
    """Return the line of shell that a host runs with its payload on standard input."""
    # Cursor wants an object, whatever happens.
    nothing = "echo '{}'" if host == "cursor" else ":"
    return _GUARD.format(program=program, host=host, nothing=nothing)


def make_hook(host: str, program: str = "flashgrep") -> dict[str, Any]:
    """Return the entry of our hook in the list of a host's event."""
    guard = make_guard(host, program)
    match host:
        case "cursor":
            return {"command": guard, "matcher": "Shell", "timeout": SECONDS}
        case "copilot":
            return {
                "type": "command",
                "bash": guard,
                "matcher": "bash",
                "timeoutSec": SECONDS,
            }
        case "gemini":
            command = {
                "name": "flashgrep",
                "type": "command",
                "command": guard,
                "timeout": SECONDS * 1000,
            }
            return {"matcher": "run_shell_command", "hooks": [command]}
        case "qwen":
            command = {"type": "command", "command": guard, "timeout": SECONDS * 1000}
            return {"matcher": "^run_shell_command$", "hooks": [command]}
        case "grok":
            # It leaves out a hook in which it finds a variable that is not set.
            command = {"type": "command", "command": f"{program} {HOOK} {host}"}
            return {"matcher": "Bash", "hooks": [{**command, "timeout": SECONDS}]}
        case _:
            command = {"type": "command", "command": guard, "timeout": SECONDS}
            return {"matcher": "Bash", "hooks": [command]}


def is_ours(text: str) -> bool:
    """Return whether a hook, or a file of hooks, has a line of ours."""
    # A program whose path has a space is quoted.
    return MARK in text.replace("'", "")


def plan_hook(host: str, path: Path, program: str | None) -> Change:
    """Return the change that puts our hook into a file, or takes it out if ``program`` is None.

    Raises:
        InvalidParams: the file is not in the host's form; it is left alone.

    """
    place = HOOK_PLACES[host]
    before = read_text(path)
    keys = ("hooks", place.event)
    try:
        hooks = _read_hooks(before, place)
        others = [hook for hook in hooks if not is_ours(json.dumps(hook))]
        if program is not None:
            hooks_after = [*others, make_hook(host, program)]
        else:
            hooks_after = others
        if hooks_after == hooks:
            return Change(path, before, before)
        after = before
        if place.is_versioned and "version" not in jsonc.parse(after).members:
            after = jsonc.set_member(after, ("version",), 1)
        if hooks_after:
            after = jsonc.set_member(after, keys, hooks_after)
        else:
            after = jsonc.remove_member(after, keys)
            # Of a file that we made, the number of its form is all that is left.
            if jsonc.parse(after).value == {"version": 1}:
                after = jsonc.remove_member(after, ("version",))
    except InvalidParams as error:
        raise InvalidParams(
            f"{path}: {error.message}; it is left as it was", path=str(path)
        ) from None
    return Change(path, before, after, before if program is not None else "")


def _read_hooks(text: str, place: HookPlace) -> list[Any]:
    value = jsonc.parse(text).value
    if isinstance(value, dict):
        events = value.get("hooks", {})
    else:
        events = None
    if isinstance(events, dict):
        hooks = events.get(place.event, [])
    else:
        hooks = None
    if not isinstance(hooks, list):
        raise InvalidParams(f"hooks.{place.event}: not a list")
    return hooks
