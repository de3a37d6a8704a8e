"""Where files of several languages are cut, read and agreed to by a person.

``python tests/ingest/test_chunk_golden.py`` writes the golden files anew; read the difference before you keep it.
"""

from pathlib import Path

import pytest

from flashgrep.base.languages import language_of
from flashgrep.parts.meaning.chunking import chunk_text
from flashgrep.parts.meaning.index.chunks import StoredChunk
from flashgrep.parts.symbols.parse import ParsedFile, parse_symbols

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parent / "samples"
LONG = SAMPLES / "chunks"
FILES = [*sorted(SAMPLES.glob("sample.*")), *sorted(LONG.glob("sample.*"))]


def cut(path: Path) -> list[StoredChunk]:
    data = path.read_bytes()
    language = language_of(path.name.encode(), data).name
    parsed = parse_symbols(language, data)
    assert isinstance(parsed, ParsedFile)
    return list(chunk_text(1, path.name.encode(), data, parsed).chunks)


def rendered(paths: list[Path]) -> str:
    lines = []
    for path in paths:
        lines.append(f"# {path.relative_to(SAMPLES)}")
        for chunk in cut(path):
            place = (
                f"{chunk.start_line}-{chunk.end_line} {chunk.end - chunk.start} bytes"
            )
            header = " / ".join(chunk.header.splitlines())
            lines.append(f"{place} {chunk.kind} {chunk.name} | {header}".rstrip(" |"))
    return "\n".join([*lines, ""])


def test_samples_are_cut_as_in_the_golden_file() -> None:
    assert rendered(FILES) == (LONG / "golden.txt").read_text("utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_a_sample_of_1500_bytes_is_one_chunk(path: Path) -> None:
    assert (len(cut(path)) == 1) == (path.stat().st_size <= 1_500)


if __name__ == "__main__":
    (LONG / "golden.txt").write_text(rendered(FILES), "utf-8")
