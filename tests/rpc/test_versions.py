"""Which of two versions is the newer: the newer daemon answers for both."""

import random

from flashgrep.rpc.connect import parse_version

OLD_TO_NEW = [
    "0.1.0", "0.9.10", "1.0.0.dev3", "1.0.0a1", "1.0.0b2", "1.0.0rc1", "1.0.0rc2", "1.0.0rc10", "1.0.0", "1.0.1rc1", "1.0.1",
    "1.2.0", "1.10.0", "2.0.0rc1",
]  # fmt: skip


def test_versions_are_ordered_as_they_were_released() -> None:
    shuffled = random.Random(1).sample(OLD_TO_NEW, len(OLD_TO_NEW))
    assert sorted(shuffled, key=parse_version) == OLD_TO_NEW
    assert parse_version("1.0.0+local") == parse_version("1.0.0")
    for odd in ("", "x", "1..2", "rc", "1.x1y2"):
        assert parse_version(odd)
