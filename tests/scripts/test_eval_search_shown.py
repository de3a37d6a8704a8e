"""The table of answers as shown, which a later one must not fall short of."""

from pathlib import Path
from typing import Any

from scripts.benchmarks.search.asking import read_set
from scripts.benchmarks.search.shown import (
    Row,
    find_falls,
    format_table,
    load_table,
    save_table,
)


def make_rows(count: int, **changes: Any) -> list[Row]:
    """Return rows of questions that differ in their file's score."""
    row = Row(0.5, 0.4, 1.0, 1.0, 0.0, 5.0, 400.0)._replace(**changes)
    return [row._replace(file=row.file + at % 3 / 100) for at in range(count)]


def test_a_table_is_kept_question_by_question(tmp_path: Path) -> None:
    table = {"text": make_rows(3), "JSON": make_rows(3, named=None)}
    save_table(table, tmp_path / "table.tsv")
    assert load_table(tmp_path / "table.tsv") == table
    heading, text, json = format_table(table)
    assert heading.split() == list(Row._fields)
    assert text.split() == [
        *("text", "0.510", "0.400", "1.000", "1.000", "0.000", "5.0", "400.0")
    ]
    assert json.split()[3] == "nan"


def test_a_fall_of_any_column_is_reported_and_chance_is_not() -> None:
    before = {"text": make_rows(60)}
    assert list(find_falls(before, before)) == []
    worse = {"text": make_rows(60, range=0.3, tokens=390.0)}
    (fall,) = find_falls(before, worse)
    assert fall.startswith("text: range is worse by 0.100")
    (fall,) = find_falls(before, {"text": make_rows(60, tokens=420.0)})
    assert fall.startswith("text: tokens is worse by 20.000")
    by_chance = make_rows(60)
    by_chance[7] = by_chance[7]._replace(file=0.0)
    by_chance[8] = by_chance[8]._replace(file=0.9)
    assert list(find_falls(before, {"text": by_chance})) == []
    assert list(find_falls(before, {})) == ["text: 0 questions instead of 60"]
    by_rounding = {"text": make_rows(60, range=0.3996)}
    assert list(find_falls(before, by_rounding)) == []
    unnamed = {"text": make_rows(60, named=None)}
    assert list(find_falls(unnamed, unnamed)) == []


def test_a_set_of_questions_is_read_from_a_table(tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text(
        "repository\tkind\tquestion\ttargets\n"
        "shop\tsemantic\twhere is it\ta.py#load;b/c.py\n"
        "shop\tsymbol\tload\ta.py\n"
    )
    (first, second) = read_set(tmp_path / "queries.tsv")["shop"]
    assert (first.text, first.kind) == ("where is it", "semantic")
    assert [(one.path, one.name) for one in first.targets] == [
        ("a.py", "load"),
        ("b/c.py", ""),
    ]
    assert second.files == {"a.py"}
