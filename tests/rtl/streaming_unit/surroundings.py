"""An engine on a memory, with a prompt to bring."""

import random

from cocotb import start_soon
from cocotb.triggers import SimTimeoutError, with_timeout

from golden.streaming.policy import Decision, Event, Record
from golden.streaming.runtime import Scheduler
from sim.memory_control import MemoryControl
from sim.streaming.driver import DECISION, StreamingDriver
from sim.testbench import CLOCK_NS, arguments, start
from tests.rtl.streaming_unit.scenes import CONFIGS, MEMORY_BYTES

TIMEOUT_CYCLES = 60_000
SEED = random.getrandbits(32)


class Scene:
    """An engine on a memory, with a prompt to bring.

    Parameters
    ----------
    dut : handle
    stall : float
        Share of stalled cycles on each stream.
    shuffle : bool
        Reads come late and interleaved.
    seed : int
    memory : MemoryControl, or what acts like one
    """

    def __init__(self, dut, *, stall=0.0, shuffle=False, seed=SEED, memory=None):
        self.dut = dut
        self.config = CONFIGS[arguments()["config"]]
        self.rng = random.Random(seed)
        self.memory = memory or MemoryControl(dut)
        self.shuffle = shuffle
        self.stall = stall
        self.tasks = []

    async def start(self):
        await start(self.dut)
        self.memory.configure(read_latency=20, write_latency=15, shuffle=self.shuffle, seed=7)
        self.driver = StreamingDriver(
            self.dut, self.config, stall_probability=self.stall, seed=self.rng.getrandbits(32))

    async def load(self, prompt):
        self.image = prompt.image(MEMORY_BYTES, self.rng)
        await self.memory.load(self.image)
        await self.driver.load(prompt)

    async def put(self, address, contents):
        """Write into the memory, at a multiple of the bus's width."""
        padded = contents + bytes(-len(contents) % self.config.bus_bytes)
        await self.memory.write(address, padded)
        self.image[address:address + len(padded)] = padded

    async def run(self, prompt, *, link=None, compute=None):
        """Run a job to its end, and return its report."""
        driver = self.driver
        driver.reports.clear()
        driver.events.clear()
        for task in self.tasks:
            task.cancel()
        self.tasks = [
            start_soon(driver.serve_link(prompt, link or (lambda _, frame: [(0, frame)]))),
            start_soon(driver.serve_compute(prompt, compute or (
                lambda chunk, _: [(int(prompt.costs.compute[chunk]) << prompt.tick_log2, True)]))),
        ]
        await driver.write("job_start", 1)
        try:
            return await with_timeout(driver.job_end(), TIMEOUT_CYCLES * CLOCK_NS, "ns")
        except SimTimeoutError:
            raise AssertionError(
                f"job not done after {TIMEOUT_CYCLES} cycles; reports: "
                f"{driver.reports}, events: {driver.events}") from None

    async def check(self, prompt):
        """Decisions equal golden's; each chunk that came by the link is in memory, and nothing is
        written outside the pages of chunks. Returns the chunks present by the link."""
        reports = [r for r in self.driver.reports if r["kind"] == DECISION]
        log = [Record(r["time"], Decision(r["code"]),
                      r["id"] if r["code"] == Decision.STAGE
                      else (r["id"] - prompt.first_id) % (1 << 32)) for r in reports]
        golden = Scheduler(prompt.schedule, prompt.costs, prompt.policy, prompt.deadlines)
        for event in self.driver.events:
            golden.react(event["time"], Event(event["event"]), event["chunk"])
        assert log == golden.log, _first_difference(log, golden.log)
        brought = [event["chunk"] for event in self.driver.events
                   if Event(event["event"]) == Event.LINK_DONE]
        found = await self.memory.dump()
        self.memory.check()
        expected = bytearray(self.image)
        for chunk in brought:
            prompt.write(expected, chunk)
        # A frame that was refused may have written some of its own rows, nothing else.
        for chunk in set(range(prompt.grid.count)) - set(brought):
            _copy_chunk(prompt, expected, found, chunk)
        assert found == expected, _first_difference(found, expected)
        self.image = bytearray(found)
        return brought


def aligned(address, unit=64):
    return -(-address // unit) * unit


def _copy_chunk(prompt, target, source, chunk):
    for burst in prompt.write(bytearray(len(target)), chunk).bursts:
        end = burst.address + len(burst.contents)
        target[burst.address:end] = source[burst.address:end]


def _first_difference(found, expected):
    for place, (left, right) in enumerate(zip(found, expected, strict=False)):
        if left != right:
            return f"at {place}: {left}, not {right}"
    return f"{len(found)} items, not {len(expected)}"
