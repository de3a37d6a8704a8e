"""Types that have what an interface asks for, though none says so."""

import time
from pathlib import Path

import pytest

from flashgrep.parts.navigation.navigation import Navigator
from flashgrep.parts.navigation.references import UnusedSearch
from tests.search.research.test_research_engine import edges, project, researched
from tests.search.symbols.test_navigation import named_at

GO = {
    "shape/shape.go": """
        package shape

        type Closer interface { Close() }
        type Handler interface {
            Closer
            Handle(n int, name string) error
        }
    """,
    "file/file.go": """
        package file

        type base struct{}

        func (b *base) Close() {}

        type File struct { base }

        func (f *File) Handle(n int, name string) error { return nil }

        type Half struct{}

        func (h Half) Handle(n int, name string) error { return nil }

        type Other struct { base }

        func (o Other) Handle(n int) {}
    """,
    "use.go": """
        package main

        import "example.org/a/shape"

        func use(one shape.Handler) { one.Handle(1, "a") }
    """,
    "go.mod": "module example.org/a\n",
}
SIGNATURES = {
    "one/one.go": """
        package one

        type Alias = Item

        type Item struct{}

        type Asked interface {
            Do(a, b int, names ...string) (found map[string]*Item, err error)
            Each(func(x int) bool, any) byte // a comment
            hidden()
        }

        type Own struct{}

        func (Own) Do(int, int, ...string) (map[string]*Alias, error) { return nil, nil }
        func (o *Own) Each(f func(int) bool, x interface{}) uint8 { return 0 }
        func (Own) hidden() {}

        type List struct{}

        func (List) Do(a int, b int, names []string) (map[string]*Item, error) { return nil, nil }
        func (List) Each(f func(int) bool, x any) uint8 { return 0 }
        func (List) hidden() {}

        type Silent struct{}

        func (Silent) Do(a, b int, names ...string) map[string]*Item { return nil }
        func (Silent) Each(f func(int) bool, x any) uint8 { return 0 }
        func (Silent) hidden() {}

        type Named interface { Name() string }
        type Told struct{ Name string }
        type Namer struct{ Told }
        type Naming struct{ Namer }

        func (Namer) Name() string { return "" }

        type Of[T any] interface { Take(T) T }
        type Numbers struct{}

        func (Numbers) Take(n int) int { return n }
    """,
    "two/two.go": """
        package two

        import "example.org/a/one"

        type Far struct{}

        func (Far) Do(a, b int, names ...string) (map[string]*one.Item, error) { return nil, nil }
        func (Far) Each(f func(int) bool, x any) uint8 { return 0 }
        func (Far) hidden() {}

        type Inner struct{ one.Own }

        func (Inner) Each(f func(int) bool, x any) byte { return 0 }
    """,
    "go.mod": "module example.org/a\n",
}
PYTHON = {
    "source.py": """
        from typing import Protocol, TypeVar

        T = TypeVar("T")

        class Closing:
            def close(self): ...

        class Source(Protocol[T]):
            def find(self, name): ...
            def close(self): ...

        class Disk(Closing):
            def find(self, name): return 1

        class Half:
            def find(self, name): return 2

        class Plain:
            def find(self, name): ...

        def use(source: Source):
            source.find("a")

        def plain(source: Plain):
            source.find("a")
    """,
}
TYPESCRIPT = {
    "sink.ts": """
        export interface Point { x: number }
        export interface Sink { limit?: number; push(x: number): void; end(): void }
        export class Pipe { push(x: number) {} end() {} }
        export class Hole { x = 1; push(x: number) {} }
        export class Told implements Sink { push(x: number) {} end() {} }
        export function use(sink: Sink) { sink.push(1) }
    """,
}

HEADS = {
    "heads.ts": """
        export interface Store {
            put(key: string, value: number | null, ...more: string[]): boolean | Promise<boolean>
            each<T>(call: (one: string) => T, from?: number): void
            size(): number
        }
        export class Whole {
            put(key: string, value: number): true { return true }
            async each(call: (one: string) => void) { return 1 }
            size(at = 1): number { return at }
        }
        export class Late extends Whole { async put(key: string): Promise<boolean> { return true } }
        export class Needs extends Whole { size(at: number): number { return at } }
        export class Other extends Whole { put(key: number): boolean { return true } }
        export class Silent extends Whole { put(key: string): void { } }
        export class Slow extends Whole { async size(): Promise<number> { return 1 } }
        export class Hidden extends Whole { private size(): number { return 1 } }
        export class Open extends Whole {
            put(key: string): boolean
            put(key: number, second: string): void
            put(...all: any[]): any { }
        }
        export class Held extends Whole { size = () => 1 }
        export class Field extends Whole { size: number = 1 }
        export class Decorated {
            @Column({ by: { put() {}, each() {}, size() { return 1 } } })
            text: string
        }
        export class Any extends Whole { put(key: Key, value: "a" | 1): Found { } }
    """,
}


@pytest.mark.parametrize(
    ("files", "query", "expected"),
    [
        (GO, "callers of File.Handle", {"use calls File.Handle"}),
        (GO, "callers of Half.Handle", set()),  # cannot be closed
        (GO, "callers of Other.Handle", set()),  # takes other parameters
        (GO, "what implements Handler", {"File implements Handler"}),
        (GO, "what overrides Handler.Handle", {"File.Handle overrides Handler.Handle"}),
        (
            SIGNATURES,
            "what implements Asked",
            {"Own implements Asked", "Inner implements Asked"},
        ),
        (
            SIGNATURES,
            "what implements Named",
            {"Namer implements Named"},
        ),  # a field is no method
        (SIGNATURES, "what implements Of", {"Numbers implements Of"}),
        (PYTHON, "callers of Disk.find", {"use calls Disk.find"}),
        (PYTHON, "callers of Half.find", set()),
        (PYTHON, "callers of Plain.find", {"plain calls Plain.find"}),
        (PYTHON, "what implements Source", {"Disk implements Source"}),
        (PYTHON, "what implements Plain", set()),  # no protocol: whoever is one says so
        (TYPESCRIPT, "callers of Pipe.push", {"use calls Pipe.push"}),
        (TYPESCRIPT, "callers of Hole.push", set()),
        (
            TYPESCRIPT,
            "what implements Sink",
            {"Pipe implements Sink", "Told implements Sink"},
        ),
        (
            HEADS,
            "what implements Store",
            {
                f"{one} implements Store"
                for one in ("Whole", "Late", "Open", "Held", "Any")
            },
        ),
        (
            TYPESCRIPT,
            "what implements Point",
            set(),
        ),  # how data look says nothing of calls
    ],
)
def test_what_has_all_members_is_of_an_interface(
    tmp_path: Path, files: dict[str, str], query: str, expected: set[str]
) -> None:
    research = researched(project(tmp_path, files), query, 1)
    assert edges(research) == expected
    # What runs is not known where the call is; that a class says so is surer than that
    # it fits.
    sure = {one.resolution.confidence for one in research.graph.edges}
    assert sure <= (
        {0.4, 0.95} if "callers" in query else {0.5} if files is PYTHON else {0.95}
    )


def test_an_answer_says_how_many_types_it_did_not_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "flashgrep.parts.navigation.resolution.conformance.MOST_TYPES", 1
    )
    source = project(tmp_path, GO)
    asked = named_at(source, "shape/shape.go:5 Handler")
    research = researched(source, "what implements Handler", 1)
    # File and Other may inherit what they lack; the others embed nothing.
    assert (research.left_out, research.complete) == (1, False)
    assert not Navigator(source).find_implementations(asked).complete
    monkeypatch.undo()
    research = researched(source, "what implements Handler", 1)
    assert (research.left_out, research.complete) == (0, True)
    assert Navigator(source).find_implementations(asked).complete


def test_what_an_interface_requires_is_not_reported_as_unused(tmp_path: Path) -> None:
    source = project(tmp_path, PYTHON)
    search = UnusedSearch(b"")
    search.run(source)
    assert "Disk.find" not in {one.qualified for one in search.unused}
    assert {"Half.find", "Half"} <= {one.qualified for one in search.unused}


def test_a_search_for_what_is_unused_ends_at_its_deadline(tmp_path: Path) -> None:
    search = UnusedSearch(b"", deadline=time.monotonic())
    search.run(project(tmp_path, PYTHON))
    assert (search.checked, search.unused, search.complete) == (0, [], False)
