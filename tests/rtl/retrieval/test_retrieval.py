import pytest

from hw.attention.retrieval import Retrieval
from sim.build import build_and_run
from sim.memory import MemoryBench, memory_source
from tests.rtl.retrieval.systems import CONFIGS, SIZE, StreamedSystem

NAMES = ["tiny", "streamed_32", *(pytest.param(name, marks=pytest.mark.regress) for name in CONFIGS
                                  if name not in ("tiny", "streamed_32"))]


def run(name, bench, **options):
    config = CONFIGS[name]
    arguments = {"config": name}
    if config.code_source == "streamed":
        unit = MemoryBench(StreamedSystem(config), size_bytes=SIZE)
        build_and_run(unit, name=f"retrieval_{name}", sources=[memory_source()], bench=bench,
                      arguments=arguments, **options)
    else:
        build_and_run(Retrieval(config), name=f"retrieval_{name}", bench=bench,
                      arguments=arguments, **options)


@pytest.mark.parametrize("name", NAMES)
def test_selection(name):
    run(name, "tests.rtl.retrieval.bench_retrieval")


@pytest.mark.parametrize("name", NAMES)
def test_cycles(name):
    run(name, "tests.rtl.retrieval.bench_cycles")


@pytest.mark.parametrize("name", ["streamed_32", pytest.param("streamed_16",
                                                              marks=pytest.mark.regress)])
def test_faults(name):
    run(name, "tests.rtl.retrieval.bench_faults")
