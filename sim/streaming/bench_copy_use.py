"""Counts what copies make of the bus; run by `sim.streaming.copy_use`."""

import json
import random
from pathlib import Path

import cocotb
from cocotb.triggers import RisingEdge

from golden.streaming.chain import pack_descriptor
from golden.streaming.copy import Copy
from hw.config import StreamingConfig
from hw.streaming.layouts import windows
from sim.memory_control import MemoryControl
from sim.stream import StreamSink, StreamSource
from sim.testbench import arguments, cycles, start

LATENCY = 100
SOURCE_BYTES = 1 << 17
FIELDS = ("kind", "tag", "source", "destination", "row_bytes", "rows", "source_stride",
          "destination_stride", "window_mask")


class Watch:
    """Cycles in which a signal of the bus was high."""

    def __init__(self, dut):
        self.dut = dut
        self.cycle = 0
        self.reads, self.beats, self.commands, self.doorbells = [], [], [], []
        cocotb.start_soon(self._run())

    async def _run(self):
        dut, bus = self.dut, self.dut.memory.memory   # the ports of the memory itself
        while True:
            await RisingEdge(dut.clk)
            self.cycle += 1
            for cycles_seen, signals in (
                (self.reads, (bus.arvalid,)),
                (self.beats, (bus.wvalid, bus.wready)),
                (self.commands, (dut.i_command_valid, dut.i_command_ready)),
                (self.doorbells, (dut.i_chain_valid, dut.i_chain_ready)),
            ):
                if all(signal.value for signal in signals):
                    cycles_seen.append(self.cycle)


async def begin(dut, contents):
    config = StreamingConfig(**{
        **arguments()["config"], "formats": tuple(arguments()["config"]["formats"])})
    control = MemoryControl(dut, "memory")
    await start(dut)
    control.configure(read_latency=LATENCY, write_latency=LATENCY)
    await control.load(contents)
    everything = {"valid": 1, "base": 0, "last": (1 << config.address_bits) - 1}
    dut.windows.value = windows(config).const([everything]).as_bits()
    return control, Watch(dut), StreamSink(dut, "o_done")


def note(**figures):
    """Add to the figures of this run."""
    path = Path("figures.json")
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**known, **figures}), encoding="utf-8")


async def copy(dut, commands):
    """Run copies back to back, check them, and return the share of cycles with a beat."""
    contents = random.randbytes(SOURCE_BYTES)
    control, watch, done = await begin(dut, contents + bytes(SOURCE_BYTES))
    StreamSource(dut, "i_command").send(
        [{name: int(getattr(command, name)) for name in FIELDS} for command in commands])
    await done.receive(len(commands))
    assert all(item["error"] == 0 for item in done.items)
    expected = bytearray(contents + bytes(SOURCE_BYTES))
    for command in commands:
        expected[command.destination:command.destination + command.row_bytes] = contents[
            command.source:command.source + command.row_bytes]
    assert await control.dump() == expected
    control.check()
    return len(watch.beats) / (watch.beats[-1] - watch.beats[0] + 1)


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def large(dut):
    size = 1 << 16
    note(large=await copy(dut, [
        Copy(source=size * n, destination=SOURCE_BYTES + size * n, row_bytes=size)
        for n in range(2)]))


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def small(dut):
    note(small=await copy(dut, [
        Copy(source=64 * (n * 37 % 1024), destination=SOURCE_BYTES + 64 * n, row_bytes=64)
        for n in range(500)]))


@cocotb.test(timeout_time=2, timeout_unit="ms")
async def launch(dut):
    """From a command, and from a doorbell, to the first address of its data on the bus."""
    command = Copy(source=1 << 12, destination=SOURCE_BYTES, row_bytes=64)
    _, watch, done = await begin(dut, pack_descriptor(command) + bytes(2 * SOURCE_BYTES - 64))
    StreamSource(dut, "i_command").send([{name: int(getattr(command, name)) for name in FIELDS}])
    await done.receive(1)
    resident = watch.reads[0] - watch.commands[0]
    watch.reads.clear()
    await cycles(dut, 2)
    StreamSource(dut, "i_chain").send([{"address": 0, "limit": 1, "tag": 0}])
    await done.receive(2)
    # Descriptors are asked for ahead, in the first cycles; then, the data.
    doorbell = watch.doorbells[0]
    fetched = next(cycle for cycle in watch.reads if cycle > doorbell + LATENCY) - doorbell
    note(resident=resident, fetched=fetched)
