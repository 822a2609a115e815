"""The streaming engine as a whole."""

import pytest

from hw.streaming.unit import StreamingUnit
from sim.build import build_and_run
from sim.memory import MemoryBench, memory_source
from tests.rtl.streaming_unit.scenes import CONFIGS, MEMORY_BYTES

NAMES = ["tiny", pytest.param("wide", marks=pytest.mark.regress)]


@pytest.mark.parametrize("config", NAMES)
def test_jobs(config):
    bench = MemoryBench(StreamingUnit(CONFIGS[config]), size_bytes=MEMORY_BYTES, outstanding=256)
    build_and_run(bench, name=f"streaming_{config}", sources=[memory_source()],
                  bench="tests.rtl.streaming_unit.bench_unit", arguments={"config": config})


@pytest.mark.regress
def test_jobs_on_an_independent_slave():
    build_and_run(StreamingUnit(CONFIGS["tiny"]), name="streaming_slave",
                  bench="tests.rtl.streaming_unit.bench_slave", arguments={"config": "tiny"})
