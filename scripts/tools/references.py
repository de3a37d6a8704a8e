"""Finds references that lead nowhere: what documents and docstrings name in backticks must exist.

Checked are paths of this repository (``search/exact.py``), names in a module or class (``postings.splice``), commands
with their options (``fgrep outline``), and links between documents. A name that no module and no class of ours has as
its head, such as ``os.scandir``, is somebody else's and passes. Fenced blocks of documents are examples, and are left
out.
"""

import ast
import builtins
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

DOCUMENTS = ("*.md", "docs/**/*.md", "skills/SKILL.md", ".github/*.md")
QUOTED = {
    ".md": re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)"),
    ".py": re.compile(r"``([^`\n]+(?:\n[^`\n]+)?)``"),
}
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
DOTTED = re.compile(r"(?:[a-z_]+/)*\w+(?:\.\w+)+")
FILE = re.compile(r"\.(py|md|scm|tsv|toml|txt|json|js|ts|h|sh|yml|db|sock|proto)$")
IDENTIFIER = re.compile(r"(?!__)_?[A-Z]\w*[a-z]\w*|(?!__)\w+_\w+|\w+\(\)")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b(?=[./])")
DEFINITION = re.compile(r"^ *(?:async )?def (\w+)", re.MULTILINE)
COMMAND = re.compile(r"(?:fgrep|flashgrep) ([a-z][a-z-]*)\b.*")
OWN_FOLDERS = {".github", "docs", "editors", "flashgrep", "scripts", "skills", "tests"}
MODULES = (".py", ".scm", ".tsv")
EXAMPLE = re.compile(r"(src|lib|a|b)/|\*")
"""Folders that examples are about."""
FOREIGN = {"RotatingFileHandler", "ts_rank_cd"}
"""Names of others that decisions are about."""
OPTION = re.compile(r"(?<!\S)--?[A-Za-z.][\w-]*")
MISTYPED = {"qurey"}
"""Commands that documents give as examples of a typing error."""
HELP = "help"
"""Not in the table of commands, since ``fgrep help FILE`` is grep's."""


class Broken(NamedTuple):
    """A reference to something that does not exist; ``path`` is relative to the checkout."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.text}` does not exist"


class Checkout:
    """The names that references may lead to: files of the repository, and identifiers of the package."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "flashgrep"
        self.folders = OWN_FOLDERS | {
            path.name for path in self.package.iterdir() if path.is_dir()
        }
        self.members: dict[str, set[str]] = {}
        """What a module or class of that name has; those of one name are taken together."""

        self.modules = {
            path: ast.parse(path.read_bytes())
            for path in sorted(self.package.rglob("*.py"))
        }
        for path, tree in self.modules.items():
            name = path.parent.name if path.stem == "__init__" else path.stem
            self.members.setdefault(name, set()).update(list_names(tree))
            if path.stem != "__init__":
                self.members.setdefault(path.parent.name, set()).add(path.stem)
            elif path.parent != self.package:
                self.members.setdefault(path.parent.parent.name, set()).add(name)
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    self.members.setdefault(node.name, set()).update(list_names(node))
        for name, bases in self._list_bases():
            self.members[name].update(
                *(self.members[base] for base in bases if base in self.members)
            )
        self.members.pop(
            self.package.name, None
        )  # also the name of a schema, a logger and an extension's settings
        self.stems = {
            path.stem
            for folder in ("flashgrep", "scripts", "tests")
            for path in (root / folder).rglob("*.py")
        }
        self.names = set(self.members).union(
            *self.members.values(), *map(_list_words, self.modules.values())
        )
        self.names.update(
            dir(builtins),
            *(
                DEFINITION.findall(path.read_text())
                for path in root.glob("tests/**/*.py")
            ),
        )
        self.commands = {
            line.partition("\t")[0]
            for line in (self.package / "cli" / "commands.tsv").read_text().splitlines()
        }
        self.options = _list_options(
            (self.package / "cli" / "help.tsv").read_text(encoding="utf-8")
        )
        """Those of each command that has any."""
        self.settings = set(
            _list_settings((root / ".flashgrep.example").read_text(encoding="utf-8"))
        )

    def _list_bases(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the classes with the names of their bases."""
        for tree in self.modules.values():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    yield node.name, [ast.unparse(base) for base in node.bases]

    def has_path(self, text: str, near: Path) -> bool:
        """Return whether a path leads to a file of ours, from the root, the package or the document's folder."""
        text = PLACEHOLDER.sub("*", text.rstrip("/"))
        for folder in (self.root, self.package, near.parent):
            if any(folder.glob(text)) or any(folder.glob(f"{text}.py")):
                return True
        return False

    def has_options(self, command: str) -> bool:
        """Return whether a command, as it is typed, has all the options that it is given."""
        words = command.split()[1:]
        known = self.options.get(" ".join(words[:2])) or self.options.get(words[0])
        if known is None:  # its own program reads them
            return True
        for word in words:
            option = word.partition("=")[0].strip("[]'…")
            letters = {f"-{letter}" for letter in option[1:]}
            is_cluster = not option.startswith("--") and letters <= known
            if OPTION.fullmatch(option) and option not in known and not is_cluster:
                return False
        return True

    def has_module(self, name: str) -> bool:
        """Return whether some folder has a module of this file name."""
        return name.removesuffix(".py") in self.stems

    def is_our_path(self, text: str) -> bool:
        """Return whether a text is written like a path of this repository."""
        return (
            PATH.fullmatch(text) is not None
            and "/" in text
            and text.partition("/")[0] in self.folders
        )

    def has_member(self, text: str) -> bool:
        """Return whether each part of a dotted name is a member of the part before it, as far as that is ours."""
        if text in self.settings:
            return True
        names = text.rpartition("/")[2].split(".")
        for head, name in pairwise(names):
            if head in self.members and name not in self.members[head]:
                return False
        return True


def list_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module or class defines, imports or assigns, attributes of ``self`` included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).rpartition(".")[2]
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node.arg


def find_broken(root: Path) -> list[Broken]:
    """Return the broken references in the documents of a checkout and in the docstrings of its package."""
    checkout = Checkout(root)
    broken: list[Broken] = []
    for pattern in DOCUMENTS:
        for path in sorted(root.glob(pattern)):
            text = FENCE.sub(_blank, path.read_text(encoding="utf-8"))
            broken += _check_text(checkout, path, text, 1)
            broken += _check_links(checkout, path, text)
    for path, tree in checkout.modules.items():
        for text, line in _list_docstrings(tree):
            broken += _check_text(checkout, path, text, line)
    return broken


def _check_text(
    checkout: Checkout, path: Path, text: str, first_line: int
) -> Iterator[Broken]:
    for match in QUOTED[path.suffix].finditer(text):
        if not _exists(checkout, " ".join(match[1].split()), path):
            yield Broken(
                path.relative_to(checkout.root),
                first_line + text.count("\n", 0, match.start()),
                match[1],
            )


def _exists(checkout: Checkout, text: str, near: Path) -> bool:
    command = COMMAND.fullmatch(text)
    if command and near.suffix == ".md":
        is_known = command[1] in {HELP, *checkout.commands, *MISTYPED}
        return is_known and checkout.has_options(text)
    name = text.partition(" ")[0]
    if FILE.search(name):
        if checkout.is_our_path(name) or (
            "/" in name and name.endswith(MODULES) and not EXAMPLE.match(name)
        ):
            return checkout.has_path(name, near)
        return (
            "/" in name
            or "*" in name
            or not name.endswith(".py")
            or checkout.has_module(name)
        )
    if DOTTED.fullmatch(name.removesuffix("()")):
        module = name.partition(".")[0]
        if checkout.is_our_path(module) and not checkout.has_path(module, near):
            return False
        return checkout.has_member(name.removesuffix("()"))
    if IDENTIFIER.fullmatch(text) and text not in FOREIGN:
        return text.removesuffix("()") in checkout.names
    if checkout.is_our_path(name) and name == name.lower():
        return checkout.has_path(name, near)
    return True


def _check_links(checkout: Checkout, path: Path, text: str) -> Iterator[Broken]:
    for match in LINK.finditer(text):
        target, _, anchor = match[1].partition("#")
        if "://" in target:
            continue
        document = path.parent / target if target else path
        if not document.exists() or (anchor and anchor not in _list_anchors(document)):
            yield Broken(
                path.relative_to(checkout.root),
                1 + text.count("\n", 0, match.start()),
                match[1],
            )


def _list_options(table: str) -> dict[str, set[str]]:
    """Return the options of each command in the table of help."""
    options: dict[str, set[str]] = {}
    for page in re.split(r"(?m)^=\t", table)[1:]:
        command = page.partition("\t")[0]
        rows = re.findall(r"(?m)^r\t(-[^\t]*)", page)
        # Without any it passes its words on to another program.
        if len(rows) > 1:
            options[command] = set(OPTION.findall(" ".join(rows)))
    return options


def _list_anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as hosts of repositories make them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def _list_docstrings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield each docstring with its line, those of constants included."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value.value, node.lineno


def _list_words(tree: ast.Module) -> set[str]:
    """Return the words of a module's texts that are not prose: fields of messages, columns, names of types."""
    words = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "``" not in node.value
        ):
            words.update(re.findall(r"\w+", node.value))
    return words


def _list_settings(example: str) -> Iterator[str]:
    """Yield the settings of the example, dotted."""
    section = ""
    for line in example.splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        elif setting := re.match(r"# (\w+) = ", line):
            yield f"{section}.{setting[1]}"


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")
