"""Places written as one text: which lines of which file they mean, and that every method reads them alike."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.places import MOST_READINGS, LinesOfFile, find_places
from tests.conftest import DaemonAtHand, MakeProject, Wire

LINES = "".join(f"line {number}\n" for number in range(1, 41))
NAMES = st.text(alphabet="ab:/.-#L019 ", min_size=1, max_size=12)
NUMBERS = st.integers(1, 999_999_999)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("gin.go", []),
        ("gin.go:", []),
        ("gin.go:x", []),
        ("gin.go:0", []),
        ("gin.go:57", [LinesOfFile("gin.go", 57, 57)]),
        ("gin.go:57:", [LinesOfFile("gin.go", 57, 57)]),
        ("gin.go:57:func (e *Engine)", [LinesOfFile("gin.go", 57, 57)]),
        ("gin.go:57-60", [LinesOfFile("gin.go", 57, 60)]),
        ("gin.go:57-60:func", [LinesOfFile("gin.go", 57, 60)]),
        ("gin.go#L57", [LinesOfFile("gin.go", 57, 57)]),
        ("gin.go#L57-L60", [LinesOfFile("gin.go", 57, 60)]),
        ("gin.go#L57C3-L60C9", [LinesOfFile("gin.go", 57, 60)]),
        ("gin.go:57:6-60:3", [LinesOfFile("gin.go", 57, 60, 6)]),
    ],
)
def test_a_place_means_these_lines(text: str, places: list[LinesOfFile]) -> None:
    assert list(find_places(text))[: max(1, len(places))] == places


@pytest.mark.parametrize("ending", ["", ":", ":call: f(x, 1:2:3)", "-9"])
def test_the_number_after_the_line_is_a_column(ending: str) -> None:
    assert next(find_places(f"gin.go:4:9{ending}")) == LinesOfFile("gin.go", 4, 4, 9)


@given(NAMES, NUMBERS, NUMBERS)
def test_the_file_that_is_meant_is_among_the_readings(
    name: str, line: int, column: int
) -> None:
    text = f"{name}:{line}:{column}"
    readings = list(find_places(text))
    is_cut = len(readings) == MOST_READINGS
    assert LinesOfFile(name, line, line, column) in readings or is_cut
    for place in readings:
        assert text.startswith(
            (f"{place.path}:{place.first}", f"{place.path}:0", f"{place.path}#L")
        )


@given(st.text(alphabet="ab:/.-#L019 \n", max_size=30))
def test_any_text_has_few_readings_each_with_a_name_and_a_line(text: str) -> None:
    readings = list(find_places(text))
    assert len(readings) <= MOST_READINGS
    assert all(
        place.path and place.first > 0 and text.startswith(place.path)
        for place in readings
    )


@pytest.fixture
def wire(daemon: DaemonAtHand, project: MakeProject) -> Iterator[Wire]:
    root = project(
        {
            "gin.go": LINES,
            "a:1": LINES,
            "b:4:9": "b\n",
            "c": LINES,
            "c:4": "in c:4\n",
            "d:2-3": "d\n",
        }
    )
    daemon.add(root)
    with closing(daemon.wire("unix", root)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("place", "content"),
    [
        ("gin.go:4:9", "line 4\n"),
        ("gin.go:30:6", "line 30\n"),
        ("gin.go:4:9:line 4", "line 4\n"),
        ("gin.go:4-5", "line 4\nline 5\n"),
        ("gin.go:4:2-5:3", "line 4\nline 5\n"),
        ("gin.go#L4-L5", "line 4\nline 5\n"),
        ("a:1:7", "line 7\n"),  # there is no file "a"
        ("a:1:7:2", "line 7\n"),
        ("b:4:9", "b\n"),  # an existing file's whole name
        ("c:4", "in c:4\n"),
        ("c:4:1", "line 4\n"),
        ("d:2-3", "d\n"),
        ("d:2-3:1", "d\n"),
    ],
)
def test_a_place_is_read_as_the_lines_it_means(
    wire: Wire, place: str, content: str
) -> None:
    assert wire.call("read_code", path=place)["content"] == content
    assert wire.call("read_code", targets=[place])["content"] == content


def test_a_line_past_the_end_is_told_and_no_other_line_is_read(wire: Wire) -> None:
    assert (
        "past the end" in wire.ask("read_code", path="gin.go:57:6")["error"]["message"]
    )
