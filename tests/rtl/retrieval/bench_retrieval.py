"""The whole retrieval against golden: every mode, boundary lengths, stalls, order and reset."""

import random

import cocotb

from golden.selection import Select
from sim.testbench import cycles
from tests.retrieval_scenes import boundary_lengths
from tests.rtl.retrieval.bench import RetrievalBench

LENGTHS = (300, 33, 160)


@cocotb.test(timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.2, 0.6])
async def random_queries(dut, stall):
    bench = RetrievalBench(dut, stall=stall)
    await bench.start(tokens=LENGTHS)
    for _ in range(60):
        context = random.choice(bench.scene.contexts)
        visible = random.choice([len(context), random.randrange(1, len(context) + 1)])
        bench.ask([bench.scene.make_query(context, visible=visible)])
    await bench.finish()


@cocotb.test(timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(select=list(Select))
async def boundary_lengths_of_a_full_context(dut, select):
    bench = RetrievalBench(dut)
    await bench.start(tokens=[bench.config.max_tokens])
    (context,) = bench.scene.contexts
    for visible in boundary_lengths(bench.config):
        for summaries in (0, 1):
            bench.ask([bench.scene.make_query(context, visible=visible, select=select,
                                              summaries=summaries)])
    await bench.finish()


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def ties_go_to_the_most_recent(dut):
    bench = RetrievalBench(dut)
    await bench.start(tokens=[200], distinct_codes=2)
    (context,) = bench.scene.contexts
    for full in range(0, 200, 13):
        bench.ask([bench.scene.make_query(context, select=Select.BUDGET, full=full,
                                          coarse=(200 - full) // 3, sink=0, recent=0, minimum=0)])
    await bench.finish()


@cocotb.test(timeout_time=3, timeout_unit="ms")
async def forced_ranges_that_meet(dut):
    bench = RetrievalBench(dut)
    await bench.start(tokens=[100])
    (context,) = bench.scene.contexts
    for sink, recent in [(0, 100), (100, 0), (60, 60), (50, 50), (49, 50), (1000, 1000), (1, 1)]:
        for select in Select:
            bench.ask([bench.scene.make_query(context, select=select, sink=min(
                sink, bench.config.max_tokens), recent=min(recent, bench.config.max_tokens))])
    await bench.finish()


@cocotb.test(timeout_time=3, timeout_unit="ms")
@cocotb.parametrize(wait=[1, 9, 20, 40, 80])
async def works_after_a_reset_in_mid_query(dut, wait):
    bench = RetrievalBench(dut)
    await bench.start(tokens=LENGTHS)
    bench.source.send([bench.scene.make_query(bench.scene.contexts[0], select=Select.BUDGET)
                       for _ in range(4)])
    for sink in bench.sinks.values():
        sink.on_item = None
    await cycles(dut, wait)
    bench.stop()
    again = RetrievalBench(dut)
    await again.start(tokens=LENGTHS)
    for _ in range(8):
        again.ask([again.scene.make_query(random.choice(again.scene.contexts))])
    await again.finish()
