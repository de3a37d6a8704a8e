"""Languages of the recipe: file suffixes, and queries for definitions, names and comments."""

from pathlib import PurePosixPath
from typing import Final

SUFFIXES: Final = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hpp": "cpp",
    ".hh": "cpp",
    ".rb": "ruby",
    ".php": "php",
}

FURTHER: Final = {
    ".cs": "csharp",
    ".kt": "kotlin",
    ".swift": "swift",
    ".scala": "scala",
    ".ex": "elixir",
    ".exs": "elixir",
    ".erl": "erlang",
    ".hs": "haskell",
    ".lua": "lua",
    ".moon": "lua",
    ".pl": "perl",
    ".pm": "perl",
    ".sh": "bash",
    ".bash": "bash",
    ".zsh": "bash",
    ".ps1": "powershell",
    ".m": "objc",
    ".vue": "javascript",
    ".coffee": "javascript",
}
"""Languages learnt only from commits, which need no grammar."""

_JAVASCRIPT: Final = """
(function_declaration name: (_) @name) @def
(generator_function_declaration name: (_) @name) @def
(method_definition name: (_) @name) @def
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @def
(assignment_expression left: (_) @name right: [(arrow_function) (function_expression)]) @def
(pair key: (_) @name value: [(arrow_function) (function_expression)]) @def
(class_declaration name: (_) @name) @def
(comment) @comment
"""

_TYPESCRIPT: Final = (
    _JAVASCRIPT
    + """
(interface_declaration name: (_) @name) @def
(abstract_class_declaration name: (_) @name) @def
(enum_declaration name: (_) @name) @def
"""
)

_C: Final = """
(function_definition declarator: (_) @name) @def
(struct_specifier name: (_) @name body: (_)) @def
(enum_specifier name: (_) @name body: (_)) @def
(comment) @comment
"""

QUERIES: Final = {
    "python": """
(function_definition name: (_) @name) @def
(class_definition name: (_) @name) @def
(comment) @comment
""",
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": """
(function_declaration name: (_) @name) @def
(method_declaration name: (_) @name) @def
(type_declaration (type_spec name: (_) @name)) @def
(comment) @comment
""",
    "rust": """
(function_item name: (_) @name) @def
(struct_item name: (_) @name) @def
(enum_item name: (_) @name) @def
(trait_item name: (_) @name) @def
(line_comment) @comment
(block_comment) @comment
""",
    "java": """
(method_declaration name: (_) @name body: (_)) @def
(constructor_declaration name: (_) @name) @def
(class_declaration name: (_) @name) @def
(interface_declaration name: (_) @name) @def
(enum_declaration name: (_) @name) @def
(line_comment) @comment
(block_comment) @comment
""",
    "c": _C,
    "cpp": _C + "(class_specifier name: (_) @name body: (_)) @def\n",
    "ruby": """
(method name: (_) @name) @def
(singleton_method name: (_) @name) @def
(class name: (_) @name) @def
(module name: (_) @name) @def
(comment) @comment
""",
    "php": """
(function_definition name: (_) @name) @def
(method_declaration name: (_) @name body: (_)) @def
(class_declaration name: (_) @name) @def
(interface_declaration name: (_) @name) @def
(trait_declaration name: (_) @name) @def
(comment) @comment
""",
}


def language_of(path: str) -> str | None:
    """Return the language of a path's suffix."""
    return SUFFIXES.get(PurePosixPath(path).suffix.lower())


def written_in(path: str) -> str | None:
    """Return the language of a path, including those without a grammar here."""
    return language_of(path) or FURTHER.get(PurePosixPath(path).suffix.lower())
