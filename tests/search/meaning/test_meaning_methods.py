"""The methods that search by meaning on a running daemon, over every wire: parameters, filters, errors, budgets."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import DaemonAtHand, MakeProject, short_folder
from tests.scenarios.hosts import host, post
from tests.support.mcp_clients import LineTransport, McpClient, token_of
from tests.support.meaning import FILES
from tests.support.workspace import put

ROUTER = FILES["web/router.ts"]
BLOG = {
    "src/posts.go": b"""package posts

// PublishPost makes a post visible to readers.
func PublishPost(id int) error {
\treturn store.Publish(id)
}

func draftPost(id int) error {
\treturn store.Draft(id)
}
""",
    "src/router.ts": ROUTER,
    "notes.md": b"# Notes\n\nPublish a post every Monday.\n",
}
COLLECTIONS = ("shop", "blog")

Ask = Callable[..., Any]


class Asking:
    """Asks one daemon over one wire: ``call`` for a result, ``fail`` for an error."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def call(self, method: str, **params: Any) -> Any:
        found = self._ask(method, params)
        assert "code" not in found, found
        return found

    def fail(self, method: str, **params: Any) -> Any:
        found = self._ask(method, params)
        assert "code" in found, found
        return found


def asking(
    daemon: DaemonAtHand,
    wire: str,
    exits: ExitStack,
    collections: tuple[str, ...] = COLLECTIONS,
) -> Asking:
    """Return who asks over a wire that is bound to collections; without any, to nothing."""
    if wire == "mcp":
        options = ["--collections", ",".join(collections)] if collections else []
        agent = exits.enter_context(
            host(daemon, *options, "--toolsets", "collections,research,knowledge")
        )
        return Asking(
            lambda method, params: _tool(
                agent.request("tools/call", name=method, arguments=params)
            )
        )
    if wire == "http":
        query = f"?collections={','.join(collections)}" if collections else ""
        return Asking(
            lambda method, params: _posted(daemon, f"/rpc{query}", method, params)
        )
    line = daemon.wire("tcp" if wire == "tcp" else "unix")
    exits.callback(line.close)
    if wire == "tcp":
        line.call("auth", token=token_of(daemon))
    if collections:
        line.call("$/bind", collections=list(collections))
    return Asking(lambda method, params: _plain(line.ask(method, **params)))


def _plain(answer: Any) -> Any:
    return answer["result"] if "result" in answer else answer["error"]


def _posted(daemon: DaemonAtHand, path: str, method: str, params: Any) -> Any:
    _, answer = post(
        daemon, path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    )
    return _plain(answer)


def _tool(answer: Any) -> Any:
    if "error" in answer:
        return answer["error"]
    told = answer["result"]
    assert told["isError"] == ("code" in told["structuredContent"]), told
    return told["structuredContent"]


@pytest.fixture(scope="module")
def shelf() -> Iterator[Path]:
    """Return the folder that has both collections."""
    base = short_folder()
    for name, content in zip(COLLECTIONS, (FILES, BLOG), strict=True):
        (base / name / ".git").mkdir(parents=True)
        put(base / name, content)
    yield base
    shutil.rmtree(base)


@pytest.fixture(scope="module")
def known(daemon: DaemonAtHand, shelf: Path) -> DaemonAtHand:
    """Return a daemon with both collections indexed, vectors too."""
    for name in COLLECTIONS:
        indexed = daemon.run("index", str(shelf / name))
        assert indexed.returncode == 0, indexed.stderr
    return daemon


@pytest.fixture(scope="module", params=["unix", "tcp", "mcp", "http"])
def ask(request: pytest.FixtureRequest, known: DaemonAtHand) -> Iterator[Asking]:
    """Return who asks, bound to both collections, over each wire in turn."""
    with ExitStack() as exits:
        yield asking(known, request.param, exits)


@pytest.fixture(scope="module")
def one(known: DaemonAtHand) -> Iterator[Asking]:
    """Return who asks over a Unix socket, for what no wire has a part in."""
    with ExitStack() as exits:
        yield asking(known, "unix", exits)


def files(result: Any) -> list[str]:
    return [found["file_path"] for found in result["results"]]


def snippets(result: Any) -> list[tuple[str, str]]:
    return [
        (found["payload"]["repository"], found["payload"]["filePath"])
        for found in result["results"]
    ]


# search_code


def test_search_code_finds_pieces_with_their_lines_and_says_how(ask: Asking) -> None:
    result = ask.call(
        "search_code", query="how are passwords hashed", project="shop", limit=3
    )
    best = result["results"][0]
    assert (best["file_path"], best["path"], best["kind"], best["language"]) == (
        "shop/passwords.py",
        "shop/passwords.py",
        "function",
        "python",
    )
    assert (best["startLine"], best["endLine"]) == (
        best["start_line"],
        best["end_line"],
    )
    lines = FILES["shop/passwords.py"].decode().split("\n")
    assert best["content"] == "\n".join(
        lines[best["start_line"] - 1 : best["end_line"]]
    )
    scores = [found["score"] for found in result["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert (result["ranked_by"], result["chunks_searched"]) == (
        "words and meaning",
        len(FILES),
    )
    assert result["coverage"]["complete"]
    assert result["coverage"]["fresh"]


def test_search_code_filters_by_glob_language_and_score(one: Asking) -> None:
    def found(**more: Any) -> set[str]:
        return set(
            files(
                one.call(
                    "search_code",
                    query="customer password route",
                    project="shop",
                    **more,
                )
            )
        )

    assert found() > {"shop/passwords.py", "web/router.ts"}
    assert found(file_filter="web/**") == {"web/router.ts"}
    assert found(file_filter="*.nothing") == set()
    assert found(language=["typescript"]) == {"web/router.ts"}
    assert found(language=["ts", "md"]) <= {"web/router.ts", "docs/guide.md"}
    assert found(language=["python"], file_filter="tests/**") == {
        "tests/test_passwords.py"
    }
    assert found(threshold=1.0) < found(threshold=0.3) <= found()
    assert (
        len(
            one.call("search_code", query="customer", project="shop", limit=2)[
                "results"
            ]
        )
        == 2
    )


def test_search_code_weighs_words_against_meaning_as_requested(one: Asking) -> None:
    def found(weight: float) -> list[str]:
        return files(
            one.call(
                "search_code", query="basket", project="shop", semantic_weight=weight
            )
        )

    assert found(0) == []
    assert found(1)[0] == "shop/cart.py"


def test_search_code_keeps_to_a_budget_but_never_says_nothing(one: Asking) -> None:
    def found(**more: Any) -> Any:
        return one.call(
            "search_code", query="customer password", project="shop", **more
        )["results"]

    everything = found()
    for tokens in (200, 400):
        kept = found(max_tokens=tokens)
        assert kept == everything[: len(kept)]
        assert len(kept) == 1 or len(json.dumps(kept)) <= 5 * tokens
        assert len(kept) >= 1
    (cut,) = found(max_tokens=50)
    assert (cut["path"], cut["startLine"], cut["endLine"]) == (
        "shop/passwords.py",
        1,
        13,
    )
    assert (cut["content"], cut["shown"]) == (
        '"""Keeps passwords safe."""\n… 2-13',
        [[1, 1]],
    )


LONG: list[str] = [
    "def settle_telescope(star, motor):",
    '    """Turn the telescope to a star and wait until it is still."""',
    *(f"    motor.step({at})  # nothing to see here" for at in range(60)),
    "    while motor.vibrates(star):",
    "        motor.damp_vibration(star)",
    *(f"    motor.log({at})  # nor is there here" for at in range(60)),
    "    return motor",
]
"""A function of several chunks."""


def test_a_function_is_whole_and_one_too_long_is_its_head_and_the_part_that_answers(
    ask: Asking, shelf: Path
) -> None:
    file = shelf / "blog" / "telescope.py"

    def best(lines: list[str], **more: Any) -> Any:
        file.write_text(
            "\n".join(
                [
                    "import motors",
                    "",
                    "",
                    *lines,
                    "",
                    "",
                    "def park(motor):",
                    "    motor.off()",
                    "",
                ]
            )
        )
        result = ask.call(
            "search_code",
            query="damp vibration of the telescope",
            project="blog",
            **more,
        )
        found = [one for one in result["results"] if one["path"] == "telescope.py"]
        assert found[0] == result["results"][0]
        if "shown" not in found[0]:
            assert [one["name"] for one in found].count("settle_telescope") == 1
        return found[0]

    try:
        whole = best(LONG)
        assert whole["content"].split("\n") == LONG
        assert (whole["startLine"], whole["endLine"], whole["name"]) == (
            4,
            3 + len(LONG),
            "settle_telescope",
        )
        assert "shown" not in whole
        for longer, more in (
            (LONG[:2] + LONG[2:62] * 3 + LONG[62:], {}),
            (LONG, {"max_tokens": 800}),
        ):
            part = best(longer, **more)
            assert (part["startLine"], part["endLine"]) == (4, 3 + len(longer))
            head, (first, last) = part["shown"]
            assert head == [4, 5]
            assert (
                first
                <= 4 + longer.index("    while motor.vibrates(star):")
                < last
                < 3 + len(longer)
            )
            lines = [
                *longer[:2],
                f"… 6-{first - 1}",
                *longer[first - 4 : last - 3],
                f"… {last + 1}-{3 + len(longer)}",
            ]
            assert part["content"].split("\n") == lines
    finally:
        file.unlink()


OVERLOADS = b"".join(
    b"template <class %c>\nvoid damp_vibration(%c telescope) {\n" % (letter, letter)
    + b"  telescope.damp_slowly_and_wait_until_it_is_still();\n" * 40
    + b"}\n\n"
    for letter in b"ABCDEFGH"
)
"""A function by one name for many types."""


def test_files_are_listed_best_first_each_with_its_best_functions(
    ask: Asking, shelf: Path
) -> None:
    file = shelf / "blog" / "damping.cpp"
    try:
        file.write_bytes(OVERLOADS)
        result = ask.call(
            "search_code", query="damp vibration of the telescope", project="blog"
        )
    finally:
        file.unlink()
    best = result["files"][0]
    assert best["path"] == best["file_path"] == "damping.cpp"
    assert 1 <= len(best["functions"]) <= 2
    for function in best["functions"]:
        assert function["name"] == "damp_vibration"
        assert function["end_line"] - function["start_line"] in {41, 42}
    paths = [one["path"] for one in result["files"]]
    assert len(set(paths)) == len(paths) > 1
    assert all(1 <= len(one["functions"]) <= 3 for one in result["files"])
    places = [one["path"] for one in result["results"]]
    assert places.count("damping.cpp") == 2, "two places of one symbol"


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"query": ""},
        {"query": "x" * 2001},
        {"query": {"text": "x"}},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 101},
        {"query": "x", "semantic_weight": -0.1},
        {"query": "x", "semantic_weight": 1.1},
        {"query": "x", "threshold": 1.5},
        {"query": "x", "max_tokens": 49},
        {"query": "x", "file_filter": "["},
        {"query": "x", "language": ["nosuchlanguage"]},
        {"query": "x", "unknown": 1},
    ],
)
def test_search_code_refuses_what_is_out_of_bounds(
    ask: Asking, params: dict[str, Any]
) -> None:
    assert ask.fail("search_code", project="shop", **params)["code"] == -32602


def test_a_model_is_answered_by_words_while_there_is_no_index(
    known: DaemonAtHand, project: MakeProject
) -> None:
    files = {
        f"f{at}.py": f"def function_{at}():\n    return {at}\n" for at in range(300)
    }
    files["lamp.py"] = "\n\ndef light_the_lamp():\n    pass\n"
    root = project(files, name="unseen_by_models")
    known.add(root)
    wire = known.wire("unix")
    wire.call("$/bind", project=str(root))
    result = McpClient(LineTransport(wire), "legacy").call(
        "search_code", query="light the lamp"
    )
    wire.close()
    assert not result["isError"], result
    text = result["content"][0]["text"]
    assert "lamp.py:3" in text
    assert text.count("def light_the_lamp") == 1
    if "def light_the_lamp():\n    pass" not in text:  # it was indexed meanwhile
        assert "ranked by words only" in text
        assert re.search(r"\[incomplete: the index is at \d+%\]", text)


def test_a_project_without_an_index_is_refused_with_its_path_and_what_to_do(
    known: DaemonAtHand, project: MakeProject
) -> None:
    root = project(
        {f"f{at}.py": f"def function_{at}():\n    return {at}\n" for at in range(300)},
        name="unseen",
    )
    with ExitStack() as exits:
        ask = asking(known, "unix", exits, ())
        error = ask.fail("search_code", query="function", project=str(root))
        assert error["code"] == -32000
        assert error["data"]["reason"] == "index_not_found"
        assert error["data"]["path"] == str(root)
        assert "index_codebase" in error["data"]["suggestion"]
        assert ask.fail("search_code", query="x", project="/nowhere/at/all")[
            "code"
        ] in {-32001, -32000, -32602}
    assert known.run("projects", "remove", str(root)).returncode == 0


# semantic_search


def test_semantic_search_looks_in_all_of_the_connections_repositories(
    ask: Asking,
) -> None:
    result = ask.call(
        "semantic_search",
        query="make a post visible to readers",
        threshold=0.3,
        limit=5,
    )
    best = result["results"][0]
    assert (best["repository"], best["file_path"]) == ("blog", "src/posts.go")
    metadata = result["metadata"]
    assert sorted(metadata["repositories_searched"]) == sorted(COLLECTIONS)
    assert (metadata["total_results"], metadata["threshold"]) == (
        len(result["results"]),
        0.3,
    )
    assert (metadata["ranked_by"], metadata["problems"]) == ("words and meaning", {})
    assert metadata["chunks_searched"] > len(FILES)
    assert metadata["query_time_ms"] >= metadata["embedding_time_ms"] > 0
    scores = [found["score"] for found in result["results"]]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.3


def test_semantic_search_is_strict_unless_a_call_says_otherwise(one: Asking) -> None:
    assert (
        one.call("semantic_search", query="sowing potatoes in spring")["results"] == []
    )
    assert (
        one.call("semantic_search", query="sowing potatoes in spring", threshold=0)[
            "results"
        ]
        != []
    )
    default = one.call("semantic_search", query="hash a password")
    assert default["metadata"]["threshold"] == 0.7
    assert all(found["score"] >= 0.7 for found in default["results"])


def test_semantic_search_can_be_held_to_one_repository(ask: Asking) -> None:
    result = ask.call(
        "semantic_search", query="match a route", threshold=0, repository="shop"
    )
    assert {found["repository"] for found in result["results"]} == {"shop"}
    assert result["metadata"]["repositories_searched"] == ["shop"]
    assert (
        ask.fail("semantic_search", query="x", repository="nosuch")["data"]["reason"]
        == "outside_root"
    )


def test_semantic_search_names_the_repositories_there_are(known: DaemonAtHand) -> None:
    with ExitStack() as exits:
        ask = asking(known, "unix", exits, ())
        assert ask.call(
            "semantic_search", query="match a route", threshold=0, repository="blog"
        )["results"]
        error = ask.fail("semantic_search", query="x", repository="nosuch")
        assert error["data"]["reason"] == "repository_not_found"
        assert set(COLLECTIONS) <= set(error["data"]["known"])


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"query": ""},
        {"query": "x" * 1001},
        {"query": "x", "limit": 51},
        {"query": "x", "threshold": 2},
    ],
)
def test_semantic_search_refuses_what_is_out_of_bounds(
    one: Asking, params: dict[str, Any]
) -> None:
    assert one.fail("semantic_search", **params)["code"] == -32602


# Collections


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("search_code_semantic", {"query": "x"}),
        ("search_code_fulltext", {"textQuery": "x"}),
        ("search_code_by_payload", {"payload": {}}),
    ],
)
@pytest.mark.parametrize("wire", ["unix", "tcp", "mcp", "http"])
def test_without_a_collection_the_collection_methods_are_refused(
    known: DaemonAtHand, wire: str, method: str, params: dict[str, Any]
) -> None:
    with ExitStack() as exits:
        error = asking(known, wire, exits, ()).fail(method, **params)
        assert (error["code"], error["data"]["reason"]) == (
            -32603,
            "collection_required",
        )


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("search_code_semantic", {}),
        ("search_code_semantic", {"query": "x", "top_k": 0}),
        ("search_code_semantic", {"query": "x", "top_k": 101}),
        ("search_code_semantic", {"query": "x", "payload": {}}),
        ("search_code_fulltext", {"query": "x"}),
        ("search_code_fulltext", {"textQuery": ""}),
        ("search_code_fulltext", {"textQuery": "x", "payload": {"nosuch": 1}}),
        ("search_code_fulltext", {"textQuery": "x", "payload": {"startLine": 0}}),
        ("search_code_by_payload", {}),
        ("search_code_by_payload", {"payload": {"exported": "perhaps"}}),
        ("search_code_by_payload", {"payload": {"kind": 5}}),
        ("search_code_by_payload", {"payload": {"filePath": "["}}),
        ("search_code_by_payload", {"payload": {"language": "nosuchlanguage"}}),
    ],
)
def test_collection_methods_refuse_what_is_out_of_bounds(
    ask: Asking, method: str, params: dict[str, Any]
) -> None:
    assert ask.fail(method, **params)["code"] == -32602


def test_questions_are_asked_of_every_collection_and_the_same_code_is_shown_once(
    ask: Asking,
) -> None:
    result = ask.call(
        "search_code_semantic", query="find the handler of a route by its prefix"
    )
    assert sorted(result["collections"]) == sorted(COLLECTIONS)
    assert (result["ranked_by"], result["problems"]) == ("words and meaning", {})
    contents = [found["payload"]["content"] for found in result["results"]]
    assert contents.count(ROUTER.decode().rstrip()) == 1
    assert len(set(contents)) == len(contents) > 3
    scores = [found["score"] for found in result["results"]]
    assert scores == sorted(scores, reverse=True)
    assert len(ask.call("search_code_semantic", query="route", top_k=1)["results"]) == 1
    payload = result["results"][0]["payload"]
    assert (payload["language"], payload["kind"], payload["name"]) == (
        "typescript",
        "function",
        "matchRoute",
    )
    assert (payload["startLine"], payload["endLine"], payload["exported"]) == (
        1,
        4,
        True,
    )


def test_full_text_finds_the_exact_text_first_and_then_parts_of_it(ask: Asking) -> None:
    exact = ask.call("search_code_fulltext", textQuery="store.Publish(id)")
    assert snippets(exact)[0] == ("blog", "src/posts.go")
    assert (exact["ranked_by"], exact["results"][0]["score"]) == ("text", 1)
    assert "store.Publish(id)" in exact["results"][0]["payload"]["content"]
    folded = ask.call("search_code_fulltext", textQuery="SMTPLIB.smtp", top_k=5)
    assert folded["results"][0]["payload"]["filePath"] == "shop/mail.py"
    parts = ask.call("search_code_fulltext", textQuery="invoice articles nowhere")
    assert {path for _, path in snippets(parts)} >= {"shop/mail.py", "shop/cart.py"}
    assert all(found["score"] < 1 for found in parts["results"])
    assert ask.call("search_code_fulltext", textQuery="qqqzzz")["results"] == []


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"language": "go"}, {"src/posts.go"}),
        (
            {"language": ["go", "markdown"]},
            {"src/posts.go", "notes.md", "docs/guide.md"},
        ),
        ({"repository": "blog"}, {"src/posts.go", "src/router.ts", "notes.md"}),
        (
            {"repository": ["shop", "blog"], "language": "markdown"},
            {"notes.md", "docs/guide.md"},
        ),
        ({"repository": "elsewhere"}, set()),
        ({"filePath": "/src/*", "language": "go"}, {"src/posts.go"}),
        ({"filePath": "/shop/"}, {"shop/cart.py", "shop/mail.py", "shop/passwords.py"}),
        ({"filePath": "shop/cart.py"}, {"shop/cart.py"}),
        ({"filePath": ["./docs/*", "notes.md"]}, {"docs/guide.md", "notes.md"}),
        ({"kind": "class"}, {"shop/cart.py"}),
        ({"kind": ["class", "section"]}, {"shop/cart.py", "docs/guide.md", "notes.md"}),
        ({"name": "send_invoice"}, {"shop/mail.py"}),
        ({"name": "verify_*"}, {"shop/passwords.py"}),
        ({"name": "total_price"}, {"shop/cart.py"}),
        ({"name": ["Cart", "draftPost"]}, {"shop/cart.py", "src/posts.go"}),
        ({"exported": True, "language": "go"}, {"src/posts.go"}),
        ({"exported": False, "language": "markdown"}, set()),
        ({"startLine": 14}, {"shop/cart.py"}),
        (
            {"startLine": 10, "endLine": 3, "filePath": "shop/*"},
            {"shop/cart.py", "shop/passwords.py"},
        ),
        ({"kind": "class", "language": "go"}, set()),
    ],
)
def test_each_filter_lets_in_what_it_says(
    one: Asking, payload: dict[str, Any], expected: set[str]
) -> None:
    result = one.call("search_code_by_payload", payload=payload, top_k=100)
    assert result["ranked_by"] == "path"
    found = {path for _, path in snippets(result)}
    assert {
        path.replace("web/router.ts", "src/router.ts") for path in found
    } == expected
    everywhere = one.call(
        "search_code_fulltext", textQuery="e", payload=payload, top_k=100
    )
    assert {
        path.replace("web/router.ts", "src/router.ts")
        for _, path in snippets(everywhere)
    } <= expected


def test_listed_code_is_as_many_as_asked_for_though_some_is_there_twice(
    one: Asking,
) -> None:
    result = one.call(
        "search_code_by_payload", payload={"language": "typescript"}, top_k=100
    )
    assert len(result["results"]) == 1
    assert len(one.call("search_code_by_payload", payload={}, top_k=3)["results"]) == 3


def test_copies_in_one_collection_do_not_use_up_what_was_asked_for(
    known: DaemonAtHand, project: MakeProject
) -> None:
    copies = dict.fromkeys(
        (f"a{at}.py" for at in range(12)), "def opens_vault():\n    return unlock()\n"
    )
    root = project(
        {**copies, "b.py": "def closes_vault():\n    return lock()\n"}, name="copies"
    )
    assert known.run("index", str(root)).returncode == 0
    with ExitStack() as exits:
        ask = asking(known, "unix", exits, ("copies",))
        asked: dict[str, dict[str, Any]] = {
            "search_code_by_payload": {"payload": {"kind": "function"}},
            "search_code_fulltext": {"textQuery": "_vault"},
            "search_code_semantic": {"query": "vault"},
        }
        for method, params in asked.items():
            names = [
                found["payload"]["name"]
                for found in ask.call(method, **params, top_k=5)["results"]
            ]
            assert sorted(names) == ["closes_vault", "opens_vault"], method
    assert known.run("projects", "remove", str(root)).returncode == 0


# HTTP routes


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", {"query": "publish a post", "top_k": 2}),
        ("/search/fulltext", {"textQuery": "PublishPost", "top_k": 2}),
        ("/search/payload", {"payload": {"name": "PublishPost"}, "top_k": 2}),
    ],
)
def test_the_search_routes_answer_plain_json(
    known: DaemonAtHand, path: str, body: dict[str, Any]
) -> None:
    status, result = post(known, f"{path}?collections=shop,blog", body)
    assert status == HTTPStatus.OK
    assert snippets(result)[0] == ("blog", "src/posts.go")
    assert len(result["results"]) <= 2
    status, result = post(known, f"{path}?collection=shop", body)
    assert (status, result["collections"]) == (HTTPStatus.OK, ["shop"])


@pytest.mark.parametrize(
    ("path", "bad"),
    [
        ("/search", {"query": ""}),
        ("/search", {"top_k": 5}),
        ("/search/fulltext", {"textQuery": "x", "top_k": 1000}),
        ("/search/payload", {"payload": {"colour": "red"}}),
    ],
)
def test_the_search_routes_tell_errors_by_status_and_code(
    known: DaemonAtHand, path: str, bad: dict[str, Any]
) -> None:
    status, told = post(known, f"{path}?collection=shop", bad)
    assert (status, told["error"]["code"]) == (HTTPStatus.BAD_REQUEST, -32602)
    good = {
        "/search": {"query": "x"},
        "/search/fulltext": {"textQuery": "x"},
        "/search/payload": {"payload": {}},
    }
    status, told = post(known, path, good[path])
    assert status >= HTTPStatus.BAD_REQUEST
    assert (told["error"]["code"], told["error"]["data"]["reason"]) == (
        -32603,
        "collection_required",
    )


def test_what_was_saved_is_found_by_the_next_call_over_every_wire(
    ask: Asking, shelf: Path
) -> None:
    file = shelf / "blog" / "telescope.py"
    try:
        file.write_text(
            "def rotate_telescope(star):\n    return motor.turn(star.angle)\n"
        )
        assert (
            files(
                ask.call("search_code", query="rotate the telescope", project="blog")
            )[0]
            == "telescope.py"
        )
        assert (
            snippets(ask.call("search_code_semantic", query="rotate the telescope"))[0][
                1
            ]
            == "telescope.py"
        )
        assert (
            snippets(ask.call("search_code_fulltext", textQuery="motor.turn"))[0][1]
            == "telescope.py"
        )
        assert snippets(
            ask.call("search_code_by_payload", payload={"name": "rotate_*"})
        ) == [("blog", "telescope.py")]
    finally:
        file.unlink()
    assert "telescope.py" not in files(
        ask.call("search_code", query="rotate the telescope", project="blog")
    )
