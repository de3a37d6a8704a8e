"""What of the processor numpy had better leave alone."""

import os
from collections.abc import Mapping

DISABLE = "NPY_DISABLE_CPU_FEATURES"
ENABLE = "NPY_ENABLE_CPU_FEATURES"
READ_BYTES = 8192
"""The first processor's paragraph has about 1,500."""


def with_fast_sorting(environ: Mapping[str, str], cpuinfo: str = "/proc/cpuinfo") -> dict[str, str]:
    """Return the environment for processes that sort with numpy: without AVX-512 where that is the slower way.

    Zen 4 stores compressed vectors by microcode: numpy sorts 25,000 numbers at 18 ns each with AVX-512, 4 ns without.
    Who has chosen himself keeps his choice.
    """
    found = dict(environ)
    try:
        number = os.open(cpuinfo, os.O_RDONLY | os.O_CLOEXEC)
        try:
            processor = os.read(number, READ_BYTES).partition(b"\n\n")[0]
        finally:
            os.close(number)
    except OSError:  # no Linux
        return found
    zen_3_or_4 = b"AuthenticAMD\ncpu family\t: 25\n" in processor
    if zen_3_or_4 and b" avx512f " in processor and DISABLE not in environ and ENABLE not in environ:
        found[DISABLE] = "X86_V4 AVX512_SKX"  # as numpy 2.4 and those before it call it
    return found
