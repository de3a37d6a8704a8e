"""Forms of words, and what is found by them where a question says other ones than the code does."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.meaning.questions import find_best_lines
from flashgrep.parts.meaning.search.fusion import RULES
from flashgrep.parts.meaning.search.word_search import forms_of
from flashgrep.pattern import Pattern
from flashgrep.search.exact import Question
from tests.support.meaning import asked, best, meant, settled
from tests.support.workspace import put

AIM, DOME = b"sky/aim.py", b"sky/dome.py"


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("accounts", "account accounted accounting"),
        ("account", "accounted accounting accounts"),
        ("hiding", "hid hidded hidding hide hided hides hids"),
        ("hide", "hided hides hiding"),
        ("queries", "queried query querying"),
        ("keys", "key keyed keying"),
        ("key", ""),
        ("stopping", "stop stopped stops"),
        ("parsed", "pars parse parses parsing"),
        ("matches", "match matche matched matching"),
        ("class", "classed classes classing"),
        ("string", "stringed stringing strings"),
        ("need", "needed needing needs"),
        ("status", "statused statuses statusing"),
        ("bus", ""),
        ("http2", ""),
        ("parse_config", ""),
    ],
)
def test_regular_forms_of_words(word: str, forms: str) -> None:
    assert " ".join(forms_of(word)) == forms


@given(st.text("abeginsdyzx", min_size=1, max_size=12))
def test_forms_are_few_other_words_of_letters(word: str) -> None:
    forms = forms_of(word)
    assert word not in forms
    assert len(forms) <= 8
    assert all(len(form) >= 3 and form.isalpha() for form in forms)


async def test_code_that_says_a_word_in_another_form_is_found_by_words_and_shown_at_its_line(
    root: Path,
) -> None:
    text = "telescopes rotating"
    aim = b"def star(angle):\n    motor.start(angle)\n    motor.rotate_telescope(angle)\n    return motor.stop()\n"
    async with meant(root) as workspace:
        assert await best(workspace, text, semantic_weight=0.0) == []
        put(
            root,
            {
                "sky/aim.py": aim,
                "sky/dome.py": b"def dome():\n    return telescopes.rotating\n",
            },
        )
        for stored in (False, True):
            if stored:
                await settled(workspace)
            whole, half = (await asked(workspace, text, semantic_weight=0.0)).results
            assert (whole.path, whole.score) == (DOME, 1.0)
            assert half.path == AIM
            assert 0.3 < half.score <= 0.5
        assert await best(
            workspace, "telescopes", semantic_weight=0.0, rules=replace(RULES, form=0.0)
        ) == [DOME]
        lines = (await find_best_lines(workspace, text, 10, None)).results
        assert {hit["file_path"]: hit["start_line"] for hit in lines}.items() >= {
            ("sky/aim.py", 3),
            ("sky/dome.py", 2),
        }
        exact = await workspace.search(
            Question(pattern=Pattern(texts=("telescopes",), mode="literal"))
        )
        assert [hit["file_path"] for hit in exact.results] == ["sky/dome.py"], (
            "never of exact search"
        )
