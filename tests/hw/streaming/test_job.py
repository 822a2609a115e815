import random

import pytest

from hw.config import StreamingConfig
from hw.streaming.job import JobControl
from hw.streaming.reports import JobEnd
from hw.streaming.scheduler.layouts import LoadError
from tests.hw.harness import run_testbench

CONFIG = StreamingConfig(head_dim=32, bus_bytes=8)


class Surroundings:
    """Loader, scheduler and requests, with times that a test sets."""

    def __init__(self, ctx, dut):
        self.ctx, self.dut = ctx, dut
        self.cycle = 0
        self.seen = []       # (cycle, what)
        self.events = {}     # cycle -> inputs to set

    async def tick(self):
        ctx, dut = self.ctx, self.dut
        for name in ("load", "run", "give_up"):
            if ctx.get(getattr(dut, name)):
                self.seen.append((self.cycle, name))
        await ctx.tick()
        self.cycle += 1

    async def pulse(self, name):
        self.ctx.set(getattr(self.dut, name), 1)
        await self.tick()
        self.ctx.set(getattr(self.dut, name), 0)

    async def until(self, name, limit=100):
        for _ in range(limit):
            if self.ctx.get(getattr(self.dut, name)):
                return
            await self.tick()
        raise AssertionError(f"{name} did not come")

    async def report(self, wait=0):
        for _ in range(100):
            if self.ctx.get(self.dut.o_report.valid):
                break
            await self.tick()
        for _ in range(wait):
            await self.tick()
            assert self.ctx.get(self.dut.o_report.valid) and self.ctx.get(self.dut.busy)
        payload = self.ctx.get(self.dut.o_report.payload)
        self.ctx.set(self.dut.o_report.ready, 1)
        await self.tick()
        self.ctx.set(self.dut.o_report.ready, 0)
        assert not self.ctx.get(self.dut.busy)
        return payload["end"], payload["detail"]


def run(bench):
    dut = JobControl(CONFIG)

    async def testbench(ctx):
        await bench(Surroundings(ctx, dut), ctx, dut)

    run_testbench(dut, testbench)


async def reach_run(world, ctx, dut):
    ctx.set(dut.loading, 1)
    await world.pulse("start")
    await world.until("load")
    await world.tick()
    for _ in range(5):
        await world.tick()
    await world.pulse("loaded")
    await world.until("run")
    ctx.set(dut.running, 1)
    ctx.set(dut.loading, 0)
    await world.tick()


def test_a_job_runs_to_its_end():
    async def bench(world, ctx, dut):
        await reach_run(world, ctx, dut)
        assert [name for _, name in world.seen] == ["load", "run"]
        assert world.seen[0][0] == 1 and world.seen[1][0] == world.seen[0][0] + 7
        ctx.set(dut.draining, 1)
        ctx.set(dut.lost, 3)
        ctx.set(dut.finished, 1)
        ctx.set(dut.running, 0)
        for _ in range(10):
            await world.tick()
            assert not ctx.get(dut.o_report.valid)  # a write is still under way
        assert ctx.get(dut.stop)
        ctx.set(dut.draining, 0)
        assert await world.report(wait=4) == (JobEnd.FINISHED, 3)

    run(bench)


def test_a_schedule_that_does_not_load_or_is_none():
    async def bench(world, ctx, dut):
        ctx.set(dut.loading, 1)
        await world.pulse("start")
        await world.until("load")
        await world.tick()
        ctx.set(dut.load_failed, 1)
        await world.pulse("loaded")
        ctx.set(dut.load_failed, 0)
        assert await world.report() == (JobEnd.LOAD, 0)
        assert [name for _, name in world.seen] == ["load", "give_up"]
        await reach_run(world, ctx, dut)
        ctx.set(dut.lost, 9)  # of the job before
        ctx.set(dut.error, LoadError.GRID)
        ctx.set(dut.running, 0)  # refused: it did not finish
        assert await world.report() == (JobEnd.SCHEDULE, LoadError.GRID.value)

    run(bench)


@pytest.mark.parametrize("wait", range(12))
def test_abort_at_any_time_ends_it(wait):
    async def bench(world, ctx, dut):
        ctx.set(dut.loading, 1)
        ctx.set(dut.running, 1)
        await world.pulse("start")
        loaded_at = 6
        for _ in range(wait):
            ctx.set(dut.loaded, world.cycle == loaded_at)
            await world.tick()
        ctx.set(dut.loaded, world.cycle == loaded_at)
        await world.pulse("abort")
        while world.cycle <= loaded_at:
            ctx.set(dut.loaded, world.cycle == loaded_at)
            await world.tick()
        ctx.set(dut.loaded, 0)
        assert await world.report() == (JobEnd.ABORTED, 0)
        assert [name for _, name in world.seen].count("give_up") == 1
        assert world.seen[-1][1] == "give_up"

    run(bench)


@pytest.mark.parametrize("tick_log2", [0, 1, 4, 15])
def test_time_counts_from_the_start(tick_log2):
    async def bench(world, ctx, dut):
        ctx.set(dut.tick_log2, tick_log2)
        await reach_run(world, ctx, dut)
        begin = world.cycle - 1
        rng = random.Random(tick_log2)
        for _ in range(6):
            for _ in range(rng.randint(1, 60)):
                await world.tick()
            assert ctx.get(dut.now) == (world.cycle - begin - 1) >> tick_log2

    run(bench)
