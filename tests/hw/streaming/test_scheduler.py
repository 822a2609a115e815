"""A whole job of the route scheduler against golden."""

import random

from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from golden.streaming.policy import Decision
from hw.config import StreamingConfig
from hw.streaming.scheduler import LoadError, RouteScheduler
from tests.hw.harness import plain
from tests.hw.streaming.jobs import World, random_job

CONFIG = StreamingConfig(head_dim=32, bus_bytes=8, chunks=16, outstanding=4)
TICK_LOG2 = 4


class Bench:
    """Drives a `RouteScheduler` in Amaranth's simulator, a method per thing done.

    Parameters
    ----------
    script : async callable(bench)
        What is done.
    """

    def __init__(self, script, *, seed, tick_log2=TICK_LOG2):
        print(f"seed={seed}")
        self.rng = random.Random(seed)
        self.script = script
        self.tick_log2 = tick_log2
        self.world = None
        self.cycle = self.begun = 0
        self.answers = []      # (tick, route, {chunk, good}), in the order of the requests
        self.events, self.log = [], []
        self.compute_ready = 1

    def run(self):
        self.dut = dut = RouteScheduler(CONFIG)
        top = Module()
        top.domains.sync = ClockDomain()
        top.submodules.dut = dut
        simulator = Simulator(top)
        simulator.add_clock(1e-6)
        simulator.add_testbench(self._main)
        simulator.run()

    async def _main(self, ctx):
        self.ctx = ctx
        for port in (self.dut.o_link, self.dut.o_cancel, self.dut.o_record):
            ctx.set(port.ready, 1)
        await self.script(self)

    @property
    def now(self):
        return (self.cycle - self.begun) >> self.tick_log2

    async def tick(self):
        """One cycle, with all that the surroundings do in it."""
        dut, ctx = self.dut, self.ctx
        ctx.set(dut.now, self.now)
        ctx.set(dut.o_compute.ready, self.compute_ready)
        due = {}
        for answer in sorted(self.answers, key=lambda answer: answer[0]):
            if answer[0] <= self.now:
                due.setdefault(answer[1], answer)
        for route, port in enumerate((dut.i_link, dut.i_computed)):
            ctx.set(port.valid, route in due)
            if route in due:
                ctx.set(port.payload, due[route][2])
        ports = (dut.o_link, dut.o_compute, dut.o_cancel, dut.o_record)
        taken = [ctx.get(port.valid) and ctx.get(port.ready) and plain(ctx.get(port.payload))
                 for port in ports]
        is_taken = [ctx.get(port.valid) and ctx.get(port.ready) for port in ports]
        for route, answer in due.items():
            if ctx.get((dut.i_link, dut.i_computed)[route].ready):
                self.answers.remove(answer)
        event = plain(ctx.get(dut.event))
        if event["valid"]:
            self.events.append({**event, "event": event["event"].value})
        if is_taken[0]:
            self._request(0, taken[0])
        if is_taken[1]:
            self._request(1, taken[1]["chunk"])
        if is_taken[2]:
            self.answers = [answer for answer in self.answers
                            if (answer[1], answer[2]["chunk"]) != (0, taken[2])]
        if is_taken[3]:
            self.log.append({**taken[3], "decision": taken[3]["decision"].value})
        await ctx.tick()
        self.cycle += 1

    def _request(self, route, chunk):
        self.answers += [(time, route, {"chunk": chunk, "good": good})
                         for time, good in self.world.request(self.now, route, chunk)]

    async def until(self, signal, timeout=100_000):
        for _ in range(timeout):
            if self.ctx.get(signal):
                return
            await self.tick()
        raise TimeoutError(f"{signal.name} did not rise, log {self.log[-5:]}")

    async def load(self, policy, entries):
        dut, ctx = self.dut, self.ctx
        await self.until(dut.loading)
        ctx.set(dut.policy, policy)
        for entry in entries:
            ctx.set(dut.i_entry.payload, entry)
            ctx.set(dut.i_entry.valid, 1)
            while not ctx.get(dut.i_entry.ready):
                await self.tick()
            await self.tick()
            ctx.set(dut.i_entry.valid, 0)
        await self.until(dut.loading)
        ctx.set(dut.start, 1)
        self.begun = self.cycle
        await self.tick()
        ctx.set(dut.start, 0)

    async def begin(self, job, world):
        self.events, self.log, self.answers, self.world = [], [], [], world
        await self.load(job.policy_fields(), job.entries(self.rng))

    async def abort(self):
        self.ctx.set(self.dut.abort, 1)
        self.answers = []
        await self.tick()
        self.ctx.set(self.dut.abort, 0)

    async def finish(self, job):
        """Run to the end, and compare with golden."""
        dut, ctx = self.dut, self.ctx
        await self.until(dut.finished)
        for _ in range(20):
            await self.tick()
        golden = job.check(self.events, self.log)
        assert golden.finished
        assert (ctx.get(dut.present), ctx.get(dut.lost)) == tuple(
            sum(record.decision == decision for record in golden.log)
            for decision in (Decision.PRESENT, Decision.LOST))
        return golden


def test_equals_golden_after_a_refused_and_an_aborted_job():
    """What the ports do, and many more jobs, are tested as Verilog."""
    async def script(bench):
        dut, ctx = bench.dut, bench.ctx
        await bench.load({}, [])
        while ctx.get(dut.busy):
            await bench.tick()
        assert ctx.get(dut.error) == LoadError.STAGE and not ctx.get(dut.finished)

        job = random_job(bench.rng, 12)
        bench.compute_ready = 0
        await bench.begin(job, World.at_random(bench.rng, job))
        for _ in range(300):
            await bench.tick()
        await bench.abort()
        bench.compute_ready = 1
        while not ctx.get(dut.quiet):  # what is offered outlives the job
            await bench.tick()
        assert not ctx.get(dut.busy) and not ctx.get(dut.finished)

        job = random_job(bench.rng, 8)
        await bench.begin(job, World.at_random(bench.rng, job))
        assert ctx.get(dut.error) == LoadError.NONE
        await bench.finish(job)

    Bench(script, seed=2).run()
