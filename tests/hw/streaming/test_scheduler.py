"""Whole jobs of the route scheduler, small ones, against golden."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from golden.streaming.policy import Decision, Policy
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
        self.events, self.log, self.requests, self.cancels = [], [], [], []
        self.link_ready = self.cancel_ready = self.compute_ready = 1

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
        ctx.set(self.dut.o_record.ready, 1)
        await self.script(self)

    @property
    def now(self):
        return (self.cycle - self.begun) >> self.tick_log2

    async def tick(self):
        """One cycle, with all that the surroundings do in it."""
        dut, ctx = self.dut, self.ctx
        ctx.set(dut.now, self.now)
        for port, ready in ((dut.o_link, self.link_ready), (dut.o_cancel, self.cancel_ready),
                            (dut.o_compute, self.compute_ready)):
            ctx.set(port.ready, ready)
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
            self.cancels.append(taken[2])
            self.answers = [answer for answer in self.answers
                            if (answer[1], answer[2]["chunk"]) != (0, taken[2])]
        if is_taken[3]:
            self.log.append({**taken[3], "decision": taken[3]["decision"].value})
        await ctx.tick()
        self.cycle += 1

    def _request(self, route, chunk):
        self.requests.append((route, chunk))
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
        self.requests, self.cancels = [], []
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


@pytest.mark.parametrize("seed", range(6))
def test_equals_golden(seed):
    async def script(bench):
        for _ in range(2):
            job = random_job(bench.rng, 12)
            await bench.begin(job, World.at_random(bench.rng, job))
            await bench.finish(job)

    Bench(script, seed=seed).run()


@pytest.mark.parametrize("change, error", [
    ({0: {"is_listed": 0}}, LoadError.UNLISTED),
    ({3: {"stream_ticks": 0}}, LoadError.TICKS),
    ({3: {"compute_ticks": 0}}, LoadError.TICKS),
    ({3: {"chunk": 2}}, LoadError.TWICE),
    ({2: {"stage": 1}, 3: {"stage": 0}}, LoadError.STAGE),
    ({7: {"stage": 2}}, LoadError.STAGE),
    ({7: {"chunk": 8}}, LoadError.MISSING),
    ({"extra": {"chunk": 8}}, LoadError.RANGE),
    ({"policy": {"blocks": 1}}, LoadError.RANGE),
    ({"policy": {"blocks": 3}}, LoadError.MISSING),
    ({"policy": {"layers": 0}}, LoadError.GRID),
    ({"policy": {"stages": 1}, 7: {"stage": 1}}, LoadError.STAGE),
    ({"policy": {"stages": 257}}, LoadError.STAGE),
    ({"policy": {"scan": 0}}, LoadError.POLICY),
    ({"policy": {"stream_outstanding": 0}}, LoadError.POLICY),
    ({"policy": {"compute_outstanding": 5}}, LoadError.POLICY),
    ({"policy": {"window_log2": 5}}, LoadError.POLICY),
    ({"policy": {"stream_timeout": 0}}, LoadError.POLICY),
])
def test_refuses_what_is_not_sound(change, error):
    """And nothing has started; the job without the fault then runs."""
    policy = {"blocks": 2, "layers": 2, "heads": 2, "stages": 2, "scan": 8, "rule": 0,
              "stream_outstanding": 1, "compute_outstanding": 1, "stream_timeout": 1000,
              "compute_timeout": 1000}
    entries = [{"chunk": chunk, "is_listed": 1, "route": 0, "stage": 0, "stream_ticks": 5,
                "compute_ticks": 5, "deadline": 1000} for chunk in range(8)]
    bad = [entry | change.get(index, {}) for index, entry in enumerate(entries)]
    bad += [entries[0] | change["extra"]] if "extra" in change else []

    async def script(bench):
        dut, ctx = bench.dut, bench.ctx
        await bench.load(policy | change.get("policy", {}), bad)
        assert ctx.get(dut.busy)
        while ctx.get(dut.busy):
            await bench.tick()
        assert ctx.get(dut.error) == error and not ctx.get(dut.finished)
        await bench.until(dut.loading)
        assert (bench.log, bench.events, bench.requests) == ([], [], [])
        job = random_job(bench.rng, 6)
        await bench.begin(job, World(bench.rng, job))
        assert ctx.get(dut.error) == LoadError.NONE
        await bench.finish(job)

    Bench(script, seed=1).run()


def test_more_chunks_than_the_table_has():
    async def script(bench):
        entries = [{"chunk": chunk, "is_listed": 1, "stream_ticks": 5, "compute_ticks": 5}
                   for chunk in range(CONFIG.chunks)]
        policy = {"blocks": 17, "layers": 1, "heads": 1, "stages": 1, "scan": 1,
                  "stream_outstanding": 1, "compute_outstanding": 1, "stream_timeout": 1,
                  "compute_timeout": 1}
        await bench.load(policy, entries)
        while bench.ctx.get(bench.dut.busy):
            await bench.tick()
        assert bench.ctx.get(bench.dut.error) == LoadError.GRID

    Bench(script, seed=1).run()


@pytest.mark.parametrize("cycles", [0, 1, 10, 40, 150, 400])
def test_abort_forgets_all(cycles):
    async def script(bench):
        dut, ctx = bench.dut, bench.ctx
        job = random_job(bench.rng, 16)
        await bench.begin(job, World(bench.rng, job))
        bench.compute_ready = 0
        for _ in range(cycles):
            await bench.tick()
        offered = ctx.get(dut.o_compute.valid)
        await bench.abort()
        assert not ctx.get(dut.busy) and not ctx.get(dut.finished)
        assert not ctx.get(dut.o_link.valid) and not ctx.get(dut.o_cancel.valid)
        assert ctx.get(dut.o_compute.valid) == offered == (not ctx.get(dut.quiet))
        requests = len(bench.requests)
        bench.compute_ready = 1
        await bench.until(dut.loading)
        assert len(bench.requests) == requests + offered
        job = random_job(bench.rng, 16)
        await bench.begin(job, World(bench.rng, job))
        await bench.finish(job)

    Bench(script, seed=cycles).run()


@pytest.mark.parametrize("dead", ["link_ready", "compute_ready"])
def test_a_port_that_takes_nothing_holds_nothing_up(dead):
    """The other route brings all; what was never taken needs no giving up."""
    async def script(bench):
        policy = Policy(stream_timeout=60, compute_timeout=60, scan=8)
        job = random_job(bench.rng, 12, is_wild=False, **vars(policy))
        setattr(bench, dead, 0)
        await bench.begin(job, World(bench.rng, job))
        golden = await bench.finish(job)
        assert {route for route, _ in bench.requests} == {int(dead == "link_ready")}
        assert bench.cancels == []
        if dead == "compute_ready":
            assert bench.ctx.get(bench.dut.o_compute.valid)   # offered for ever
        assert golden.left == 0

    Bench(script, seed=3).run()


def test_a_chunk_is_not_computed_before_the_link_gives_it_up():
    """Silence on the link: each request is cancelled, and while that is not taken, events go on but
    nothing new is requested."""
    async def script(bench):
        policy = Policy(stream_timeout=20, refine=False, scan=8, stream_outstanding=2)
        job = random_job(bench.rng, 12, is_wild=False, **vars(policy))
        world = World(bench.rng, job)
        answer = world.request
        world.request = lambda now, route, chunk: answer(now, route, chunk) if route else []
        bench.cancel_ready = 0
        await bench.begin(job, world)
        await bench.until(bench.dut.o_cancel.valid)
        for _ in range(1000):
            await bench.tick()
        link = [chunk for route, chunk in bench.requests if route == 0]
        expired = [record["chunk"] for record in bench.log
                   if record["decision"] == Decision.STREAM_FAILED]
        assert expired[:2] == link[:2] and len(link) <= 3
        assert not {(1, chunk) for chunk in link} & set(bench.requests)
        bench.cancel_ready = 1
        await bench.finish(job)
        assert bench.cancels == [chunk for route, chunk in bench.requests if route == 0]

    Bench(script, seed=5).run()
