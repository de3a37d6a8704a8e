"""An indexed tree, and what is planned for a ``grep`` or ``find`` in it, compared with the program itself."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flashgrep.files.walk import Walker
from flashgrep.parts.hook.grep_plan import Plan
from flashgrep.search.snapshot import Snapshot
from tests.support.rg_tree import Said, run_to_end

GREP = shutil.which("grep") or "grep"
FIND = shutil.which("find") or "find"
LOCALES = ("C.UTF-8", "C")
"""A line of shell may set any; these two every system has."""
Planner = Callable[[list[str], bytes, Snapshot, Walker], Plan | None]


@dataclass(frozen=True, slots=True)
class Project:
    """An indexed tree, some of whose files may have changed since."""

    root: Path
    snapshot: Snapshot
    walker: Walker

    def check(
        self,
        program: str,
        plan: Planner,
        arguments: Sequence[str],
        cwd: Path,
        locale: str = "C.UTF-8",
    ) -> bool:
        """Compare what is planned with the call as it is; return whether anything is planned."""
        planned = plan([*arguments], os.fsencode(cwd), self.snapshot, self.walker)
        if planned is None:
            return False
        ours = run(program, planned.words, cwd, locale)
        theirs = run(program, arguments, cwd, locale)
        assert ours == theirs, (cwd, locale, arguments, planned)
        return True


def run(
    program: str,
    arguments: Sequence[str | bytes],
    cwd: Path,
    locale: str = "C.UTF-8",
) -> Said:
    """Run a program in a locale."""
    environ = {**os.environ, "LC_ALL": locale}
    return run_to_end([program, *arguments], cwd, environ)


def make_large(root: Path, files: int = 40) -> None:
    """Add files, 500 KB each, with which a project is so large that plans are made for it."""
    folder = root / "weight"
    folder.mkdir()
    for number in range(files):
        (folder / f"{number}.txt").write_bytes(b"so much more\n" * 38_000)
