"""Scripts inside of another language: the components of Vue, Svelte and Astro.

The rest of the file is blanked out, so that what is found in a script stands where it stands in the file.
"""

import re
from typing import Final

_SCRIPT: Final = re.compile(rb"<script\b([^>]*)>(.*?)(?:</script\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_FRONT_MATTER: Final = re.compile(rb"\A\s*---[ \t]*\r?\n(.*?)(?:^---|\Z)", re.DOTALL | re.MULTILINE)
_TYPED: Final = re.compile(rb"""\blang\s*=\s*["']?(tsx|ts|typescript)\b""", re.IGNORECASE)
_NO_CODE: Final = re.compile(rb"""\btype\s*=\s*["']?(?!module|text/(?:java|type)script|application/javascript)""")
_BLANKED: Final = re.compile(rb"[^\r\n]")


def read_scripts(language: str, data: bytes) -> tuple[str, bytes]:
    """Return the grammar that a component's scripts are in, and its text with everything else made blanks."""
    grammar, spans = "javascript", []
    if language == "astro":
        if front := _FRONT_MATTER.match(data):
            spans.append(front.span(1))
        grammar = "typescript"
    for script in _SCRIPT.finditer(data):
        if _NO_CODE.search(script[1]):
            continue
        spans.append(script.span(2))
        if typed := _TYPED.search(
            script[1]
        ):  # what is right TypeScript is read wrongly as JavaScript, hardly vice versa
            grammar = "tsx" if typed[1].lower() == b"tsx" else "typescript"
    parts, end = [], 0
    for start, stop in spans:
        parts += [_BLANKED.sub(b" ", data[end:start]), data[start:stop]]
        end = stop
    return grammar, b"".join([*parts, _BLANKED.sub(b" ", data[end:])])
