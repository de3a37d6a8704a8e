"""Markdown to specifications: whatever people write, and whatever bytes a file has."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.parts.specs.openspec import parse
from flashgrep.parts.specs.spec import Requirement, Scenario, Spec, validate

SAMPLES = Path(__file__).parent / "samples"
COUNTS = {"000": (9, 19), "001": (7, 21), "003": (7, 15), "004": (15, 23)}
WHOLE = """\
# Sign-in Specification

## Purpose
People sign in
with one name everywhere.

It never asks twice.

## Requirements

### Requirement: One session
A person SHALL have one session.

#### Scenario: Second device
- **GIVEN** a session on a phone
- **AND** a laptop
- **WHEN** the laptop signs in
- **AND** the phone is asleep
- **THEN** the phone is asked
- **AND** the laptop waits
- **BUT** not for ever

#### Scenario: No device
- **WHEN** nothing happens
- **THEN** nothing happens

### Requirement: No trace
Signing out MUST leave nothing.
"""


def scenario(body: str) -> Scenario:
    """Return a scenario with these lines."""
    return (
        parse(f"## Requirements\n### Requirement: r\n#### Scenario: s\n{body}")
        .requirements[0]
        .scenarios[0]
    )


def requirement(body: str) -> Requirement:
    """Return a requirement with these lines."""
    return parse(f"## Requirements\n### Requirement: r\n{body}").requirements[0]


def told(spec: Spec) -> list[tuple[int, str]]:
    """Return a file's problems, by line."""
    return [(problem.line, problem.message) for problem in validate(spec)]


def test_a_specification_has_its_title_purpose_requirements_and_scenarios() -> None:
    spec = parse(WHOLE)
    assert spec.title == "Sign-in Specification"
    assert (
        spec.purpose
        == "People sign in\nwith one name everywhere.\n\nIt never asks twice."
    )
    assert [
        (one.name, one.text, one.line, len(one.scenarios)) for one in spec.requirements
    ] == [
        ("One session", "A person SHALL have one session.", 11, 2),
        ("No trace", "Signing out MUST leave nothing.", 27, 0),
    ]
    assert not spec.is_delta
    assert spec.problems == ()


def test_the_clauses_of_a_scenario_go_with_what_they_follow() -> None:
    first = parse(WHOLE).requirements[0].scenarios[0]
    assert first.given == ["a session on a phone", "a laptop"]
    assert first.when == "the laptop signs in\nAND the phone is asleep"
    assert first.then == ["the phone is asked", "the laptop waits", "BUT not for ever"]
    assert [(step.keyword, step.line) for step in first.steps][:3] == [
        ("GIVEN", 15),
        ("AND", 16),
        ("WHEN", 17),
    ]


def test_a_second_round_of_steps_stays_in_its_order() -> None:
    found = scenario("- **WHEN** a\n- **THEN** b\n- **WHEN** c\n- **THEN** d\n")
    assert (found.when, found.then) == ("a", ["b", "WHEN c", "d"])


@pytest.mark.parametrize("number", COUNTS)
def test_real_documents_have_all_their_requirements_and_scenarios(number: str) -> None:
    text = (SAMPLES / f"{number}.md").read_text(encoding="utf-8")
    spec = parse(text)
    scenarios = [
        one for requirement in spec.requirements for one in requirement.scenarios
    ]
    assert (len(spec.requirements), len(scenarios)) == COUNTS[number]
    assert [one.name for one in spec.requirements] == re.findall(
        r"^### Requirement: (.+)$", text, re.MULTILINE
    )
    assert [one.name for one in scenarios] == re.findall(
        r"^#### Scenario: (.+)$", text, re.MULTILINE
    )
    assert all(one.when and one.then for one in scenarios)
    assert {one.operation for one in spec.requirements} == {"ADDED"}
    assert [problem for problem in validate(spec) if problem.severity == "error"] == []


@pytest.mark.parametrize("number", COUNTS)
def test_real_documents_lose_no_step_and_no_word(number: str) -> None:
    text = (SAMPLES / f"{number}.md").read_text(encoding="utf-8")
    spec = parse(text)
    steps = [
        step
        for one in spec.requirements
        for scenario in one.scenarios
        for step in scenario.steps
    ]
    assert Counter(step.keyword for step in steps) == Counter(
        re.findall(r"\*\*(WHEN|THEN|AND|GIVEN)\*\*", text)
    )
    lines = text.split("\n")
    assert all(step.text.split("\n")[0] in lines[step.line - 1] for step in steps)
    shown = [text for one in spec.requirements for text in (one.name, one.text)]
    shown += [scenario.name for one in spec.requirements for scenario in one.scenarios]
    shown += [word for step in steps for word in (step.keyword, step.text)]
    structure = {"ADDED", "Requirements", "Requirement", "Scenario"}
    assert (
        set(re.findall(r"\w+", text)) - structure
        == set(re.findall(r"\w+", " ".join(shown))) - structure
    )


def test_lists_below_a_step_and_wrapped_lines_belong_to_it() -> None:
    found = scenario(
        "- **WHEN** a client calls with:\n"
        "  - `query` (required): what\n"
        "    is looked for\n"
        "  - `limit`\n"
        "\n"
        "- **THEN** the answer\n"
        "  comes at once\n"
        "\n"
        "  and is right\n"
    )
    assert (
        found.when
        == "a client calls with:\n- `query` (required): what is looked for\n- `limit`"
    )
    assert found.then == ["the answer comes at once\n\nand is right"]


@pytest.mark.parametrize(
    "body",
    [
        "- **WHEN** a\n- **THEN** b",
        "* **When** a\n* **Then** b",
        "+ __WHEN__ a\n+ __THEN__ b",
        "1. **WHEN** a\n2) **THEN** b",
        "- WHEN a\n- THEN b",
        "**WHEN** a\n**THEN** b",
        "WHEN a\nTHEN b",
        "- **WHEN:** a\n- **THEN**: b",
        "\t- **WHEN**\ta\n\t- **THEN**\tb",
        "-   **WHEN**   a  \n\n\n-   **THEN**   b  ",
        "- **WHEN**\n  a\n- **THEN**\n  b",
    ],
)
def test_steps_are_known_however_they_are_marked(body: str) -> None:
    assert (scenario(body).when, scenario(body).then) == ("a", ["b"])


def test_prose_that_begins_like_a_step_is_none() -> None:
    found = scenario(
        "When in doubt, ask.\n\n- **WHEN** a\n- **THEN** b\n\nThen came the end.\n"
    )
    assert [step.keyword for step in found.steps] == ["WHEN", "THEN"]
    assert found.text == "When in doubt, ask.\n\nThen came the end."


def test_headings_and_steps_in_a_code_fence_are_text() -> None:
    text = (
        "## Requirements\n### Requirement: shown\nIt SHALL:\n~~~~markdown\n### Requirement: inner\n~~~\n"
        "#### Scenario: inner\n~~~~\n#### Scenario: s\n- **WHEN** written as\n  ```\n  - **THEN** no\n  ## no\n  ```\n"
        "- **THEN** yes\n"
    )
    spec = parse(text)
    assert [one.name for one in spec.requirements] == ["shown"]
    assert "### Requirement: inner" in spec.requirements[0].text
    (only,) = spec.requirements[0].scenarios
    assert only.when == "written as\n```\n- **THEN** no\n## no\n```"
    assert only.then == ["yes"]


def test_a_fence_left_open_is_reported_with_its_line() -> None:
    spec = parse(
        "## Requirements\n### Requirement: r\nSHALL\n```\n#### Scenario: lost\n"
    )
    assert (4, "code fence ``` is never closed") in told(spec)
    assert "#### Scenario: lost" in spec.requirements[0].text


def test_backticks_within_a_line_open_no_fence() -> None:
    assert len(scenario("- **WHEN** a\n  ```x``` is code\n- **THEN** b").steps) == 2


def test_comments_and_front_matter_are_left_out() -> None:
    spec = parse(
        "---\ntitle: x\n# no\n---\n# Yes\n<!-- ## Purpose\nno\n-->\n## Purpose\nwhy <!-- not -->\n<!-- gone -->\n"
    )
    assert (spec.title, spec.purpose) == ("Yes", "why <!-- not -->")
    assert (2, "comment <!-- is never closed") in told(
        parse("# T\n<!-- x\n## Purpose\n")
    )


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_change_nothing(end: str, mark: str) -> None:
    assert parse(mark + WHOLE.replace("\n", end)) == parse(WHOLE)


def test_only_line_ends_end_a_line() -> None:
    assert (
        requirement("SHALL a\x0bb\x0cc\u2028d\x85e").text
        == "SHALL a\x0bb\x0cc\u2028d\x85e"
    )


def test_closed_headings_and_other_cases_are_known() -> None:
    spec = parse(
        "# T #\n## ADDED requirements ##\n### REQUIREMENT:   C# ###\nSHALL\n#### scenario:x\n"
    )
    assert (
        spec.title,
        spec.requirements[0].name,
        spec.requirements[0].scenarios[0].name,
    ) == ("T", "C#", "x")


def test_wrong_levels_are_read_and_reported() -> None:
    spec = parse(
        "## Requirements\n## Requirement: a\nSHALL\n### Scenario: b\n- **WHEN** x\n- **THEN** y\n"
    )
    assert spec.requirements[0].scenarios[0].name == "b"
    assert told(spec)[-2:] == [
        (2, "requirement heading has 2 #, must have 3"),
        (4, "scenario heading has 3 #, must have 4"),
    ]
    assert (2, "no space after the # of a heading") in told(
        parse("## Requirements\n###Requirement: a\n")
    )


def test_other_headings_inside_a_requirement_are_part_of_it() -> None:
    spec = parse(
        "## Requirements\n### Requirement: a\nSHALL\n#### Why\nbecause\n#### Scenario: s\n- **WHEN** x\n- **THEN** y\n"
        "##### Note\nmore\n#### After\nthat\n### Elsewhere\nnot here\n#### Scenario: lost\n"
    )
    (only,) = spec.requirements
    assert only.text == "SHALL\n\n#### Why\nbecause\n\n#### After\nthat"
    assert only.scenarios[0].then == ["y"]
    assert only.scenarios[0].text == "##### Note\nmore"
    assert (15, "scenario 'lost' is outside a requirement") in told(spec)


def test_a_delta_says_what_becomes_of_each_requirement() -> None:
    spec = parse(
        "## ADDED Requirements\n### Requirement: New\nSHALL\n#### Scenario: s\n- **WHEN** x\n- **THEN** y\n"
        "## MODIFIED Requirements\n### Requirement: Changed\nMUST\n#### Scenario: s\n- **WHEN** x\n- **THEN** y\n"
        "## REMOVED Requirements\n### Requirement: Old\n**Reason**: unused\n- `### Requirement: Older`\n"
        "## RENAMED Requirements\n- FROM: `### Requirement: Before`\n- TO: `### Requirement: After`\n"
        "* **From:** Plain\n* **To:** Plainer\n"
    )
    assert [
        (one.operation, one.name, one.renamed_from) for one in spec.requirements
    ] == [
        ("ADDED", "New", None),
        ("MODIFIED", "Changed", None),
        ("REMOVED", "Old", None),
        ("RENAMED", "After", "Before"),
        ("RENAMED", "Plainer", "Plain"),
    ]
    assert spec.is_delta
    assert told(spec) == []
    bare = parse(
        "## REMOVED Requirements\n- `### Requirement: Older`\n- Requirement: Oldest\n"
    )
    assert [one.name for one in bare.requirements] == ["Older", "Oldest"]


def test_half_a_renaming_is_reported() -> None:
    spec = parse("## RENAMED Requirements\n- TO: b\n- FROM: a\n- FROM: c\n- TO: d\n")
    assert [(one.name, one.renamed_from) for one in spec.requirements] == [("d", "c")]
    assert told(spec) == [
        (2, "renamed TO 'b' without a FROM before it"),
        (3, "renamed FROM 'a' without a TO after it"),
    ]


def test_what_is_missing_is_reported_by_line() -> None:
    assert told(parse("")) == [
        (1, "no purpose: there is no text under ## Purpose"),
        (1, "no requirements: there is no heading like ### Requirement: name"),
        (1, "no title: there is no heading with one #"),
    ]
    spec = parse(
        "# T\n## Purpose\n## Requirements\n### Requirement: a\nIt should.\n### Requirement: a\n"
        "#### Scenario: s\n- **WHEN**\n#### Scenario: s\n- **THEN** x\n### Requirement:\n## Notes\n### Requirement: b\n"
    )
    assert told(spec) == [
        (2, "no purpose: there is no text under ## Purpose"),
        (4, "requirement 'a' has neither SHALL nor MUST"),
        (4, "requirement 'a' has no scenario"),
        (6, "requirement 'a' has no text before its first scenario"),
        (6, "requirement 'a' is already defined in line 4"),
        (7, "scenario 's' has no THEN"),
        (8, "WHEN without text"),
        (9, "scenario 's' has no WHEN"),
        (9, "scenario 's' is already defined in line 7"),
        (11, "requirement '' has no scenario"),
        (11, "requirement '' has no text before its first scenario"),
        (11, "requirement without a name"),
        (13, "requirement 'b' has no scenario"),
        (13, "requirement 'b' has no text before its first scenario"),
        (13, "requirement 'b' is outside a section of requirements"),
    ]


PIECES = "# ## ### #### Requirement: Scenario: Requirements ADDED RENAMED REMOVED Purpose - ** WHEN THEN AND FROM: TO:"
MARKS = [
    "```",
    "~~~",
    "<!--",
    "-->",
    "---",
    "\n",
    "\r\n",
    "\t",
    " ",
    "`",
    "x",
    "é",
    "\ufeff",
    "\0",
    "**WHEN** ",
]
ODD = st.lists(st.sampled_from([*PIECES.split(), *MARKS]), max_size=80).map("".join)


@given(st.one_of(st.text(), ODD))
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    spec = parse(text)
    lines = re.split(r"\r\n|\n|\r", text)
    assert all(1 <= problem.line <= len(lines) for problem in validate(spec))
    for one in spec.requirements:
        assert 1 <= one.line <= len(lines)
        for scenario in one.scenarios:
            assert isinstance(scenario.when, str)
            kept = [*scenario.given, scenario.when, *scenario.then]
            assert all(step.text in "\n".join(kept) for step in scenario.steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "# " + " " * 1_000_000 + "x",
        "### Requirement: a\n" + "#### a\n" * 60_000,
        "### Requirement: a\n#### Scenario: b\n- **WHEN** x\n" + "a\n" * 200_000,
        "## RENAMED Requirements\n- FROM: `"
        + "  `" * 300_000
        + "\n- TO: "
        + "\t" * 1_000_000
        + "x",
        "## REMOVED Requirements\n- Requirement:" + " `" * 400_000,
        "## " + "requirements " * 80_000 + "x",
        "<!--" * 250_000,
        "* " * 500_000 + "x",
        "- **WHEN**" + " " * 1_000_000,
    ],
    ids=lambda text: repr(text[:24]),
)
@pytest.mark.timeout(20)
def test_no_text_of_a_megabyte_takes_more_than_seconds(text: str) -> None:
    validate(parse(text))
