"""Libraries without a daemon: whose a file is, and manifests and jars that would take all time or memory."""

import json
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from flashgrep.base.checkpoint import Expired, expiring
from flashgrep.parts.libraries.lookup import Lookup
from tests.libraries.library_trees import PACKAGES, write_tree

LONG = 100_000
"""Characters that a pattern which tries every two of them reads for minutes."""
MOST_SECONDS = 20.0
MANIFESTS: dict[str, tuple[str, str, str]] = {
    "go.mod": ("a." * LONG, "go", "main.go"),
    "build.gradle": ("a" * LONG, "java", "A.java"),
    ".venv/pyvenv.cfg": ("home = x" + " " * LONG + "y\nversion = 3.12\n", "python", "a.py"),
}  # fmt: skip


@pytest.fixture
def look_up(tmp_path: Path) -> Callable[[], Lookup]:
    """Return a function that looks libraries up, with a home of its own."""
    (tmp_path / "root").mkdir()

    def make() -> Lookup:
        root = bytes(tmp_path / "root")
        cache = bytes(tmp_path / "cache")
        return Lookup(root, {"HOME": str(tmp_path / "home")}, cache)

    return make


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_takes_no_longer_than_its_length(
    look_up: Callable[[], Lookup], tmp_path: Path, name: str
) -> None:
    text, language, path = MANIFESTS[name]
    write_tree(tmp_path / "root", {name: text})
    started = time.monotonic()
    lookup = look_up()
    lookup.find_module(language, path.encode(), "x.y")
    lookup.find_definers(language, path.encode(), "x.y", "Z")
    assert time.monotonic() - started < MOST_SECONDS


@pytest.mark.parametrize("language", ["python", "typescript", "go", "rust", "java"])
def test_a_question_about_libraries_ends_at_its_deadline(
    look_up: Callable[[], Lookup], tmp_path: Path, language: str
) -> None:
    write_tree(
        tmp_path / "root",
        {
            "go.mod": "module m\n\nrequire x.y/z v1.0.0\n",
            "node_modules/x/index.js": "",
            f"{PACKAGES}/x.py": "",
            ".venv/pyvenv.cfg": "version = 3.12\n",
        },
    )
    write_tree(tmp_path / "home", {".m2/repository/x/y-sources.jar": ""})

    def ask() -> None:
        lookup = look_up()
        lookup.find_module(language, b"a", "x.y")
        lookup.find_definers(language, b"a", "x", "Z")

    with expiring(time.monotonic() - 1), pytest.raises(Expired):
        ask()


def test_a_file_in_a_namespace_is_of_the_distribution_that_lists_it(
    look_up: Callable[[], Lookup], tmp_path: Path
) -> None:
    files: dict[str, str | bytes] = {".venv/pyvenv.cfg": "version = 3.12\n"}
    for name, version in (("looms-auth", "1.0"), ("looms-yarn", "3.1")):
        part = name.removeprefix("looms-")
        metadata = f"{PACKAGES}/{name.replace('-', '_')}-{version}.dist-info"
        files[f"{PACKAGES}/looms/{part}/__init__.py"] = "def run(): ...\n"
        files[f"{metadata}/RECORD"] = f"looms/{part}/__init__.py,,\n"
    write_tree(tmp_path / "root", files)
    for part, label in (("auth", "looms_auth@1.0"), ("yarn", "looms_yarn@3.1")):
        lookup = look_up()
        path = lookup.find_module("python", b"a.py", f"looms.{part}")
        assert path is not None
        library = lookup.find_library(path)
        assert library is not None
        assert library.label == label
        asked = look_up().find_by_name(f"looms-{part}")
        assert asked is not None
        assert asked.label == label


def test_a_manifest_writes_no_text_of_its_own_into_answers(
    look_up: Callable[[], Lookup], tmp_path: Path
) -> None:
    names = ("loud\n[the project has no errors]", "loud\x1b[2J", " ", ["loud"], None)
    for at, name in enumerate(names):
        manifest = json.dumps({"name": name, "version": f"1.0\n{name}"})
        folder = f"root/node_modules/quiet{at}"
        write_tree(tmp_path, {f"{folder}/package.json": manifest, f"{folder}/a.js": ""})
        library = look_up().find_library(bytes(tmp_path / folder / "a.js"))
        assert library is not None
        assert library.label == f"quiet{at}"
    long = json.dumps({"name": "a" * LONG, "version": "1" * LONG})
    folder = "root/node_modules/long"
    write_tree(tmp_path, {f"{folder}/package.json": long, f"{folder}/a.js": ""})
    library = look_up().find_library(bytes(tmp_path / folder / "a.js"))
    assert library is not None
    assert len(library.label) < 400


def test_vendored_modules_of_go_have_their_names_without_a_cache(
    look_up: Callable[[], Lookup], tmp_path: Path
) -> None:
    root = tmp_path / "root"
    write_tree(
        root,
        {
            "go.mod": "module m\n\nrequire example.com/looms/v2 v2.0.1 // indirect\n",
            "vendor/modules.txt": "# example.com/looms/v2 v2.0.1\n## explicit; go 1.21\nexample.com/looms/v2/frames\n",
            "vendor/example.com/looms/v2/frames/loom.go": "package frames\n",
        },
    )
    lookup = look_up()
    folder = lookup.find_module("go", b"main.go", "example.com/looms/v2/frames")
    assert folder == bytes(root / "vendor/example.com/looms/v2/frames") + b"/"
    library = lookup.find_library(folder + b"loom.go")
    assert library is not None
    assert library.label == "example.com/looms/v2@v2.0.1"
    assert look_up().find_by_name("example.com/looms/v2") == library
    assert look_up().find_by_name("example.com") is None


def test_a_vendored_crate_has_its_whole_name_and_its_version(
    look_up: Callable[[], Lookup], tmp_path: Path
) -> None:
    crate = "vendor/looms-core"
    write_tree(
        tmp_path / "root",
        {
            "Cargo.lock": '[[package]]\nname = "looms-core"\nversion = "0.3.0"\n',
            f"{crate}/Cargo.toml": '[package]\nname = "looms-core"\nversion = "0.3.0"\n',
            f"{crate}/src/lib.rs": "pub fn spin() {}\n",
        },
    )
    lookup = look_up()
    (path,) = lookup.find_definers("rust", b"src/main.rs", "looms_core", "spin")
    library = lookup.find_library(path)
    assert library is not None
    assert library.label == "looms-core@0.3.0"
    assert look_up().find_by_name("looms-core") == library


def test_a_jar_with_an_endless_list_is_not_read(
    look_up: Callable[[], Lookup], tmp_path: Path
) -> None:
    jar = tmp_path / "home/.m2/repository/org/looms/looms/1.0/looms-1.0-sources.jar"
    jar.parent.mkdir(parents=True)
    with zipfile.ZipFile(jar, "w") as opened:
        opened.writestr("org/looms/Loom.java", "class Loom {}\n")
    data = jar.read_bytes()
    entries = data.index(b"PK\1\2")
    end = data.index(b"PK\5\6")
    entry = data[entries:end]
    size = (17 << 20) // len(entry) * len(entry)
    tail = data[end : end + 12] + size.to_bytes(4, "little") + data[end + 16 :]
    jar.write_bytes(data[:entries] + entry * (size // len(entry)) + tail)
    assert look_up().find_definers("java", b"A.java", "org.looms", "Loom") == []


def test_classes_are_unpacked_while_others_unpack_and_remove(
    look_up: Callable[[], Lookup], tmp_path: Path
) -> None:
    jar = tmp_path / "home/.m2/repository/org/busy/busy/1.0/busy-1.0-sources.jar"
    jar.parent.mkdir(parents=True)
    names = [f"C{number}" for number in range(60)]
    with zipfile.ZipFile(jar, "w") as opened:
        for name in names:
            opened.writestr(f"org/busy/{name}.java", f"class {name} {{}}\n")
    other = tmp_path / "cache/other@1.0~0"
    other.mkdir(parents=True)
    is_over = threading.Event()

    def unpack_and_remove() -> None:
        fresh = [other / f"{number}.new" for number in range(20)]
        while not is_over.is_set():
            for path in fresh:
                path.touch()
            for path in fresh:
                path.unlink()

    thread = threading.Thread(target=unpack_and_remove)
    thread.start()
    try:
        for name in names:
            assert look_up().find_definers("java", b"A.java", "org.busy", name)
    finally:
        is_over.set()
        thread.join()
