"""What memory a daemon holds once it has been busy."""

import ctypes
import subprocess
import sys
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


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="glibc's heaps")
@pytest.mark.parametrize("shared", [True, False])
def test_threads_share_one_heap(*, shared: bool) -> None:
    program = f"""
import threading
from flashgrep.machine import use_one_heap
if {shared}:
    use_one_heap()
held = []
thread = threading.Thread(target=lambda: held.extend(bytes(1000) for _ in range(1000)))
thread.start()
thread.join()
spans = [line.split()[0].split("-") for line in open("/proc/self/maps") if " ---p " in line]
print(sum(32 << 20 < int(end, 16) - int(start, 16) < 64 << 20 for start, end in spans))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert (int(said) == 0) == shared  # of a heap's 64 MB what is not used yet can be neither read nor written
