"""Code lines that can not be read: the query fails, the next one does not."""

import random

import cocotb

from golden.selection import Select
from sim.memory import MemoryFault
from tests.retrieval_scenes import BUS_ERROR, SHORT_ERROR
from tests.rtl.retrieval.bench import RetrievalBench


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(fault=["READ_SLVERR", "READ_DECERR", "READ_SHORT", "READ_LONG"],
                    place=["first", "others", "last"], latency=[1, 30])
async def a_fault_ends_its_query_only(dut, fault, place, latency):
    bench = RetrievalBench(dut, stall=random.choice([0.0, 0.4]))
    # Long enough for many bursts, and for more than may be open at once.
    await bench.start(tokens=[1000, 600], read_latency=latency)
    healthy, broken = bench.scene.contexts
    lines = -(-len(broken) // bench.config.lanes)
    low = broken.address
    high = low + lines * bench.config.code_line_bytes
    # A fault hits the bursts that begin in its range; bursts end at multiples of 4 KiB.
    base, limit = {"first": (low, low + 1), "others": ((low | 4095) + 1, high),
                   "last": (high - 1 & ~4095, high)}[place]
    bench.control.set_fault(MemoryFault[fault], base, limit)
    error = BUS_ERROR if "ERR" in fault else SHORT_ERROR
    for _ in range(3):
        bench.ask([bench.scene.make_query(healthy)])
        bench.expect_failure(bench.scene.make_query(broken), error)
        bench.expect_failure(bench.scene.make_query(broken, select=Select.DENSE), error)
    bench.ask([bench.scene.make_query(healthy)])
    await bench.finish()
    bench.control.set_fault(MemoryFault.NONE)
    bench.ask([bench.scene.make_query(broken)])
    await bench.finish()
    bench.stop()
