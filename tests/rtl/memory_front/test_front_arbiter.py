from hw.config.memory import MemoryConfig
from hw.memory.front_arbiter import FrontArbiter
from sim.build import build_and_run


def test_front_arbiter():
    build_and_run(FrontArbiter(MemoryConfig(), count=3, bound=4), name="front_arbiter",
                  bench="tests.rtl.memory_front.bench_front_arbiter")
