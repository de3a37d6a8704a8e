"""JSON Schemas reduced for a model's context; what is left out is still accepted.

Every client sends all schemas to its model with every conversation, so they contain only what a model needs to choose
and call a tool. Left out are fields that agents hardly ever need, bounds (a call that breaks one gets an error), titles
that repeat a name, and a default that is the first of a field's choices. Schemas of results have the fields, and those
of list items. `skills/reference.md` has all.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel

from flashgrep.base.registry import Handler, Usage, usage_of

SPECIFIED = frozenset({"semantic_search"})
"""Tools whose descriptions are prescribed verbatim by a specification."""
SHORT = {
    "project": "",
    "max_tokens": "",
    "limit": "",
    "cursor": "",
    "continuation_start_line": "",
    "continuation_start_byte": "",
    "context": "",
    "include_hidden": "",
    "replace_all": "",
    "tail": "",
    "path": "",
    "include": "Globs.",
    "exclude": "",
    "language": "As py, rust.",
    "rev": "",
    "dry_run": "",
    "word": "",
    "multiline": "",
    "kind": "",
    "new_text": "",
}
"""Shorter descriptions of common fields; empty where the name, the instructions or an answer's note suffice."""
MOST_FIELDS = 8
"""Fields of a result that are listed; a model sees the rest in the result."""
MOST_CHOICES = 10
"""Values of a field that are listed; the error for a wrong one names them all."""
LEFT_OUT = frozenset(
    {"title", "minLength", "maxLength", "minItems", "maxItems", "additionalProperties"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern"}
)
LIKE = "like"
"""Key by which a parameter model refers to another tool that describes the same fields."""
ERROR = frozenset({"code", "message", "data"})
"""The members of the error object, which is the other form of every result."""
Schema = dict[str, Any]


def input_schema(
    handler: Handler, *, bound: bool = False, complete: bool = False
) -> Schema:
    """Return the schema of a tool's arguments; an omitted optional field is null.

    ``bound``: the connection is bound to one project, so ``project`` is left out. ``complete``: for a program, with
    rare fields and all descriptions.
    """
    whole = handler.params_schema()
    marks = dict(find_marks(handler.params))
    fields = FieldChoice(
        rare=frozenset(
            name for name, mark in marks.items() if mark.rare and not complete
        ),
        needed=frozenset(name for name, mark in marks.items() if mark.needed),
        is_short=not complete and handler.name not in SPECIFIED,
    )
    schema = fields.shorten_object(whole) | {"type": "object"}
    if bound:
        schema["properties"].pop("project", None)
    if bound or not complete:
        schema["properties"].pop("projects", None)
    inlined: Schema = fields.insert_models(schema, whole.get("$defs", {}))
    return inlined


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChoice:
    """Which fields of a tool's parameters its schema has, and how they are described."""

    rare: frozenset[str]
    """Left out."""
    needed: frozenset[str]
    """Required of a model, though a program may leave them out."""
    is_short: bool
    """Whether common fields have the descriptions in SHORT."""

    def shorten_object(self, node: Mapping[str, Any]) -> Schema:
        """Return the fields of an object, and which of them are required."""
        fields = {
            name: shorten(field)
            for name, field in node.get("properties", {}).items()
            if name not in self.rare
        }
        if self.is_short:
            for name in fields.keys() & SHORT.keys():
                fields[name].pop("description", None)
                # An answer says what it left out.
                if name == "limit":
                    fields[name].pop("default", None)
                if SHORT[name]:
                    fields[name]["description"] = SHORT[name]
        obligatory = self.needed.union(node.get("required", ()))
        required = [name for name in fields if name in obligatory]
        if not required:
            return {"properties": fields}
        return {"properties": fields, "required": required}

    def insert_models(self, node: Any, models: Mapping[str, Schema]) -> Any:
        """Return a schema with the models it refers to in place: each is used once, and a reference costs as much."""
        if isinstance(node, list):
            return [self.insert_models(item, models) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" not in node:
            return {
                key: self.insert_models(value, models) for key, value in node.items()
            }
        model = models[node["$ref"].rpartition("/")[2]]
        inner = {"type": "object", **self.shorten_object(model)}
        if LIKE in model:
            for field in inner["properties"].values():
                field.pop("description", None)
        others = {key: value for key, value in node.items() if key != "$ref"}
        return {**self.insert_models(inner, models), **others}


def find_marks(model: type[BaseModel]) -> Iterator[tuple[str, Usage]]:
    """Yield the name and usage of each field of a model, and of the models nested in it."""
    for name, field in model.model_fields.items():
        yield field.alias or name, usage_of(field)
        kinds = [field.annotation]
        while kinds:
            kind = kinds.pop()
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from find_marks(kind)
            kinds += get_args(kind)


def shorten(node: Any) -> Any:
    """Return part of a schema without what a model does not need."""
    if isinstance(node, list):
        return [shorten(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema: Schema = {}
    for key, value in node.items():
        too_many = key == "enum" and len(value) > MOST_CHOICES
        implied = key == "default" and _is_implied(value, node)
        if key not in LEFT_OUT and not too_many and not implied:
            schema[key] = shorten(value)
    # Optional fields may be null anyway.
    forms: list[Schema] = [
        form for form in schema.pop("anyOf", ()) if form != {"type": "null"}
    ]
    if len(forms) == 1:
        return {**forms[0], **schema}
    if forms:
        return {**schema, "anyOf": forms}
    return schema


def _is_implied(default: Any, field: Mapping[str, Any]) -> bool:
    """Return whether a field's default goes without saying: it is nothing, or the first of the field's choices."""
    return not default or default == field.get("enum", (None,))[0]


def output_schema(handler: Handler) -> Schema:
    """Return the schema of a tool's structured content: its first fields.

    None is required, because some clients validate the error object of a failed call against the same schema.
    """
    whole = handler.result_schema()

    def resolve(node: Schema) -> Schema:
        while "$ref" in node:
            node = whole["$defs"][node["$ref"].rpartition("/")[2]]
        return node

    def type_of(node: Schema) -> Schema:
        node = resolve(node)
        if (
            "anyOf" in node
        ):  # kept as ``anyOf``: some hosts do not support arrays of types
            forms = [type_of(form) for form in node["anyOf"]]
            if all(forms):
                return {"anyOf": forms}
            return {}
        if "type" in node:
            return {"type": node["type"]}
        return {}

    result = resolve(whole)
    always = [
        name
        for name in result["properties"]
        if name in result.get("required", ()) and name not in ERROR
    ]
    return {
        "type": "object",
        "properties": {
            name: type_of(result["properties"][name]) for name in always[:MOST_FIELDS]
        },
    }
