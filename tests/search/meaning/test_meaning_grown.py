"""An index that has seen files change, move and go answers as one made of what is there now, to the last bit."""

import random
import shutil
from pathlib import Path

from flashgrep.parts.meaning.questions import search_by_meaning
from flashgrep.parts.meaning.search.meaning_search import MeaningQuestion
from flashgrep.project import Workspace
from tests.support.meaning import FILES, settled
from tests.support.workspace import opened, put, user_folder

QUESTIONS = (
    "how are passwords hashed",
    "routes of the server",
    "alike",
    "send an invoice by mail",
    "verify_password",
    "a",
)

Said = tuple[bytes, int, float, float]


async def answers(workspace: Workspace) -> dict[str, list[Said]]:
    """Ask everything, once all is stored."""
    assert await workspace.refresh()
    await settled(workspace)
    found = {}
    for text in QUESTIONS:
        answer = await search_by_meaning(
            workspace, MeaningQuestion(text=text, limit=60)
        )
        assert (answer.ranked_by, answer.unseen) == ("words and meaning", 0)
        found[text] = [
            (one.path, one.chunk.start, one.score, one.near) for one in answer.results
        ]
    return found


def live(root: Path, rng: random.Random) -> None:
    """Do what happens to a file of a project: it is saved, copied, moved over others, deleted."""
    file = rng.choice(sorted(root.rglob("*.py")))
    to = file.with_name(f"{rng.choice('amz')}{rng.randrange(99)}.py")
    act = rng.choice(["save", "copy", "move", "move", "delete"])
    if act == "save":
        file.write_bytes(
            file.read_bytes()
            + b"\n\ndef alike(route):\n    return verify_password(route)\n"
        )
    elif act == "copy":
        shutil.copy(file, to)
    elif act == "move":
        file.rename(to)
    else:
        file.unlink()


async def test_a_grown_index_answers_as_a_fresh_one(root: Path) -> None:
    rng = random.Random(6)
    # Texts whose words and vectors are equal but for their names, more of them than the
    # shortest list of candidates.
    alike = {
        f"alike/alike{at}.py": b"def alike(a%d):\n    return a%d\n" % (at, at)
        for at in range(12)
    }
    put(root, FILES | alike)
    async with opened(root) as workspace:
        await settled(workspace)
        for _ in range(4):
            for _ in range(6):
                live(root, rng)
            assert await workspace.refresh()
        grown = await answers(workspace)
    shutil.rmtree(user_folder(root))
    async with opened(root) as workspace:
        fresh = await answers(workspace)
    assert grown == fresh
    assert all(fresh.values())
