"""Files are found by wildcards as a plain scan would find them, in a stable order, and never outside the root."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import Forbidden, InvalidParams, NotFound
from flashgrep.files.finder import GlobPage, Window, find, folder_of
from flashgrep.files.globs import GlobOptions, PathFilter

PIECES = ["**/", "**", "*", "?", "[ab]", "[!a]", "{a,b}"]
FIRST = Window()
NAMES = ["a", "b", "ab", "a.py", "b.rs", ".h", "\u00e9.py", "x y", "A.PY"]

patterns = (
    st.lists(
        st.sampled_from([*PIECES, "a", "b", "/", ".py", "\u00e9", "a/"]),
        min_size=1,
        max_size=5,
    )
    .map("".join)
    .filter(lambda pattern: pattern.strip("/"))
)
files = st.lists(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join),
    max_size=12,
    unique=True,
)


def plant(root: Path, paths: list[str]) -> list[str]:
    """Create what can be created and return it: a file is never a folder too."""
    made = []
    for path in paths:
        file = root / path
        if any(above.is_file() for above in file.parents) or file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        made.append(path)
    return made


def slow_truth(
    paths: list[str], pattern: str = "**/*", exclude: str | None = None
) -> list[str]:
    """Return the paths that are wanted as every filter understands it, by looking at each."""
    wanted = PathFilter((pattern,), (exclude,) if exclude else ())
    shown = [
        path
        for path in paths
        if not any(step.startswith(".") for step in path.split("/"))
    ]
    return sorted((path for path in shown if wanted(os.fsencode(path))), key=str.encode)


def found(root: Path, window: Window = FIRST, **options: Any) -> list[str]:
    return [
        os.fsdecode(file.relative_path) for file in page(root, window, **options).files
    ]


def page(root: Path, window: Window = FIRST, **options: Any) -> GlobPage:
    return find(os.fsencode(root), GlobOptions(**options), window)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(paths=files, pattern=patterns)
def test_a_pattern_finds_what_a_plain_scan_finds(
    paths: list[str], pattern: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = plant(Path(folder), paths)
        assert found(Path(folder), include=(pattern,)) == slow_truth(made, pattern)


@settings(max_examples=40, deadline=None)
@given(paths=files, exclude=patterns, depth=st.none() | st.integers(0, 2))
def test_pruning_loses_nothing_but_what_lies_in_an_excluded_folder(
    paths: list[str], exclude: str, depth: int | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wanted = slow_truth(plant(Path(folder), paths), exclude=exclude)
        deep = {
            path for path in wanted if depth is not None and path.count("/") > depth
        }
        assert (
            set(found(Path(folder), exclude=(exclude,), max_depth=depth))
            == set(wanted) - deep
        )


@settings(max_examples=40, deadline=None)
@given(
    paths=files,
    sort_by=st.sampled_from(["path", "name", "size", "modified"]),
    descending=st.booleans(),
    step=st.integers(1, 4),
)
def test_windows_join_without_gap_or_double_by_offset_and_by_key(
    paths: list[str],
    sort_by: str,
    descending: bool,  # noqa: FBT001 - drawn
    step: int,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number, path in enumerate(plant(root, paths)):
            (root / path).write_text("x" * (number % 3))
            os.utime(root / path, (1, number % 2))
        order: dict[str, Any] = {"sort_by": sort_by, "descending": descending}
        whole = found(root, **order)
        windows = [
            found(root, Window(offset=at, limit=step), **order)
            for at in range(0, len(whole), step)
        ]
        assert [name for window in windows for name in window] == whole
        joined, after = [], None
        while files := page(root, Window(after=after, limit=step), **order).files:
            joined += [os.fsdecode(file.relative_path) for file in files]
            after = files[-1].key
        assert joined == whole


def test_files_are_ordered_by_what_is_asked_and_then_by_path(tmp_path: Path) -> None:
    for path, size, modified in [
        ("b/z", 1, 30),
        ("a/z", 1, 10),
        ("c", 3, 10),
        ("a/b", 2, 20),
    ]:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x" * size)
        os.utime(tmp_path / path, (0, modified))
    assert found(tmp_path) == ["a/b", "a/z", "b/z", "c"]
    assert found(tmp_path, descending=True) == ["c", "b/z", "a/z", "a/b"]
    assert found(tmp_path, sort_by="name") == ["a/b", "c", "a/z", "b/z"]
    assert found(tmp_path, sort_by="name", descending=True) == [
        "a/z",
        "b/z",
        "c",
        "a/b",
    ]
    assert found(tmp_path, sort_by="size", descending=True) == [
        "c",
        "a/b",
        "a/z",
        "b/z",
    ]
    assert found(tmp_path, sort_by="modified") == ["a/z", "c", "a/b", "b/z"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["Makefile", "src/a.py", "src/deep/b.PY", "src/deep/c.rs"]),
        ({"include": ("*.py",)}, ["src/a.py"]),
        (
            {"include": ("*.py",), "case_sensitive": False},
            ["src/a.py", "src/deep/b.PY"],
        ),
        ({"include": ("src/*.rs",)}, []),
        ({"include": ("src/**/*.rs",)}, ["src/deep/c.rs"]),
        ({"include": ("deep",)}, ["src/deep/b.PY", "src/deep/c.rs"]),
        ({"under": b"src", "include": ("src/**/*.rs",)}, ["deep/c.rs"]),
        ({"include": ("[!a-z]*e",)}, ["Makefile"]),
        ({"include": ("src\\deep\\*",)}, ["src/deep/b.PY", "src/deep/c.rs"]),
        ({"include": ("./src/a*",)}, ["src/a.py"]),
        ({"include": ("Make*", "*.{rs,go}")}, ["Makefile", "src/deep/c.rs"]),
        ({"exclude": ("src/deep",)}, ["Makefile", "src/a.py"]),
        ({"exclude": ("**/deep/**",)}, ["Makefile", "src/a.py"]),
        ({"extensions": ("py",)}, ["src/a.py", "src/deep/b.PY"]),
        ({"extensions": (".RS", "go")}, ["src/deep/c.rs"]),
        ({"max_depth": 0}, ["Makefile"]),
        ({"max_depth": 1}, ["Makefile", "src/a.py"]),
        ({"under": b"src"}, ["a.py", "deep/b.PY", "deep/c.rs"]),
        (
            {"under": b"src", "include": ("deep/*",), "max_depth": 1},
            ["deep/b.PY", "deep/c.rs"],
        ),
        ({"include_hidden": True, "include": ("*h*",)}, [".hid/h", "src/.h"]),
        ({"respect_ignore": True}, ["Makefile", "src/a.py", "src/deep/b.PY"]),
        ({"respect_ignore": True, "under": b"src/deep"}, ["b.PY"]),
    ],
)
def test_each_option_narrows_the_search(
    tmp_path: Path, options: dict[str, Any], expected: list[str]
) -> None:
    plant(
        tmp_path,
        [
            "Makefile",
            "src/a.py",
            "src/deep/b.PY",
            "src/deep/c.rs",
            ".hid/h",
            "src/.h",
            ".flashgrep/h",
        ],
    )
    (tmp_path / ".ignore").write_text("*.rs\n")
    assert found(tmp_path, **options) == expected


def test_what_cannot_match_is_not_walked_into(tmp_path: Path) -> None:
    plant(
        tmp_path,
        [
            f"{top}/{number}"
            for top in ("src", "node_modules", "docs")
            for number in range(10)
        ],
    )
    assert page(tmp_path, exclude=("node_modules/**",)).seen == 20
    assert page(tmp_path, include=("src/**",)).seen == 10
    assert page(tmp_path, max_depth=0).seen == 0


def test_a_file_is_described_as_stat_does(tmp_path: Path) -> None:
    plant(tmp_path, ["src/deep/a.py"])
    (tmp_path / "src/deep/a.py").write_text("12345")
    (only,) = page(tmp_path, under=b"src").files
    assert only.path == b"src/deep/a.py"
    assert only.relative_path == b"deep/a.py"
    assert (only.size, only.modified_unix) == (
        5,
        int((tmp_path / "src/deep/a.py").stat().st_mtime),
    )


def test_links_are_followed_on_request_within_the_root_and_never_in_circles(
    tmp_path: Path,
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    plant(root, ["real/file", "real/deep/file"])
    plant(outside, ["secret"])
    for link, target in {
        "link": "real", "real/loop": "..", "real/deep/self": ".", "file-link": "real/file", "dangling": "nowhere",
        "escape": "../outside", "escaping-file": "../outside/secret", "absolute": str(outside),
    }.items():  # fmt: skip
        (root / link).symlink_to(target)
    assert found(root) == ["real/deep/file", "real/file"]
    followed = [
        "file-link",
        "link/deep/file",
        "link/file",
        "real/deep/file",
        "real/file",
    ]
    assert found(root, follow_symlinks=True) == followed


@pytest.mark.slow
@pytest.mark.timeout(20)
def test_folders_full_of_links_to_one_another_come_to_an_end(tmp_path: Path) -> None:
    for number in range(6):
        plant(tmp_path, [f"d{number}/file"])
        for other in range(6):
            (tmp_path / f"d{number}" / f"to{other}").symlink_to(f"../d{other}")
    assert "d0/to1/to2/file" in found(tmp_path, follow_symlinks=True)


def test_a_deadline_in_the_past_gives_what_there_is_and_says_so(tmp_path: Path) -> None:
    plant(tmp_path, [f"d{number}/file" for number in range(200)])
    result = find(os.fsencode(tmp_path), GlobOptions(), deadline=0.0)
    assert not result.complete
    assert result.total < 200


def test_a_wildcard_stands_for_a_character_and_not_for_a_byte(tmp_path: Path) -> None:
    plant(tmp_path, ["\u00e9.py", "e.py", "\u20ac\u00e9.py"])
    assert found(tmp_path, include=("?.py",)) == ["e.py", "\u00e9.py"]
    assert found(tmp_path, include=("[\u00e9\u20ac]*.py",)) == [
        "\u00e9.py",
        "\u20ac\u00e9.py",
    ]
    assert found(tmp_path, include=("[!e].py",)) == ["\u00e9.py"]
    with pytest.raises(InvalidParams, match="ASCII"):
        found(tmp_path, include=("[!\u00e9].py",))


def test_a_name_of_any_bytes_is_found(tmp_path: Path) -> None:
    names = [b"new\nline.py", b"\xff\xfe.py"]
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).touch()
    assert [file.path for file in page(tmp_path, include=("*.py",)).files] == names
    assert [file.path for file in page(tmp_path, include=("??.py",)).files] == [
        b"\xff\xfe.py"
    ]


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("include", {"include": ("a[b",)}),
        ("exclude", {"exclude": ("{a",)}),
        ("extensions", {"extensions": ("",)}),
        ("extensions", {"extensions": ("a/b",)}),
    ],
)
def test_what_cannot_be_understood_is_refused_by_name(
    tmp_path: Path, field: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidParams) as caught:
        page(tmp_path, **options)
    assert caught.value.data["field"] == field


def test_a_folder_is_named_from_the_root_or_absolutely_and_lies_inside(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    plant(root, ["src/deep/a"])
    plant(tmp_path, ["outside/a"])
    (root / "inner").symlink_to("src")
    (root / "outer").symlink_to("../outside")
    base = os.fsencode(root)
    for path in (".", "src/..", str(root)):
        assert folder_of(base, path) == b""
    for path in ("src/deep", "src/../src/deep/", "src\\deep", str(root / "src/deep")):
        assert folder_of(base, path) == b"src/deep"
    assert folder_of(base, "inner") == b"inner"
    for path in ("..", "../outside", "/", "outer", "src/../../outside", str(tmp_path)):
        with pytest.raises(Forbidden) as refused:
            folder_of(base, path)
        assert refused.value.reason == "outside_root"
    for path in ("gone", "src/deep/a"):
        with pytest.raises(NotFound) as missing:
            folder_of(base, path)
        assert missing.value.reason == "directory_not_found"
