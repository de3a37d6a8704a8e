"""Where numpy sorts slower with AVX-512 than without, processes go without."""

from pathlib import Path

import pytest

from flashgrep.rpc.connect import NUMPY_DISABLE, avoid_slow_sorting

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
    assert (NUMPY_DISABLE in avoid_slow_sorting({"HOME": "/x"}, str(cpuinfo))) == slow
    assert avoid_slow_sorting({NUMPY_DISABLE: "AVX2"}, str(cpuinfo)) == {
        NUMPY_DISABLE: "AVX2"
    }
    assert avoid_slow_sorting({"NPY_ENABLE_CPU_FEATURES": "AVX2"}, str(cpuinfo)) == {
        "NPY_ENABLE_CPU_FEATURES": "AVX2"
    }


def test_nothing_changes_where_the_system_does_not_tell(tmp_path: Path) -> None:
    assert avoid_slow_sorting({"HOME": "/x"}, str(tmp_path / "none")) == {"HOME": "/x"}
