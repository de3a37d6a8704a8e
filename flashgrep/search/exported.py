"""Whether other files can use a piece of code, by the conventions of its language."""

import re

from flashgrep.languages import language_of
from flashgrep.search.meaning import Piece


def is_exported(piece: Piece) -> bool:
    """Return whether a piece defines something for other files: by keyword, else by how its name is written."""
    language, name = language_of(piece.path), piece.chunk.name.rpartition(".")[2]
    if not name:
        return False
    if language.exported:
        return re.search(language.exported, piece.text, re.MULTILINE) is not None
    if language.hidden:
        return re.search(language.hidden, piece.text, re.MULTILINE) is None
    if language.name == "go":
        return name[:1].isupper()
    return not name.startswith("_") or name.endswith("__")
