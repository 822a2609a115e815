from hw.config.memory import MemoryConfig
from hw.memory.endpoint import Endpoint
from sim.build import build_and_run


def test_endpoint():
    build_and_run(Endpoint(MemoryConfig()), name="memory_endpoint",
                  bench="tests.rtl.memory_endpoint.bench_endpoint")
