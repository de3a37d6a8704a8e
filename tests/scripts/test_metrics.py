"""The measures of readability: what they say of a package that is beyond a limit."""

from pathlib import Path

from scripts.tools.metrics import check, find_pronouns, measure, read_house

MODULE = "def double(number: int) -> int:\n    doubled = 2 * number\n    return doubled\n\n\n"


def write_package(folder: Path, text: str) -> Path:
    (folder / "module.py").write_text(text)
    return folder


def test_too_few_comments_are_told_in_lines(tmp_path: Path) -> None:
    package = write_package(tmp_path, MODULE * 100)
    house = read_house(package)
    faults = [fault for fault in check(measure(house), house) if "comment" in fault]
    assert len(faults) == 1
    # 3.6 % of 300 lines.
    assert "11 more in the package" in faults[0]


def test_too_many_nodes_are_told_in_nodes(tmp_path: Path) -> None:
    dense = "pairs = [(f(a), g(b), h(a + b)) for a in x if a for b in y(a) if b < 2]\n"
    package = write_package(tmp_path, MODULE * 9 + dense * 9)
    house = read_house(package)
    excess = house.nodes - 7.9 * house.code
    faults = [fault for fault in check(measure(house), house) if "nodes" in fault]
    assert len(faults) == 1
    assert excess > 0
    assert f"{int(excess) + 1} nodes too many" in faults[0]


def test_pronouns_are_named_with_their_places(tmp_path: Path) -> None:
    package = write_package(tmp_path, "found = 1\nname = found\n")
    assert list(find_pronouns(package)) == [(Path("module.py"), 1, "found")]
