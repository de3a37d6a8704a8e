"""What a name stands for where it is bound several times, made by a decorator, or passed by pytest."""

from pathlib import Path

import pytest

from tests.search.research.test_research_engine import project, researched

PYTHON = {
    "shop/__init__.py": "",
    "shop/json/__init__.py": """
        import json as outside
        def dump(thing): return outside.dump(thing)
    """,
    "shop/kinds.py": """
        import typing as t
        class Group:
            def run(self): ...
            def command(self) -> t.Callable[[t.Any], "Command"]: ...
        class Command:
            def run(self): ...
        class Mixin(t.Protocol): ...
        class Proxy(Mixin, Group): ...
        def group(name=None) -> t.Callable[[t.Any], Group]: ...
        def plain(function): return function
        def proxy() -> Proxy: ...
    """,
    "shop/main.py": """
        import contextlib
        from shop.kinds import Command, Group, group, plain, proxy
        @group()
        @plain
        def tree(): ...
        @tree.command()
        def leaf(): ...
        @contextlib.contextmanager
        def opened():
            yield Group()
        def by_decorator(): tree.run()
        def by_both_decorators(): leaf.run()
        def by_protocol(): proxy().run()
        def by_with():
            with opened() as one:
                one.run()
        def by_last():
            one = Command()
            one.run()
            one = Group()
            one.run()
        def by_branch(flag):
            one = Command()
            if flag:
                one = Group()
            one.run()
        def by_loop(many):
            one = Command()
            for _ in many:
                one.run()
                one = Group()
        def by_class():
            class Group:
                def run(self): ...
            Group().run()
            class Group:
                def run(self): ...
            return Group().run()
    """,
    "tests/conftest.py": """
        import pytest
        from shop.kinds import Group
        @pytest.fixture
        def shelf():
            made = Group()
            yield made
    """,
    "tests/test_main.py": """
        def test_shelf(shelf): shelf.run()
        def helper(shelf): shelf.run()
    """,
}


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        (
            "shop/kinds.py Group.run",
            [
                "by_decorator",
                "by_protocol",
                "by_with",
                "by_last",
                "by_branch",
                "by_loop",
                "test_shelf",
            ],
        ),
        (
            "shop/kinds.py Command.run",
            ["by_both_decorators", "by_last", "by_branch", "by_loop"],
        ),
        ("shop/json/__init__.py dump", []),
    ],
)
def test_names_of_python_stand_for_what_reaches_them(
    tmp_path: Path, symbol: str, expected: list[str]
) -> None:
    path, _, name = symbol.partition(" ")
    found = researched(project(tmp_path, PYTHON), f"callers of {name}", 1).graph
    sure = [
        one
        for one in found.edges
        if one.resolution.confidence > 0.9 and one.target[0].decode() == path
    ]
    named = [
        found.nodes[one.source].definition.name
        for one in sorted(sure, key=lambda one: (one.path, one.line))
    ]
    assert named == expected


def test_a_class_bound_again_means_the_last_one_before(tmp_path: Path) -> None:
    """Each of the two is called once, where it is the one that holds."""
    found = researched(
        project(tmp_path, PYTHON), "callers of by_class.Group.run", 1
    ).graph
    lines = [
        (one.target[1] < found.edges[-1].target[1], one.text) for one in found.edges
    ]
    assert lines == [(True, "Group().run()"), (False, "return Group().run()")]


TYPESCRIPT = {
    "a.ts": """
        export class Node {
            #walk() { return 1 }
            go(one: any) { return this.#walk() || one.walk() }
        }
        export const build = (inst: any) => {
            inst.parse = () => { return 1 }
            return inst
        }
        function outer() { return parse(1) }
        declare function parse(one: any): any
    """,
    "a.test.ts": """
        describe('one', () => {
            const make = () => 1
            it('is', () => make())
        })
        describe('two', () => {
            it('is', (make: any) => make())
            make()
        })
    """,
}


CALLBACKS = {
    "kinds.ts": """
        export class Context { json() { return 1 } }
        export class Other { json() { return 2 } }
        export type Next = () => void
        export type Handler<E> = (c: Context, next: Next) => unknown
        export type Middleware = (c: Context) => void
        export type H<E> = Handler<E> | Middleware
        export interface Route {
            <E>(path: string, ...handlers: [H<E>, H<E>]): App
            (path: string, handler: H<any>): App
        }
        export class App {
            get!: Route
            each(run: (one: Other) => void) {}
        }
    """,
    "use.ts": """
        import { App, Handler } from './kinds'
        const app = new App()
        app.get('/', (c) => c.json())
        app.get('/', other, function (c) { c.json() })
        app.each(one => one.json())
        const handle: Handler<any> = (c, next) => { c.json() }
        const free = (c) => c.json()
    """,
}


def test_a_callbacks_parameters_are_what_its_place_says(tmp_path: Path) -> None:
    source = project(tmp_path, CALLBACKS)
    sure = {
        name: [
            edge.line
            for edge in researched(source, f"callers of {name}.json", 1).graph.edges
            if edge.resolution.confidence > 0.9
        ]
        for name in ("Context", "Other")
    }
    assert sure == {"Context": [4, 5, 7], "Other": [6]}


def test_what_a_callback_or_an_object_has_is_no_name_of_the_file(
    tmp_path: Path,
) -> None:
    source = project(tmp_path, TYPESCRIPT)
    lines = {
        name: [
            edge.line
            for edge in researched(source, f"callers of {name}", 1).graph.edges
        ]
        for name in ("make", "Node.#walk", "#walk", "parse")
    }
    assert lines == {"make": [4], "Node.#walk": [4], "#walk": [4], "parse": []}


MEMBERS = {
    "kinds.ts": """
        export class Wheel { turn() { return 1 } }
        export type Handler = (wheel: Wheel) => void
        export class Cart {
            #hidden: Wheel = new Wheel()
            get wheel(): Wheel { return this.#hidden }
            roll() { return this.#hidden.turn() }
            async find<T>() { return this.#hidden }
        }
    """,
    "use.ts": """
        import { Cart, Handler, Wheel } from './kinds'
        function read(cart: Cart) { return cart.wheel.turn() }
        function handler(): Handler { return (wheel) => { wheel.turn() } }
        const shorter = (): Handler => (wheel) => wheel.turn()
        describe('a wheel', () => {
            const make = () => new Wheel()
            it('turns', () => { const made = make(); made.turn() })
        })
        async function found(cart: Cart) { (await cart.find<number>()).turn() }
        function free(wheel) { wheel.turn() }
    """,
}


def test_getters_private_fields_returned_and_local_functions_are_followed(
    tmp_path: Path,
) -> None:
    source = project(tmp_path, MEMBERS)
    edges = researched(source, "callers of Wheel.turn", 1).graph.edges
    assert {
        (edge.path, edge.line) for edge in edges if edge.resolution.confidence > 0.9
    } == {
        (b"kinds.ts", 7),
        *((b"use.ts", line) for line in (3, 4, 5, 8, 10)),
    }
    assert [
        edge.line for edge in researched(source, "callers of Cart.find", 1).graph.edges
    ] == [10]
