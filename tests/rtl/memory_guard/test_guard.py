from hw.config.memory import MemoryConfig
from hw.memory.guard import Guard
from sim.build import build_and_run


def test_guard():
    build_and_run(Guard(MemoryConfig(), 16), name="memory_guard",
                  bench="tests.rtl.memory_guard.bench_guard")
