"""Append to the simulation memory: contents, codes, errors, and a reset in mid-command."""

import random

import cocotb

from hw.attention.layouts import Error
from sim.memory import MemoryFault
from sim.memory_control import MemoryControl
from sim.stream import StreamMonitor, StreamPort, StreamSink, StreamSource
from sim.testbench import arguments, cycles, start
from tests.append_system import AppendScene
from tests.fetch_system import plain
from tests.rtl.append.scenes import CONFIGS, SIZE


class Bench:
    """A scene on the unit, from a reset on."""

    def __init__(self, dut, *, stall=0.0):
        self.dut = dut
        self.config = CONFIGS[arguments()["config"]]
        self.contents = random.randbytes(SIZE)
        self.scene = AppendScene(self.config, self.contents, seed=random.randrange(1 << 30))
        self.stall = stall
        self.control = MemoryControl(dut)

    async def start(self, **settings):
        await start(self.dut)
        self.control.configure(**settings)
        await self.control.load(self.contents)

    async def run(self):
        """Send the scene's rows, wait for what must come, and compare; the memory too."""
        scene = self.scene
        expected = {"o_done": scene.done, "o_encode": scene.requests}
        if self.config.code_source == "resident":
            expected["o_code"] = scene.codes
        sources = {name: StreamSource(self.dut, name, idle_probability=self.stall)
                   for name in ("i_entry", "i", "i_encoded")}
        sinks = {name: StreamSink(self.dut, name, stall_probability=self.stall)
                 for name in expected}
        for name in sinks:
            StreamMonitor(self.dut, name)
        sources["i_entry"].send(scene.table_writes)
        sources["i"].send(plain(scene.rows))
        sources["i_encoded"].send(scene.encoded)
        for name, items in expected.items():
            await sinks[name].receive(len(items))
        await cycles(self.dut, 30)
        for name, items in expected.items():
            assert sinks[name].items == plain(items), f"{name} differs"
        assert await self.control.dump() == bytes(scene.expected)
        self.control.check()


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall=[0.0, 0.5], shuffle=[False, True])
async def tokens_of_all_contexts(dut, stall, shuffle):
    bench = Bench(dut, stall=stall)
    await bench.start(write_latency=random.randrange(1, 40), shuffle=shuffle)
    room = [16 * bench.scene.context_pages] * bench.config.contexts
    for _ in range(20):
        context = random.randrange(bench.config.contexts)
        count = random.choice([1, 1, 2, 7, 16, 20])
        if count <= room[context]:
            room[context] -= count
            bench.scene.command(context, count, has_code=random.random() < 0.3)
    await bench.run()


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(fault=["WRITE_SLVERR", "WRITE_DECERR"])
async def errors_reach_their_command_only(dut, fault):
    bench = Bench(dut, stall=0.1)
    await bench.start(write_latency=20)
    scene = bench.scene
    low = scene.addresses(scene.entries[0], 20)[1]
    bench.control.set_fault(MemoryFault[fault], low, low + bench.config.row_bytes)
    scene.write_faults.append((low, low + bench.config.row_bytes))
    scene.command(0, 16)
    scene.command(0, 4)
    scene.command(0, 1)
    scene.command(1, 3)
    scene.entries[1] = {**scene.entries[1], "value_limit": scene.addresses(
        scene.entries[1], 4)[1]}
    scene.command(1, 4)
    scene.command(2, 6, error=Error.DATA, error_at=5)
    scene.command(2, 1)
    assert [status["error"] for status in scene.done] == [
        Error.NONE, Error.NONE, Error.WRITE, Error.NONE, Error.WINDOW, Error.DATA, Error.NONE]
    await bench.run()


@cocotb.test(timeout_time=1, timeout_unit="ms")
@cocotb.parametrize(after=[16, 17, 20, 33])
async def starts_over_after_a_reset_in_mid_command(dut, after):
    bench = Bench(dut)
    await start(dut)
    # A command without an end.
    other = AppendScene(bench.config, bytes(SIZE), seed=1)
    other.command(0, 1, has_code=True)
    row = StreamPort(dut, "i")
    row.write(plain({**other.rows[0], "last": 0}))
    for handle in (dut.i_entry_valid, row.valid):
        handle.value = 1
    await cycles(dut, after + len(other.table))
    assert bench.control.write_beats > 0
    await bench.start(write_latency=5)
    bench.scene.command(0, 17)
    bench.scene.command(1, 2)
    await bench.run()
