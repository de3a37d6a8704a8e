"""The bench of what an agent's questions cost: its expert knows no line that nothing has shown him."""

import pytest

from scripts.benchmarks.agent import find_unseen_lines

FOUND = "lib/a.py:120:def parse(text):\nlib/b.py:9:parse(text)\n"


@pytest.mark.parametrize(
    ("commands", "unseen"),
    [
        (["rg -n parse", "sed -n '120,159p' lib/a.py"], []),
        (
            ["rg -n parse", "sed -n '110,149p' lib/a.py", "sed -n '150,189p' lib/a.py"],
            [],
        ),
        (["rg -n parse", "sed -n '160,199p' lib/a.py"], ["sed -n '160,199p' lib/a.py"]),
        (["rg -n parse", "sed -n '80,119p' lib/a.py"], ["sed -n '80,119p' lib/a.py"]),
        (["sed -n '120,159p' lib/a.py", "rg -n parse"], ["sed -n '120,159p' lib/a.py"]),
    ],
)
def test_an_expert_reads_near_a_line_that_he_has_seen(
    commands: list[str], unseen: list[str]
) -> None:
    answers = [
        FOUND if command.startswith("rg") else "    return text\n"
        for command in commands
    ]
    assert find_unseen_lines(commands, answers) == unseen
