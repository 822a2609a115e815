"""Pages written to the simulation memory: rules of AXI, errors, full rate, resets."""

import random

import cocotb
from cocotb.triggers import RisingEdge

from golden.streaming.writer import Outcome
from sim.memory import MemoryFault
from sim.memory_control import MemoryControl
from sim.testbench import cycles, reset, start
from tests.rtl.streaming_writer.bench import WriterBench
from tests.writer_system import WriterScene


class Bench(WriterBench):
    async def start(self, **settings):
        self.control = MemoryControl(self.dut)
        await start(self.dut)
        self.control.configure(**settings)
        await self.control.load(self.contents)
        self.connect()

    async def compare(self):
        await self.run()
        await cycles(self.dut, 30)
        assert await self.control.dump() == bytes(self.scene.expected)
        self.control.check()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4], shuffle=[False, True])
async def chunks_of_every_kind(dut, stall, shuffle):
    bench = Bench(dut, stall=stall)
    await bench.start(write_latency=random.randrange(1, 60), shuffle=shuffle)
    for _ in range(30):
        bench.scene.random_chunk()
        bench.scene.other_burst()
    await bench.compare()


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(fault=["WRITE_SLVERR", "WRITE_DECERR"], stall=[0.0, 0.3])
async def errors_are_told_of_their_chunk_only(dut, fault, stall):
    bench = Bench(dut, stall=stall)
    scene = bench.scene
    await bench.start(write_latency=40, shuffle=stall > 0)
    quarter = scene.quarter
    # A part of what is used for keys, for values, or for exponents.
    low, size = random.choice([(0, 4096), (quarter, 4096), (2 * quarter, 256)])
    high = low + size
    bench.control.set_fault(MemoryFault[fault], low, high)
    scene.faults.append((low, high))
    for _ in range(40):
        scene.chunk(random.choice([1, 2, 5]), has_exponents=True)
    assert {Outcome.DONE, Outcome.WRITE} == scene.outcomes()
    await bench.compare()


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def the_bus_is_never_idle(dut):
    """A beat per cycle, over pages and chunks; the close of a chunk takes the place of a beat."""
    bench = Bench(dut)
    config, quarter = bench.config, bench.scene.quarter
    # The answer to a burst comes within the beats of those that may be open beside it.
    await bench.start(write_latency=min(20, (config.bursts - 1) * config.row_beats - 6))
    for has_exponents in (True, False, True):
        # Nothing crosses 4 KiB, which would make shorter bursts.
        bench.scene.chunk(
            64, has_exponents=has_exponents, key_base=0, value_base=quarter,
            page_stride=16 * config.head_dim, row_stride=config.head_dim,
            exponent_base=2 * quarter,
            exponent_stride=max(config.bus_bytes, 32 * config.blocks))
    beats = []

    async def watch_beats():
        for cycle in range(100_000):
            await RisingEdge(dut.clk)
            if bench.control.write_beats > len(beats):
                beats.append(cycle)

    watcher = cocotb.start_soon(watch_beats())
    await bench.compare()
    watcher.cancel()
    assert len(beats) == sum(done["beats"] for done in bench.scene.done)
    assert beats[-1] - beats[0] + 1 == len(beats) + 2
    cocotb.log.info("%d beats in %d cycles", len(beats), beats[-1] - beats[0] + 1)


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def starts_over_after_resets_in_mid_burst(dut):
    bench = Bench(dut, stall=0.1)
    await bench.start(write_latency=20, shuffle=True)
    for _ in range(6):
        bench.scene.chunk(40)
        bench.scene.other_burst()
        bench.send()
        await cycles(dut, len(bench.scene.table) + random.randrange(20, 250))
        bench.stop()
        await reset(dut)
        await bench.control.load(bench.contents)
        bench.scene = WriterScene(bench.config, bench.contents, seed=random.randrange(1 << 30))
        bench.connect()
    for _ in range(5):
        bench.scene.random_chunk()
    await bench.compare()
