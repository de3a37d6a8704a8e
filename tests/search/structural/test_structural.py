"""Search by syntax against ast-grep run over every file, and what a hostile text or pattern does to it."""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from ast_grep_py import SgNode, SgRoot
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.base.checkpoint import CURRENT_TURN, Abandoned, ending
from flashgrep.base.errors import BadPattern, Unavailable
from flashgrep.base.languages import SYNTAX, language_of
from flashgrep.parts.structural import structural_matcher
from flashgrep.parts.structural.structural_search import (
    Position,
    StructuralAnswer,
    StructuralQuestion,
    choose_languages,
    search_structural,
)
from flashgrep.parts.structural.structural_worker import Matcher
from flashgrep.project import Workspace
from tests.support.workspace import opened, put, repository

SAMPLES = Path(__file__).parents[2] / "ingest" / "samples"
CODE = {
    "a.py": "def f(n):\n    foo(1, 'x')\n    if n is None:\n        bar(foo(2))\n",
    "b.js": "var a = foo(3,\n  4);\nclass A { run(x) { return foo(x) } }\n",
    "c.c": "int x(void) { foo(a); return foo(b); }\nfoo(c)\n",
    "d.go": "package d\nfunc f() error {\n\tfmt.Println(1)\n\tif err := foo(5); err != nil {\n\t\treturn err\n\t}\n}\n",
    "e.ts": "export const f = (a: string): number => foo(a)\n",
    "latin.py": "# \xe9\xe8\nfoo('\xfc')\n",
    "run": "#!/usr/bin/env python\nfoo(6)\n",
    "text.txt": "foo(1)\n",
}


def starts(answer: StructuralAnswer) -> list[tuple[str, int, str]]:
    return [
        (found.path.decode(), one["start_line"], one["text"])
        for found in answer.files
        for one in found.matches
    ]


async def ask(workspace: Workspace, pattern: str, **asked: object) -> StructuralAnswer:
    await workspace.refresh()
    question = StructuralQuestion(pattern=pattern, **asked)  # type: ignore[arg-type] # a test's own fields
    return await workspace.in_thread(
        lambda snapshot: search_structural(snapshot, question)
    )


def scan(pattern: str, files: Iterable[tuple[str, str]]) -> list[tuple[str, int, str]]:
    """Run ast-grep over all files."""
    found = []
    for path, text in files:
        language = language_of(path.encode(), text.encode()).name
        try:
            nodes = SgRoot(text, SYNTAX[language]).root().find_all(pattern=pattern)
        except RuntimeError:  # no code of this language
            continue
        found += [(path, node.range().start.line + 1, node.text()) for node in nodes]
    return found


@pytest.mark.slow
async def test_matches_are_those_of_ast_grep_and_of_the_present_text() -> None:
    with repository() as root:
        files = CODE | {
            path.name: path.read_text("utf-8") for path in sorted(SAMPLES.glob("*.??"))
        }
        put(
            root,
            {
                path: text.encode("latin-1" if path == "latin.py" else "utf-8")
                for path, text in files.items()
            },
        )
        async with opened(root) as workspace:
            await workspace.wait_indexed()
            for pattern, languages in [
                ("foo($$$A)", ["python", "js", "ts"]),
                ("return $A", ["python", "rust", "go"]),
                ("if ($A) { $$$B }", ["js", "ts", "java"]),
                ("$A.$B", ["python"]),
            ]:
                chosen = choose_languages(languages)
                known = [
                    (path, text) for path, text in sorted(files.items()) if "." in path
                ]
                known = [
                    one
                    for one in known
                    if language_of(one[0].encode(), one[1].encode()).name in chosen
                ]
                wanted = scan(pattern, known)
                answer = await ask(
                    workspace, pattern, languages=chosen, is_chosen=True, limit=10_000
                )
                assert [one for one in starts(answer) if one[0] != "run"] == wanted
                assert answer.complete
            # A call is one within a body, whatever it would be at the top of a file.
            everywhere = starts(await ask(workspace, "foo($A)", limit=10_000))
            assert {
                ("c.c", 1, "foo(a)"),
                ("c.c", 1, "foo(b)"),
                ("run", 2, "foo(6)"),
            } <= set(everywhere)
            assert [
                one[:2] for one in starts(await ask(workspace, "fmt.Println($A)"))
            ] == [("d.go", 3)]
            assert [
                one[:2] for one in starts(await ask(workspace, "run($X) { $$$ }"))
            ] == [("b.js", 3)]
            # What is saved counts at once, what is gone no more.
            put(root, {"a.py": b"foo(7)\n"})
            (root / "b.js").unlink()
            now = {
                path: (line, text)
                for path, line, text in starts(await ask(workspace, "foo($A)"))
            }
            assert now["a.py"] == (1, "foo(7)")
            assert "b.js" not in now
            # Pages are the whole.
            paged, position = [], None
            while True:
                answer = await ask(workspace, "foo($$$A)", limit=2, position=position)
                paged += starts(answer)
                position = answer.next
                if position is None:
                    break
            assert paged == starts(await ask(workspace, "foo($$$A)", limit=10_000))
            assert answer.total is None


def descendants(node: SgNode) -> list[SgNode]:
    return [node, *(inner for child in node.children() for inner in descendants(child))]


TREES = {
    path.name: (
        SYNTAX[language_of(path.name.encode(), b"").name],
        path.read_text("utf-8"),
    )
    for path in sorted(SAMPLES.glob("sample.*"))
    if language_of(path.name.encode(), b"").name in SYNTAX
}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_file_that_matches_has_every_literal_of_the_pattern(
    data: st.DataObject,
) -> None:
    language, text = TREES[data.draw(st.sampled_from(sorted(TREES)))]
    root = SgRoot(text, language).root()
    node = data.draw(
        st.sampled_from([one for one in descendants(root) if 0 < len(one.text()) < 300])
    )
    pattern, start = node.text(), node.range().start.index
    for name in "AB":
        inner = data.draw(st.sampled_from(descendants(node))).range()
        first, last = inner.start.index - start, inner.end.index - start
        if data.draw(st.booleans()) and "$" not in pattern and pattern[first:last]:
            pattern = (
                pattern[:first]
                + data.draw(st.sampled_from(["$", "$$$"]))
                + name
                + pattern[last:]
            )
    matcher = Matcher(pattern, "$A" if "$A" in pattern else None)
    problem, _, literals = matcher.parse(language)
    for other, sample in TREES.values():
        if (
            other == language
            and not problem
            and matcher.match(language, sample, 0, 5)["count"]
        ):
            assert all(literal in sample for literal in literals)


DEEP = "x = " + "-" * 100_000 + "1 + " + "-" * 100_000 + "1\n"
"""Comparing two expressions so deep ends ast-grep's process: its stack overflows."""


@pytest.mark.slow
async def test_a_text_that_ends_the_process_is_left_out_and_said() -> None:
    with repository() as root:
        put(
            root,
            {
                "a.py": b"a + a\n",
                "deep.py": DEEP.encode(),
                "z.py": b"b + b\n",
                "huge.py": b"c + c\n" * 700_000,
            },
        )
        async with opened(root) as workspace:
            answer = await ask(workspace, "$A + $A")
            assert [one[0] for one in starts(answer)] == ["a.py", "z.py"]
            assert answer.skipped == {"unparsed": 1, "too_large": 1}


async def test_patterns_that_cannot_be_read_say_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with repository() as root:
        put(root, {"a.py": b"foo(1)\n"})
        async with opened(root) as workspace:
            python = {"languages": frozenset({"python"}), "is_chosen": True}
            with pytest.raises(BadPattern, match="Multiple AST nodes"):
                await ask(workspace, "a; b", **python)
            with pytest.raises(BadPattern, match="Multiple AST nodes"):
                await ask(workspace, "a; b")
            with pytest.raises(BadPattern):
                await ask(workspace, "(" * 8_000, **python)
            with pytest.raises(BadPattern, match=r"no \$B"):
                await ask(workspace, "foo($A)", rewrite="foo($B)")
            assert (
                "not complete code in python"
                in (await ask(workspace, "foo($A", **python)).detail
            )
            monkeypatch.setitem(
                sys.modules, "ast_grep_py", None
            )  # as where the extra is not installed
            with pytest.raises(Unavailable, match="needs ast-grep") as refused:
                await ask(workspace, "foo($A)")
            assert refused.value.reason == "structural_not_installed"
            # Said once: a terminal prints both.
            assert "install" not in refused.value.message.replace("not installed", "")
            assert "flashgrep[structural]" in refused.value.data["suggestion"]


@pytest.mark.slow
async def test_no_process_stays_when_the_answer_is_no_longer_wanted() -> None:
    slots = structural_matcher._SLOTS._value
    with repository() as root:
        put(root, {"a.py": b"foo(1)\n", "b.py": b"foo(2)\n" * 50_000})
        async with opened(root) as workspace:
            await workspace.wait_indexed()
            answer = await ask(workspace, "foo($A)", deadline=time.monotonic())
            assert not answer.complete
            snapshot = workspace.snapshot()
            waits = iter([False, True])  # nobody waits any more from the second look on
            with pytest.raises(Abandoned), ending(lambda: next(waits, True)):
                search_structural(
                    snapshot, StructuralQuestion(pattern="foo($A)", limit=10_000)
                )
            first = await ask(workspace, "foo($A)", limit=1)
            assert first.next == Position(b"a.py", 1)
    assert structural_matcher._SLOTS._value == slots


class Deserted:
    """The turn of a look-up whose client hangs up while it waits."""

    stopped = False

    def give_way(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None:
        raise Abandoned


def test_a_place_is_given_back_when_nobody_waits_any_more() -> None:
    slots = structural_matcher._SLOTS._value
    token = CURRENT_TURN.set(Deserted())
    try:
        with pytest.raises(Abandoned):
            structural_matcher.StructuralMatcher[int]("foo($A)", None, ["python"])
    finally:
        CURRENT_TURN.reset(token)
    assert structural_matcher._SLOTS._value == slots
