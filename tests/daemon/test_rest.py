"""What a daemon holds once nobody has asked for a while."""

from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from flashgrep import catalogue as module
from flashgrep.catalogue import Catalogue
from flashgrep.config import Settings
from flashgrep.handlers import REGISTRY
from flashgrep.registry import Call, Session
from flashgrep.search.symbol_source import forget_parsed, parse_and_keep
from tests.conftest import BOUND


async def test_a_few_questions_leave_nothing_parsed_when_a_minute_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.02)
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.py").write_text("def weave():\n    return weave()\n")
    forget_parsed()
    async with Catalogue(state_dir=tmp_path / "state", settings=Settings(), indexes=False) as catalogue:
        await catalogue.open(str(root))
        method = REGISTRY.get("get_symbol")
        call = Call(catalogue, Session(projects=(str(root),)))
        # Twice: what has been let go of once is let go of again.
        for asked in (1, 2):
            assert (await method.call(call, {"symbol_name": "weave"}))["total"] == 2, asked
            with anyio.fail_after(BOUND):
                while parse_and_keep.cache_info().currsize:
                    await checkpoint()
