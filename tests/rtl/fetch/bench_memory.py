"""Fetch from the simulation memory: late and interleaved answers, faults, throughput, reset."""

import random

import cocotb
from cocotb.triggers import RisingEdge

from hw.attention.layouts import Error, Kind
from sim.memory import MemoryFault
from sim.memory_control import MemoryControl
from sim.stream import StreamPort
from sim.testbench import cycles, start
from tests.fetch_system import plain
from tests.rtl.fetch.bench import FetchBench
from tests.rtl.fetch.scenes import SIZE


class Bench(FetchBench):
    async def start(self, **settings):
        self.control = MemoryControl(self.dut)
        await start(self.dut)
        self.control.configure(**settings)
        await self.control.load(self.scene.memory)
        await self.connect()

    def count_beats(self):
        return sum(status["beats"] for status in self.scene.statuses)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.5], shuffle=[False, True], latency=[1, 40])
async def rows_of_every_class(dut, stall, shuffle, latency):
    bench = Bench(dut, stall=stall)
    await bench.start(read_latency=latency, shuffle=shuffle)
    for query in range(20):
        bench.scene.add_query(random.randrange(20), slot=query % 4, context=query % 2,
                              logits_only=int(random.random() < 0.3))
    await bench.run()
    bench.control.check()
    assert bench.control.read_beats == bench.count_beats()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(fault=["READ_SLVERR", "READ_DECERR", "READ_SHORT", "READ_LONG"],
                    shuffle=[False, True])
async def faults_do_not_reach_the_next_query(dut, fault, shuffle):
    bench = Bench(dut, stall=0.2)
    await bench.start(read_latency=5, shuffle=shuffle)
    low, high = SIZE // 16, SIZE // 8
    bench.control.set_fault(MemoryFault[fault], low, high)
    # A burst of one beat can not be short.
    happens = fault != "READ_SHORT" or bench.config.full_beats > 1
    if happens:
        bench.scene.add_fault(low, high, Error.BUS if "ERR" in fault else Error.SHORT)
    for query in range(60):
        bench.scene.add_query(2, context=query % 2, kinds=[Kind.FULL, Kind.SUMMARY])
    assert len({status["error"] for status in bench.scene.statuses}) == 1 + happens
    await bench.run()
    bench.control.check()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(kind=[Kind.FULL, Kind.COARSE], logits_only=[0, 1])
async def the_bus_is_never_idle(dut, kind, logits_only):
    bench = Bench(dut)
    await bench.start(read_latency=10)
    for query in range(4):
        bench.scene.add_query(40, slot=query, logits_only=logits_only, kinds=[kind])
    beats = []

    async def watch_beats():
        for cycle in range(100_000):
            await RisingEdge(dut.clk)
            if bench.control.read_beats > len(beats):
                beats.append(cycle)

    watcher = cocotb.start_soon(watch_beats())
    await bench.run()
    watcher.cancel()
    config = bench.config
    row_beats = config.coarse_beats if kind == Kind.COARSE else config.full_beats
    assert len(beats) == bench.count_beats() == 160 * row_beats * (2 - logits_only)
    # An END takes the place of a row request, which is felt where rows are of one beat.
    assert beats[-1] - beats[0] + 1 - len(beats) == (3 if row_beats == 1 else 0)


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(reset_at=[25, 33, 42, 57])
async def starts_over_after_a_reset_in_mid_burst(dut, reset_at):
    bench = Bench(dut)
    await start(dut)
    dut.memory_read_latency.value = 10
    # A query without an end, on a table that need not be known.
    job, token = StreamPort(dut, "i_job"), StreamPort(dut, "i_token")
    job.write(plain({"entry": bench.scene.entries[0]}))
    token.write({"kind": Kind.FULL.value})
    for handle in (dut.i_entry_valid, job.valid, token.valid, dut.o_key_ready):
        handle.value = 1
    await cycles(dut, reset_at + len(bench.scene.table))
    assert dut.memory_read_beats.value.to_unsigned() > 0
    await bench.start(read_latency=10)
    bench.scene.add_query(20)
    await bench.run()
    bench.control.check()
