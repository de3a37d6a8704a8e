"""What documents print as examples: fenced blocks, the commands in them, and what these are said to print."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block of a page, relative to the repository."""

    page: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its shell commands, each with its continuation lines."""
        joined = re.sub(r"([\\|])\n", r"\1\0", self.text)
        lines = [line.replace("\0", "\n") for line in joined.splitlines()]
        return [line for line in lines if line.strip()]

    @property
    def session(self) -> list[tuple[str, str]]:
        """Its commands, typed at ``$``, each with what it is said to print."""
        typed = re.split(r"(?m)^\$ ", self.text)[1:]
        parts = [part.partition("\n") for part in typed]
        return [(command, output) for command, _, output in parts]


def read_examples(page: str) -> list[Example]:
    """Return the fenced blocks of a page, in order."""
    text = (ROOT / page).read_text("utf-8")
    return [Example(page, *block) for block in BLOCK.findall(text)]


def find_example(page: str, start: str) -> Example:
    """Return the block of a page that starts with a text."""
    (example,) = [
        example for example in read_examples(page) if example.text.startswith(start)
    ]
    return example
