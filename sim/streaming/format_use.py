"""How busy the engine keeps its buses while chunks stream in, for each wire format."""

import json
import tempfile

import cocotb
import numpy as np
from cocotb import start_soon
from cocotb.triggers import RisingEdge, with_timeout

from golden.streaming.chunks import Grid, Rule
from golden.streaming.costs import Costs
from golden.streaming.layout import Format
from golden.streaming.policy import Policy
from golden.streaming.schedule import Schedule
from hw.config import StreamingConfig
from hw.streaming.unit import StreamingUnit
from sim.build import build, run
from sim.memory import MemoryBench, memory_source
from sim.memory_control import MemoryControl
from sim.streaming.driver import StreamingDriver
from sim.streaming.prompt import Prompt
from sim.testbench import CLOCK_NS, arguments, start
from sim.tools import BUILD

__all__ = ["CONFIG", "measure"]

CONFIG = StreamingConfig(
    head_dim=64, bus_bytes=8, chunk_tokens=128, chunks=8, table_pages=64, outstanding=8,
    address_bits=32)
MEMORY_BYTES = 1 << 18
CHUNKS = 6
TIMEOUT_CYCLES = 100_000


def measure():
    """Figures ``streaming.format.<name>.use``: beats per cycle on the busier of link and memory,
    while several chunks of random rows stream in back to back, from the second chunk's first beat
    to the last chunk's last. The link is as wide as the memory."""
    bench = MemoryBench(StreamingUnit(CONFIG), size_bytes=MEMORY_BYTES)
    model = build(bench, name="streaming_format", sources=[memory_source()])
    figures = {}
    for fmt in Format:
        with tempfile.NamedTemporaryFile(dir=BUILD, prefix="format-") as file:
            run(model, bench="sim.streaming.format_use", quiet=True,
                arguments={"format": fmt.name, "results": file.name})
            figures[f"streaming.format.{fmt.name.lower()}.use"] = json.load(file)["use"]
    return figures


def _prompt(fmt):
    grid = Grid(blocks=CHUNKS, layers=1, heads=1)
    tokens = CONFIG.chunk_tokens
    values = np.random.default_rng(1)
    shape = (CHUNKS, tokens, CONFIG.head_dim)
    return Prompt(
        config=CONFIG, formats=(fmt,) * CHUNKS, table=tuple(range(CHUNKS * tokens // 16)),
        k=values.normal(size=shape), v=values.normal(size=shape),
        schedule=Schedule(grid=grid, rule=Rule.PAPER, stream=(tuple(range(CHUNKS)),),
                          compute=((),)),
        costs=Costs(grid=grid, stream=[1000] * CHUNKS, compute=[1000] * CHUNKS),
        policy=Policy(stream_outstanding=8, refine=False))


class _Meter:
    """Counts beats of both sides, and notes the cycles of the first and the last."""

    def __init__(self, dut, memory):
        self.dut, self.memory = dut, memory
        self.link, self.written = [], []

    async def watch(self):
        valid, ready = self.dut.s_axis_tvalid, self.dut.s_axis_tready
        cycle = before = 0
        while True:
            await RisingEdge(self.dut.clk)
            cycle += 1
            if int(valid.value) and int(ready.value):
                self.link.append(cycle)
            if (now := self.memory.write_beats) != before:
                before = now
                self.written.append(cycle)

    @staticmethod
    def use(cycles):
        """Beats per cycle, without those of the first chunk."""
        cycles = cycles[len(cycles) // CHUNKS:]
        return len(cycles) / (cycles[-1] - cycles[0] + 1)


@cocotb.test
async def stream_in(dut):
    prompt = _prompt(Format[arguments()["format"]])
    await start(dut)
    memory = MemoryControl(dut)
    memory.configure(read_latency=20, write_latency=20)
    driver = StreamingDriver(dut, CONFIG)
    await memory.load(prompt.image(MEMORY_BYTES, driver.rng))
    await driver.load(prompt)
    meter = _Meter(dut, memory)
    start_soon(meter.watch())
    start_soon(driver.serve_link(prompt, lambda _, frame: [(0, frame)]))
    await driver.write("job_start", 1)
    end = await with_timeout(driver.job_end(), TIMEOUT_CYCLES * CLOCK_NS, "ns")
    assert (end["code"], end["id"]) == (0, 0)
    memory.check()
    uses = meter.use(meter.link), meter.use(meter.written)
    with open(arguments()["results"], "w", encoding="utf-8") as file:
        json.dump({"use": round(max(uses), 4), "link": uses[0], "written": uses[1]}, file)
