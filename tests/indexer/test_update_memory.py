"""The list of what is to be indexed is let go of before the files are read: in a large tree it takes 16 MB on each side."""

import gc
import weakref
from io import BytesIO
from pathlib import Path
from typing import Any

from flashgrep.files.openat import RootFolder
from flashgrep.index.table import Mark
from flashgrep.indexer.child import IndexerChild
from flashgrep.indexer.indexer_process import Indexer
from flashgrep.indexer.job import IndexJob, ProjectJob

SIZE = 123_457


class Files(list[Any]):
    """A list that can be referred to weakly."""


class Out(BytesIO):
    """Where the indexer reports to; notes whether the list is still there then."""

    def __init__(self, files: Files) -> None:
        super().__init__()
        self._files = weakref.ref(files)
        self.kept: list[bool] = []

    def write(self, data: Any) -> int:
        self.kept.append(self._files() is not None)
        return super().write(data)


def make_job(folder: Path) -> tuple[IndexJob, ProjectJob]:
    root = folder / "tree"
    root.mkdir()
    (root / "a.py").write_text("def weave():\n    pass\n")
    job = IndexJob(folder / "store" / "index.db", bytes(root), 1, functions={})
    return job, ProjectJob(RootFolder(bytes(root)), 1 << 20, 0, 1)


def test_the_indexer_lets_go_of_the_list(tmp_path: Path) -> None:
    job, project = make_job(tmp_path)
    job.index.parent.mkdir()
    files = Files([["a.py", SIZE]])
    out = Out(files)
    indexer = Indexer(job, out)
    command = {
        "op": "update",
        "project": project.to_json(),
        "batch": 1,
        "files": files,
        "forget": [],
    }
    del files
    try:
        indexer.run(command)
    finally:
        indexer.close()
    assert out.kept
    assert not any(out.kept)


async def test_the_daemon_lets_go_of_the_list(tmp_path: Path) -> None:
    job, project = make_job(tmp_path)
    child = await IndexerChild.start(job)
    try:
        marks = {b"a.py": Mark(ours=True, sequence=1, size=SIZE)}
        parts = 0
        async for part in child.update(project, 1, marks):
            parts += 1
            assert [row.path for row in part.rows] == [b"a.py"]
            listed = [
                thing
                for thing in gc.get_objects()
                if type(thing) is list and any(item is SIZE for item in thing)
            ]
            assert listed == []
        assert parts == 1
    finally:
        await child.close()
