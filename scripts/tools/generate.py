"""Writes the files that are generated from the code: ``scripts/generate [--check]``."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from textwrap import fill
from typing import Any

from flashgrep import __version__
from flashgrep.base import config
from flashgrep.base.errors import FlashgrepError
from flashgrep.base.languages import LANGUAGES, SYNTAX, WORDS
from flashgrep.base.paths import bundled_ripgrep
from flashgrep.base.registry import Handler
from flashgrep.base.vocabulary import FLAGS, SYNONYMS
from flashgrep.cli.command_table import format_table
from flashgrep.parts.built_in import BUILT_IN, REGISTRY
from scripts.benchmarks import peer_chart, peer_report, peer_results
from scripts.tools.client_types import format_client_types
from scripts.tools.plugins import make_plugin_files, write_semantic
from scripts.tools.shell_files import format_shell_files
from scripts.tools.typescript_types import format_typescript_types

HEAD = """# flashgrep: reference of methods

Generated from the code by `scripts/generate`; do not edit. Every method is a JSON-RPC 2.0 method of the same name on
every wire, an MCP tool, and a command of `fgrep`.
"""
HABITS = """## Alternative spellings

Agents often call methods as they know them from other tools. `camelCase`, dashes and a leading `-` are read as our
spelling. An optional parameter that is `null`, `"null"` or an empty string counts as omitted. If a list or an object is
expected, JSON in a string is parsed; if a list is expected, a single value becomes a list of one.

| call | before | now |
|---|---|---|
| `query {"pattern": "x", "glob": "*.py", "-i": true}` | refused: no such field | `query`, `include`, `case` |
| `query {"query": "a+", "regex": true}`, `query {"regex": "a+"}` | refused | mode `regex` |
| `query {"query": "x", "include": "*.py"}` | refused: not a list | a list of one |
| `query {"query": "x", "include": "[\\"*.py\\"]"}` | refused: not a list | the list in the string |
| `query {"query": "x", "path": "srcs"}` | refused: no such field | `no such file or folder: srcs; near: src` |
| `query {"query": "x", "inclde": []}` | refused, all fields listed | `did you mean include?` |
| `read_code {"file": "a.py", "offset": 10, "limit": 20}` | refused | lines 10 to 29 |
| `get_slice {"path": "a.py", "view_range": [3, 9]}` | refused | lines 3 to 9 |
| `read_code {"symbol": "needel"}` | `symbol not found` | `symbol not found: needel; near: needle` |
| `read_code {"path": "a.py", "symbol": "f"}` | refused: only one allowed | `f`, in that file or folder |
| `read_code {"path": "a.py:10-20"}`, `read_code {"path": "a.py#L10"}` | `file not found` | these lines of the file |
| `read_code {"symbol_name": "src/b.py:f"}` | `symbol not found` | `f` in that file |
| `read_code {"symbols": ["needle", "a.py:3-4"]}` | refused | `targets` |
| `get_symbol {"symbol_name": "def needle(x)", "role": "callers"}` | refused | `needle`, role `call` |
| `query {"queries": ["aaa", "pass"], "explanation": "see"}` | refused | lines with either; `explanation` is ignored |
| `query {"query": "needle", "path": "src/*.py"}` | `no such file or folder` | `include`, unless it is given |
| `write_code {"file_path": "a.py", "old_string": "x", "new_string": "y"}` | refused | `old_text`, `new_text` |
| `write_code {"path": "new.py", "content": "x = 1"}` | refused | a new file; an existing one is never replaced |
| `write_code {"path": "lib/new/a.py", "content": "x = 1"}` | `file not found` | the file and its folders |
| `batch_write_code {"edits": {"path": "a.py", "old": "y", "new": "z"}}` | refused: not a list | operations, numbered |
| `glob {"pattern": "**/*.js"}` with `node_modules` ignored | all of `node_modules` | the project's own files |
"""
LANGUAGES_HEAD = """# Languages

Generated from the code by `scripts/generate`; do not edit. All files are searched as text. *Symbols* says where
definitions and uses come from: a tree-sitter grammar, or patterns for definitions. *Syntax* marks the languages of
`fgrep structural`. `-t NAME` searches only files of that language.

| Language | Files | Symbols | Syntax |
|---|---|---|---|"""
ERRORS_HEAD = """# Errors

Generated from the code by `scripts/generate`; do not edit. A failed call has a JSON-RPC error: `code`, a `message` for
people, and `data` with `reason`, which programs decide by; some classes have further reasons, named in the message's
`data`. A command prints the message on stderr and ends with status 2; a name or a text that is not found is status 1.

| Code | Reason | Meaning |
|---|---|---|"""
FULL_RUN = 10
"""A run of the benchmark with at least so many rows beside ripgrep's is shown among other tools."""
WRONG = 1


def main(arguments: list[str]) -> int:
    """Write the files; with ``--check``, only report those that are stale."""
    stale = [
        path
        for path, text in generated().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    if "--check" not in arguments:
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generated()[path], encoding="utf-8")
            sys.stdout.write(f"wrote {path}\n")
        return 0
    for path in stale:
        sys.stderr.write(f"{path} is stale: run scripts/generate\n")
    return WRONG if stale else 0


def generated() -> dict[Path, str]:
    """Return all generated files of the checkout, each with its text."""
    root = Path(__file__).parents[2]
    reference = "\n".join(
        [HEAD, *(_section(handler) for handler in REGISTRY), *_vocabulary()]
    )
    table = format_table(REGISTRY, BUILT_IN)
    return {
        root / "skills" / "reference.md": reference,
        root / ".flashgrep.example": config.format_example(),
        root / "flashgrep" / "parts" / "ripgrep" / "flags.tsv": _ripgrep_flags(),
        **{
            path: re.sub(
                r'(?m)^( *"?version"?: "?)[0-9][^",\n]*',
                rf"\g<1>{version}",
                path.read_text("utf-8"),
            )
            for path, version in (
                (root / "server.json", __version__),
                (root / "skills" / "SKILL.md", __version__),
                (
                    root / "clients" / "typescript" / "package.json",
                    write_semantic(__version__),
                ),
            )
        },
        root / "flashgrep" / "cli" / "commands.tsv": table,
        root / "flashgrep" / "client" / "wire_types.py": format_client_types(REGISTRY),
        root / "clients" / "typescript" / "methods.d.ts": format_typescript_types(
            REGISTRY
        ),
        **format_shell_files(table),
        **make_plugin_files(root),
        root / "ARCHITECTURE.md": _architecture(root),
        root / "README.md": _readme(root),
        root / "docs" / "languages.md": _languages(),
        root / "docs" / "errors.md": _errors(),
        root / "docs" / "comparison.md": _comparison(root),
        root / "docs" / "peers.svg": peer_chart.draw(_newest_peers(root)),
    }


def _architecture(root: Path) -> str:
    """Return ARCHITECTURE.md with its tables of floors and parts.

    Floors are the ladder of the layers' test; a module's purpose is its first sentence.
    """
    tree = ast.parse((root / "tests" / "scripts" / "test_layers.py").read_bytes())
    (ladder,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LADDER"
    ]
    rows = ["| Floor | Module | Purpose |", "|---|---|---|"]
    for number, names in enumerate(ladder, 1):
        floor = str(number)
        for name in names.split():
            rows.append(f"| {floor} | {_module(root / 'flashgrep' / name)} |")
            floor = ""
    parts = ["| Part | What it adds | Builds on |", "|---|---|---|"]
    for part in BUILT_IN[1:]:  # the first is the core
        parts.append(
            f"| `parts/{part.name}/` | {part.summary} | {', '.join(part.requires)} |"
        )
    text = (root / "ARCHITECTURE.md").read_text("utf-8")
    return _fill(_fill(text, "floors", rows), "parts", parts)


def _fill(text: str, block: str, lines: list[str]) -> str:
    """Return a document's text with other lines between ``<!-- block: … -->`` and ``<!-- end of block -->``."""
    before, begin, rest = re.split(rf"(<!-- {block}: .* -->\n)", text)
    end = f"<!-- end of {block} -->"
    return before + begin + "\n".join([*lines, end]) + rest.partition(end)[2]


def _readme(root: Path) -> str:
    """Return README.md with the figures of the newest run of ``scripts/bench`` over Linux."""
    newest = max((root / "scripts" / "bench-results").glob("*-linux-*.json"))
    run = json.loads(newest.read_text("utf-8"))
    rows = {row["name"]: row for row in run["rows"]}
    rare = rows["rare literal"]
    name = run["tree"]["name"].replace("linux-source-", "Linux ")
    sentences = [
        f"{name} ({run['tree']['files']:,} files, {run['tree']['bytes'] / 1e9:.1f} GB),",
        f"{run['machine']['cores']} cores, {date.fromisoformat(newest.name[:10]):%B %-d, %Y}:",
        f"a rare word takes the daemon {rare['ours']['p50']:.0f} ms, {run['machine']['ripgrep'][:12]}",
        f"{rare['rg']['p50']:.0f} ms; exact search is indexed after {rows['exact index built']['value']:.0f} s;",
        f"at rest flashgrep holds {rows['idle memory, all processes']['value']:.0f} MB of memory.",
    ]
    return _fill(
        (root / "README.md").read_text("utf-8"),
        "figures",
        fill(" ".join(sentences), 118).splitlines(),
    )


def _languages() -> str:
    """Return docs/languages.md: every language, the names of its files, and where its symbols come from."""
    rows = []
    for language in LANGUAGES.values():
        source = ""
        if language.symbols == WORDS:
            source = "patterns"
        elif language.symbols:
            source = "grammar"
        syntax = "yes" if language.name in SYNTAX else ""
        files = " ".join(f"`{glob}`" for glob in language.globs())
        rows.append(f"| `{language.name}` | {files} | {source} | {syntax} |")
    return "\n".join([LANGUAGES_HEAD, *sorted(rows)]) + "\n"


def _errors() -> str:
    """Return docs/errors.md: every class of errors with its code, its reason and what it means."""
    classes: list[type[FlashgrepError]] = [FlashgrepError]
    for kind in classes:
        classes += kind.__subclasses__()
    rows = []
    for kind in classes:
        if not kind.__module__.startswith("flashgrep.base."):
            continue
        meaning = (kind.__doc__ or "").partition("\n\n")[0].replace("``", "`")
        if kind is FlashgrepError:
            meaning = "A fault of flashgrep; `fgrep daemon logs` has it."
        rows.append(f"| {kind.code} | `{kind.default_reason}` | {meaning} |")
    return "\n".join([ERRORS_HEAD, *rows]) + "\n"


def _comparison(root: Path) -> str:
    """Return docs/comparison.md with the figures of the newest whole run of ``scripts/bench`` over Linux."""
    for path in sorted((root / "scripts" / "bench-results").glob("*-linux-*.json")):
        run = json.loads(path.read_text("utf-8"))
        rows = [row for row in run["rows"] if "rg" in row]
        if len(rows) >= FULL_RUN:
            newest = path
            tree = run["tree"]
            shown = rows
    lines = [
        f"{tree['name']}, {tree['files']:,} files, {date.fromisoformat(newest.name[:10]):%B %-d, %Y}:",
        "",
        "| Question | flashgrep | ripgrep |",
        "|---|---|---|",
    ]
    for row in shown:
        ours = f"{row['ours']['p50']:.1f}"
        lines.append(f"| {row['name']} | {ours} | {row['rg']['p50']:.1f} |")
    text = (root / "docs" / "comparison.md").read_text("utf-8")
    return _fill(_fill(text, "figures", lines), "peers", _peers(root))


def _newest_peers(root: Path) -> peer_results.Comparison:
    """Return the newest comparison with other tools."""
    folder = root / "scripts" / "bench-results" / "peers"
    return peer_results.load(max(folder.glob("*.json")))


def _peers(root: Path) -> list[str]:
    """Return the tables of the newest comparison, with its day, its machine and how busy that was."""
    run = _newest_peers(root)
    loads = [question.load for question in run.questions]
    sentence = (
        f"{run.tree.name}, {run.tree.files:,} files, {date.fromisoformat(run.day):%B %-d, %Y}, "
        f"{run.machine.cores} cores, load average {min(loads):g} to {max(loads):g}. {run.remark}"
    )
    return [
        *fill(sentence, 118).splitlines(),
        "",
        *peer_report.question_table(run),
        "",
        *peer_report.tool_table(run),
    ]


def _module(path: Path) -> str:
    """Return a module's name and the first paragraph of its docstring, as two cells of a table."""
    name = f"`{path.name}`"
    if path.is_dir():
        name = f"`{path.name}/`"
        path /= "__init__"
    purpose = (
        ast.get_docstring(ast.parse(path.with_suffix(".py").read_bytes())) or ""
    ).partition("\n\n")[0]
    return f"{name} | {purpose.replace('``', '`')}".replace("\n", " ")


def _ripgrep_flags() -> str:
    """Return ripgrep's flags, one per line, tab-separated: long name, letter, and "value" if it takes one.

    Letters and values come from its manual; its completions also list the flags that undo others.
    """
    program = bundled_ripgrep() or "rg"
    manual, completions = (
        subprocess.run(
            [program, "--generate", kind], capture_output=True, text=True, check=True
        ).stdout
        for kind in ("man", "complete-fish")
    )
    rows = dict.fromkeys(
        re.findall(r"^complete -c rg .*?-l ([a-z0-9-]+)", completions, re.MULTILINE),
        "\t",
    )
    for line in re.sub(r"\\f[BIRP]|\\(?=-)", "", manual).splitlines():
        flag = re.fullmatch(r"(?:-(.)(?: \S+)?, )?--([a-z0-9-]+)(=\S+)?", line.strip())
        if (
            flag and rows[flag[2]] == "\t"
        ):  # a flag's heading comes before lines that merely mention it
            rows[flag[2]] = f"{flag[1] or ''}\t{'value' if flag[3] else ''}"
    return "".join(f"{name}\t{row}\n" for name, row in sorted(rows.items()))


def _section(handler: Handler) -> str:
    lines = [f"## {handler.name}", "", handler.doc, ""]
    lines += (
        [f"Also called {', '.join(f'`{alias}`' for alias in handler.aliases)}.", ""]
        if handler.aliases
        else []
    )
    lines += [
        f"Command: `fgrep {handler.command}` · {handler.safety} · toolset `{handler.toolset}`",
        "",
    ]
    return "\n".join([*lines, *_fields(handler), ""])


def _vocabulary() -> Iterator[str]:
    """Yield the alternative names of parameters, and examples of calls that use them."""
    yield HABITS
    yield "| parameter | also accepted, unless the method has a parameter of that name |\n|---|---|"
    yield from (
        f"| `{name}` | {' '.join(f'`{other}`' for other in others.split())} |"
        for name, others in SYNONYMS.items()
    )
    flags: dict[str, list[str]] = {}
    for name, (field, _) in FLAGS.items():
        flags.setdefault(field or "nothing", []).append(f"`{name}`")
    yield from (
        f"| `{field}`, from a boolean | {' '.join(names)} |"
        for field, names in flags.items()
    )
    yield ""


def _fields(handler: Handler) -> Iterator[str]:
    schema = handler.params_schema()
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        facts = ", ".join(_facts(field, schema, required=name in required))
        yield f"- `{name}` ({facts}): {field.get('description', '')}"


def _facts(
    field: dict[str, Any], schema: dict[str, Any], *, required: bool
) -> Iterator[str]:
    yield _type(field, schema)
    if required:
        yield "required"
    elif field.get("default") not in (None, "", [], {}):
        yield f"default `{json.dumps(field['default'])}`"


def _type(field: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in field:
        return _type(schema["$defs"][field["$ref"].rpartition("/")[2]], schema)
    if "enum" in field:
        return " or ".join(f"`{choice}`" for choice in field["enum"])
    if "anyOf" in field:
        parts = [
            _type(part, schema) for part in field["anyOf"] if part.get("type") != "null"
        ]
        return " or ".join(dict.fromkeys(parts))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}), schema)}"
    return str(field.get("const") or field.get("type") or "any")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
