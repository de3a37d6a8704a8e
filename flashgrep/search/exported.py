"""Whether other files can use a piece of code, by the conventions of its language."""

import re
from typing import Final

from flashgrep.ingest.languages import language_of
from flashgrep.search.meaning import Piece

_EXPORT: Final = {
    "rust": re.compile(r"^\s*pub\b", re.MULTILINE),
    "java": re.compile(r"^\s*(?:@\w+\s+)*(?:public|protected)\b", re.MULTILINE),
    "csharp": re.compile(r"^\s*(?:public|protected|internal)\b", re.MULTILINE),
    "swift": re.compile(r"^\s*(?:public|open)\b", re.MULTILINE),
    "javascript": re.compile(r"^\s*export\b|\bmodule\.exports\b|^\s*exports\.", re.MULTILINE),
    "typescript": re.compile(r"^\s*export\b|\bmodule\.exports\b|^\s*exports\.", re.MULTILINE),
}
_HIDDEN: Final = {
    "kotlin": re.compile(r"^\s*(?:private|internal)\b", re.MULTILINE),
    "php": re.compile(r"^\s*(?:private|protected)\b", re.MULTILINE),
    "scala": re.compile(r"^\s*private\b", re.MULTILINE),
    "c": re.compile(r"^\s*static\b", re.MULTILINE),
    "cpp": re.compile(r"^\s*static\b", re.MULTILINE),
}


def is_exported(piece: Piece) -> bool:
    """Return whether a piece defines something for other files: by keyword, else by how its name is written."""
    language, name = language_of(piece.path), piece.chunk.name.rpartition(".")[2]
    if not name:
        return False
    if language in _EXPORT:
        return bool(_EXPORT[language].search(piece.text))
    if language in _HIDDEN:
        return not _HIDDEN[language].search(piece.text)
    return name[:1].isupper() if language == "go" else not name.startswith("_") or name.endswith("__")
