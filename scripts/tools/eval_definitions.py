"""Compare our definitions with those of another tool: a language's own parser if there is one, else Universal Ctags.

The parsers are programs in ``scripts/tools/oracles``; the head of each says what to install. Every difference from them
counts against us. Ctags works with patterns: each class of differences is counted with examples and judged in
``JUDGED``; a class that is not judged counts against us.
"""

import collections
import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from flashgrep.base.languages import language_of
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols
from flashgrep.parts.symbols.parse.lookup import FileSymbols
from flashgrep.parts.symbols.parse.model import END, NAME, START

CTAGS: Final = {
    "ada": "Ada", "awk": "Awk", "bash": "Sh", "c": "C", "clojure": "Clojure", "cmake": "CMake", "config": "Iniconf",
    "cpp": "C++", "csharp": "C#", "css": "CSS", "cython": "Python", "d": "D", "elisp": "EmacsLisp", "elixir":
    "Elixir", "erlang": "Erlang", "fortran": "Fortran", "go": "Go", "haskell": "Haskell", "html": "HTML", "java":
    "Java", "javascript": "JavaScript", "julia": "Julia", "kotlin": "Kotlin", "lisp": "Lisp", "lua": "Lua", "make":
    "Make", "markdown": "Markdown", "objc": "ObjectiveC", "ocaml": "OCaml", "ocaml_interface": "OCaml", "pascal":
    "Pascal", "perl": "Perl", "php": "PHP", "powershell": "PowerShell", "proto": "Protobuf", "python": "Python",
    "r": "R", "rst": "ReStructuredText", "ruby": "Ruby", "rust": "Rust", "scss": "SCSS", "sql": "SQL",
    "systemverilog": "SystemVerilog", "tcl": "Tcl", "tex": "Tex", "tsx": "TypeScript", "typescript": "TypeScript",
    "verilog": "Verilog", "vhdl": "VHDL", "vim": "Vim",
}  # fmt: skip
ORACLES: Final = {
    **dict.fromkeys(
        [
            "astro",
            "css",
            "graphql",
            "html",
            "javascript",
            "json",
            "scala",
            "scss",
            "solidity",
            "svelte",
            "toml",
            "tsx",
            "typescript",
            "vue",
            "yaml",
        ],
        ("node", "definitions.cjs", "{language}"),
    ),
    "elisp": ("emacs", "--batch", "--script", "definitions.el"),
    "elixir": ("elixir", "definitions.exs"),
    "groovy": ("groovy", "definitions.groovy"),
    "ocaml": ("ocaml", "-I", "+compiler-libs", "definitions.ml"),
    "ocaml_interface": ("ocaml", "-I", "+compiler-libs", "definitions.ml"),
    "r": ("Rscript", "definitions.R"),
    "terraform": ("go", "run", "hcl_definitions.go"),
    "zig": ("zig", "run", "definitions.zig"),
}
"""Commands that read names of files and print what they define, by language; the programs are in ``oracles``."""
PROGRAMS: Final = Path(__file__).parent / "oracles"
FILES: Final = 300
"""Files of a folder looked at, drawn with a fixed seed."""
EXAMPLES: Final = 4
LARGE: Final = 60_000
BROKEN_FILES: Final = 30
MISTAKES: Final = 3
"""Files, up to so many bytes each, that are broken so many times each."""
TYPED: Final = (
    ("string", b'x = "abc\n'),
    ("half a line", b"if (x {\n"),
    ("half a call", b"foo(\n"),
    ("half a list", b"x = [1, 2\n"),
    ("half a head", b"class \n"),
    ("half a block", b"{\n"),
    ("comment", b"/* abc\n"),
)
"""Lines that somebody has begun to type."""
NESTED: Final = frozenset({"dart", "kotlin", "rust", "scala", "swift"})
"""Languages whose comments nest: one that is not closed hides all that follows."""
_REAL: Final = "read: real"
_LOCAL: Final = "ctags takes locals, or statements, for members"
JUDGED: Final[dict[tuple[str, str, str], tuple[bool, str]]] = {
    ("*", "ctags", "made-up name"): (False, "ctags names what has no name"),
    ("tex", "ctags", "short title"): (
        False,
        "of the table of contents: ours is the one in the text",
    ),
    ("pascal", "ctags", "part of a word"): (
        False,
        "of a parameter's name, without its first letter",
    ),
    ("*", "ctags", "alias"): (False, "a name given to an import"),
    ("*", "ctags", "namespace"): (False, "a name given to an import"),
    ("*", "ctags", "local constant"): (False, "a local variable"),
    ("*", "ctags", "local variable"): (False, "a local variable"),
    ("*", "ours", "function (declaration)"): (
        True,
        "a prototype or overload; ctags leaves them out by default",
    ),
    ("*", "ours", "variable (declaration)"): (
        True,
        "extern; ctags leaves them out by default",
    ),
    ("python", "ctags", "unknown"): (False, "a name given to an import"),
    ("python", "ctags", "variable"): (False, "ctags misreads the keyword else"),
    ("python", "ours", "variable"): (
        True,
        "set in a branch or after an annotation: read, real",
    ),
    ("python", "ours", "variable indented"): (
        True,
        "set in a branch at module level: read, real",
    ),
    ("python", "ours", "field"): (True, "annotated without a value: read, real"),
    ("c", "ctags", "function in capitals"): (
        False,
        "a macro that makes a function: its own name is not defined there",
    ),
    ("c", "ctags", "variable in capitals"): (
        False,
        "an attribute macro after the name",
    ),
    ("c", "ctags", "variable named __"): (False, "an attribute macro after the name"),
    ("c", "ctags", "member named __"): (False, "an attribute macro after the name"),
    ("c", "ours", "variable"): (
        True,
        "the name before an attribute macro, which ctags takes for the name",
    ),
    ("c", "ours", "field"): (
        True,
        "the name before an attribute macro, which ctags takes for the name",
    ),
    ("c", "ours", "function"): (
        True,
        "behind a macro ctags does not see past; a few are calls",
    ),
    ("go", "ours", "field"): (True, "of a struct without a name, or inside a function"),
    ("go", "ours", "struct"): (True, "a type declared inside a function"),
    ("go", "ctags", "packageName"): (False, "a name given to an import"),
    ("rust", "ours", "constant"): (True, "ctags knows no constants"),
    ("rust", "ours", "field"): (True, "of an enum's variant"),
    ("rust", "ours", "method"): (
        True,
        "ctags loses its way in the file (a quote in a lifetime): read, real",
    ),
    ("rust", "ours", "function"): (True, "as for method"),
    ("rust", "ours", "struct"): (True, "as for method"),
    ("rust", "ours", "extension (implementation)"): (True, "as for method"),
    ("java", "ours", "method"): (True, "of a class inside a method or an expression"),
    ("java", "ours", "field"): (True, "of a class inside a method or an expression"),
    ("java", "ours", "class"): (True, "inside a method"),
    ("java", "ours", "constructor"): (True, "of a class inside a method"),
    ("java", "ours", "interface"): (
        True,
        "a sealed interface with permits, which ctags misnames",
    ),
    ("java", "ctags", "interface"): (
        False,
        "a sealed interface with permits, which ctags misnames",
    ),
    ("javascript", "ours", "method"): (True, _REAL),
    ("javascript", "ours", "function"): (
        True,
        "arrow functions and functions set on objects ctags does not follow",
    ),
    ("javascript", "ours", "field"): (True, "private and static fields"),
    ("javascript", "ours", "class"): (True, "behind what ctags loses its way in"),
    ("javascript", "ours", "constant"): (True, _REAL),
    ("javascript", "ctags", "constant"): (False, _LOCAL),
    ("javascript", "ctags", "variable"): (False, _LOCAL),
    ("javascript", "ctags", "field"): (False, _LOCAL),
    ("javascript", "ctags", "property"): (False, "a key of an object literal: data"),
    ("javascript", "ctags", "class"): (False, "an object literal"),
    ("typescript", "ours", "method"): (True, "of object literals, and overloads"),
    ("typescript", "ours", "function"): (
        True,
        "after overloads, and functions set on objects",
    ),
    ("typescript", "ours", "field"): (True, _REAL),
    ("typescript", "ours", "property"): (True, "a constructor's property"),
    ("typescript", "ctags", "constant"): (False, _LOCAL),
    ("typescript", "ctags", "variable"): (False, _LOCAL),
    ("typescript", "ctags", "method"): (False, "a construct signature: it has no name"),
    ("ruby", "ctags", "constant"): (False, "the key of a hash, or a comparison"),
    ("ruby", "ctags", "local constant"): (False, "the key of a hash, or a comparison"),
    ("ruby", "ours", "method"): (True, "an alias with an operator's name"),
    ("ruby", "ours", "constant"): (True, "set to an expression"),
    ("ruby", "ctags", "alias"): (False, "the same alias without its last character"),
    ("ruby", "ctags", "method"): (False, "inside a string that is evaluated"),
    ("php", "ours", "namespace"): (True, "the same, named by its last part"),
    ("php", "ctags", "namespace"): (False, "the same, named by its last part"),
    ("php", "ours", "field"): (True, "a constructor's property"),
    ("php", "ctags", "variable"): (False, "a local variable"),
    ("lua", "ours", "variable"): (
        True,
        "variables of a module; ctags knows functions only",
    ),
    ("lua", "ours", "variable indented"): (True, "variables of a module, in a branch"),
    ("lua", "ours", "function"): (True, "functions on one line with their body"),
    ("lua", "ctags", "function"): (False, "a line with the word function in it"),
    **{
        (language, "ctags", kind): (False, why)
        for why, kinds in {
            "a name given to an import, or an import": (
                "csharp typedef, python namespace, cython namespace, cython unknown, php alias, tsx alias, "
                "typescript alias, go packageName"
            ),
            "a wire, a port or an instance: what a hardware module is made of": (
                "verilog register, verilog port, verilog net, verilog instance, systemverilog register, "
                "systemverilog port, systemverilog net, systemverilog instance, vhdl port, vhdl signal, vhdl "
                "generic, vhdl variable, verilog local port, systemverilog local port, verilog local register, "
                "systemverilog local register"
            ),
            "a label": (
                "perl label, fortran label, fortran local label, bash heredoc, verilog block, systemverilog block, "
                "rst target, tex label, tex bibitem"
            ),
            "a local variable, or an argument": (
                "ada variable, fortran variable, fortran variable in capitals, powershell variable in capitals, "
                "powershell variable named __, scss variable, scss parameter, powershell variable, r globalVar, "
                "r nameattr, r vector, r list, r dataframe, kotlin local method, ocaml var, tsx constant, tsx "
                "local constant, tsx variable"
            ),
            "the module that a file is: no text names it": (
                "ocaml module, ocaml_interface module, haskell module"
            ),
            "a condition that is compiled for": ("d version"),
            "misread: words of the signature": (
                "vhdl alias, julia constant, objc category, objc method, objc class, objc typedef"
            ),
            "a test's sentence": ("elixir test, ruby describe, ruby context"),
            "a keystroke": ("vim map"),
            "an embedded field: its type's name": ("go anonMember"),
            "a rule for elements, not a name": ("css selector"),
        }.items()
        for language, _, kind in (
            entry.strip().partition(" ") for entry in kinds.split(",")
        )
    },
}
"""(language, side, kind): whether such a difference is a definition after all, and why they differ."""


class Tag(NamedTuple):
    """A definition, as found by either side."""

    file: str
    line: int
    name: str


def definitions(sources: list[tuple[str, ...]]) -> int:
    """Print each language's differences, recall and precision; return 1 if a bar is missed."""
    missed = 0
    for language, folder in sources:
        files = draw(language, Path(folder))
        if language in ORACLES:
            theirs, unread = ask_parser(language, files)
            print(
                f"\n{folder}: {len(unread)} of {len(files)} files left out, since the parser rejects them"
            )
            files = [path for path in files if str(path) not in unread]
        else:
            theirs = ctags(language, files)
        ours = parsed(language, files)
        agreed = matched(ours, theirs)
        missed |= report(language, ours, theirs, agreed)
    return missed


def draw(language: str, folder: Path) -> list[Path]:
    """Return some files of a language in a folder."""
    found = sorted(
        path
        for path in folder.resolve().rglob("*")
        if path.is_file() and language_of(path.name.encode()).name == language
    )
    random.Random(7).shuffle(found)  # noqa: S311 - a sample, the same every time
    return found[:FILES]


def ctags(language: str, files: list[Path]) -> dict[Tag, str]:
    """Return the definitions of Universal Ctags, with its kinds."""
    command = [
        "ctags",
        "--output-format=json",
        "--fields=+nKl",
        f"--language-force={CTAGS[language]}",
        "-L-",
        "-f-",
    ]
    listing = "\n".join(map(str, files))
    done = subprocess.run(
        command, input=listing.encode(), capture_output=True, check=True
    )
    rows = (
        json.loads(line)
        for line in done.stdout.decode("utf-8", "replace").split("\n")
        if line
    )
    return {
        Tag(row["path"], row["line"], plain(row["name"])): where(row)
        for row in rows
        if row["_type"] == "tag"
    }


def ask_parser(language: str, files: list[Path]) -> tuple[dict[Tag, str], set[str]]:
    """Return the definitions of a language's own parser, with its kinds, and the files that it rejects."""
    command = [
        str(PROGRAMS / part)
        if (PROGRAMS / part).is_file()
        else part.format(language=language)
        for part in ORACLES[language]
    ]
    listing = "".join(f"{path}\n" for path in files)
    done = subprocess.run(
        command, input=listing.encode(), stdout=subprocess.PIPE, check=True
    )
    rows = [
        json.loads(line)
        for line in done.stdout.decode("utf-8", "replace").split("\n")
        if line
    ]
    found = {
        Tag(row["path"], row["line"], plain(row["name"])): row["kind"]
        for row in rows
        if row["_type"] == "tag"
    }
    return found, {row["path"] for row in rows if row["_type"] == "unread"}


def where(row: dict[str, Any]) -> str:
    """Return a tag's kind, marked if the name is made up by ctags or local to a function."""
    if row["name"].startswith(("__anon", "Anonymous", "anonymous")):
        return "made-up name"
    inside = row.get("scopeKind", "") in {
        "function",
        "method",
        "generator",
        "getter",
        "setter",
        "procedure",
        "subroutine",
    }
    if inside:
        return f"local {row['kind']}"
    in_capitals = row["name"].isupper() and row["kind"] in {"function", "variable"}
    if in_capitals or (
        row["name"].startswith("__") and row["kind"] in {"variable", "member"}
    ):
        return (
            f"{row['kind']} in capitals" if in_capitals else f"{row['kind']} named __"
        )
    if row["language"] == "Tex" and re.search(r"section\*?\[", row["pattern"]):
        return "short title"
    cut = row["language"] == "Pascal" and not re.search(
        rf"(?<!\w){re.escape(row['name'])}(?!\w)", row["pattern"]
    )
    return "part of a word" if cut else str(row["kind"])


def parsed(language: str, files: list[Path]) -> dict[Tag, str]:
    """Return our definitions, with our kinds."""
    found = {}
    for path in files:
        data = path.read_bytes()
        result = parse_symbols(language, data)
        if isinstance(result, ParsedFile):
            symbols = FileSymbols(result, data)
            for index in range(len(symbols.rows)):
                one = symbols.defined(index)
                role = "" if one.role == "definition" else f" ({one.role})"
                indented = (
                    one.kind == "variable"
                    and symbols.lines.text(one.line)[:1].isspace()
                )
                shape = (
                    " indented"
                    if indented
                    else " in capitals"
                    if callable_in_capitals(one.kind, one.name)
                    else ""
                )
                found[Tag(str(path), one.line, plain(one.name))] = (
                    one.kind + role + shape
                )
    return found


def callable_in_capitals(kind: str, name: str) -> bool:
    """Return whether a function's name looks like a macro's."""
    return kind in {"function", "method"} and len(name) > 1 and name.isupper()


def plain(name: str) -> str:
    """Return a name without parts that the two sides write differently."""
    return (
        name.removeprefix("self.")
        .strip("`")
        .replace(" ", "")
        .rpartition("::")[2]
        .rpartition(":")[2]
        .rpartition(".")[2]
        .lstrip("#~$\\")
        .removesuffix("=")
    )


def matched(ours: dict[Tag, str], theirs: dict[Tag, str]) -> dict[Tag, Tag]:
    """Pair equal names at the same line, or up to two lines apart (where a declaration spans lines)."""
    pairs, taken = {}, set()
    for distance in (0, 1, -1, 2, -2):
        for tag in ours:
            other = tag._replace(line=tag.line + distance)
            if tag not in pairs and other in theirs and other not in taken:
                pairs[tag] = other
                taken.add(other)
    return pairs


def report(
    language: str, ours: dict[Tag, str], theirs: dict[Tag, str], agreed: dict[Tag, Tag]
) -> int:
    """Print a language's figures; return 1 if a bar is missed."""
    judged, other = ({}, "parser") if language in ORACLES else (JUDGED, "ctags")
    only = {
        "ours": [(kind, tag) for tag, kind in ours.items() if tag not in agreed],
        other: [
            (kind, tag)
            for tag, kind in theirs.items()
            if tag not in set(agreed.values())
        ],
    }
    true = {"ours": 0, other: 0}
    print(
        f"\n== {language}: {len(agreed)} agreed, {len(only['ours'])} ours only, {len(only[other])} {other} only"
    )
    for side, rows in only.items():
        for kind, count in collections.Counter(kind for kind, _ in rows).most_common():
            unknown = (side == other, "NOT JUDGED")
            real, why = judged.get(
                (language, side, kind), judged.get(("*", side, kind), unknown)
            )
            true[side] += count * real
            mark = "a definition" if real else "no definition"
            print(f"   {side:6} {count:5} {kind}: {mark}: {why}")
            if why == "NOT JUDGED":
                alike = [row for row in rows if row[0] == kind]
                for _, tag in alike[:: max(1, count // EXAMPLES)][:EXAMPLES]:
                    print(f"         {tag.file}:{tag.line} {tag.name}")
    hit = len(agreed) + true["ours"]
    recall, precision = (
        hit / max(1, hit + true[other]),
        hit / max(1, len(agreed) + len(only["ours"])),
    )
    print(f"   recall {recall:.4f}  precision {precision:.4f}")
    return int(recall < 0.98 or precision < 0.98)  # noqa: PLR2004 - the bars


# Broken files


def broken(sources: list[tuple[str, ...]]) -> int:
    """Print the share of definitions that are lost by each of five kinds of mistakes; return 1 if one is over the bar.

    The innermost definition around a mistake is itself broken, so it does not count; nor does code hidden by a comment.
    """
    missed = 0
    for language, folder in sources:
        chance = random.Random(5)  # noqa: S311 - a sample, the same every time
        lost = collections.defaultdict[str, collections.Counter[str]](
            collections.Counter
        )
        total, cut = collections.Counter[str](), collections.Counter[str]()
        for path in [
            path for path in draw(language, Path(folder)) if path.stat().st_size < LARGE
        ][:BROKEN_FILES]:
            data = path.read_bytes()
            whole = parse_symbols(language, data)
            if not isinstance(whole, ParsedFile):
                continue
            symbols = FileSymbols(whole, data)
            for mistake, parts in mistakes(language, data, chance):
                text, place = b"", 0
                for offset, taken, put in parts:
                    text += data[place:offset] + put
                    place = offset + taken
                after = parse_symbols(language, text + data[place:])
                spans = broken_spans(mistake, parts, whole, data)
                left = (
                    dict(after.definitions[:, [NAME, END]].tolist())
                    if isinstance(after, ParsedFile)
                    else {}
                )
                for index, name in enumerate(whole.definitions[:, NAME].tolist()):
                    if any(name in span for span in spans):
                        continue
                    total[mistake] += 1
                    now, end = (
                        at
                        + sum(
                            len(put) - taken
                            for offset, taken, put in parts
                            if offset <= at
                        )
                        for at in whole.definitions[index, [NAME, END]].tolist()
                    )
                    lost[mistake][symbols.kind(index)] += now not in left
                    cut[mistake] += now in left and left[now] != end
        for mistake, count in total.items():
            share = lost[mistake].total() / max(1, count)
            rest = f"{cut[mistake] / max(1, count):.4f} end elsewhere"
            print(
                f"{language} {folder}, {mistake}: {share:.4f} of {count} lost, {rest}; {dict(+lost[mistake])}"
            )
            missed |= int(share > 0.05)  # noqa: PLR2004 - the bar
    return missed


def broken_spans(
    mistake: str, parts: list[tuple[int, int, bytes]], whole: ParsedFile, data: bytes
) -> list[range]:
    """Return the spans that a change breaks directly: the innermost definition around it, and code in a comment."""
    spans = []
    for at, _, _ in parts[:1] if mistake == "merge" else parts:
        around = [
            row for row in whole.definitions.tolist() if row[START] <= at <= row[END]
        ]
        spans += [range(around[-1][START], around[-1][END])] if around else []
        if mistake.startswith("comment"):
            spans.append(range(at, data.find(b"*/", at) % (len(data) + 1)))
    return spans


def mistakes(
    language: str, data: bytes, chance: random.Random
) -> Iterator[tuple[str, list[tuple[int, int, bytes]]]]:
    """Yield kinds of mistakes in a text, each with its changes: offset, length removed, bytes inserted."""
    mark = (
        rb"^[ \t]*(end)\b"
        if language in {"elixir", "julia", "lua", "ruby"}
        else rb"([{}])"
    )
    places = list(re.finditer(mark, data, re.MULTILINE))
    for place in chance.sample(places, min(MISTAKES, len(places))):
        at, end = place.span(1)
        yield "bracket", [(at, end - at, b" " * (end - at))]
    lines = list(re.finditer(rb"^([ \t]*)[^\s][^\n]*\n", data, re.MULTILINE))
    if not lines:
        return
    for line in chance.sample(lines, min(MISTAKES, len(lines))):
        at, end = line.span()
        yield (
            "merge",
            [
                (at, 0, b"<<<<<<< HEAD\n"),
                (end, 0, b"=======\n" + line[0] + b">>>>>>> theirs\n"),
            ],
        )
    drawn = {
        "": chance.sample(lines, min(MISTAKES, len(lines))),
        ", first line": lines[:1],
        ", middle": lines[len(lines) // 2 :][:1],
        ", last line": lines[-1:],
    }
    for mistake, put in TYPED:
        for where, chosen in drawn.items():
            for line in chosen:
                if mistake != "comment" or (
                    b"*/" in data[line.start() :] and language not in NESTED
                ):
                    yield mistake + where, [(line.start(), 0, line[1] + put)]
        two = sorted(
            chance.sample(lines, min(2, len(lines))), key=lambda line: line.start()
        )
        if mistake != "comment":
            yield f"{mistake}, two", [(line.start(), 0, line[1] + put) for line in two]
