"""Processes run numpy without threads of BLAS, and without AVX-512 where sorting is slower with it."""

import sys
from pathlib import Path

import pytest

from flashgrep.rpc.connect import BLAS_THREADS, NUMPY_DISABLE, tune_numpy
from tests.support.workspace import opened, put

CPUINFO = """processor\t: 0
vendor_id\t: {vendor}
cpu family\t: {family}
model name\t: AMD EPYC
flags\t\t: fpu avx2 {flags} clzero

processor\t: 1
"""


@pytest.mark.parametrize(
    ("vendor", "family", "flags", "slow"),
    [
        ("AuthenticAMD", 25, "avx512f avx512dq", True),
        ("AuthenticAMD", 25, "", False),
        ("AuthenticAMD", 26, "avx512f", False),
        ("GenuineIntel", 6, "avx512f avx512dq", False),
    ],
)
def test_sorting_goes_without_avx512_on_zen_4_alone(
    tmp_path: Path, vendor: str, family: int, flags: str, *, slow: bool
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(CPUINFO.format(vendor=vendor, family=family, flags=flags))
    assert (NUMPY_DISABLE in tune_numpy({"HOME": "/x"}, str(cpuinfo))) == slow
    for choice in ({NUMPY_DISABLE: "AVX2"}, {"NPY_ENABLE_CPU_FEATURES": "AVX2"}):
        assert tune_numpy(choice, str(cpuinfo)) == {BLAS_THREADS: "1", **choice}


def test_sorting_stays_as_it_is_where_the_system_does_not_tell(tmp_path: Path) -> None:
    assert tune_numpy({"HOME": "/x"}, str(tmp_path / "none")) == {
        "HOME": "/x",
        BLAS_THREADS: "1",
    }


def test_a_number_of_threads_that_the_user_chose_is_kept(tmp_path: Path) -> None:
    chosen = {BLAS_THREADS: "3"}
    assert tune_numpy(chosen, str(tmp_path / "none")) == chosen


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_an_indexer_has_one_thread(root: Path) -> None:
    put(root, {"a.txt": b"needle\n"})
    async with opened(root) as workspace:
        await workspace.wait_indexed()
        threads = Path(f"/proc/{workspace.store.scheduler.pid}/task")
        assert len(list(threads.iterdir())) == 1
