"""Parsing texts that change meanwhile stores nothing for them: the text may come back."""

from pathlib import Path

from flashgrep.daemon.parsing import Parsers
from flashgrep.daemon.prepare import prepare
from flashgrep.index.writer import Reserved


def test_a_text_that_changed_gets_no_row_and_others_do(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def first():\n    pass\n")
    (tmp_path / "b.py").write_text("def second():\n    pass\n")
    names = [b"a.py", b"b.py"]
    files = prepare(bytes(tmp_path), names, Reserved(1, 1), None, 1 << 20).files
    texts = [(at, text_hash, row.path) for at, (row, text_hash) in enumerate(files, 1)]
    (tmp_path / "a.py").write_text("def other():\n    pass\n")
    parsers = Parsers(bytes(tmp_path), 1 << 20, 1)
    try:
        (done,) = parsers.run([texts])
    finally:
        parsers.close()
    assert [row.blob for row in done.rows] == [2]
    assert done.declined == []
