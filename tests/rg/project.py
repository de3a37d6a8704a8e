"""An indexed tree, and what the planner of ``fgrep rg`` makes of a call in it, compared with ripgrep."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flashgrep.files.walk import Walker
from flashgrep.parts.ripgrep.arguments import Call
from flashgrep.parts.ripgrep.plan import plan
from flashgrep.search.snapshot import Snapshot
from tests.support.rg_tree import in_path_order, ripgrep


@dataclass(frozen=True, slots=True)
class Project:
    """An indexed tree, some of whose files may have changed since."""

    root: Path
    snapshot: Snapshot
    walker: Walker

    def plan(
        self,
        arguments: Sequence[str],
        cwd: Path | None = None,
        config: str | None = None,
    ) -> list[bytes] | None:
        """Return what a call is planned to be; None: as it is."""
        call = Call(
            arguments, os.fsencode(cwd or self.root), config, readable_input=False
        )
        return plan(call, self.snapshot, self.walker)


def check(project: Project, arguments: Sequence[str], cwd: Path) -> bool:
    """Compare what is planned with the call as it is; return whether anything is planned."""
    ordered = in_path_order(arguments)
    planned = project.plan(ordered, cwd)
    if planned is not None:
        assert ripgrep(planned, cwd) == ripgrep(["--no-config", *ordered], cwd), (
            arguments,
            planned,
        )
    return planned is not None
