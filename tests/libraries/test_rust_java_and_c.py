"""Libraries of languages that write names in full: crates, source jars, headers; and jars made to do harm."""

import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DaemonAtHand, MakeProject
from tests.libraries.library_trees import write_tree

RUST: dict[str, str | bytes] = {
    "Cargo.lock": (
        '[[package]]\nname = "looms"\nversion = "1.0.2"\n\n[[package]]\nname = "looms-core"\nversion = "0.3.0"\n'
    ),
    "src/main.rs": (
        "use looms::frames::{self, Loom as Frame};\nuse looms::weave;\n\nfn main() {\n    weave(1);\n    looms::spin();\n"
        "    Frame::new();\n    frames::reed();\n    looms::env::vars();\n}\n"
    ),
}
CRATES: dict[str, str | bytes] = {
    "looms-1.0.2/src/lib.rs": (
        "pub mod frames;\npub mod env;\npub use looms_core::*;\npub use looms_core::env;\n"
        "pub use crate::frames::reed as other;\n"
    ),
    "looms-1.0.2/src/env.rs": "pub fn vars() {}\n",
    "looms-1.0.2/src/frames.rs": (
        "pub struct Loom;\n\nimpl Loom {\n    pub fn new() -> Loom {\n        Loom\n    }\n}\n\npub fn reed() {}\n"
    ),
    "looms-core-0.3.0/src/lib.rs": (
        "mod inner;\npub use inner::weave;\npub fn spin() {}\n\n#[macro_export]\nmacro_rules! env {\n    () => {};\n}\n"
    ),
    "looms-core-0.3.0/src/inner.rs": "pub fn weave(n: u8) {}\n",
    "looms-core-0.2.0/src/lib.rs": "pub fn spin() {}\n",
}


def find(daemon: DaemonAtHand, root: Path, path: str, line: int, column: int) -> Any:
    """Return the first place that a definition leads to: its path, line and library."""
    wire = daemon.wire("unix", root)
    answer = wire.call("definition", path=path, line=line, column=column)
    wire.close()
    for place in answer["results"]:
        line_number = place["selection_range"]["start_line"]
        return place["file_path"], line_number, place.get("library")
    return None


def test_a_path_of_a_crate_is_followed_through_what_it_re_exports(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    registry = Path(daemon.environ["HOME"]) / ".cargo/registry/src/index-1"
    write_tree(registry, CRATES)
    root = project(RUST)
    daemon.add(root)
    looms = (f"{registry}/looms-1.0.2/src", "looms@1.0.2")
    core = (f"{registry}/looms-core-0.3.0/src", "looms-core@0.3.0")
    expected = {
        (1, 5): (f"{looms[0]}/lib.rs", 1, looms[1]),
        (1, 27): (f"{looms[0]}/frames.rs", 1, looms[1]),
        (5, 5): (f"{core[0]}/inner.rs", 1, core[1]),
        (6, 12): (f"{core[0]}/lib.rs", 3, core[1]),
        (7, 12): (f"{looms[0]}/frames.rs", 4, looms[1]),
        (8, 13): (f"{looms[0]}/frames.rs", 9, looms[1]),
        (9, 12): (f"{looms[0]}/env.rs", 1, looms[1]),
    }
    found = {
        (line, column): find(daemon, root, "src/main.rs", line, column)
        for line, column in expected
    }
    assert found == expected


JAVA: dict[str, str | bytes] = {
    "pom.xml": (
        "<project><dependencies><dependency><groupId>org.looms</groupId><artifactId>looms</artifactId>"
        "<version>1.0</version></dependency></dependencies></project>"
    ),
    "A.java": "import org.looms.Loom;\n\nclass A {\n  void a() { Loom.weave(); new Loom.Reed(); }\n}\n",
}
LOOM = "package org.looms;\n\npublic class Loom {\n  public static void weave() {}\n\n  public static class Reed {}\n}\n"


def write_jar(path: Path, entries: dict[str, bytes]) -> None:
    """Write a jar of these entries, compressed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, content in entries.items():
            jar.writestr(name, content)


def test_a_class_is_read_from_the_source_jar_of_the_declared_version(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    repository = Path(daemon.environ["HOME"]) / ".m2/repository/org/looms/looms"
    for version in ("1.0", "2.0"):
        write_jar(
            repository / version / f"looms-{version}-sources.jar",
            {"org/looms/Loom.java": LOOM.encode()},
        )
    root = project(JAVA)
    daemon.add(root)
    for column, line in ((14, 3), (19, 4), (37, 6)):
        path, found_line, library = find(daemon, root, "A.java", 4, column)
        assert (found_line, library) == (line, "looms@1.0")
        assert Path(path).read_text() == LOOM
        assert Path(path).is_relative_to(daemon.paths.cache)


def test_a_class_is_unpacked_by_several_questions_at_once(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    repository = Path(daemon.environ["HOME"]) / ".m2/repository/org/many/many"
    entries = {"org/many/Many.java": b"package org.many;\n\npublic class Many {}\n"}
    write_jar(repository / "1.0/many-1.0-sources.jar", entries)
    root = project({"A.java": "import org.many.Many;\n\nclass A extends Many {}\n"})
    daemon.add(root)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(find, daemon, root, "A.java", 3, 18) for _ in range(8)]
        found = {question.result() for question in asked}
    ((path, line, library),) = found
    assert (Path(path).name, line, library) == ("Many.java", 3, "many@1.0")
    assert [file.name for file in Path(path).parent.iterdir()] == ["Many.java"]


def test_what_a_killed_process_left_half_unpacked_is_removed(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    repository = Path(daemon.environ["HOME"]) / ".m2/repository/org/cut/cut"
    classes = ("First", "Second")
    source = b"package org.cut;\n\npublic class %s {}\n"
    entries = {f"org/cut/{name}.java": source % name.encode() for name in classes}
    write_jar(repository / "1.0/cut-1.0-sources.jar", entries)
    imports = "".join(f"import org.cut.{name};\n" for name in classes)
    root = project({"A.java": imports + "class A extends First {}\nclass B extends Second {}\n"})  # fmt: skip
    daemon.add(root)
    path, _, _ = find(daemon, root, "A.java", 3, 18)
    folder = Path(path).parent
    left = folder / "First.java.1.2.new"
    left.write_text("packa")
    os.utime(left, (0, 0))
    at_work = folder / "First.java.1.3.new"
    at_work.write_text("packa")
    path, _, _ = find(daemon, root, "A.java", 4, 18)
    names = {file.name for file in Path(path).parent.iterdir()}
    assert names == {"First.java", "Second.java", at_work.name}


@pytest.mark.parametrize("attack", ["bomb", "dots", "absolute", "broken", "link"])
def test_a_jar_made_to_do_harm_is_not_unpacked(
    daemon: DaemonAtHand, project: MakeProject, attack: str
) -> None:
    repository = Path(daemon.environ["HOME"]) / f".m2/repository/org/{attack}/harm"
    jar = repository / "1.0/harm-1.0-sources.jar"
    name = f"org/{attack}/Harm.java"
    source = b"class Harm {}\n"
    if attack == "bomb":
        write_jar(jar, {name: source + b" " * (64 << 20)})
    elif attack == "dots":
        write_jar(jar, {f"../../../../{name}": source})
    elif attack == "absolute":
        write_jar(jar, {f"/srv/{name}": source})
    elif attack == "broken":
        write_jar(jar, {name: source * 100})
        jar.write_bytes(jar.read_bytes()[:60])
    else:
        outside = project({})
        write_jar(outside / "x.jar", {name: source})
        jar.parent.mkdir(parents=True)
        jar.symlink_to(outside / "x.jar")
    root = project({"A.java": f"import org.{attack}.Harm;\n\nclass A extends Harm {{}}\n"})  # fmt: skip
    daemon.add(root)
    assert find(daemon, root, "A.java", 3, 18) is None
    unpacked = [Path(at) / name for at, _, names in os.walk(daemon.paths.cache) for name in names]  # fmt: skip
    assert not [path for path in unpacked if path.name.startswith("Harm.java")]


@pytest.mark.skipif(
    not Path("/usr/include/stdio.h").exists(), reason="no headers of the system"
)
def test_a_function_of_the_system_leads_to_its_header(
    daemon: DaemonAtHand, project: MakeProject
) -> None:
    root = project({"a.c": '#include <stdio.h>\n\nint main(void) {\n    printf("x");\n}\n'})  # fmt: skip
    daemon.add(root)
    path, _, library = find(daemon, root, "a.c", 4, 6)
    assert (path, library) == ("/usr/include/stdio.h", "headers")
