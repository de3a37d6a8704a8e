"""What hosts give to a hook before they run a tool, and what they take from it to run another command instead.

| host | event | tool | in | out |
|---|---|---|---|---|
| claude-code | PreToolUse | Bash | tool_input | hookSpecificOutput.updatedInput |
| codex, qwen | PreToolUse | Bash, run_shell_command | tool_input | the same, only with permissionDecision allow |
| grok | PreToolUse | run_terminal_cmd | toolInput | the same; it takes it for a permission, and wants a description |
| gemini | BeforeTool | run_shell_command | tool_input | hookSpecificOutput.tool_input, merged |
| cursor | preToolUse | Shell | tool_input | updated_input, with permission |
| copilot | preToolUse | bash | toolArgs, JSON in a string | modifiedArgs |
| vibe | before_tool | bash | tool_input | hook_specific_output.tool_input |

A permission is given only to a line that does nothing but read files below its folder. Without one Claude Code, Gemini
and Vibe ask as they always do, about the new command; the others need it to take a command at all, so for them such a
line stays as it is.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

SHELLS: Final = frozenset(
    {
        "bash",
        "shell",
        "run_shell_command",
        "exec",
        "runterminalcommand",
        "run_terminal_cmd",
        "run_terminal_command",
    }
)
"""Names of tools that run a line of shell, in lower case."""
HOSTS: Final = (
    "claude-code",
    "codex",
    "copilot",
    "cursor",
    "gemini",
    "grok",
    "qwen",
    "vibe",
)
NEEDS_PERMISSION: Final = frozenset({"codex", "copilot", "cursor", "grok", "qwen"})
_REASON: Final = "a search, answered by flashgrep"


class ToolCall(NamedTuple):
    """A shell command that a host is about to run."""

    host: str
    command: str
    arguments: Mapping[str, Any]
    """All arguments of the tool; the command is one of them."""
    folder: str = ""
    """Where it runs; empty: not said."""


def read_payload(text: str, host: str) -> ToolCall | None:
    """Return the shell command of a payload; None: it is of another tool, or of another form.

    ``host``: one of HOSTS; empty: as the payload looks.
    """
    try:
        payload = json.loads(text)
    except ValueError:
        return None
    if not isinstance(payload, dict):
        return None
    tool = payload.get("tool_name") or payload.get("toolName")
    if not isinstance(tool, str) or tool.lower() not in SHELLS:
        return None
    arguments = payload.get("tool_input")
    if "toolInput" in payload:
        arguments = payload["toolInput"]
        host = host or "grok"
    elif arguments is None:
        arguments = payload.get("toolArgs")
        host = host or "copilot"
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return None
    if not isinstance(arguments, dict):
        return None
    command = arguments.get("command")
    if not isinstance(command, str):
        return None
    folder = payload.get("cwd")
    if not isinstance(folder, str):
        folder = ""
    return ToolCall(host or _guess_host(payload), command, arguments, folder)


def _guess_host(payload: Mapping[str, Any]) -> str:
    if payload.get("hook_event_name") == "BeforeTool":
        return "gemini"
    if "cursor_version" in payload:
        return "cursor"
    return "claude-code"


def format_answer(call: ToolCall, command: str, *, only_reads: bool) -> str:
    """Return what the host is told, so that it runs ``command``; empty: it runs what it was going to.

    ``only_reads``: whether the line can change no file, and reads below its folder alone.
    """
    if call.host in NEEDS_PERMISSION and not only_reads:
        return format_nothing(call.host)
    arguments = {**call.arguments, "command": command}
    answer: dict[str, Any]
    output: dict[str, Any]
    match call.host:
        case "gemini":
            answer = {"hookSpecificOutput": {"tool_input": {"command": command}}}
        case "cursor":
            answer = {"permission": "allow", "updated_input": arguments}
        case "copilot":
            answer = {
                "permissionDecision": "allow",
                "permissionDecisionReason": _REASON,
                "modifiedArgs": arguments,
            }
        case "vibe":
            answer = {"hook_specific_output": {"tool_input": arguments}}
        case "grok":
            # Its schema requires a description, which a call need not have.
            described = {"description": _REASON, **arguments}
            output = {"hookEventName": "PreToolUse", "updatedInput": described}
            answer = {"hookSpecificOutput": output}
        case _:
            output = {"hookEventName": "PreToolUse"}
            if only_reads:
                output["permissionDecision"] = "allow"
                output["permissionDecisionReason"] = _REASON
            output["updatedInput"] = arguments
            answer = {"hookSpecificOutput": output}
    return json.dumps(answer)


def format_nothing(host: str) -> str:
    """Return what a host is told that nothing changes; Cursor wants an object in any case."""
    if host == "cursor":
        return "{}"
    return ""
