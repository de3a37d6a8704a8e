"""Types of the TypeScript client: the parameters and the result of each method, from their JSON Schemas."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from flashgrep.base.registry import Handler, Registry

HEAD = """\
// Parameters and results of the daemon's methods; generated from the registry by scripts/generate, do not edit.
"""
PLAIN = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
Schema = Mapping[str, Any]


def format_typescript_types(registry: Registry) -> str:
    """Return the text of ``methods.d.ts``."""
    writer = _Writer()
    rows = []
    for handler in registry:
        params, result = writer.write_method(handler)
        rows.append(f"  {handler.name}: {{ params: {params}; result: {result} }};")
    methods = "\n".join(["export interface Methods {", *rows, "}", ""])
    return "\n".join([HEAD, *writer.interfaces.values(), methods])


class _Writer:
    """Writes the interfaces that methods need, each once."""

    def __init__(self) -> None:
        self.interfaces: dict[str, str] = {}
        self._names: dict[str, str] = {}
        """Of the interfaces, by the names that a method's schema has for its shapes."""

    def write_method(self, handler: Handler) -> tuple[str, str]:
        """Write what a method needs; return the types of its parameters and its result."""
        return (
            self._write_schema(handler, handler.params_schema()),
            self._write_schema(handler, handler.result_schema()),
        )

    def _write_schema(self, handler: Handler, schema: Schema) -> str:
        shapes = dict(schema.get("$defs", {}))
        own = schema.get("title", "")
        if "properties" in schema:
            shapes[own] = schema
        self._names = {name: name for name in shapes}
        texts = self._write_interfaces(shapes)
        # The same name for something else: two methods each have their own.
        taken = [
            name
            for name in texts
            if self.interfaces.get(name, texts[name]) != texts[name]
        ]
        for name in taken:
            self._names[name] = f"{handler.name.title().replace('_', '')}{name}"
        for name, text in self._write_interfaces(shapes).items():
            self.interfaces.setdefault(self._names[name], text)
        if own in self._names:
            return self._names[own]
        return self._write_type(schema)

    def _write_interfaces(self, shapes: Mapping[str, Schema]) -> dict[str, str]:
        return {
            name: "\n".join(self._write_interface(name, shape))
            for name, shape in shapes.items()
            if "properties" in shape
        }

    def _write_interface(self, name: str, shape: Schema) -> Iterator[str]:
        yield from _write_comment(shape, "")
        yield f"export interface {self._names[name]} {{"
        required = shape.get("required", ())
        for field, schema in shape["properties"].items():
            yield from _write_comment(schema, "  ")
            key = field if IDENTIFIER.fullmatch(field) else json.dumps(field)
            mark = "" if field in required else "?"
            yield f"  {key}{mark}: {self._write_type(schema)};"
        yield "}\n"

    def _write_type(self, schema: Schema) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._names[name]
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return " | ".join(map(json.dumps, schema["enum"]))
        for members in ("anyOf", "oneOf"):
            if members in schema:
                return " | ".join(dict.fromkeys(map(self._write_type, schema[members])))
        kind = schema.get("type")
        if kind in PLAIN:
            return PLAIN[kind]
        if kind == "array":
            return self._write_array(schema)
        if kind == "object":
            values = schema.get("additionalProperties", True)
            if isinstance(values, dict):
                return f"Record<string, {self._write_type(values)}>"
            return "Record<string, unknown>"
        return "unknown"

    def _write_array(self, schema: Schema) -> str:
        if "prefixItems" in schema:
            members = ", ".join(map(self._write_type, schema["prefixItems"]))
            return f"[{members}]"
        items = self._write_type(schema.get("items", {}))
        if " " in items:
            return f"({items})[]"
        return f"{items}[]"


def _write_comment(schema: Schema, indent: str) -> Iterator[str]:
    text = schema.get("description", "").partition("\n\n")[0]
    if text:
        words = " ".join(text.split()).replace("*/", "*\\/")
        yield f"{indent}/** {words} */"
