"""The questions and the extraction of documented functions, without any download."""

import csv
import zipfile
from pathlib import Path

from scripts.benchmarks.search.asking import KINDS, Question, Target, asked, faults
from scripts.benchmarks.search.functions import Function, functions
from scripts.benchmarks.search.packages import packages, unpack


def only(tmp_path: Path, name: str, text: str, language: str) -> Function:
    (tmp_path / name).write_text(text)
    found = list(functions(tmp_path, language))
    assert len(found) == 1
    return found[0]


def test_every_repository_has_questions_of_every_kind_with_one_to_four_answers() -> (
    None
):
    questions = asked()
    assert len(questions) >= 40
    for rows in questions.values():
        assert {question.kind for question in rows} == set(KINDS)
        assert all(1 <= len(question.targets) <= 4 for question in rows)
        assert len({question.text for question in rows}) == len(rows)
    assert sum(map(len, questions.values())) >= 1200


def test_half_of_the_questions_are_held_out_and_none_is_about_a_package_to_avoid() -> (
    None
):
    questions = asked()
    of = {
        package.repository: package
        for package in packages()
        if package.use not in {"docstrings", "tasks"}
    }
    assert of.keys() == questions.keys()
    assert len({package.language for package in of.values()}) >= 14
    held = sum(
        len(questions[name]) for name, package in of.items() if package.use == "held"
    )
    assert 0.45 <= held / sum(map(len, questions.values())) <= 0.6
    with Path("scripts/train_embedder/avoid.tsv").open(newline="") as file:
        avoided = {row["name"] for row in csv.DictReader(file, delimiter="\t")}
    new = {package.name for package in of.values() if package.use == "held"}
    assert not new & avoided


def test_a_jar_of_sources_is_unpacked_as_it_is(tmp_path: Path) -> None:
    jar, tree = tmp_path / "a-1-sources.jar", tmp_path / "tree"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("org/a/A.java", "class A {}\n")
    tree.mkdir()
    unpack(jar, tree)
    assert (tree / "org/a/A.java").read_text() == "class A {}\n"


def test_a_question_whose_file_or_name_is_missing_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def run(): ...\n")
    there = Question("one", "what runs", "semantic", (Target("a.py", "run"),))
    assert faults(there, tmp_path) == []
    gone = there._replace(
        targets=(Target("a.py", "ru"), Target("b.py", "")), kind="other"
    )
    assert faults(gone, tmp_path) == [
        "what runs: no kind other",
        "a.py: ru does not occur",
        "b.py: no such file",
    ]


def test_a_docstring_is_asked_and_stands_in_no_function(tmp_path: Path) -> None:
    text = (
        'def outer(path):\n    """Open a file and count its lines.\n\n    Raises nothing.\n    """\n'
        "    with open(path) as file:\n        return len(list(file))\n"
    )
    found = only(tmp_path, "a.py", text, "python")
    assert found.sentence == "Open a file and count its lines"
    assert (
        found.code
        == "def outer(path):\n    with open(path) as file:\n        return len(list(file))"
    )


def test_a_comment_above_a_function_is_asked_up_to_its_tags(tmp_path: Path) -> None:
    text = (
        "/**\n * Joins two {@link Path paths} with a slash. More is said here.\n * @param {string} a\n */\n"
        "function join (a, b) {\n  const c = a\n  return c + '/' + b\n}\n"
    )
    found = only(tmp_path, "a.js", text, "javascript")
    assert found.sentence == "Joins two Path paths with a slash"
    assert "Joins" not in found.code
    assert found.code.startswith("function join")


def test_an_attribute_between_comment_and_function_is_looked_past(
    tmp_path: Path,
) -> None:
    text = "/// Returns the larger of both given numbers.\n#[inline]\nfn larger(a: u8, b: u8) -> u8 {\n    a.max(b)\n}\n"
    assert (
        only(tmp_path, "a.rs", text, "rust").sentence
        == "Returns the larger of both given numbers"
    )


def test_what_is_too_short_to_ask_is_kept_to_be_searched_only(tmp_path: Path) -> None:
    text = "// Adds.\nfunc add(a int, b int) int {\n\tc := a\n\treturn c + b\n}\n"
    assert not only(tmp_path, "a.go", text, "go").sentence


def test_functions_of_tests_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text(
        "def helper():\n    one = 1\n    return one\n"
    )
    assert list(functions(tmp_path, "python")) == []
