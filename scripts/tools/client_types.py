"""Types of the Python client, derived from the registry: options of its methods, and shapes of their answers."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from textwrap import indent, wrap
from typing import Any

from flashgrep.base.registry import MOST_PATH, Handler, Registry
from flashgrep.base.vocabulary import FLAGS, SYNONYMS

HEAD = '''"""Options of the client's methods and shapes of the daemon's answers, as TypedDicts.

Generated from the registry of methods by ``scripts/generate``; do not edit.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, NotRequired, TypedDict

StrPath = str | PathLike[str]
'''
CLIENT_METHODS: Mapping[str, tuple[str, ...]] = {
    "query": ("query", "output"),
    "list_files": ("query",),
    "glob": ("query", "offset"),
    "get_symbol": ("symbol_name",),
    "search_code": ("query",),
    "read_code": ("path", "path_bytes", "start_line", "end_line", "targets"),
    "outline": ("path", "structured"),
    "changes": ("rev",),
    "definition": ("path", "line", "column"),
    "references": ("path", "line", "column"),
    "callers": ("path", "line", "column"),
    "calls": ("path", "line", "column"),
    "batch_write_code": ("operations", "mode", "dry_run", "path"),
    "rename_symbol": (
        "symbol_name",
        "new_name",
        "path",
        "include_possible",
        "dry_run",
        "edits",
        "expected_change",
        "deadline_ms",
    ),
    "index_codebase": ("path",),
    "stats": (),
}
"""Methods that the client wraps, each with the parameters that are its own arguments, not options."""
OWN = frozenset(
    {"project", "cursor", "max_tokens", "max_bytes", "max_lines", "chunk_index"}
    | {"continuation_start_line", "continuation_start_byte", "metadata_level"}
    | {"position_encoding", "explain"}
)
"""Parameters that the client sets itself: it opens one project, reads answers to their end, and counts characters."""
LIMIT = "Most results in all; without it, all there are."
SHORTHANDS = {"regex": "mode", "ignore_case": "case", "glob": "include"}
"""Of the alternative names, those that people type: declared as well, where a method has the field."""
DOC_COLUMNS = 84
SHARED = ("project", "rev", "cursor", "limit", "max_tokens")
FIELDS = """FIELDS: dict[str, frozenset[str]] = {
    # Of the parameters that the client sets itself, those that each method has."""


def format_client_types(registry: Registry) -> str:
    """Return the text of ``flashgrep/client/wire_types.py``."""
    written: dict[str, str] = {}
    for name, arguments in CLIENT_METHODS.items():
        handler = registry.get(name)
        options = _format_options(handler, arguments)
        if options:
            written[f"{_camel(name)}Options"] = options
        for shape, text in _format_shapes(handler.result_schema()):
            if written.setdefault(shape, text) != text:
                raise ValueError(f"two shapes of answers are called {shape}")
    rows = []
    for handler in registry:
        fields = handler.params.model_fields
        names = ", ".join(f'"{field}"' for field in SHARED if field in fields)
        rows.append(f'    "{handler.name}": frozenset([{names}]),')
    text = "\n\n".join([HEAD, *written.values(), FIELDS, *rows, "}"])
    return subprocess.run(
        ["ruff", "format", "--stdin-filename", "wire_types.py", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _format_options(handler: Handler, arguments: tuple[str, ...]) -> str:
    """Return the class of a method's options, all of which may be left out; empty if there are none."""
    schema = handler.params_schema()
    fields = schema.get("properties", {})
    unknown = set(arguments) - set(fields)
    if unknown:
        raise ValueError(f"{handler.name} has no {unknown}")
    lines = [f"class {_camel(handler.name)}Options(TypedDict, total=False):"]
    lines += [f'    """Options of `{handler.name}`."""', ""]
    for name, field in fields.items():
        if name in OWN or name in arguments:
            continue
        lines.append(f"    {name}: {_type(field, schema, is_input=True)}")
        said = field.get("description", "")
        if name == "limit" and "cursor" in fields:
            said = LIMIT
        lines += _document(said)
    for other, name in SHORTHANDS.items():
        if name not in fields or other in fields:
            continue
        if other in FLAGS:
            choices = _type(fields[name], schema, is_input=True)
            if json.dumps(FLAGS[other][1][True]) not in choices:
                continue
            lines.append(f"    {other}: bool")
        elif other in SYNONYMS[name].split():
            lines.append(f"    {other}: {_type(fields[name], schema, is_input=True)}")
        else:
            raise ValueError(f"the vocabulary has no {other}")
        lines += _document(f"Another name of `{name}`.")
    if lines[-1]:
        return "\n".join(lines) + "\n"
    return ""


def _document(description: str) -> Iterator[str]:
    """Yield a field's docstring, folded."""
    if description:
        text = "\n".join(wrap(f'"""{description}"""', DOC_COLUMNS))
        yield indent(text.replace("\\", "\\\\"), "    ")


def _format_shapes(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the classes of an answer: those it is made of, then its own."""
    shapes = dict(schema.get("$defs", {}))
    if "$ref" not in schema:
        shapes[schema["title"]] = schema
    for name, shape in shapes.items():
        if shape.get("type") != "object":
            continue
        required = set(shape.get("required", ()))
        lines = [f"class {name}(TypedDict):"]
        said = " ".join(shape.get("description", "An answer's part.").split())
        # The first sentence: a docstring's summary is one line.
        summary = re.split(r"(?<=\.) ", said)[0].partition("; ")[0].rstrip(".")
        lines += [f'    """{summary}."""', ""]
        for field, declared in shape.get("properties", {}).items():
            kind = _type(declared, schema, is_input=False)
            if field not in required:
                kind = f"NotRequired[{kind}]"
            lines.append(f"    {field}: {kind}")
        yield name, "\n".join(lines) + "\n"


PLAIN = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
}


def _type(field: dict[str, Any], schema: dict[str, Any], *, is_input: bool) -> str:
    """Return the annotation of a field; what a caller passes may also be a path, or one item in place of a list."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        shape = schema["$defs"][name]
        if shape.get("type") != "object":
            return _type(shape, schema, is_input=is_input)
        if is_input:
            return "dict[str, Any]"
        return f'"{name}"'
    if "anyOf" in field:
        kinds: list[str] = []
        for option in field["anyOf"]:
            kind = _type(option, schema, is_input=is_input)
            kinds += [part for part in kind.split(" | ") if part not in kinds]
        # A name in quotes is no operand of |.
        if any(kind.startswith('"') for kind in kinds):
            return '"' + " | ".join(kind.strip('"') for kind in kinds) + '"'
        return " | ".join(kinds)
    if field.get("type") == "array":
        item = _type(field.get("items", {}), schema, is_input=is_input)
        if not is_input:
            return f"list[{item}]"
        if item == "dict[str, Any]":
            return f"Sequence[{item}]"
        return f"{item} | Sequence[{item}]"
    values = field.get("additionalProperties")
    if field.get("type") == "object" and isinstance(values, dict):
        return f"dict[str, {_type(values, schema, is_input=is_input)}]"
    return _plain_type(field, is_input=is_input)


def _plain_type(field: dict[str, Any], *, is_input: bool) -> str:
    if "enum" in field:
        choices = ", ".join(json.dumps(choice) for choice in field["enum"])
        return f"Literal[{choices}]"
    if "const" in field:
        return f"Literal[{json.dumps(field['const'])}]"
    if is_input and field.get("maxLength") == MOST_PATH:
        return "StrPath"
    return PLAIN.get(field.get("type", ""), "Any")
