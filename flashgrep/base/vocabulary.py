"""Tolerant reading of parameters: alternative names of fields, and values in similar forms.

Agents call from habit: with names from other tools, with a text instead of a list of one, with JSON in a text. All of
this is handled here, before validation, and only if it is unambiguous.
"""

import re
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import orjson
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rapidfuzz import fuzz, process

SYNONYMS: Final[Mapping[str, str]] = {
    "query": "text pattern regex regexp q search search_query search_term search_text keyword keywords question needle "
    "filter name glob_pattern queries patterns",
    "path": "file_path file filename file_name filepath relative_path absolute_path directory dir folder target_file "
    "dir_path directory_path target_directory root_dir relative_workspace_path paths",
    "path_bytes": "file_path_bytes",
    "paths": "file_paths files",
    "include": "glob globs file_filter file_pattern file_patterns include_pattern include_patterns includes file_glob "
    "path_filter files",
    "exclude": "exclude_pattern exclude_patterns excludes exclude_glob ignore ignore_patterns",
    "language": "languages type types lang file_type",
    "limit": "max_results head_limit max_count max_matches max_hits top_k num_results result_limit page_size n k",
    "cursor": "next next_cursor page_token",
    "max_tokens": "token_budget budget tokens",
    "symbol_name": "symbol name query identifier function function_name class_name qualified_name",
    "targets": "items paths file_paths symbols symbol_names ranges reads files",
    "start_line": "start from_line line_start first_line begin offset line start_line_one_indexed",
    "end_line": "end to_line line_end last_line end_line_one_indexed_inclusive",
    "max_lines": "limit num_lines line_count",
    "symbol_context_lines": "context context_lines",
    "old_text": "old_string old_str old old_code find search original original_text",
    "new_text": "new_string new_str new new_code replace replace_with",
    "replacement": "content contents new_content file_text text code",
    "content": "contents text file_text",
    "operations": "edits changes writes",
    "expected_file_hash": "file_hash hash sha256",
    "context": "context_lines lines_of_context around c",
    "before": "before_context lines_before before_lines b",
    "after": "after_context lines_after after_lines a",
    "word": "whole_word whole_words word_regexp match_whole_word w",
    "kind": "kinds symbol_kind symbol_type",
    "role": "roles",
    "mode": "query_type search_mode match_type",
    "output": "output_mode",
    "max_depth": "depth",
    "depth": "max_depth hops",
    "sort_by": "sort order_by",
    "include_hidden": "hidden show_hidden dotfiles",
    "src": "source from source_path old_path",
    "dst": "destination dest to target target_path new_path",
    "spec_id": "spec id",
    "project": "repo repository workspace cwd root workspace_root project_root project_path repo_path",
}
"""Other names of a field, wherever a method has the field and not the name; the first field of a method wins."""
FLAGS: Final[Mapping[str, tuple[str, Mapping[Any, Any]]]] = {
    "case_sensitive": ("case", {True: "sensitive", False: "insensitive"}),
    "is_case_sensitive": ("case", {True: "sensitive", False: "insensitive"}),
    "match_case": ("case", {True: "sensitive", False: "insensitive"}),
    "ignore_case": ("case", {True: "insensitive"}),
    "case_insensitive": ("case", {True: "insensitive"}),
    "i": ("case", {True: "insensitive"}),
    "regex": ("mode", {True: "regex", False: "literal"}),
    "is_regex": ("mode", {True: "regex", False: "literal"}),
    "is_regexp": ("mode", {True: "regex", False: "literal"}),
    "use_regex": ("mode", {True: "regex", False: "literal"}),
    "regexp": ("mode", {True: "regex", False: "literal"}),
    "literal": ("mode", {True: "literal"}),
    "fixed_strings": ("mode", {True: "literal"}),
    "files_with_matches": ("output", {True: "files"}),
    "files_only": ("output", {True: "files"}),
    "l": ("output", {True: "files"}),
    "respect_gitignore": ("respect_ignore", {True: True, False: False}),
    "respect_git_ignore": ("respect_ignore", {True: True, False: False}),
    "no_ignore": ("respect_ignore", {True: False}),
    "include_ignored": ("respect_ignore", {True: False}),
    "patch": ("lines", {True: True, False: False}),
    "diff": ("lines", {True: True, False: False}),
    "show_diff": ("lines", {True: True, False: False}),
    "stat": ("lines", {True: False}),
    "summary": ("lines", {True: False}),
    "name_only": ("lines", {True: False}),
    "include_body": ("body", {True: True, False: False}),
    "recursive": ("", {True: None}),
    "should_read_entire_file": ("", {True: None}),
    "n": ("", {True: None, False: None}),
    "line_number": ("", {True: None, False: None}),
    "line_numbers": ("", {True: None, False: None}),
    "show_line_numbers": ("", {True: None, False: None}),
}
"""Flags of other tools: the field they stand for and its value; without one there is nothing to set."""
VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "output": {
        "content": "lines",
        "matches": "lines",
        "files_with_matches": "files",
        "paths": "files",
    },
    "sort_by": {
        "mtime": "modified",
        "modified_time": "modified",
        "time": "modified",
        "date": "modified",
    },
    "mode": {
        "regexp": "regex",
        "exact": "literal",
        "string": "literal",
        "text": "literal",
        "auto": "smart",
    },
    "role": {
        "def": "definition",
        "caller": "call",
        "ref": "reference",
        "implementer": "implementation",
    }
    | dict.fromkeys(
        ("references", "refs", "use", "uses", "usage", "usages"), "call reference"
    ),
    "kind": {"var": "variable", "const": "constant"}
    | dict.fromkeys(("func", "fn", "def"), "function method"),
}
"""What other tools call the values of a choice; in a list, one such name may stand for several choices, and plurals are
accepted."""
REMARKS: Final = frozenset(
    {"explanation", "reason", "description", "tool_summary", "tool_action"}
)
"""Fields that explain why a call is made; many hosts make their models add them."""
TO_THE_END: Final = -1
"""The ``end_line`` of other tools for the end of the file."""
RANGES: Final = ("view_range", "line_range", "lines", "range")
"""Fields with both the first and the last line: ``[10, 20]`` or ``"10-20"``."""
NOTHING: Final = frozenset({"", "null", "None", "undefined"})
"""Values that mean that a field is omitted."""
MOST_JSON: Final = 256 * 1024
"""Characters of a text parsed as JSON. The values of a request are counted before it is parsed, but not those in it."""
MOST_NAME: Final = 100
"""Characters of a name that is looked up or compared."""
NEAR_ENOUGH: Final = 70
"""Out of 100; less similar names are not suggested."""
_DECLARED: Final = re.compile(
    r"(?:(?:async|export|public|private|protected|static|final|abstract|override|unsafe|pub(?:\([^()]*\))?) )*"
    r"(?:def|class|function|func|fn|struct|interface|trait|enum|type|method) "
    r"(?:\((?:\w+ )?\*?(?P<receiver>\w+)[^()]*\) )?(?P<name>[^\s(]+?)"
    r"(?:\(.*\).*|\s*(?:(?:extends|implements|struct|interface|where)\b|[:={]).*)?",
    re.DOTALL,
)
"""A symbol written as its declaration: ``def turn(self)``, ``func (w *Wheel) turn()``."""
SYNONYM_OF: Final = {
    other: name
    for name in ("path", "symbol_name", "start_line", "end_line")
    for other in SYNONYMS[name].split()
    if name != "symbol_name" or other != "query"
}
"""Alternative names of the members of a place given as an object."""
_LISTED: Final = re.compile(r"[^,{}\s*/]*[*/][^,{}\s]*(?:, ?[^,{}\s*/]*[*/][^,{}\s]*)+")
"""Several globs in one text, such as ``*.py,*.ts``; not plain names, which may contain commas, and not braces."""
_SPAN: Final = re.compile(r"\s*(\d{1,10})\s*(?:-|:|,|\.\.)\s*(\d{1,10})\s*")
MOST_CHOICES: Final = 1_000
"""Longer lists are not searched for alternative names of choices; no field accepts that many items."""
_PLAIN: Final = frozenset({str, int, float, bool, None})
_DROP: Final = object()


VERBATIM: Final = "verbatim"
"""Marks a field whose text is never interpreted or converted: ``Annotated[str, VERBATIM]``."""


class FieldProblem(ValueError):
    """Parameters that cannot be interpreted: the field, and the problem."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(problem)
        self.name = name
        self.problem = problem


@dataclass(frozen=True, slots=True)
class _Shape:
    """The properties of a field's type that decide which other forms of values are accepted."""

    kinds: frozenset[Any]
    """``str``, ``list``, ``dict``, ``int``, ``float``, ``bool``, ``None``."""
    optional: bool
    verbatim: bool
    choices: frozenset[str]
    items: frozenset[str]
    """Choices of a list's items."""

    def read(self, value: Any, names: Mapping[str, str]) -> Any:
        """Return the value in the form that the field accepts; ``_DROP``: use the default."""
        kinds = self.kinds
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None and None not in kinds and self.optional:
            value = _DROP
        elif isinstance(value, str):
            value = self._read_text(value, names)
        elif list in kinds and (
            is_number or (isinstance(value, dict) and dict not in kinds)
        ):
            # A single item for a list.
            value = [value]
        elif isinstance(value, list) and kinds <= _PLAIN and len(value) == 1:
            # A list of one item for a single value.
            value = value[0]
        elif is_number and kinds <= {str, None} and not self.verbatim:
            # A number for a text, as in ``query: 404``. Not for verbatim text, where
            # 1e3 would become "1000.0".
            value = str(value)
        if isinstance(value, list) and self.items and len(value) <= MOST_CHOICES:
            read = list[Any]()
            for item in value:
                read += self._read_choices(item, names)
            value = read
        return value

    def _read_choices(self, item: Any, names: Mapping[str, str]) -> list[Any]:
        """Return the choices that an item stands for by an alternative name or a plural; else the item."""
        # The exact name of a choice is never replaced.
        if not isinstance(item, str) or item in self.items:
            return [item]
        folded = item.strip().lower()
        for name in (folded, folded.removesuffix("s"), folded.removesuffix("es")):
            choices = names.get(name, "").split()
            if choices:
                return [*choices]
            if name and name in self.items:
                return [name]
        return [item]

    def _read_text(self, text: str, names: Mapping[str, str]) -> Any:
        if self.optional and not self.verbatim and text.strip() in NOTHING:
            return _DROP
        # If a field accepts both a text and a list, a text that looks like JSON stays a
        # text.
        takes_text = str in self.kinds and not self.choices
        is_list = list in self.kinds and not takes_text
        if self.choices and not is_list:
            folded = text.strip().lower()
            if {folded, names.get(folded)} & self.choices:
                return names.get(folded, folded)
            return text
        if text in self.choices or not (
            is_list or (dict in self.kinds and str not in self.kinds)
        ):
            return text
        parsed = _parse_json(text)
        if list in self.kinds and isinstance(parsed, str):
            return [parsed]
        return parsed


def _parse_json(text: str) -> Any:
    """Return the list or object that a text is as JSON, else the text itself.

    ``[ab]*`` is a glob, and so is ``[1]``, although that is also a list of a number.
    """
    if len(text) > MOST_JSON or text.lstrip()[:1] not in {"[", "{"}:
        return text
    try:
        value = orjson.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict) or all(isinstance(item, str | dict) for item in value):
        return value
    return text


@dataclass(slots=True)
class Vocabulary:
    """The names and forms accepted for one method's parameters; made once per model."""

    fields: tuple[str, ...]
    """The names a caller may use, in the order of declaration."""
    names: dict[str, str] = field(default_factory=dict)
    """Alternative names, each with its field."""
    _shapes: dict[str, _Shape] = field(default_factory=dict)

    @classmethod
    def of(cls, model: type[BaseModel]) -> "Vocabulary":
        """Return the vocabulary of a model."""
        vocabulary = cls(
            tuple(
                declared.alias or name for name, declared in model.model_fields.items()
            )
        )
        accepted = {*vocabulary.fields, *model.model_fields}
        for name, declared in model.model_fields.items():
            alias = declared.alias or name
            for other in SYNONYMS.get(alias, "").split():
                # The method's own field of that name takes precedence.
                if other not in accepted:
                    # If two fields share an alternative name, the one declared first
                    # takes precedence.
                    vocabulary.names.setdefault(other, alias)
            shape = _shape_of(declared)
            vocabulary._shapes[name] = vocabulary._shapes[alias] = shape
        return vocabulary

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters under the fields' own names, in the form the fields accept.

        Raises:
            FieldProblem: an unknown name, or a field given twice, with different values.

        """
        arguments: dict[str, Any] = {}
        others: list[tuple[str, Any]] = []
        for name, value in given.items():
            shape = self._shapes.get(name)
            if shape is None:
                # Own names first: an alternative name only sets a field that is not
                # given by its own name.
                others.append((name, value))
            else:
                self._take(arguments, name, shape.read(value, VALUES.get(name, {})))
        for name, value in others:
            translation = self._translate(name, value)
            if translation is None:
                raise self._unknown(name, [other for other, _ in others])
            for target, read in translation.items():
                # Equal values do not conflict: some hosts send a field under both
                # names.
                if arguments.get(target, read) != read and read is not _DROP:
                    raise FieldProblem(
                        name, f"it is the same as {target}, and both are given"
                    )
                self._take(arguments, target, read)
        return arguments

    def _unknown(self, name: str, others: Iterable[str]) -> FieldProblem:
        """Return the error for an unknown field, with the known one that is nearest."""
        reported = {name, *self.names, *FLAGS}
        more = sum(other not in reported for other in others)
        # Also compare with alternative names: "pattrn" is near "pattern", which stands
        # for query.
        known_fields = dict(zip(self.fields, self.fields, strict=True)) | self.names
        spelling = _snake(name)[:MOST_NAME]
        near = process.extractOne(
            spelling,
            list(known_fields),
            scorer=fuzz.ratio,
            score_cutoff=NEAR_ENOUGH,
        )
        if near:
            advice = f"did you mean {known_fields[near[0]]}?"
        else:
            advice = f"known are {', '.join(self.fields) or 'none'}"
        message = "no such field"
        if more:
            message += f" (and {more} more)"
        return FieldProblem(name, f"{message}; {advice}")

    def _take(self, taken: dict[str, Any], name: str, value: Any) -> None:
        """Set a field's value; several values for a field that takes one go to the field that takes several."""
        shape = self._shapes[name]
        if isinstance(value, list):
            self._take_list(taken, name, value)
        elif name == "end_line" and value == TO_THE_END and shape.optional:
            # Omitting the field means the same.
            pass
        elif name == "symbol_name" and isinstance(value, str) and not shape.verbatim:
            declared = _DECLARED.fullmatch(value.strip())
            if declared:
                taken[name] = _declaration_name(declared)
            else:
                taken[name] = value
        elif value is not _DROP:
            taken[name] = value

    def _take_list(self, taken: dict[str, Any], name: str, values: list[Any]) -> None:
        """Set a field from a list; several texts for a field that takes one go to the field that takes several."""
        are_texts = all(isinstance(item, str) for item in values)
        if name == "targets":
            taken[name] = list(map(_name_target, values))
        elif name == "any_of":
            taken[name] = [*_list_texts(taken), *values]
        elif are_texts and self._shapes[name].kinds <= _PLAIN:
            if name == "query" and "any_of" in self._shapes and values:
                first, *others = values
                others = [*_list_texts(taken), *others]
                taken["query"] = first
                taken["any_of"] = others
            elif name in {"path", "symbol_name"} and "targets" in self._shapes:
                taken["targets"] = values
            else:
                raise FieldProblem(
                    name, f"it takes one, not {len(values)}: make a call for each"
                )
        elif are_texts and name in {"include", "exclude"}:
            taken[name] = list(chain.from_iterable(map(_split_globs, values)))
        else:
            taken[name] = values

    def _read_flag(self, spelled: str, value: Any) -> dict[str, Any] | None:
        """Return the choice that a flag stands for, empty for the default; None: it is none of this method's."""
        if not isinstance(value, bool):
            return None
        flag, values = FLAGS[spelled]
        if flag in self._shapes:
            if value not in values:
                return {}
            return {flag: values[value]}
        if not flag and value in values:
            return {}
        return None

    def _translate(self, name: str, value: Any) -> dict[str, Any] | None:
        """Return the fields and values that an alternative name stands for; None if the name is unknown."""
        spelled = _snake(name)
        if spelled in FLAGS:
            # Models send booleans as texts; here they select a choice, so pydantic
            # would not convert them.
            if isinstance(value, str) and value in {"true", "false"}:
                value = value == "true"
            chosen = self._read_flag(spelled, value)
            if chosen is not None:
                return chosen
        if (
            spelled in {"regex", "regexp"}
            and isinstance(value, str)
            and {"query", "mode"} <= self._shapes.keys()
        ):
            return {"query": value, "mode": "regex"}
        if (
            spelled in RANGES
            and "start_line" in self._shapes
            and (span := _read_span(value))
        ):
            return dict(zip(("start_line", "end_line"), span, strict=True))
        target = self.names.get(spelled)
        if spelled in self._shapes:
            target = spelled
        if target is None:
            # An offset of zero means the first page, which is the default.
            is_nothing = (spelled == "offset" and value in (0, "0")) or (
                spelled in REMARKS and isinstance(value, str)
            )
            if is_nothing:
                return {}
            return None
        shape = self._shapes[target]
        # An empty value under an alternative name comes from a model that fills in
        # every field; ignore it.
        if shape.optional and not shape.verbatim and value in ("", [], None):
            return {}
        return {target: shape.read(value, VALUES.get(target, {}))}


def _shape_of(declared: FieldInfo) -> _Shape:
    """Return the forms that a field of a model accepts."""
    parts = [*declared.metadata, *_parts(declared.annotation)]
    kinds = frozenset(
        _kind(part) for part in _parts(declared.annotation) if part is not VERBATIM
    )
    is_verbatim = any(part is VERBATIM for part in parts)
    inner: list[Any] = []
    for part in parts:
        if get_origin(part) is list:
            inner += _parts(get_args(part)[0])
    is_optional = not declared.is_required()
    choices = _choices_of(parts)
    return _Shape(kinds, is_optional, is_verbatim, choices, _choices_of(inner))


def _choices_of(parts: Iterable[Any]) -> frozenset[str]:
    """Return the values of the literal types among these."""
    return frozenset(
        value
        for part in parts
        if get_origin(part) is Literal
        for value in get_args(part)
    )


def _name_target(item: Any) -> Any:
    if isinstance(item, dict):
        return name_place(item)
    return item


def _split_globs(text: str) -> list[str]:
    if _LISTED.fullmatch(text):
        return re.split(", ?", text)
    return [text]


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the types that a field accepts, and their marks."""
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        yield from (mark for mark in marks if mark is VERBATIM)
        yield from _parts(inner)
    elif get_origin(annotation) in (Union, types.UnionType):
        for part in get_args(annotation):
            yield from _parts(part)
    else:
        yield annotation


def _kind(part: Any) -> Any:
    """Return the JSON form of a type."""
    if part is types.NoneType:
        return None
    if get_origin(part) is Literal:
        return str
    if get_origin(part) in (list, tuple, set, frozenset):
        return list
    return dict if isinstance(part, type) and issubclass(part, BaseModel) else part


def name_place(given: Mapping[str, Any]) -> Any:
    """Return an object with a file, and its lines or a symbol, as one text, such as ``src/a.py:10-20``."""
    fields = {
        SYNONYM_OF.get(_snake(name), _snake(name)): value
        for name, value in given.items()
    }
    span = next(
        (read for name in RANGES if (read := _read_span(fields.pop(name, None)))), None
    )
    first, last = span or (fields.pop("start_line", None), fields.pop("end_line", None))
    path = fields.pop("path", None)
    symbol = fields.pop("symbol_name", None)
    if first is None:
        place = symbol
    else:
        place = f"{first}-{first if last is None else last}"
    # Another member would be lost in the text, so return the object unchanged; the
    # model then rejects it.
    if (
        fields
        or not (path or symbol)
        or not all(isinstance(text, str | None) for text in (path, place))
    ):
        return given
    if path and place:
        return f"{path}:{place}"
    return path or place


def _declaration_name(declared: re.Match[str]) -> str:
    """Return the name that a declaration declares, with its receiver's type."""
    if declared["receiver"] is None:
        return declared["name"]
    return f"{declared['receiver']}.{declared['name']}"


def _read_span(value: Any) -> list[int] | None:
    """Return the first and the last line of a range, or None."""
    if isinstance(value, str) and (match := _SPAN.fullmatch(value.strip("[]"))):
        return [int(number) for number in match.groups()]
    is_pair = isinstance(value, list) and len(value) == len(("first", "last"))
    return (
        value if is_pair and all(isinstance(number, int) for number in value) else None
    )


def _snake(name: str) -> str:
    """Return a name in snake case: ``maxResults``, ``max-results`` and ``--max-results`` are the same."""
    if len(name) > MOST_NAME:
        return name
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.lstrip("-"))
    return spaced.replace("-", "_").lower()


def _list_texts(arguments: Mapping[str, Any]) -> list[Any]:
    """Return the texts of ``any_of`` so far; raises FieldProblem."""
    texts = arguments.get("any_of", [])
    if not isinstance(texts, list):
        raise FieldProblem("any_of", "it takes a list")
    return texts
