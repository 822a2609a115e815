import pytest

from sim.build import build_and_run
from sim.memory import MemoryBench, memory_source
from tests.rtl.append.scenes import SIZE, make_unit


@pytest.mark.parametrize("name", ["tiny", pytest.param("streamed", marks=pytest.mark.regress)])
def test_append(name):
    bench = MemoryBench(make_unit(name), size_bytes=SIZE)
    build_and_run(bench, name=f"append_{name}", sources=[memory_source()],
                  bench="tests.rtl.append.bench_append", arguments={"config": name})
