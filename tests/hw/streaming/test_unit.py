from dataclasses import replace

import numpy as np
import pytest

from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.layout import Format
from golden.streaming.policy import Decision, Policy
from golden.streaming.schedule import Schedule
from hw.presets import PRESETS
from hw.streaming.record import RECORD_BYTES, chunk_record
from hw.streaming.register_map import address_of
from hw.streaming.unit import StreamingUnit
from sim.streaming.prompt import Prompt
from tests.hw.harness import run_testbench
from tests.hw.memory_model import MemoryModel

CONFIG = replace(PRESETS["tiny"].streaming, chunk_tokens=16, chunks=4, table_pages=8,
                 formats=("INT8", "MXINT8"))
DECISION, _, COPY, JOB = range(4)


class Host:
    """Registers, link and reports of an engine; computes nothing."""

    def __init__(self, ctx, dut):
        self.ctx, self.dut = ctx, dut

    async def send(self, port, payload):
        self.ctx.set(port.payload, payload)
        self.ctx.set(port.valid, 1)
        await self.ctx.tick().until(port.ready)
        self.ctx.set(port.valid, 0)

    async def receive(self, port):
        self.ctx.set(port.ready, 1)
        payload = self.ctx.get(port.payload)
        while not self.ctx.get(port.valid):
            await self.ctx.tick()
        payload = self.ctx.get(port.payload)
        await self.ctx.tick()
        self.ctx.set(port.ready, 0)
        return payload

    async def write(self, name, word):
        bus, ctx = self.dut.s_axil, self.ctx
        ctx.set(bus.aw.payload, {"addr": address_of(name)})
        ctx.set(bus.w.payload, {"data": word & 0xFFFFFFFF, "strb": 15})
        ctx.set(bus.aw.valid, 1)
        ctx.set(bus.w.valid, 1)
        await ctx.tick().until(bus.w.ready)
        ctx.set(bus.aw.valid, 0)
        ctx.set(bus.w.valid, 0)
        assert (await self.receive(bus.b)).resp.value == 0, name

    async def send_frame(self, frame):
        width = CONFIG.bus_bytes
        for low in range(0, len(frame), width):
            await self.send(self.dut.s_axis, {
                "data": int.from_bytes(frame[low:low + width], "little"),
                "keep": (1 << width) - 1, "last": low + width >= len(frame)})


def make_prompt():
    grid = Grid(blocks=1, layers=1, heads=1)
    values = [[[(row * 7 + column * 3) % 41 - 20.0 for column in range(CONFIG.head_dim)]
               for row in range(5)]]
    return Prompt(
        config=CONFIG, formats=(Format.INT8,), table=(2,), k=np.array(values), v=-np.array(values),
        schedule=Schedule(grid=grid, rule=Rule.PAPER, stream=((0,),), compute=((),)),
        costs=Costs(grid=grid, stream=[100], compute=[100]), policy=Policy(), first_id=77)


@pytest.mark.parametrize("latency", [1, 9])
def test_a_chunk_and_a_copy_end_to_end(latency):
    prompt, dut = make_prompt(), StreamingUnit(CONFIG)
    memory = MemoryModel(size=1 << 14, latency=latency, seed=latency)
    image = prompt.image(1 << 14, memory.rng)
    memory.data[:] = image

    async def testbench(ctx):
        host = Host(ctx, dut)
        await host.write("report_mask", 1 << Decision.PRESENT | 1 << 19 | 1 << 20)
        await host.write("table_page", prompt.table[0])
        window = prompt.windows[0]
        await host.write("window_base", window.base)
        await host.write("window_last", window.last)
        await host.write("window_enter", 1)
        for name, value in prompt.registers().items():
            await host.write(name, value)
        await host.write("job_start", 1)
        assert await host.receive(dut.o_request) == 77
        await host.send_frame(prompt.frame(0))
        reports = [await host.receive(dut.o_report) for _ in range(2)]
        assert [(r.kind.value, r.code, r.id) for r in reports] == [
            (DECISION, Decision.PRESENT, 77), (JOB, 0, 0)]
        prompt.write(image, 0)
        assert memory.data == image
        # Its own pages are copied over the last bytes that the window grants.
        target = window.last - 99
        await host.send(dut.i_command, {
            "tag": 5, "source": prompt.pages_base + 3, "destination": target, "row_bytes": 100,
            "rows": 1, "window_mask": 1})
        done = await host.receive(dut.o_report)
        assert (done.kind.value, done.code, done.id) == (COPY, 0, 5)
        start = prompt.pages_base + 3
        image[target:target + 100] = image[start:start + 100]
        assert memory.data == image

    run_testbench(dut, testbench, timeout_cycles=6000, beside=[
        memory.serve_axi_reads(dut.m_axi), memory.serve_axi_writes(dut.m_axi)])


def test_records_are_those_of_the_hardware():
    """The prompt packs records as the hardware's layout reads them."""
    prompt = make_prompt()
    record = chunk_record().from_bits(int.from_bytes(prompt.record(0), "little"))
    placement = prompt.placement(0)
    for name in ("key_base", "value_base", "exponent_base", "page_stride", "exponent_stride",
                 "row_stride", "table_index", "tokens", "window_mask"):
        assert record[name] == getattr(placement, name)
    assert len(prompt.record(0)) == RECORD_BYTES
