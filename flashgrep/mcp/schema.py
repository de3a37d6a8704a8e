"""JSON Schemas as a model's context can afford them: what repeats a field's name or its default of null is left out."""

from collections.abc import Mapping
from typing import Any

from flashgrep.registry import Handler

NULL = {"type": "null"}
MAPS = frozenset({"properties", "$defs"})
"""Keywords whose members are named by us: a ``title`` among them is a field, not a heading."""
ERROR = {"required": ["code", "message", "data"]}
"""The other form of every result: that of a failed call."""


def input_schema(handler: Handler) -> dict[str, Any]:
    """Return the schema of a tool's arguments; leaving an optional field out stands for null."""
    schema: dict[str, Any] = _slim(handler.params_schema(), nullable=False)
    schema.pop("description", None)  # the tool's own says it
    schema.setdefault("properties", {})
    return schema


def output_schema(handler: Handler) -> dict[str, Any]:
    """Return the schema of a tool's structured content: its result, or the error object of a failed call.

    Some clients hold failed results against the schema too, so it allows for them.
    """
    schema: dict[str, Any] = _slim(handler.result_schema(), nullable=True)
    if "$ref" in schema:
        schema |= schema["$defs"][schema.pop("$ref").rpartition("/")[2]]
    schema.pop("description", None)
    form = {key: schema.pop(key) for key in ("properties", "required", "additionalProperties") if key in schema}
    return {"type": "object", "anyOf": [form, ERROR], **{key: schema[key] for key in schema if key == "$defs"}}


def _slim(node: Any, *, nullable: bool) -> Any:
    if isinstance(node, list):
        return [_slim(item, nullable=nullable) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: {name: _slim(inner, nullable=nullable) for name, inner in value.items()}
        if key in MAPS
        else _slim(value, nullable=nullable)
        for key, value in node.items()
        if not (key == "title" or (key == "default" and value in (None, [], {})))
    }
    return _joined(kept, nullable=nullable) if NULL in kept.get("anyOf", ()) else kept


def _joined(node: Mapping[str, Any], *, nullable: bool) -> dict[str, Any]:
    """Say "this or null" in fewer words."""
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    forms = [form for form in node["anyOf"] if form != NULL]
    if len(forms) != 1:
        return {**rest, "anyOf": node["anyOf"] if nullable else forms}
    if not nullable:
        return {**forms[0], **rest}
    if isinstance(forms[0].get("type"), str) and "enum" not in forms[0]:
        return {**forms[0], **rest, "type": [forms[0]["type"], "null"]}
    return dict(node)
