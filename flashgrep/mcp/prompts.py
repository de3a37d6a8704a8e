"""Texts for models: the instructions every client gets, and the prompts a user can choose."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flashgrep.errors import InvalidParams

INSTRUCTIONS = """\
flashgrep answers questions about this project's code from a live index, exactly as a full scan of the disk would now. \
Prefer it to grep, find, ls and cat.

Text or regex: query. Code by what it does: search_code. Definition or uses of a name: get_symbol. Files by pattern: \
glob; by part of the path: list_files. Lines of a file: get_slice. A symbol's code or a whole file: read_code. Who \
calls or implements what: code_research. What a file defines: outline; what matters in a project: repo_map. Change one \
place: write_code; several, all or none: batch_write_code.

Paths are from the project's root, lines count from 1. Hits stand below their file as line:text. What is unusual \
stands in [brackets]: for the rest, call again with the same arguments and the cursor or continuation named there. \
[nothing found in N files]: it is not there. A read's header gives the file's #hash: pass it as \
precondition.expected_file_hash when you write. Reason project_not_found: index_codebase the folder you work in."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message a user can send with a few words of their own in it."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, str]
    """What it asks its user for: names, each with its description."""
    text: str
    """With the arguments in braces."""

    def describe(self) -> dict[str, Any]:
        """Return the prompt as prompts/list has it."""
        arguments = [{"name": name, "description": text, "required": True} for name, text in self.arguments.items()]
        return {"name": self.name, "title": self.title, "description": self.description, "arguments": arguments}


PROMPTS = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            "bootstrap",
            "Start with flashgrep",
            "Teach the model flashgrep's methods.",
            {},
            "Call flashgrep's bootstrap_skill and follow what it returns for every search, read and write in this "
            "project. Then call stats and tell in one line how far the index is.",
        ),
        Prompt(
            "explore",
            "Explore the code",
            "Answer a question about the code, with places.",
            {"question": "What you want to know."},
            "Answer this question about the project: {question}\n\n"
            "Find entry points with query and get_symbol (output: files first when there may be many hits), read the "
            "lines around the best hits with get_slice, and follow the names that matter. Cite each claim as "
            "path:line. Say what you did not look at.",
        ),
        Prompt(
            "trace",
            "Trace a symbol",
            "Follow a function, type or variable to its callers and callees.",
            {"symbol": "The name to follow."},
            "Trace {symbol} through the project.\n\n"
            "get_symbol gives its definition and uses; read each with read_code or get_slice. Tell who calls it, what "
            "it calls, and what data goes in and out, as a list from callers down to callees with path:line for each "
            "step.",
        ),
    )
}


def get_prompt(name: Any, arguments: Any) -> dict[str, Any]:
    """Return a prompt as prompts/get has it.

    Raises:
        InvalidParams: no prompt has the name, or an argument is missing.

    """
    prompt = PROMPTS.get(name) if isinstance(name, str) else None
    if prompt is None:
        raise InvalidParams(f"unknown prompt: {name}", allowed=list(PROMPTS))
    values: Mapping[str, Any] = arguments if isinstance(arguments, dict) else {}
    given = {each: values.get(each) for each in prompt.arguments}
    for each, value in given.items():
        if not isinstance(value, str) or not value.strip():
            raise InvalidParams(f"{prompt.name}: {each}: a text is required", field=each)
    content = {"type": "text", "text": prompt.text.format(**given)}
    return {"description": prompt.description, "messages": [{"role": "user", "content": content}]}
