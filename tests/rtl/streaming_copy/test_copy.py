import pytest

from sim.build import build_and_run
from sim.memory import MemoryBench, memory_source
from tests.rtl.streaming_copy.scenes import CONFIGS, MEMORY, make_unit

NAMES = ["bus16", *(pytest.param(name, marks=pytest.mark.regress)
                    for name in CONFIGS if name != "bus16")]


@pytest.mark.parametrize("name", NAMES)
def test_copies_on_an_independent_slave(name):
    build_and_run(make_unit(name), name=f"copy_slave_{name}",
                  bench="tests.rtl.streaming_copy.bench_slave", arguments={"config": name})


@pytest.mark.parametrize("name", NAMES)
def test_copies_on_a_memory_in_rtl(name):
    bench = MemoryBench(make_unit(name), size_bytes=MEMORY)
    build_and_run(bench, name=f"copy_memory_{name}", sources=[memory_source()],
                  bench="tests.rtl.streaming_copy.bench_memory", arguments={"config": name})
