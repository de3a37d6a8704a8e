"""Answers to a person's terminal or pipe: the lines of the method's renderer, and its notes on stderr."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flashgrep.handlers.text import Style, escape_controls, find_notes, format_json
from flashgrep.registry import Renderer

NOTHING_FOUND = 1


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints, and its exit status."""

    stdout: bytes
    stderr: bytes
    status: int


def render(result: Any, style: Style, renderer: Renderer | None = None, *, as_json: bool = False) -> Output:
    """Render a result with its method's renderer; the status is 1 if it is an empty list."""
    results = result.get("results") if isinstance(result, dict) else None
    status = NOTHING_FOUND if results == [] else 0
    if as_json:
        return Output(format_json(result).encode(), b"", status)
    text = "\n".join((renderer or _render_any)(result, style))
    text += "" if text.endswith("\n") or not text else "\n"
    notes = "".join(f"fgrep: {note}\n" for note in find_notes(result, style)) if isinstance(result, dict) else ""
    return Output(text.encode("utf-8", "surrogateescape"), escape_controls(notes).encode(errors="replace"), status)


def _render_any(result: Any, style: Style) -> Iterator[str]:
    """Render an answer of a method without a renderer: its files and lines, its text, or its members."""
    if isinstance(result, dict) and isinstance(result.get("results"), list):
        for at, item in enumerate(result["results"]):
            if not isinstance(item, dict) or "file_path" not in item:
                yield from [""] if at and isinstance(item, dict) else []
                yield from _render_members(item, style)
            elif "start_line" not in item:
                yield style.path(item)
            else:
                described = str(item.get("name") or item.get("snippet") or "")
                described = f"{item['kind']}: {described}" if item.get("kind") else described
                yield f"{style.path(item)}:{style.line(item['start_line'])}:{style.text(described)}"
        return
    texts = (result.get(name) for name in ("content", "text")) if isinstance(result, dict) else ()
    text = next((text for text in texts if isinstance(text, str)), None)
    yield from _render_members(result, style) if text is None else [style.text(text)]


def _render_members(value: Any, style: Style, indent: str = "") -> Iterator[str]:
    """Yield a value as an indented outline, one member a line; empty members are left out."""
    if not isinstance(value, dict):
        yield from (indent + style.text(line) for line in str(value).splitlines())
        return
    for name, member in value.items():
        label = f"{indent}{name.replace('_', ' ')}:"
        if isinstance(member, bool):
            yield f"{label} {'yes' if member else 'no'}"
        elif member in (None, "", [], {}):
            continue
        elif isinstance(member, list) and not any(isinstance(item, dict) for item in member):
            yield f"{label} {style.text(', '.join(map(str, member)))}"
        elif isinstance(member, list):
            yield label
            for item in member:
                # The first member follows a dash, the others below it.
                lines = [*_render_members(item, style, indent + "    ")]
                yield f"{indent}  - {lines[0].lstrip()}" if lines else f"{indent}  -"
                yield from lines[1:]
        elif isinstance(member, dict) or "\n" in str(member):
            yield label
            yield from _render_members(member, style, indent + "  ")
        else:
            yield f"{label} {style.text(str(member))}"
