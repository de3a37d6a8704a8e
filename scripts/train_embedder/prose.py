"""Converts documentation comments to sentences usable as questions."""

import re
import textwrap
from typing import Final

_OPEN: Final = re.compile(
    r"^\s*(?:/\*+!?|[rRuUbB]{0,2}(?:\"\"\"|'''|\"|')|<!--)|(?:\*+/|\"\"\"|'''|\"|')\s*$"
)
_MARK: Final = re.compile(r"^\s*(?:///?!?|//!|\*(?!\*)|#+!?|--)\s?", re.MULTILINE)
_TAG: Final = re.compile(
    r"^\s*(?:[@\\](?!code\b)\w|:param|:return|:rtype|:type|Args?:|Arguments:|Parameters|Returns?:|Raises:|Yields:"
    r"|Examples?\b|>>>|\.\. |Usage:|Notes?:|See [Aa]lso|# |```|---|===)",
    re.MULTILINE,
)
_LEAD: Final = re.compile(
    r"^\s*[@\\](?:brief|summary|description|desc|short)\b[ :]*", re.MULTILINE
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z(`'\"])|\n\s*\n")
_ROLE: Final = re.compile(r":\w+(?::\w+)?:`~?([^`]+)`")
_INLINE: Final = re.compile(r"\{@\w+\s+([^}]+)\}")
_ELEMENT: Final = re.compile(r"</?\w+[^>]*>")
_NO_QUERY: Final = re.compile(
    r"copyright|licen[sc]e|https?:|pylint|noqa|eslint|todo|fixme|spdx|nolint|generated|deprecated|inheritdoc|[{};]|==",
    re.IGNORECASE,
)

SHORTEST, LONGEST = 3, 40
"""Fewest and most words of a sentence usable as a question."""


def plain(comment: str) -> str:
    """Return the text of a comment or docstring without its delimiters."""
    text = _OPEN.sub("", comment.strip())
    text = (
        _MARK.sub("", text)
        if not comment.lstrip().startswith(('"', "'", "r", "R", "u", "U"))
        else text
    )
    return textwrap.dedent(_LEAD.sub("", text)).strip()


def body(text: str) -> str:
    """Return the text before the first tag, list of parameters or example."""
    tag = _TAG.search(text)
    return text[: tag.start()].strip() if tag else text


def first_sentence(text: str) -> str:
    """Return the first sentence of plain documentation, without markup; empty if not usable as a question."""
    sentence = re.sub(r"\s+", " ", _SENTENCE.split(body(text), maxsplit=1)[0])
    sentence = _ELEMENT.sub("", _INLINE.sub(r"\1", _ROLE.sub(r"\1", sentence)))
    sentence = sentence.replace("`", "").strip().rstrip(".:").strip()
    usable = (
        sentence.isascii()
        and SHORTEST <= len(sentence.split()) <= LONGEST
        and not _NO_QUERY.search(sentence)
    )
    return sentence if usable else ""
