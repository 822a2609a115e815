from sim.build import build_and_run
from sim.memory import AxiMemory, memory_source


def test_memory():
    memory = AxiMemory(address_bits=20, data_bytes=16, id_bits=2, size_bytes=1 << 16)
    build_and_run(memory, name="memory_model", sources=[memory_source()],
                  bench="tests.rtl.memory.bench_memory")
