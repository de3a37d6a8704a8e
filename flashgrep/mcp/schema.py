"""JSON Schemas as a model's context can afford them; what is left out here is taken all the same.

Every client sends all schemas to its model with every conversation, so they say what a model needs to choose and call a
tool: fields that agents hardly ever need, bounds (a call that breaks one is told), and what repeats a name are not
listed. Of results the schema tells the fields, and those of the items of lists. `skills/reference.md` has it all.
"""

from collections.abc import Mapping
from typing import Any

from flashgrep.registry import Handler

RARE = frozenset(
    {"file_path_bytes", "fresh", "deadline_ms", "max_bytes", "max_file_size", "max_lines", "use_index", "explain"}
    | {"dotall", "line", "before", "after", "metadata_level", "include_hash", "follow_symlinks", "order", "sort_order"}
    | {"recursive", "offset", "case_sensitive", "everything", "expected_start_line_text", "expected_end_line_text"}
    | {"allow_repo_override", "repo_override_path", "trigger"}
    | {"continuation_id", "is_final_chunk", "chunk_index", "progress_token"}
)
SHORT = {
    "project": "Project, by name or root.",
    "max_tokens": "Size of the answer.",
    "cursor": "`next` of the answer before.",
    "file_path": "Path from the project's root.",
}
"""What stands in many tools, in fewer words."""
MOST_FIELDS = 8
"""Fields of a result that are told; a model sees the rest when it has one."""
MOST_CHOICES = 12
"""Values of a field that are listed; a wrong one is answered with all of them."""
LEFT_OUT = frozenset({"title", "minLength", "maxLength", "minItems", "maxItems", "additionalProperties"})
BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
NULL = {"type": "null"}
ERROR = frozenset({"code", "message", "data"})
"""The members of the error object, which is the other form of every result."""
Schema = dict[str, Any]


def input_schema(handler: Handler, *, bound: bool = False) -> Schema:
    """Return the schema of a tool's arguments; leaving an optional field out stands for null.

    ``bound``: the connection is bound to one project, so that there is none to name.
    """
    whole = handler.params_schema()
    schema = {**_object(whole), "type": "object"}
    if bound:
        schema["properties"].pop("project", None)
    used = {name: _object(inner) for name, inner in whole.get("$defs", {}).items()}
    return schema | ({"$defs": used} if used else {})


def output_schema(handler: Handler) -> Schema:
    """Return the schema of a tool's structured content: the first fields every result has.

    None is called required, because some clients hold the error object of a failed call against the schema too.
    """
    whole = handler.result_schema()
    found = _resolved(whole, whole)
    always = [name for name in found["properties"] if name in found.get("required", ()) and name not in ERROR]
    fields = {name: _type(found["properties"][name], whole) for name in always[:MOST_FIELDS]}
    return {"type": "object", "properties": fields}


def _object(node: Mapping[str, Any]) -> Schema:
    """Return an object's schema with the fields that are listed."""
    fields = {name: _field(name, field) for name, field in node.get("properties", {}).items() if name not in RARE}
    required = [name for name in node.get("required", ()) if name in fields]
    return {"properties": fields, **({"required": required} if required else {})}


def _field(name: str, node: Mapping[str, Any]) -> Schema:
    schema: Schema = _input(node)
    if name in SHORT:
        schema["description"] = SHORT[name]
    return schema


def _input(node: Any) -> Any:
    if isinstance(node, list):
        return [_input(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept: Schema = {key: _input(value) for key, value in node.items() if not _tells_nothing(key, value)}
    forms: list[Schema] = [form for form in kept.pop("anyOf", ()) if form != NULL]
    if len(forms) == 1:
        return {**forms[0], **kept}
    return {**kept, "anyOf": forms} if forms else kept


def _tells_nothing(key: str, value: Any) -> bool:
    if key == "enum":
        return len(value) > MOST_CHOICES
    return key in LEFT_OUT or key in BOUNDS or (key == "default" and not value)


def _resolved(node: Schema, whole: Schema) -> Schema:
    while "$ref" in node:
        found: Schema = whole["$defs"][node["$ref"].rpartition("/")[2]]
        node = found
    return node


def _type(node: Schema, whole: Schema) -> Schema:
    """Return a field's type; one that may be null in two forms, as some hosts know no arrays of types."""
    node = _resolved(node, whole)
    if "anyOf" in node:
        forms = [_type(form, whole) for form in node["anyOf"]]
        return {"anyOf": forms} if all(forms) else {}
    return {"type": node["type"]} if "type" in node else {}
