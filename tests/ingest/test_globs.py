"""Globs and file types choose what ripgrep would choose, and what people expect where ripgrep has no such option."""

import shutil
import subprocess
import sysconfig

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flashgrep.base.errors import InvalidParams
from flashgrep.base.languages import language_of
from flashgrep.base.path_text import PathText
from flashgrep.files.globs import (
    GlobOptions,
    GlobPatterns,
    PathFilter,
    TypeFilter,
    types,
)

RG = (
    shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which("rg") or "rg"
)
PATHS = [
    b"a.py",
    b"b.c",
    b"Makefile",
    b"src/a.py",
    b"src/deep/a.py",
    b"src/deep/b.C",
    b"lib/src/a.py",
    b".hid.py",
    b"x y.py",
    b"src/.h/a.py",
    b"ign.log",
    b"out/a.py",
    b"src/x.tsx",
    b"README",
    b"Dockerfile.dev",
    b"\xff.py",
    b"[a].py",
]
GLOBS = [
    "*.py",
    "*.PY",
    "src/*.py",
    "src/**/*.py",
    "**/*.py",
    "/a.py",
    "src",
    "src/",
    "src/**",
    "*.{py,c}",
    "[ab].*",
    "[!a].*",
    "**/deep/*",
    "*",
    "/*",
    "?.c",
    "*.log",
    ".h/",
    "out/**",
    "{src,lib}/**",
    "x y.py",
    "\\[a].py",
    "src/{deep,x}*",
]


kinds = st.lists(
    st.sampled_from(
        ["py", "c", "cpp", "make", "readme", "docker", "typescript", "all"]
    ),
    max_size=2,
)


def test_the_table_of_types_is_ripgreps() -> None:
    listed = subprocess.run(
        [RG, "--no-config", "--type-list"], capture_output=True, check=True, text=True
    ).stdout
    assert (
        "".join(f"{name}: {', '.join(globs)}\n" for name, globs in types().items())
        == listed
    )


@pytest.mark.parametrize(
    ("include", "exclude", "wanted", "unwanted"),
    [
        (["*.py"], [], [b"a.py", b"src/deep/a.py"], [b"a.pyc", b"a.py/readme"]),
        (
            ["src/**/*.py"],
            [],
            [b"src/a.py", b"src/x/y/a.py"],
            [b"a.py", b"lib/src/a.py"],
        ),
        (["**/src/*.py"], [], [b"src/a.py", b"lib/src/a.py"], [b"src/x/a.py"]),
        (["**/*.py"], [], [b"a.py", b"src/a.py"], [b"a.c"]),
        (["src"], [], [b"src/a.c", b"lib/src/x/b", b"src"], [b"srcs/a.c"]),
        (["src/"], [], [b"src/a.c"], [b"lib/a.c"]),
        (["/src"], [], [b"src/a.c"], [b"lib/src/a.c"]),
        (["./src/*.c"], [], [b"src/a.c"], [b"src/x/a.c"]),
        ([r"src\**\*.py"], [], [b"src/a.py"], [b"lib/a.py"]),
        ([], ["tests"], [b"src/a.py"], [b"tests/a.py", b"src/tests/x/a.py"]),
        (["*.py"], ["*_test.py"], [b"a.py"], [b"a_test.py"]),
        (["*.py", "!*_test.py"], [], [b"a.py"], [b"a_test.py", b"a.c"]),
        (["*.{py,c}"], [], [b"a.py", b"x/a.c"], [b"a.h"]),
        (["[ab]?.c"], [], [b"ax.c"], [b"cx.c", b"a.c"]),
        (["a?b"], [], ["aéb".encode(), b"a\xffb"], [b"a/b"]),
        (["\u00e9*.c"], [], ["\u00e9t\u00e9.c".encode()], [b"e.c"]),
    ],
)
def test_include_and_exclude_mean_what_people_write(
    include: list[str], exclude: list[str], wanted: list[bytes], unwanted: list[bytes]
) -> None:
    keep = PathFilter(include, exclude)
    assert [path for path in wanted if not keep(path)] == []
    assert [path for path in unwanted if keep(path)] == []


def test_case_is_ignored_on_request_and_only_that_of_ascii_letters() -> None:
    keep = GlobPatterns(
        GlobOptions(include=("SRC/*.[A-C]", "\u00c9"), case_sensitive=False)
    ).wants
    assert keep(b"src/x.b")
    assert keep(b"Src/x.B")
    assert not keep("\u00e9".encode())


def test_an_empty_filter_keeps_everything() -> None:
    keep = PathFilter([], [])
    assert keep(b"any/thing")


STEPS = [
    b"src",
    b"lib",
    b"deep",
    b"out",
    b".h",
    b"a.py",
    b"b.c",
    b"ab",
    b"a",
    b"A.PY",
    b"x.h",
    b"\xc3\xa9.c",
]
GLOB_PARTS = [
    "*", "**", "/", "**/", "?", "a", "b", ".py", ".c", "src", "lib/", "{a,b}", "{,a}", "{a*,/b}", "[ab]", "[!a]",
    "[a-c]", "[[]", "[*]", "[\u00e9a]", "\u00e9", "{.py,.c}", ",", "**/src/**", "/**",
]  # fmt: skip
paths = st.lists(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=4).map(b"/".join),
    max_size=15,
    unique=True,
)
globs = st.lists(
    st.lists(st.sampled_from(GLOB_PARTS), min_size=1, max_size=5).map("".join)
    | st.sampled_from(GLOBS),
    max_size=2,
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(include=globs, exclude=globs, languages=kinds, paths=paths)
def test_many_paths_at_once_are_filtered_as_one_by_one(
    include: list[str], exclude: list[str], languages: list[str], paths: list[bytes]
) -> None:
    try:
        keep = PathFilter(include, exclude, languages=languages)
    except InvalidParams:
        assume(False)
    text = PathText(sorted(paths))
    assert [text[at] for at in np.flatnonzero(keep.mask(text)).tolist()] == [
        path for path in sorted(paths) if keep(path)
    ]


@given(
    paths=paths,
    part=st.sampled_from(
        [b"a", b"A", b"/", b"src/", b".py", b"", b"\0", b"a\0b", b"h"]
    ),
    fold=st.booleans(),
)
def test_paths_that_contain_a_part_are_found(
    paths: list[bytes],
    part: bytes,
    fold: bool,  # noqa: FBT001
) -> None:
    text = PathText(sorted(paths))
    truth = [
        path
        for path in sorted(paths)
        if (part.lower() in path.lower() if fold else part in path)
    ]
    assert [text[at] for at in text.containing(part, fold=fold)] == truth


@pytest.mark.parametrize(
    ("field", "glob", "problem"),
    [
        ("include", "a[b", "unclosed set"),
        ("include", "{a,b", "unclosed brace"),
        ("exclude", "a}", "unopened brace"),
        ("exclude", "", "empty"),
        ("include", "[[:nonsense:]]", "unknown named set"),
    ],
)
def test_a_bad_glob_is_refused_by_name(field: str, glob: str, problem: str) -> None:
    include, exclude = ([glob], []) if field == "include" else ([], [glob])
    with pytest.raises(InvalidParams) as caught:
        PathFilter(include, exclude)
    assert caught.value.data == {"field": field, "glob": glob, "problem": problem}


@pytest.mark.timeout(20)
def test_hostile_globs_are_matched_in_linear_time() -> None:
    keep = PathFilter(
        [
            "*a" * 500 + "b",
            "**/a/" * 500 + "x",
            "{" * 50 + "a,b" + "}" * 50 + "*" * 1000,
        ],
        [],
    )
    assert not keep(b"a" * 4000 + b"/" + b"a/" * 20)


def test_languages_filter_by_the_type_table_and_its_aliases() -> None:
    assert TypeFilter(["python"]).matches(b"src/a.pyi")
    assert not TypeFilter(["python"]).matches(b"src/a.rs")
    assert TypeFilter(["C++"]).matches(b"a.hpp")
    assert TypeFilter(["javascript", "typescript"]).matches(b"a.tsx")
    assert PathFilter([], [], languages=["rust"])(b"a.rs")
    assert not PathFilter(["*.py"], [], languages=["rust"])(b"a.py")


def test_an_unknown_language_names_those_near_it() -> None:
    with pytest.raises(InvalidParams) as caught:
        TypeFilter(["pyton"])
    assert caught.value.data["field"] == "language"
    assert "python" in caught.value.data["suggestions"]


@pytest.mark.parametrize(
    ("path", "language"),
    [
        (b"a/b.py", "python"),
        (b"a.h", "c"),
        (b"a.C", "cpp"),
        (b"a.cc", "cpp"),
        (b"a.hpp", "cpp"),
        (b"x.ts", "typescript"),
        (b"x.tsx", "tsx"),
        (b"x.jsx", "javascript"),
        (b"x.vue", "vue"),
        (b"x.rs", "rust"),
        (b"Makefile", "make"),
        (b"GNUmakefile", "make"),
        (b"Dockerfile.dev", "docker"),
        (b"x.m", "objc"),
        (b"x.ml", "ocaml"),
        (b"x.scss", "scss"),
        (b"x.sh", "bash"),
        (b"x.md", "markdown"),
        (b"Cargo.lock", "toml"),
        (b"x.unheard-of", ""),
        (b"py", ""),
        (b"x.pl", "perl"),
        (b"\xff.go", "go"),
        (b".bashrc", "bash"),
        (b"x.ps1", "powershell"),
        (b"Kconfig", "kconfig"),
        (b"x.S", "assembly"),
    ],
)
def test_a_file_has_one_language(path: bytes, language: str) -> None:
    assert language_of(path).name == language
