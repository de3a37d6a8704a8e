"""Which language a file is in, and the few facts about a language's text that parsing and lookups need."""

import re
from dataclasses import dataclass
from typing import Final

_EXTENSIONS: Final = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ inl ipp cu cuh",
    "csharp": "cs",
    "ruby": "rb rake gemspec ru",
    "php": "php php5 phtml",
    "swift": "swift",
    "kotlin": "kt kts",
    "scala": "scala sc",
    "lua": "lua",
    "bash": "sh bash zsh ksh bats",
    "elixir": "ex exs",
    "haskell": "hs",
    "ocaml": "ml",
    "ocaml_interface": "mli",
    "zig": "zig",
    "solidity": "sol",
    "sql": "sql",
    "markdown": "md markdown",
    "assembly": "s asm",
    "clojure": "clj cljs cljc",
    "dart": "dart",
    "erlang": "erl hrl",
    "fortran": "f f90 f95",
    "fsharp": "fs fsi fsx",
    "groovy": "groovy gradle",
    "julia": "jl",
    "lisp": "el lisp scm",
    "nim": "nim",
    "objc": "m mm",
    "pascal": "pas pp",
    "perl": "pl pm",
    "powershell": "ps1 psm1",
    "proto": "proto",
    "r": "r",
    "svelte": "svelte",
    "vb": "vb",
    "vue": "vue",
}
_BY_EXTENSION: Final = {ending: language for language, endings in _EXTENSIONS.items() for ending in endings.split()}
_BY_NAME: Final = {"Rakefile": "ruby", "Gemfile": "ruby", "PKGBUILD": "bash", ".bashrc": "bash", ".profile": "bash"}
_SHEBANG: Final = re.compile(
    rb"#!\s*\S*?(?:env\s+(?:-\S+\s+)*)?(python|ruby|node|bash|dash|zsh|sh|lua|php|perl)[\d.]*\b"
)
_BY_COMMAND: Final = {"node": "javascript", "dash": "bash", "zsh": "bash", "sh": "bash"}
_HEADER_BYTES: Final = 1 << 18
"""So much of a header is looked at for what only C++ has: generated ones are megabytes of C."""
_CPP_IN_HEADER: Final = re.compile(
    rb"^\s*(?:class\s+\w|namespace\s+\w|template\s*<|public:|private:|using\s+\w)", re.MULTILINE
)
ALIASES: Final = {
    "c#": "csharp", "cs": "csharp", "c++": "cpp", "js": "javascript", "ts": "typescript", "py": "python", "rb": "ruby",
    "rs": "rust", "golang": "go", "kt": "kotlin", "sh": "bash", "shell": "bash", "md": "markdown",
    "objective-c": "objc",
}  # fmt: skip
"""Other names people give to languages."""


@dataclass(frozen=True, slots=True)
class Text:
    """How a language writes names and comments."""

    word: bytes = b""
    """Bytes besides letters, digits, underscore and non-ASCII that a name may hold."""
    comments: tuple[bytes, ...] = (b"//", b"/*", b"*")
    """How a comment line begins once its blanks are taken off."""


_HASH: Final = (b"#",)
_DASHES: Final = (b"--", b"{-", b"/*", b"*")
TEXTS: Final = {
    "python": Text(comments=_HASH),
    "ruby": Text(word=b"?!", comments=_HASH),
    "elixir": Text(word=b"?!", comments=_HASH),
    "bash": Text(comments=_HASH),
    "javascript": Text(word=b"$"),
    "typescript": Text(word=b"$"),
    "tsx": Text(word=b"$"),
    "java": Text(word=b"$"),
    "php": Text(comments=(b"//", b"/*", b"*", b"#")),
    "rust": Text(comments=(b"//", b"/*", b"*")),
    "haskell": Text(word=b"'", comments=_DASHES),
    "ocaml": Text(word=b"'", comments=(b"(*", b"*")),
    "ocaml_interface": Text(word=b"'", comments=(b"(*", b"*")),
    "lua": Text(comments=_DASHES),
    "sql": Text(comments=_DASHES),
    "markdown": Text(comments=()),
    "perl": Text(comments=_HASH),
    "r": Text(comments=_HASH),
    "julia": Text(comments=_HASH),
    "nim": Text(comments=_HASH),
    "powershell": Text(comments=_HASH),
    "erlang": Text(comments=(b"%",)),
    "lisp": Text(word=b"-?!*", comments=(b";",)),
    "clojure": Text(word=b"-?!*", comments=(b";",)),
}
"""Languages whose text differs from the usual; the rest have the defaults of ``Text``."""
_DEFAULT: Final = Text()


def language_of(path: str, data: bytes = b"") -> str | None:
    """Return the language of a file by its name, else by its first line; None where there is nothing to parse."""
    name = path.rpartition("/")[2]
    ending = name.rpartition(".")[2] if "." in name[1:] else ""
    language = _BY_EXTENSION.get(ending) or _BY_EXTENSION.get(ending.lower()) or _BY_NAME.get(name)
    if language == "c" and ending == "h" and _CPP_IN_HEADER.search(data, 0, _HEADER_BYTES):
        return "cpp"
    if language is None and not ending and (found := _SHEBANG.match(data)):
        command = found[1].decode()
        return _BY_COMMAND.get(command, command)
    return language


def text_of(language: str) -> Text:
    """Return how a language writes names and comments."""
    return TEXTS.get(language, _DEFAULT)
