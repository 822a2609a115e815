import pytest

from sim.build import build_and_run
from sim.memory import MemoryBench, memory_source
from tests.rtl.fetch.scenes import CONFIGS, SIZE, make_unit


@pytest.mark.parametrize("name", [
    "tiny", *(pytest.param(name, marks=pytest.mark.regress) for name in CONFIGS if name != "tiny")])
def test_fetch_from_a_memory_in_rtl(name):
    bench = MemoryBench(make_unit(name), size_bytes=SIZE)
    build_and_run(bench, name=f"fetch_memory_{name}", sources=[memory_source()],
                  bench="tests.rtl.fetch.bench_memory", arguments={"config": name})


def test_fetch_from_an_independent_slave():
    build_and_run(make_unit("tiny"), name="fetch_slave", bench="tests.rtl.fetch.bench_slave",
                  arguments={"config": "tiny"})
