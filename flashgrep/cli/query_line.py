"""``fgrep query`` as a call of the method: grep's letters become the method's options."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from flashgrep.base.registry import Registry
from flashgrep.cli.grep_options import (
    GrepLine,
    WrongOption,
    find_ripgrep_only,
    parse,
    write_method,
)

QUERY = "query"
FLAGS_OF_CLIENT: Final = {"json": False, "all-projects": False}
"""Options that every method's command has, and whether they take a value."""


@cache
def find_fields(registry: Registry) -> Mapping[str, bool]:
    """Return the options of the method, by every name it has for them, and whether each takes a value."""
    handler = registry.get(QUERY)
    fields = handler.params.model_fields
    takes_value = {
        name: field.annotation is not bool
        for name, field in fields.items()
        if name not in handler.arguments
    }
    options = {name.replace("_", "-"): value for name, value in takes_value.items()}
    for name, value in takes_value.items():
        if not value and fields[name].default is not False:
            options[f"no-{name.replace('_', '-')}"] = False
    for other, name in handler.params.other_names().items():
        if name in takes_value:
            options.setdefault(other.replace("_", "-"), takes_value[name])
    return {**options, **FLAGS_OF_CLIENT}


def read_query_line(
    registry: Registry, words: Sequence[str]
) -> tuple[list[str], GrepLine]:
    """Return the words after ``fgrep query`` as options of the method alone, and as they were parsed.

    Raises:
        WrongOption: there is no pattern; an option is unknown, lacks its value, or cannot be had together with another.

    """
    line = parse(words, find_fields(registry))
    if not line.patterns and not line.has("file"):
        raise WrongOption("Missing argument 'PATTERN'.")
    if "" in line.patterns:  # which ripgrep can search, and the method not
        raise WrongOption("an empty PATTERN matches every line: --all shows them")
    obstacle = find_ripgrep_only(line)
    if not obstacle:
        return write_method(line), line
    if line.others:
        raise WrongOption(
            f"{obstacle} cannot be had together with {line.others[0]}, which only flashgrep has"
        )
    raise WrongOption(
        f"{obstacle} needs ripgrep, which cannot be run for this call: fgrep rg says why"
    )
