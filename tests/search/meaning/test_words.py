"""Words find files before, while and after their words are in the index, and right after an edit."""

from pathlib import Path

from flashgrep.base.model import path_from_json
from flashgrep.parts.meaning.questions import find_best_lines
from flashgrep.parts.meaning.search.word_search import search_words
from flashgrep.project import Workspace
from tests.support.workspace import opened, put

FILES = {
    "src/ignore.py": b"def parse_ignore_rules(lines):\n    return [rule for rule in lines]\n",
    "src/other.py": b"def unrelated():\n    pass\n",
    "docs/guide.md": b"Where the rules are.\n",
}


async def best(workspace: Workspace, text: str) -> list[tuple[bytes, int]]:
    await workspace.refresh()
    answer = await find_best_lines(workspace, text, 10, None)
    assert all(0 < hit["score"] <= 1 for hit in answer.results)
    return [
        (path_from_json(hit["file_path"], None), hit["start_line"])
        for hit in answer.results
    ]


async def test_words_find_the_text_that_has_most_of_them_at_every_stage(
    root: Path,
) -> None:
    put(root, FILES)
    async with opened(root) as workspace:
        assert (await best(workspace, "parse the ignore rules"))[0] == (
            b"src/ignore.py",
            1,
        )
        await workspace.wait_indexed()
        assert (await best(workspace, "parse the ignore rules"))[0] == (
            b"src/ignore.py",
            1,
        )
        put(root, {"src/fresh.py": b"x = 1\nparse = ignore = rules = the = 2\n"})
        assert (b"src/fresh.py", 2) in await best(workspace, "parse the ignore rules")
        (root / "src" / "ignore.py").unlink()
        assert b"src/ignore.py" not in [
            path for path, _ in await best(workspace, "parse the ignore rules")
        ]
        assert await best(workspace, "%% ??") == []


async def test_a_rare_word_a_short_text_and_a_word_of_the_path_count_more(
    root: Path,
) -> None:
    put(root, {f"common/{at}.py": b"parse = config\n" for at in range(10)})
    put(
        root,
        {
            "rare.py": b"parse = telemetry\n",
            "long.py": b"telemetry = 1\n" + b"filler line\n" * 500,
        },
    )
    put(root, {"kept/telemetry.py": b"parse = telemetry\n\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        answer = await workspace.in_thread(
            lambda snapshot: search_words(snapshot, "telemetry parse", 20, None)
        )
        paths = [path_from_json(hit["file_path"], None) for hit in answer.results]
        assert paths[:2] == [b"kept/telemetry.py", b"rare.py"]
        assert b"long.py" in paths
        kept = await workspace.in_thread(
            lambda snapshot: search_words(
                snapshot, "parse", 10, lambda path: path == b"rare.py"
            )
        )
        assert [path_from_json(hit["file_path"], None) for hit in kept.results] == [
            b"rare.py"
        ]


async def test_code_comes_before_prose_that_has_more_of_the_words(root: Path) -> None:
    prose = b"How the rules are parsed: parse, ignore, rules, lines.\n"
    put(root, {"README.md": prose, "docs/ignore rules.md": prose})
    put(root, {"src/rules.py": b"def parse_rules(lines):\n    return lines\n"})
    question = "parse the lines of ignore rules"
    async with opened(root) as workspace:
        assert (await best(workspace, question))[0] == (b"src/rules.py", 1)
        await workspace.wait_indexed()
        answer = await workspace.in_thread(
            lambda snapshot: search_words(snapshot, question, 20, None)
        )
        paths = [path_from_json(hit["file_path"], None) for hit in answer.results]
        assert paths[0] == b"src/rules.py"
        asked = await workspace.in_thread(
            lambda snapshot: search_words(
                snapshot, f"documentation: {question}", 20, None
            )
        )
        assert path_from_json(asked.results[0]["file_path"], None).endswith(b".md")
