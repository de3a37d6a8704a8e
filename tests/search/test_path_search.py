"""Files by what is remembered of their paths: fzf's terms, the best first, then letters apart and mistyped."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flashgrep.search.path_search import (
    MOST_RANKED,
    Term,
    parse_terms,
    score_likeness,
    search_paths,
)

PATHS = sorted(
    [
        b"README.md",
        b"aiohttp/_cookie_helpers.py",
        b"aiohttp/helpers.py",
        b"aiohttp/web.py",
        b"aiohttp/web_response.py",
        b"docs/helpers.rst",
        b"src/UserAccountView.tsx",
        b"src/user/account.ts",
        b"tests/test_helpers.py",
        b"tests/test_web_response.py",
        "straße/übung.txt".encode(),
        "straße/Ärger.txt".encode(),
        b"bad/\xff\xfe.bin",
    ]
)


def found(text: str, paths: list[bytes] = PATHS) -> tuple[list[bytes], bool]:
    def paths_with(part: str) -> list[bytes]:
        wanted = part.encode(errors="surrogateescape")
        return [path for path in paths if wanted in path.lower()]

    return search_paths(text, paths_with)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("helpers.py", b"aiohttp/helpers.py"),
        ("helpers", b"aiohttp/helpers.py"),
        ("aiohttp helpers", b"aiohttp/helpers.py"),
        ("helpers aiohttp", b"aiohttp/helpers.py"),
        ("HELPERS test", b"tests/test_helpers.py"),
        ("helpers .py$ !aio", b"tests/test_helpers.py"),
        ("^tests web", b"tests/test_web_response.py"),
        ("'account", b"src/user/account.ts"),
        ("user/account", b"src/user/account.ts"),
        ("readme", b"README.md"),
        ("übung", "straße/übung.txt".encode()),
        ("Ärger", "straße/Ärger.txt".encode()),
        ("^straße Ärger", "straße/Ärger.txt".encode()),
        ("\udcff", b"bad/\xff\xfe.bin"),
    ],
)
def test_terms_stand_in_a_path_in_any_order(text: str, first: bytes) -> None:
    paths, is_near = found(text)
    assert (paths[0], is_near) == (first, False)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("webres", b"aiohttp/web_response.py"),
        ("ärgr", "straße/Ärger.txt".encode()),
        ("uav", b"src/UserAccountView.tsx"),
        ("hlepers.py", b"aiohttp/helpers.py"),
        ("helprs", b"docs/helpers.rst"),
        ("web_respnse", b"aiohttp/web_response.py"),
        ("cookhelp !test", b"aiohttp/_cookie_helpers.py"),
        ("tests/test_wbe_response.py", b"tests/test_web_response.py"),
        ("rsp !test", b"aiohttp/web_response.py"),
        ("test rsp", b"tests/test_web_response.py"),
        ("src acn", b"src/user/account.ts"),
    ],
)
def test_where_no_path_has_the_terms_the_nearest_are_suggested(
    text: str, first: bytes
) -> None:
    paths, is_near = found(text)
    assert (paths[0], is_near) == (first, True)


def test_nothing_is_near_to_what_is_like_no_path() -> None:
    assert found("qqqqzzzz") == ([], True)
    assert found("'webres") == ([], True)
    assert found("x" * 300) == ([], False)


@given(
    st.text("abc", min_size=3, max_size=4),
    st.lists(st.text("abc_/.", min_size=1, max_size=9), min_size=1, unique=True),
)
def test_a_term_finds_the_words_that_it_abbreviates(
    term: str, names: list[str]
) -> None:
    paths = sorted(name.encode() for name in names)
    # The word's first letter, then others of it in their order.
    abbreviated = set[bytes]()
    for path in paths:
        for word in re.split(r"[_/.]", path.decode()):
            letters = iter(word[1:])
            is_start = word.startswith(term[0])
            if is_start and all(letter in letters for letter in term[1:]):
                abbreviated.add(path)
    likeness = score_likeness(term.encode(), paths)
    assert abbreviated <= {paths[at] for at in likeness}


def test_the_nearer_a_word_is_to_its_abbreviation_the_earlier_it_comes() -> None:
    files = [b"a/commands.py", b"commander/a.py", b"ui/command.py"]
    assert found("cmd", files) == ([files[2], files[0], files[1]], True)


def test_signs_alone_are_text() -> None:
    assert parse_terms("! ^ $ '") == [Term(b"!"), Term(b"^"), Term(b"$"), Term(b"'")]
    assert parse_terms("!^a$") == [Term(b"a", at_start=True, at_end=True, negated=True)]


def test_of_very_many_the_whole_names_are_first() -> None:
    many = sorted(
        [b"make/%05d.mk" % number for number in range(MOST_RANKED)]
        + [b"z/make", b"z/y/make"]
    )
    paths, _ = found("make", many)
    assert paths[:3] == [b"z/make", b"z/y/make", many[0]]
    assert sorted(paths) == many


@example(["!!^"], ["_"])  # only the first sign says that the rest must not be there
@given(
    st.lists(st.text("ab/_.!'^$ ", max_size=6), max_size=3),
    st.lists(st.text("ab_./", min_size=1, max_size=8)),
)
def test_found_are_exactly_the_paths_with_all_terms(
    words: list[str], names: list[str]
) -> None:
    paths = sorted({name.encode() for name in names})
    text = " ".join(words)
    got, is_near = found(text, paths)
    want = [
        path
        for path in paths
        if all(holds(word, path.decode()) for word in text.split())
    ]
    if is_near:
        assert not want
        assert set(got) <= set(paths)
    else:
        assert sorted(got) == want


def holds(word: str, path: str) -> bool:
    """Return whether one of fzf's terms holds for a path."""
    negated = word.startswith("!") and word != "!"
    word = word[negated:]
    word = word[1:] if word.startswith("'") and word != "'" else word
    starts, word = (
        (True, word[1:]) if word.startswith("^") and word != "^" else (False, word)
    )
    ends, word = (
        (True, word[:-1]) if word.endswith("$") and word != "$" else (False, word)
    )
    if starts and ends:
        return (path == word) != negated
    return (
        path.startswith(word)
        if starts
        else path.endswith(word)
        if ends
        else word in path
    ) != negated


def test_prefixes_of_a_folder_and_a_name_find_them_before_words_inside_of_names() -> (
    None
):
    files = [
        b"packages/compiler-core/src/transform.ts",
        b"packages/compiler-ssr/src/ssrCodegenTransform.ts",
    ]
    assert (
        search_paths(
            "srctra",
            lambda part: [one for one in files[::-1] if part.encode() in one.lower()],
        )[0]
        == files
    )


def test_letters_of_a_name_are_nearer_than_those_of_folders() -> None:
    files = [b"src/transforms/cacheStatic.ts", b"src/transforms/stringifyStatic.ts"]
    assert found("strsta", files)[0][0] == files[1]


@pytest.mark.parametrize("text", ["view", "viw"])
def test_what_was_changed_lately_is_a_little_ahead(text: str) -> None:
    files = [b"a/view.py", b"b/view.py", b"view/tables.py"]

    def paths_with(part: str) -> list[bytes]:
        return [path for path in files if part.encode() in path]

    assert search_paths(text, paths_with)[0][0] == files[0]
    assert search_paths(text, paths_with, {files[1]})[0][0] == files[1]
    assert search_paths(text, paths_with, {files[2]})[0][0] == files[0]
