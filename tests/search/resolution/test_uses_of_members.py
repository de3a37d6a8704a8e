"""Who uses a function, a method, a constant, a field: all places of a language where one can stand.

A table is a small project, ``=== path`` before each file, and what is asked, ``? usages of Crane.turn``. Each line that
has the name is a use of it, but where it says ``no use`` (a namesake's, or a local one); it must be told, or be among
the unsure where it says ``unsure``.
"""

import re
from pathlib import Path

import pytest

from tests.search.research.test_research_engine import project, researched

TABLES = sorted((Path(__file__).parent / "uses").glob("*.txt"))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_each_place_is_reported_or_counted_as_unsure(
    tmp_path: Path, table: Path
) -> None:
    head, *parts = re.split(r"(?m)^=== (.+)\n", table.read_text())
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    source = project(tmp_path, files)
    for question in re.findall(r"(?m)^\? (.+)$", head):
        research = researched(source, question, 1)
        assert research.roots, question
        word = re.compile(rf"(?<!\w){research.roots[0].name}(?!\w)")
        defined = {
            (root.path.decode(), root.symbols.lines.line(root.key[1]))
            for root in research.roots
        }
        lines = {
            (path, number): line
            for path, text in files.items()
            for number, line in enumerate(text.splitlines(), 1)
            if word.search(line) and (path, number) not in defined
        }
        told = {(edge.path.decode(), edge.line) for edge in research.graph.edges}
        vague = {(one.path.decode(), one.line) for one in research.vague}
        lost = [
            line
            for at, line in lines.items()
            if not re.search("no use|unsure", line) and at not in told
        ]
        silent = [
            line
            for at, line in lines.items()
            if "unsure" in line and at not in told | vague
        ]
        wrong = [line for at, line in lines.items() if "no use" in line and at in told]
        assert (question, lost, silent, wrong) == (question, [], [], [])


def test_a_receiver_means_the_type_that_its_file_sees_and_its_own_base(
    tmp_path: Path,
) -> None:
    source = project(
        tmp_path,
        {
            "a/Tag.java": "package a;\npublic class Tag { public void close() {} }\n",
            "a/Token.java": "package a;\nclass Token {\n  static class Tag { void close() {} }\n"
            "  static class Start extends Tag {}\n}\n",
            "b/Crane.java": "package b;\nimport a.Tag;\nclass Crane { void own(Tag tag) { tag.close(); } }\n",
            "a/Read.java": "package a;\nclass Read { void start(Token.Start start) { start.close(); } }\n",
        },
    )
    research = researched(source, "callers of close", 1)
    names = {
        key: node.definition.qualified for key, node in research.graph.nodes.items()
    }
    found = {
        (names[one.source], one.target[0].decode(), one.resolution.confidence)
        for one in research.graph.edges
    }
    assert found == {
        ("Crane.own", "a/Tag.java", 0.95),
        ("Read.start", "a/Token.java", 0.95),
    }


def test_a_long_chain_is_followed_and_a_longer_one_is_unsure(tmp_path: Path) -> None:
    followed = 100
    calls = 150
    chain = "".join(f'\n.add("{number}")' for number in range(calls))
    files = {
        "a/B.java": "package a;\npublic class B { public B add(String text) { return this; } }\n"
        "class C { public C add(String text) { return this; } }\n",
        "a/Use.java": f"package a;\nclass Use {{ void run(B b) {{ b{chain}; }} }}\n",
    }
    research = researched(project(tmp_path, files), "usages of B.add", 1)
    lines = {edge.line for edge in research.graph.edges if edge.path == b"a/Use.java"}
    vague = {place.line for place in research.vague if place.path == b"a/Use.java"}
    assert lines >= set(range(3, 3 + followed))
    assert lines | vague == set(range(3, 3 + calls))


def test_a_member_of_an_object_of_the_language_is_not_possible(tmp_path: Path) -> None:
    source = project(
        tmp_path,
        {
            "reader.ts": "export class Reader { parse(text: string) {} }\n",
            "use.ts": "import { Reader } from './reader'\n"
            "export function f1(text) { return JSON.parse(text) }\n"
            "export function f2(text) { return process.env.parse(text) }\n"
            "export function f3(reader, text) { reader.parse(text) }\n"
            "export function f4(JSON: Reader, text) { JSON.parse(text) }\n",
            "own.ts": "import { Reader } from './reader'\n"
            "const JSON = new Reader()\n"
            "export function f5(text) { JSON.parse(text) }\n",
        },
    )
    research = researched(source, "usages of Reader.parse", 1)
    told = {(edge.path, edge.line) for edge in research.graph.edges}
    possible = {(use.path, use.line) for use in research.vague} - told
    assert told == {(b"use.ts", 5), (b"own.ts", 3)}
    assert possible == {(b"use.ts", 4)}
