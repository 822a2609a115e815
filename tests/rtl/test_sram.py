import shutil

import pytest

from hw.sram import Sram
from sim.build import build_and_run
from sim.tools import is_hosted


@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
@pytest.mark.parametrize("width, depth, granularity", [
    (8, 33, None),     # a lib.memory
    (24, 200, 8),      # the macro, not a power of two deep
    (72, 256, None),
])
def test_sram(simulator, width, depth, granularity):
    if simulator == "icarus" and (shutil.which("iverilog") is None or is_hosted()):
        pytest.skip("iverilog, or Python's shared library, is not installed")
    granules = width // (granularity or width)
    build_and_run(Sram(width, depth=depth, granularity=granularity), name="sram",
                  bench="tests.rtl.bench_sram", simulator=simulator,
                  arguments={"depth": depth, "width": width, "granules": granules})
