"""The notebook of the documentation, cell by cell: each prints what it shows.

Without Jupyter, whose kernel and protocol take thirty packages: a cell is Python, and its outputs are in the file.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.conftest import DaemonAtHand

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"
BETWEEN = "--- next cell ---"


def join_cells(cells: list[Any]) -> str:
    """Return one program of all cells that says where each ends."""
    sources = ["".join(cell["source"]) for cell in cells]
    return f"\nprint({BETWEEN!r})\n".join(sources)


def test_every_cell_of_the_notebook_prints_what_it_shows(daemon: DaemonAtHand) -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    program = join_cells(cells)
    python = ("-W", "error", "-")
    run = daemon.run(*python, program=sys.executable, stdin=program)
    assert not run.stderr
    printed = run.stdout.split(f"{BETWEEN}\n")
    shown = [
        "".join(text for output in cell["outputs"] for text in output["text"])
        for cell in cells
    ]
    assert printed == shown
