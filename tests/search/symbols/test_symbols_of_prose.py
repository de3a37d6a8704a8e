"""Names in documents: words of prose are no occurrences, code in fences is, headings come last."""

import pytest

from tests.conftest import DaemonAtHand, MakeProject

CODE = """\
package web

type Router interface {
	Engine() *Engine
}

type Engine struct {
	Router
}

func run() {
	e := Engine{}
}
"""
PROSE = """\
# Engine

The Engine is the engine of the Engine. `Engine` in a span, too.

```go
e := Engine{}
```

> ~~~ go
> other := Engine{}
> ~~~

Engine
"""


@pytest.fixture
def lines(daemon: DaemonAtHand, project: MakeProject) -> list[str]:
    root = project({"a.go": CODE, "README.md": PROSE, "doc/page.rst": RST})
    assert daemon.run("index", str(root)).returncode == 0
    found = daemon.run("symbol", "Engine", cwd=root)
    assert found.returncode == 0
    return found.stdout.splitlines()


RST = """\
Engine
======

An Engine for you.

.. code-block:: go

   e := Engine{}
"""


def test_words_of_prose_are_no_references_and_code_in_fences_is(
    lines: list[str],
) -> None:
    prose = [
        line.split(":")[:2]
        for line in lines
        if not line.startswith("a.go") and "heading" not in line
    ]
    assert prose == [["README.md", "6"], ["README.md", "10"], ["doc/page.rst", "8"]]


def test_types_come_before_methods_and_headings_last(lines: list[str]) -> None:
    defined = [line for line in lines if ":definition" in line]
    assert defined[0].startswith("a.go:7:6:definition struct")
    assert "heading" in defined[-1]


def test_what_is_said_about_an_answer_is_not_among_its_lines(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.py": "def f(): pass\n", "b.py": "def f(): pass\nf()\n"})
    found = daemon.run("symbol", "f", cwd=root)
    assert all(
        line.startswith(("a.py:", "b.py:")) for line in found.stdout.splitlines()
    )
    assert "2 definitions have this name" in found.stderr
    explained = daemon.run("query", "f", "--explain", cwd=root)
    assert all(
        line.startswith(("a.py:", "b.py:")) for line in explained.stdout.splitlines()
    )
    assert "explained: {" in explained.stderr
