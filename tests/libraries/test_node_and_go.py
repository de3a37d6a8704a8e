"""JavaScript's and Go's libraries: declarations before code, versions of lock files, hostile manifests."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DaemonAtHand, MakeProject
from tests.libraries.library_trees import write_tree

NODE: dict[str, str | bytes] = {
    ".gitignore": "node_modules\n",
    "node_modules/looms/package.json": json.dumps(
        {
            "name": "looms", "version": "1.2.3",
            "exports": {
                ".": {
                    "react-server": "./server.js",
                    "import": {"types": "./dist/index.d.ts", "default": "./dist/index.js"},
                },
                "./parts/*": "./dist/parts/*.js",
            },
        }
    ),
    "node_modules/looms/server.js": "exports.weave = 1;\n",
    "node_modules/looms/dist/index.js": "export function weave() {}\n",
    "node_modules/looms/dist/index.d.ts": (
        "export { weave } from './frames';\nexport declare class Loom {\n  turn(): void;\n}\n"
    ),
    "node_modules/looms/dist/frames.d.ts": "export declare function weave(): void;\n",
    "node_modules/looms/dist/parts/reed.js": "export function reed() {}\n",
    "node_modules/plain/package.json": '{"name": "plain", "version": "2.0.0", "main": "lib/plain"}',
    "node_modules/plain/lib/plain.js": "module.exports.spin = function spin() {};\n",
    "node_modules/@types/plain/package.json": '{"name": "@types/plain", "version": "2.1.0"}',
    "node_modules/@types/plain/index.d.ts": "export function spin(): void;\n",
    "node_modules/@types/node/package.json": '{"name": "@types/node", "version": "20.0.0"}',
    "node_modules/@types/node/fs.d.ts": 'declare module "fs" {\n  export function readFile(path: string): void;\n}\n',
    "node_modules/@types/node/events.d.ts": (
        'declare module "events" {\n  class EventEmitter {}\n  import inner = require("events");\n'
        "  namespace EventEmitter {\n    export { inner as EventEmitter };\n  }\n  export = EventEmitter;\n}\n"
    ),
    "node_modules/events/package.json": '{"name": "events", "version": "3.0.0"}',
    "node_modules/events/index.js": "exports.EventEmitter = function EventEmitter() {};\n",
    "main.ts": (
        'import { weave, Loom } from "looms";\nimport { reed } from "looms/parts/reed";\nimport { spin } from "plain";\n'
        'import { readFile } from "node:fs";\n\nnew Loom().turn();\nimport { EventEmitter } from "events";\n'
    ),
}  # fmt: skip


def find(daemon: DaemonAtHand, root: Path, path: str, line: int, column: int) -> Any:
    """Return the first place that a definition leads to: its path, line and library."""
    wire = daemon.wire("unix", root)
    answer = wire.call("definition", path=path, line=line, column=column)
    wire.close()
    for place in answer["results"]:
        file_path = place["file_path"].removeprefix(f"{root}/")
        return (
            file_path,
            place["selection_range"]["start_line"],
            place.get("library"),
        )
    return None


def test_a_package_leads_to_its_declarations(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project(NODE)
    daemon.add(root)
    looms = "node_modules/looms/dist"
    label = "looms@1.2.3"
    expected = {
        (1, 10): (f"{looms}/frames.d.ts", 1, label),
        (1, 17): (f"{looms}/index.d.ts", 2, label),
        (2, 10): (f"{looms}/parts/reed.js", 1, label),
        (3, 10): ("node_modules/@types/plain/index.d.ts", 1, "@types/plain@2.1.0"),
        (4, 10): ("node_modules/@types/node/fs.d.ts", 2, "@types/node@20.0.0"),
        (6, 12): (f"{looms}/index.d.ts", 3, label),
        (7, 10): ("node_modules/@types/node/events.d.ts", 2, "@types/node@20.0.0"),
    }
    found = {
        (line, column): find(daemon, root, "main.ts", line, column)
        for line, column in expected
    }
    assert found == expected


@pytest.mark.parametrize(
    ("manifest", "linked"),
    [
        ({"main": "../../../outside/secret.js"}, False),
        ({"exports": {".": "./../../../outside/secret.js"}}, False),
        ({"types": "/../../../outside/secret.d.ts"}, False),
        ({"main": "a\0b", "exports": {".": "./c\0d"}}, False),
        ({"main": "secret.js"}, True),
    ],
)
def test_a_hostile_manifest_leads_nowhere(
    daemon: DaemonAtHand, project: MakeProject, manifest: Any, *, linked: bool
) -> None:
    root = project({".gitignore": "node_modules\n", "main.ts": 'import { key } from "secret";\n'})  # fmt: skip
    outside = root.parent / "outside"
    write_tree(outside, {"secret.js": "export function key() {}\n", "secret.d.ts": "export function key();\n"})  # fmt: skip
    write_tree(root, {"node_modules/secret/package.json": json.dumps(manifest)})
    if linked:
        (root / "node_modules/secret/secret.js").symlink_to(outside / "secret.js")
    daemon.add(root)
    assert find(daemon, root, "main.ts", 1, 10) is None


GO: dict[str, str | bytes] = {
    "go.mod": (
        "module example.com/x\n\ngo 1.22\n\nrequire (\n\texample.com/Looms/v2 v2.0.1\n"
        "\texample.com/yarn v0.1.0 // indirect\n)\n"
    ),
    "main.go": (
        'package main\n\nimport "example.com/Looms/v2/frames"\n\nfunc main() {\n\tloom := frames.New()\n\tloom.Turn(1)\n'
        "\tloom.Yarn.Spin()\n}\n"
    ),
}  # fmt: skip
CACHE: dict[str, str | bytes] = {
    "example.com/!looms/v2@v2.0.1/frames/loom.go": (
        'package frames\n\nimport "example.com/yarn"\n\n// Loom weaves.\ntype Loom struct {\n\tYarn *yarn.Yarn\n}\n\n'
        "func New() *Loom { return &Loom{} }\n"
    ),
    "example.com/!looms/v2@v2.0.1/frames/turn.go": "package frames\n\nfunc (l *Loom) Turn(n int) {}\n",
    "example.com/!looms/v2@v2.0.1/frames/turn_test.go": "package frames\n\nfunc New() {}\n",
    "example.com/!looms/v2@v1.0.0/frames/loom.go": "package frames\n\nfunc New() {}\n",
    "example.com/yarn@v0.1.0/yarn.go": "package yarn\n\ntype Yarn struct{}\n\nfunc (y *Yarn) Spin() {}\n",
}  # fmt: skip


def test_a_go_package_is_that_of_the_required_version(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    cache = Path(daemon.environ["HOME"]) / "go/pkg/mod"
    write_tree(cache, CACHE)
    root = project(GO)
    daemon.add(root)
    looms = f"{cache}/example.com/!looms/v2@v2.0.1/frames"
    label = "example.com/Looms/v2@v2.0.1"
    expected = {
        (3, 30): (f"{looms}/loom.go", 1, label),
        (6, 17): (f"{looms}/loom.go", 10, label),
        (7, 7): (f"{looms}/turn.go", 3, label),
        (8, 12): (f"{cache}/example.com/yarn@v0.1.0/yarn.go", 5, "example.com/yarn@v0.1.0"),
    }  # fmt: skip
    found = {
        (line, column): find(daemon, root, "main.go", line, column)
        for line, column in expected
    }
    assert found == expected


def test_a_required_version_of_dots_leads_nowhere(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    home = Path(daemon.environ["HOME"])
    write_tree(
        home,
        {
            "secret/key.go": "package secret\n\nfunc Key() {}\n",
            "go/pkg/mod/x.y/z@v1/z.go": "package z\n",
        },
    )
    root = project(
        {
            "go.mod": "module m\n\nrequire x.y/../../../../secret v1\nreplace x.y/q => ../../secret\n",
            "main.go": 'package main\n\nimport "x.y/../../../../secret"\n\nfunc main() { secret.Key() }\n',
        }
    )
    daemon.add(root)
    assert find(daemon, root, "main.go", 5, 22) is None
