"""Copies on a slave that is not ours, with random stalls on every channel."""

import random

import cocotb
from cocotbext.axi import AxiBus, AxiRam

from sim.axi_rules import AxiChecker
from sim.testbench import start
from tests.rtl.streaming_copy.bench import CopyBench
from tests.rtl.streaming_copy.scenes import MEMORY


def pauses(probability, seed):
    generator = random.Random(seed)
    while True:
        yield generator.random() < probability


async def begin(dut, bench, *, pause):
    """Start the unit on a memory with the bench's contents."""
    await start(dut)
    ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=MEMORY)
    for interface in (ram.read_if, ram.write_if):
        interface.log.setLevel("WARNING")
    ram.write(0, bench.contents)
    channels = (ram.write_if.aw_channel, ram.write_if.w_channel, ram.write_if.b_channel,
                ram.read_if.ar_channel, ram.read_if.r_channel)
    if pause:
        for channel in channels:
            channel.set_pause_generator(pauses(pause, random.getrandbits(32)))
    bench.connect()
    return ram, AxiChecker(dut)


@cocotb.test(timeout_time=5, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.4])
async def commands_of_every_kind(dut, stall):
    bench = CopyBench(dut, stall=stall)
    for _ in range(3):
        bench.add(8)
        bench.add_chain(7)
    ram, checker = await begin(dut, bench, pause=stall)
    await bench.run()
    assert ram.read(0, MEMORY) == bench.expected
    checker.drain()
    for kind, found in (("reads", checker.reads), ("writes", checker.writes)):
        width = bench.config.bus_bytes
        asked = [(address - address % width if kind == "reads" else address,
                  (address + size - 1) // width - address // width + 1)
                 for result in bench.scene.results for address, size in getattr(result, kind)]
        # Those of commands that came apart may come in another order; and descriptors are read.
        assert sorted(burst for burst in found if burst[0] < MEMORY // 2) == sorted(asked)
    assert checker.most_writes <= bench.config.bursts


@cocotb.test(timeout_time=5, timeout_unit="ms")
async def corners_of_4kib(dut):
    """Runs that begin, and end, within a byte of a boundary."""
    bench = CopyBench(dut)
    width, rng = bench.config.bus_bytes, bench.rng

    def make(scene):
        source = 4096 * rng.randrange(1, 6) + rng.choice([-1, 0, 1]) - rng.choice([0, width, 4096])
        end = 4096 * (scene.free // 4096 + 1) + rng.choice([-1, 0, 1])
        start = max(scene.free, end - rng.choice([1, width, 2 * width + 1, 700]))
        scene.copy(row_bytes=max(1, end - start + rng.choice([0, 1, width])), source=source,
                   offset=start - scene.free)

    bench.add(6, share_bad=0, make=make)
    ram, checker = await begin(dut, bench, pause=0.1)
    await bench.run()
    assert ram.read(0, MEMORY) == bench.expected
    checker.drain()
