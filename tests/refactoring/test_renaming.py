"""What a rename changes, in six languages: the renamed program still compiles and says the same."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import Conflict
from flashgrep.parts.refactoring.obstacles import ObstacleSearch, check_name
from flashgrep.parts.refactoring.renaming import RenamePlan, Renaming
from flashgrep.parts.refactoring.targets import Target
from tests.search.symbol_folder import FolderSource

PYTHON = {
    "base.py": (
        '"""A spin is a turn."""\n__all__ = ["Wheel", "spin"]\n\n\n'
        "class Base:\n    def turn(self, amount=1):\n        return amount\n\n\n"
        "class Wheel(Base):\n    def __init__(self, size=2):\n        self.size = size\n\n"
        "    def turn(self, amount=1):\n        return super().turn(amount=amount) + self.size\n\n"
        "    @property\n    def width(self):\n        return self.size\n\n"
        "    @width.setter\n    def width(self, value):\n        self.size = value\n\n\n"
        "def spin(wheel: Wheel, turns=2):\n    turn = 3\n    for _ in range(turns):\n"
        "        wheel.turn(amount=turns)\n    return f'{wheel.turn(turn)} {turns!r}'\n"
    ),
    "use.py": (
        "import base\nfrom base import Wheel, spin as rotate\nfrom base import spin\n\n"
        "wheel = Wheel(size=4)\nwheel.width = 5\n\n\ndef show(other, spin=7):\n    return other, spin\n\n\n"
        "print(rotate(wheel, turns=3), base.spin(wheel, turns=1), spin(wheel), wheel.turn(amount=2))\n"
        "print(show(wheel.width), wheel.size)\n"
    ),
}
TYPESCRIPT = {
    "lib.mts": (
        "export interface Shape { area(): number; label: string }\n"
        "export class Square implements Shape {\n  side: number\n  label: string\n"
        "  constructor(side: number, label: string) { this.side = side; this.label = label }\n"
        "  area(): number { return this.side * this.side }\n"
        '  static make(side: number): Square { return new Square(side, "sq") }\n}\n'
        "export class Cube extends Square { area(): number { return 6 * super.area() } }\n"
        "export function total(shapes: Shape[]): number {\n  let sum = 0\n"
        "  for (const one of shapes) sum += one.area()\n  return sum\n}\n"
        "export const LIMIT = 3\n"
    ),
    "index.mts": 'export { total, Square } from "./lib.mts"\nexport * from "./lib.mts"\n',
    "use.mts": (
        'import { total as sum, Square, LIMIT } from "./index.mts"\nimport * as lib from "./lib.mts"\n'
        "const { total } = lib\nconst bag = { LIMIT, total }\n"
        "const side = 2\nsides: for (;;) { break sides }\n"
        "console.log(sum([Square.make(LIMIT)]), lib.total([]), bag.total([]), bag.LIMIT, total([new lib.Cube(side, 'c')]))\n"
    ),
}
GO = {
    "go.mod": "module x\n\ngo 1.21\n",
    "wheel/wheel.go": (
        "package wheel\n\ntype Turner interface{ Turn(n int) int }\n\ntype Wheel struct{ Size int }\n\n"
        "func (w *Wheel) Turn(n int) int { return n * w.Size }\n\n"
        "func Spin(t Turner) int { return t.Turn(3) }\n\nfunc make(Size int) Wheel { return Wheel{Size: Size} }\n\n"
        "func Make() Wheel { return make(4) }\n"
    ),
    "main.go": (
        'package main\n\nimport w "x/wheel"\n\nfunc main() {\n\tone := &w.Wheel{Size: 3}\n\tm := w.Make()\n'
        "\tprintln(w.Spin(one), one.Turn(2), m.Size)\n}\n"
    ),
}
RUST = {
    "shape.rs": (
        "pub trait Shape { fn area(&self) -> u32; fn twice(&self) -> u32 { self.area() * 2 } }\n"
        "pub struct Square { pub side: u32 }\n"
        "impl Square { pub fn new(side: u32) -> Self { Square { side } } }\n"
        "impl Shape for Square { fn area(&self) -> u32 { self.side * self.side } }\n"
        "pub fn total(s: &dyn Shape) -> u32 { s.area() }\n"
    ),
    "main.rs": (
        "mod shape;\nuse shape::{total as sum, Shape, Square};\n"
        "fn main() {\n    let side = 3;\n    let s = Square { side };\n    let t: Square = Square::new(side);\n"
        '    println!("{side} {} {} {}", s.area() + s.twice(), sum(&s), t.side);\n'
        '    let Square { side: q } = s;\n    println!("{q}");\n}\n'
    ),
}
JAVA = {
    "Shape.java": "public interface Shape { int area(); }\n",
    "Square.java": (
        "public class Square implements Shape {\n  private final int side;\n"
        "  Square(int side) { this.side = side; }\n  @Override public int area() { return side * side; }\n"
        "  int twice() { return area() * 2; }\n}\n"
    ),
    "Main.java": (
        "class Helper { static int add(int a, int b) { return a + b; } }\n"
        "public class Main {\n  static int total(Shape... all) { int sum = 0;\n"
        "    for (Shape s : all) sum += s.area(); return sum; }\n"
        "  public static void main(String[] args) { Square q = new Square(3);\n"
        "    System.out.println(Helper.add(total(q), q.twice())); }\n}\n"
    ),
}
C = {
    "wheel.h": (
        "struct wheel { int width; };\ntypedef struct wheel wheel_t;\nint wheel_turn(struct wheel *w, int n);\n"
        "#define TWICE(x) (wheel_turn(x, 2))\n"
    ),
    "wheel.c": '#include "wheel.h"\nstatic int help(int n) { return n + 1; }\n'
    "int wheel_turn(struct wheel *w, int n) { return help(w->width) * n; }\n",
    "main.c": '#include <stdio.h>\n#include "wheel.h"\nstatic int help(int n) { return n; }\n'
    'int main(void) { wheel_t w = { .width = 2 }; printf("%d\\n", wheel_turn(&w, 3) + help(1) + TWICE(&w)); return 0; }\n',
}


def put(root: Path, files: dict[str, str]) -> None:
    """Write files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def plan_rename(root: Path, target: Target, new: str) -> tuple[Renaming, RenamePlan]:
    """Return a plan on the files of a folder."""
    source = FolderSource(root)
    renaming = Renaming(source, new)
    return renaming, renaming.run(target.find(source))


def rename(root: Path, target: Target, new: str) -> list[str]:
    """Rename unless there are obstacles, which are returned."""
    renaming, plan = plan_rename(root, target, new)
    if plan.possible or plan.unlikely:
        return ["possible_uses"]
    obstacles = ObstacleSearch(renaming).run(plan.old, new, plan.family, plan.sure)
    if reasons := [obstacle.reason for obstacle in obstacles]:
        return reasons
    for path in {use.place.path for use in plan.sure}:
        file = root / os.fsdecode(path)
        data = file.read_bytes()
        uses = [use for use in plan.sure if use.place.path == path]
        for use in sorted(uses, key=lambda one: -one.place.start):
            data = data[: use.place.start] + use.text.encode() + data[use.place.end :]
        file.write_bytes(data)
    return []


def at(path: str, line: int, column: int) -> Target:
    """Return the target at a place."""
    return Target(f"{path}:{line}", path=path.encode(), line=line, column=column)


def run(command: list[str], root: Path) -> str:
    """Return what a command prints; it must succeed."""
    done = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout + done.stderr


def needs(*tools: str) -> pytest.MarkDecorator:
    """Skip a test without these programs."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not on this machine: {missing}")


NAMES = (
    *(Target(name, name) for name in ("Base.turn", "Wheel", "Wheel.width", "spin", "show")),
    *(at("base.py", 26, 24), at("base.py", 14, 20), at("base.py", 11, 24), at("base.py", 12, 14), at("base.py", 27, 5)),
)  # fmt: skip


@pytest.mark.slow
def test_a_program_of_python_prints_the_same(tmp_path: Path) -> None:
    put(tmp_path, PYTHON)
    command = [sys.executable, "-B", "use.py"]
    before = run(command, tmp_path)
    assert rename(tmp_path, at("base.py", 26, 5), "spinning") == []
    text = (tmp_path / "base.py").read_text()
    assert '"spinning"]' in text
    assert text.startswith('"""A spin is a turn."""')
    assert run(command, tmp_path) == before
    put(tmp_path, PYTHON)
    for number, target in enumerate(NAMES):
        assert rename(tmp_path, target, f"other_{number}") == [], target
        assert run(command, tmp_path).replace(f"other_{number}", "") == before
        put(tmp_path, PYTHON)


@pytest.mark.slow
@needs("node")
def test_a_program_of_typescript_prints_the_same(tmp_path: Path) -> None:
    put(tmp_path, TYPESCRIPT)
    command = ["node", "--experimental-strip-types", "--no-warnings", "use.mts"]
    version = run(["node", "--version"], tmp_path)
    if int(version[1:].split(".")[0]) < 22:
        pytest.skip("node reads no TypeScript before version 22")
    before = run(command, tmp_path)
    for name in ("Shape.area", "Square", "Square.make", "total", "LIMIT", "Cube"):
        target = Target(name, name)
        if name in {"total", "LIMIT", "Square"}:
            target = Target(name, name, under=b"lib.mts")
        assert rename(tmp_path, target, "other") == []
        assert run(command, tmp_path) == before, name
        put(tmp_path, TYPESCRIPT)


@pytest.mark.slow
@needs("go")
def test_a_program_of_go_prints_the_same(tmp_path: Path) -> None:
    put(tmp_path, GO)
    before = run(["go", "run", "."], tmp_path)
    for target in (
        Target("Turner.Turn", "Turner.Turn"),
        Target("Wheel", "Wheel"),
        Target("Wheel.Size", "Wheel.Size"),
        Target("Spin", "Spin"),
        at("wheel/wheel.go", 11, 11),
    ):
        assert rename(tmp_path, target, "Other") == []
        assert run(["go", "run", "."], tmp_path) == before, target
        put(tmp_path, GO)


@pytest.mark.slow
@needs("rustc")
def test_a_program_of_rust_prints_the_same(tmp_path: Path) -> None:
    put(tmp_path, RUST)
    command = ["sh", "-c", "rustc -A warnings -o main main.rs && ./main"]
    before = run(command, tmp_path)
    for target in (
        Target("Shape.area", "Shape.area"),
        Target("Square", "Square"),
        Target("Square.side", "Square.side"),
        Target("total", "total"),
        at("main.rs", 4, 9),
        at("main.rs", 8, 24),
    ):
        assert rename(tmp_path, target, "other") == []
        assert run(command, tmp_path) == before, target
        put(tmp_path, RUST)


@pytest.mark.slow
@needs("javac", "java")
def test_a_program_of_java_prints_the_same(tmp_path: Path) -> None:
    put(tmp_path, JAVA)
    command = ["sh", "-c", "javac -d out *.java && java -cp out Main"]
    before = run(command, tmp_path)
    assert rename(tmp_path, Target("Square", "Square"), "Other") == ["file_name"]
    for name in ("Shape.area", "Helper", "Helper.add", "Square.side", "Main.total"):
        assert rename(tmp_path, Target(name, name), f"x{name[-3:]}") == []
        assert run(command, tmp_path) == before
        put(tmp_path, JAVA)


@pytest.mark.slow
@needs("gcc")
def test_a_program_of_c_prints_the_same(tmp_path: Path) -> None:
    put(tmp_path, C)
    command = ["sh", "-c", "gcc -Wall -Werror -o main main.c wheel.c && ./main"]
    before = run(command, tmp_path)
    for target in (
        Target("wheel_turn", "wheel_turn"),
        Target("help", "help", under=b"wheel.c"),
        Target("wheel_t", "wheel_t"),
        Target("wheel", "wheel"),
        Target("TWICE", "TWICE"),
    ):
        assert rename(tmp_path, target, f"x_{target.name}") == []
    assert run(command, tmp_path) == before


WORDS = ("alpha", "beta", "gamma", "delta")


@st.composite
def programs(draw: st.DrawFn) -> tuple[dict[str, str], int, str]:
    """Draw modules that use each other's functions, classes and variables; which definition is renamed, and how."""
    word = st.sampled_from(WORDS)
    function = draw(word)
    variable = draw(word.filter(lambda one: one != function))
    parameter, method, local = draw(word), draw(word), draw(word)
    field = draw(word.filter(lambda one: one != method))
    alias = draw(st.sampled_from([*WORDS, ""]))
    library = (
        f"{variable} = 3\n\n\nclass Thing:\n    def __init__(self, {parameter}=1):\n"
        f"        self.{field} = {parameter}\n\n    def {method}(self, {parameter}):\n"
        f"        {local} = {parameter} + self.{field}\n        return {local}\n\n\n"
        f"class Other(Thing):\n    def {method}(self, {parameter}):\n"
        f"        return super().{method}({parameter}={parameter}) * 2\n\n\n"
        f"def {function}({parameter}={variable}):\n    {local} = {parameter}\n"
        f"    return Other({parameter}={local}).{method}({parameter}=2)\n"
    )
    named = f"{function} as {alias}" if alias and alias != variable else function
    bare = alias if alias and alias != variable else function
    use = (
        f"import library\nfrom library import Thing, {variable}\nfrom library import {named}\n\n"
        f"thing = Thing({parameter}=2)\nprint({bare}(), {bare}({parameter}=4), library.{function}({variable}))\n"
        f"print(thing.{field}, thing.{method}({parameter}=5), library.Other().{method}(6), {variable})\n"
    )
    number = draw(st.integers(0, 8))
    return (
        {"library.py": library, "use.py": use},
        number,
        draw(st.sampled_from([*WORDS, "omega"])),
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_a_drawn_program_prints_the_same_or_is_not_renamed(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[dict[str, str], int, str]
) -> None:
    files, number, new = drawn
    root = tmp_path_factory.mktemp("drawn")
    put(root, files)
    command = [sys.executable, "-B", "-S", "-E", "use.py"]
    before = run(command, root)
    places = [
        (1, 1),
        (5, 24),
        (6, 14),
        (8, 9),
        (8, 20),
        (9, 9),
        (13, 7),
        (14, 9),
        (18, 5),
    ]
    line, column = places[number]
    if number == 2:
        column = 14
    if number == 4:
        column = (
            9
            + len(files["library.py"].split("\n")[7].split("def ")[1].split("(")[0])
            + 7
        )
    target = at("library.py", line, column)
    source = FolderSource(root)
    named = target.find(source)
    try:
        check_name(new, named.text, "python")
    except ValueError:
        return
    if rename(root, target, new):
        return
    assert run(command, root) == before


def test_what_cannot_be_renamed_is_refused(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.py": "import json\nfrom http.server import BaseHTTPRequestHandler\n\n\nclass A(BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n        return json.dumps(self)\n\n    def __str__(self):\n        return ''\n\n"
            "    def twin(self):\n        pass\n\n\nclass Twin(A):\n    def own(self):\n        return self.twin()\n\n\n"
            "def first(second):\n    return second, json\n\n\ndef third():\n    return first(1)\n",
            "m.go": "package m\n\nfunc first() {}\n",
            "n.go": "package m\n\nfunc second() { first() }\n",
        },
    )  # fmt: skip
    assert rename(tmp_path, Target("A.do_GET", "A.do_GET"), "get") == ["library"]
    assert "given_name" in rename(tmp_path, Target("A.__str__", "A.__str__"), "text")
    assert rename(tmp_path, Target("Twin.own", "Twin.own"), "twin") == [
        "library",
        "name_taken",
    ]
    assert rename(tmp_path, Target("third", "third"), "json") == ["name_taken"]
    assert rename(tmp_path, Target("third", "third"), "first") == ["name_taken"]
    # A parameter of a function that does not use the renamed one is no obstacle.
    assert rename(tmp_path, Target("third", "third"), "second") == []
    assert rename(tmp_path, at("a.py", 21, 11), "json") == ["name_taken"]
    assert rename(tmp_path, Target("m.go:first", "first", b"m.go"), "second") == [
        "name_taken"
    ]
    for new in ("a b", "first", "class", "1x", ""):
        with pytest.raises(ValueError, match=r"name|word"):
            check_name(new, "first", "python")
    with pytest.raises(Conflict, match="2 definitions"):
        plan_rename(tmp_path, Target("first", "first"), "x")
    _, plan = plan_rename(tmp_path, at("a.py", 7, 21), "x")
    assert not plan.family


def test_a_module_called_like_what_it_defines_keeps_its_name(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "spin.py": "def spin():\n    return 1\n",
            "a.py": "import spin as module\nfrom spin import spin\nfrom spin import spin as s\nspin()\n",
            "turn.ts": "export function turn() { return 1 }\n",
            "b.ts": 'import { turn } from "./turn"\nexport { turn as t } from "./turn.ts"\nturn()\n',
        },
    )  # fmt: skip
    assert rename(tmp_path, Target("spin", "spin"), "go") == []
    assert rename(tmp_path, Target("turn", "turn"), "go") == []
    assert (tmp_path / "a.py").read_text() == (
        "import spin as module\nfrom spin import go\nfrom spin import go as s\ngo()\n"
    )
    assert (tmp_path / "b.ts").read_text() == (
        'import { go } from "./turn"\nexport { go as t } from "./turn.ts"\ngo()\n'
    )


SHAPES = {
    "lib.ts": "export interface Shape { area(): number; label: string }\n",
    "use.tsx": (
        'import { Shape } from "./lib"\nconst label = "x"\n'
        "const s: Shape = { label, area() { return 1 } }\n"
        "const t: Shape = { label: label, area: () => 2 }\n"
        "total({ label: 'y', area: function () { return 3 } })\n"
        "const { area } = s\nfunction show({ label: text }: Shape) { return text }\n"
        'const page = <Box label="z" />\n'
    ),
    "alias.go": (
        "package m\n\ntype Wheel struct{ Size int }\n\ntype Alias = Wheel\n\ntype Other Wheel\n\n"
        "func Size() int { return 1 }\n\n"
        "var a = Alias{Size: 1}\nvar b = []Other{{Size: 2}}\nvar c = map[int]int{Size(): 1}\n"
        "type Box struct{ Size int }\n\nvar d = Box{Size: 3}\n"
    ),
}


@pytest.mark.parametrize(
    ("name", "path", "lines"),
    [
        ("Shape.area", "use.tsx", [3, 4, 5, 6]),
        ("Shape.label", "use.tsx", [3, 4, 5, 7, 8]),
        ("Wheel.Size", "alias.go", [3, 11, 12]),
    ],
)
def test_keys_of_types_by_shape_are_never_left_without_a_word(
    tmp_path: Path, name: str, path: str, lines: list[int]
) -> None:
    put(tmp_path, SHAPES)
    _, plan = plan_rename(tmp_path, Target(name, name), "other")
    told = [use.place for use in (*plan.sure, *plan.possible)] + plan.unlikely
    places = [place for place in told if place.path.decode() == path]
    assert sorted({place.symbols.lines.line(place.start) for place in places}) == lines
    assert rename(tmp_path, Target(name, name), "other") == ["possible_uses"]


def test_members_of_other_objects_keep_their_names(tmp_path: Path) -> None:
    files = {
        "a.js": "start({ run() { return 1 } })\nstart({ run() { return 2 } })\n",
        "b.js": "a.turn = function () { return 1 }\nb.turn = function () { return 2 }\n",
    }
    put(tmp_path, files)
    for target in (at("a.js", 1, 9), at("b.js", 1, 3)):
        _, plan = plan_rename(tmp_path, target, "other")
        assert [use.place.symbols.lines.line(use.place.start) for use in plan.sure] == [1]  # fmt: skip


def test_arguments_that_are_passed_on_are_uncertain(tmp_path: Path) -> None:
    text = (
        "from dataclasses import dataclass, replace\n\n\n@dataclass\nclass A:\n    width: int = 1\n\n\n"
        "a = A(width=2)\nprint(replace(a, width=3), 'x'.replace('y', 'z'))\n"
    )
    put(tmp_path, {"a.py": text})
    _, plan = plan_rename(tmp_path, Target("A.width", "A.width"), "length")
    lines = [place.symbols.lines.line(place.start) for place in plan.unlikely]
    assert lines == [10]


def test_arguments_in_a_dictionary_are_uncertain(tmp_path: Path) -> None:
    text = (
        "def spin(turns=1, *, speed=2):\n    return turns * speed\n\n\n"
        "def relay(*args, **options):\n    return spin(*args, **options)\n\n\n"
        "def twice(**options):\n    return relay(**options) + twice(**options)\n\n\n"
        "def other(**options):\n    options = {}\n    return options\n\n\n"
        "given = {'turns': 3}\n"
        "print(spin(**given), relay(turns=2), twice(turns=4), other(turns=5), relay(speed=1))\n"
    )
    put(tmp_path, {"a.py": text})
    _, plan = plan_rename(tmp_path, at("a.py", 1, 10), "rounds")
    lines = [place.symbols.lines.line(place.start) for place in plan.unlikely]
    assert lines == [19]
    named = [use.place for use in plan.sure + plan.possible]
    relayed = [
        (
            place.symbols.lines.line(place.start),
            place.symbols.data[place.start - 6 : place.start],
        )
        for place in named
        if place.symbols.lines.line(place.start) > 2
    ]
    assert relayed == [(19, b"relay("), (19, b"twice(")]
    assert rename(tmp_path, at("a.py", 1, 10), "rounds") == ["possible_uses"]


@pytest.mark.parametrize(
    "call",
    ["Wheel(**given)", "Wheel(1).turn(**{'size': 2})", "Hub(**dict(given))"],
)
def test_dictionaries_of_a_constructor_and_a_method_are_uncertain(
    tmp_path: Path, call: str
) -> None:
    text = (
        "class Wheel:\n    def __init__(self, size):\n        self.size = size\n\n"
        "    def turn(self, size):\n        return size\n\n\n"
        "class Hub(Wheel):\n    pass\n\n\n"
        f"given = {{'size': 3}}\nprint({call})\n"
    )
    put(tmp_path, {"a.py": text})
    place = at("a.py", 5, 20) if ".turn" in call else at("a.py", 2, 24)
    _, plan = plan_rename(tmp_path, place, "width")
    assert [place.symbols.lines.line(place.start) for place in plan.unlikely] == [14]


def test_files_that_are_not_parsed_are_told(tmp_path: Path) -> None:
    files = {
        "a.py": "def spin():\n    return 1\n",
        "packed.py": "x = 1;" * 10_000 + "spin()\n",
        "notes": "To spin, spin it; spinning.\n",
    }
    put(tmp_path, files)
    _, plan = plan_rename(tmp_path, Target("spin", "spin"), "turn")
    assert plan.unparsed == {b"packed.py": 1, b"notes": 2}


def test_an_argument_of_a_call_that_hardly_means_it_is_uncertain(
    tmp_path: Path,
) -> None:
    classes = "".join(
        f"class {name}:\n    def whirl(self, amount=1):\n        return amount\n\n\n"
        for name in ("A", "B", "C")
    )
    put(tmp_path, {"a.py": classes, "b.py": "def go(one):\n    return one.whirl(amount=2)\n"})  # fmt: skip
    assert rename(tmp_path, at("a.py", 2, 21), "count") == ["possible_uses"]


def test_a_use_by_a_type_in_sight_is_no_sure_one(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.py": "class A:\n    def whirl(self):\n        return 1\n",
            "b.py": "from a import A\n\n\ndef go(one):\n    return one.whirl(), A\n",
        },
    )
    assert rename(tmp_path, Target("A.whirl", "A.whirl"), "spin") == ["possible_uses"]


def test_what_is_uncertain_is_apart(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.py": "class A:\n    def whirl(self):\n        return 1\n\n\nclass B:\n    def whirl(self):\n        return 2\n",
            "b.py": "# whirl it\ndef go(one):\n    return one.whirl()\n",
            "README.md": "To whirl is `whirl`.\n",
        },
    )  # fmt: skip
    _, plan = plan_rename(tmp_path, Target("A.whirl", "A.whirl"), "spin")
    assert [use.place.path for use in plan.sure] == [b"a.py"]
    uncertain = [use.place for use in plan.possible] + plan.unlikely
    assert [place.path for place in uncertain] == [b"b.py"]
    assert sorted(place.path for place in plan.texts) == [
        b"README.md",
        b"README.md",
        b"b.py",
    ]
