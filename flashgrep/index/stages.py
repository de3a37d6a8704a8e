"""Which code made each late stage's rows: rows of other code are dropped, so that the stage is done anew, and only it.

Grams and words of a text depend on nothing but the database's format. Symbols depend on grammars and queries, chunks on
symbols and rules, vectors on chunks and a model.
"""

import sqlite3
from collections.abc import Mapping

from flashgrep.index import chunks, schema, symbols

BUILT_ON = {"symbols": ("symbols", "chunks", "vectors"), "chunks": ("chunks", "vectors"), "vectors": ("vectors",)}
"""What is dropped with each stage."""


def are_current(connection: sqlite3.Connection, versions: Mapping[str, str]) -> bool:
    """Return whether the rows of each stage were made by the code of these versions."""
    stored = dict(connection.execute("SELECT key, value FROM meta WHERE key LIKE 'stage %'").fetchall())
    return all(stored.get(f"stage {stage}") == version for stage, version in versions.items())


def drop_outdated(connection: sqlite3.Connection, versions: Mapping[str, str]) -> None:
    """Drop the rows of stages of another version, with what was built on them, and note the versions; all or nothing.

    ``versions``: of the stages in ``BUILT_ON``; the connection must be the writer's.
    """
    if are_current(connection, versions):
        return
    with schema.transaction(connection):
        outdated = [stage for stage in versions if not are_current(connection, {stage: versions[stage]})]
        dropped = {each for stage in outdated for each in BUILT_ON[stage]}
        if "symbols" in dropped:
            symbols.drop_all(connection)
        if "chunks" in dropped:
            chunks.drop_all(connection)
        elif "vectors" in dropped:
            chunks.drop_vectors(connection)
        rows = [(f"stage {stage}", version) for stage, version in versions.items()]
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
