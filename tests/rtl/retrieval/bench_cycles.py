"""A whole context matched without bubbles, and queries back to back."""

import cocotb
from cocotb.triggers import RisingEdge

from golden.selection import Select
from sim.testbench import CLOCK_NS, cycles
from tests.rtl.retrieval.bench import RetrievalBench


def few_tokens(bench, visible):
    """A query that lists its most recent token and one more."""
    return bench.scene.make_query(
        bench.scene.contexts[0], visible=visible, select=Select.BUDGET, full=2, coarse=0, sink=0,
        recent=1, minimum=0, summaries=0)


async def watch_starts(bench, starts):
    """Note the cycle in which each query is taken."""
    dut = bench.dut
    while True:
        await RisingEdge(dut.clk)
        if dut.i_valid.value and dut.i_ready.value:
            starts.append(int(cocotb.simtime.get_sim_time("ns")) // CLOCK_NS)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def codes_are_matched_at_full_rate(dut):
    bench = RetrievalBench(dut)
    config = bench.config
    await bench.start(tokens=[config.max_tokens], read_latency=10)
    starts = []
    watcher = cocotb.start_soon(watch_starts(bench, starts))
    bench.ask([few_tokens(bench, config.max_tokens) for _ in range(5)])
    await bench.finish()
    watcher.cancel()
    chunks = -(-config.distance_bins // config.bins_per_cycle)
    line_cycles = config.code_line_beats if bench.streamed else 1
    limit = config.max_lines * line_cycles + chunks
    periods = [b - a for a, b in zip(starts, starts[1:], strict=False)]
    assert len(periods) == 4
    if bench.streamed:
        # The next query's lines are asked for while the histogram is still read.
        assert all(limit - chunks <= period <= limit + 20 for period in periods)
    else:
        assert all(period <= limit + 6 for period in periods)
        assert sum(periods[1:]) <= 3 * limit + 6
    bench.stop()


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def a_dense_query_lists_a_token_per_cycle(dut):
    bench = RetrievalBench(dut)
    await bench.start(tokens=[200], read_latency=10)
    bench.ask([bench.scene.make_query(bench.scene.contexts[0], select=Select.DENSE)])
    await bench.finish()
    times = bench.sinks["o_token"].times
    assert times == list(range(times[0], times[0] + 201))
    await cycles(dut, 1)
