"""Parts of the route scheduler that work on their own."""

import random

import pytest
from amaranth.sim import Simulator

from golden.streaming import meter as golden
from golden.streaming import policy, tasks
from hw.config import StreamingConfig
from hw.streaming.layouts import Decision, Route
from hw.streaming.scheduler.compare import ProductCompare
from hw.streaming.scheduler.flying import Flying
from hw.streaming.scheduler.layouts import Event, Task
from hw.streaming.scheduler.link_port import LinkPort
from hw.streaming.scheduler.meter import Meter

CONFIG = StreamingConfig(head_dim=32, bus_bytes=8, chunks=16, outstanding=2)


@pytest.mark.parametrize("hardware, model", [
    (Decision, policy.Decision), (Event, policy.Event), (Route, policy.Route), (Task, tasks.Task)])
def test_numbers_are_those_of_golden(hardware, model):
    assert {each.name: each.value for each in hardware} == {
        each.name: each.value for each in model}


def simulate(dut, script):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(script)
    simulator.run()


async def strobe(ctx, *signals):
    for signal in signals:
        ctx.set(signal, 1)
    await ctx.tick()
    for signal in signals:
        ctx.set(signal, 0)


async def settle(ctx, busy):
    """Cycles until a unit is not busy."""
    cycles = 0
    while ctx.get(busy):
        await ctx.tick()
        cycles += 1
    return cycles


@pytest.mark.parametrize("window_log2", range(5))
def test_meter(window_log2):
    rng = random.Random(window_log2)
    dut, twin = Meter(), golden.Meter(window_log2)

    async def script(ctx):
        ctx.set(dut.window_log2, window_log2)
        await strobe(ctx, dut.begin)
        now = 0
        for _ in range(60):
            now += rng.choice([0, 1, rng.randrange(100), rng.randrange(1 << 20)])
            predicted = rng.choice([1, rng.randint(1, 200), rng.randint(1, (1 << 24) - 1)])
            ctx.set(dut.now, now)
            ctx.set(dut.predicted, predicted)
            match rng.choice(["record", "record", "restart", "measure", "idle"]):
                case "record":
                    twin.record(now, predicted)
                    await strobe(ctx, dut.record)
                    assert await settle(ctx, dut.busy) in (3, 13)
                case "restart":
                    twin.restart(now)
                    await strobe(ctx, dut.restart)
                case "measure":
                    await strobe(ctx, dut.measure)
                    assert await settle(ctx, dut.busy) in (3, 13)
                    assert ctx.get(dut.estimate) == twin.estimate(now, predicted)
                case "idle":
                    ctx.set(dut.predicted, 0)
                    await strobe(ctx, dut.measure)
                    assert await settle(ctx, dut.busy) == 1
                    assert ctx.get(dut.estimate) == twin.estimate(now, 0) == twin.mean()

    simulate(dut, script)


def test_meter_takes_the_largest_ratio_for_all_above():
    dut, twin = Meter(), golden.Meter(0)

    async def script(ctx):
        await strobe(ctx, dut.begin)
        for now, predicted in ((256 * 9, 9), (256 * 9 - 1, 9), ((1 << 32) - 1, 1)):
            ctx.set(dut.now, now)
            ctx.set(dut.predicted, predicted)
            await strobe(ctx, dut.measure)
            await settle(ctx, dut.busy)
            assert ctx.get(dut.estimate) == twin.estimate(now, predicted)

    simulate(dut, script)


def test_products_are_compared_exactly():
    rng = random.Random(1)
    dut = ProductCompare(bits=29)
    argument = dut.call.argument

    async def script(ctx):
        for _ in range(60):
            first, second = ([rng.getrandbits(16), rng.getrandbits(29)] for _ in range(2))
            match rng.randrange(4):
                case 0:
                    second = list(first)
                case 1:
                    second = [first[0], first[1] ^ 1]
                case 2:
                    first = [0, first[1]]
            for side, (ratio, amount) in ((argument.first, first), (argument.second, second)):
                ctx.set(side.ratio, ratio)
                ctx.set(side.amount, amount)
            ctx.set(dut.call.start, 1)
            cycles = 0
            while not ctx.get(dut.call.done):
                await ctx.tick()
                cycles += 1
            assert cycles == 17
            less = first[0] * first[1] < second[0] * second[1]
            assert ctx.get(dut.call.result) == less, (first, second)
            ctx.set(dut.call.start, 0)
            await ctx.tick()

    simulate(dut, script)


def test_requests_in_flight_stay_in_order():
    """Against a list: appended, sent at random, removed anywhere, none sent after its removal."""
    rng = random.Random(3)
    dut = Flying(CONFIG)

    async def script(ctx):
        flying, sent = [], set()
        free = set(range(CONFIG.chunks))

        async def tick(*strobes):
            if ctx.get(dut.o.valid) and ctx.get(dut.o.ready):
                chunk = ctx.get(dut.o.payload.chunk)
                assert chunk == next(item for item, _ in flying if item not in sent)
                sent.add(chunk)
            await strobe(ctx, *strobes)

        for _ in range(600):
            ctx.set(dut.o.ready, rng.random() < 0.3)
            assert ctx.get(dut.count) == len(flying)
            assert ctx.get(dut.oldest_ticks) == (flying[0][1] if flying else 0)
            for index, (chunk, _) in enumerate(flying):
                ctx.set(dut.index, index)
                assert ctx.get(dut.seen.chunk) == chunk
            if flying and rng.random() < 0.5:
                item = rng.choice(flying)
                ctx.set(dut.chunk, item[0])
                await tick(dut.remove)
                while not ctx.get(dut.removed):
                    await tick()
                assert ctx.get(dut.was_sent) == (item[0] in sent)
                assert ctx.get(dut.removed_chunk) == item[0]
                flying.remove(item)
                sent.discard(item[0])
                free.add(item[0])
                while ctx.get(dut.busy):
                    await tick()
            elif len(flying) < 16 and free:
                chunk = rng.choice(sorted(free))
                free.remove(chunk)
                ticks = rng.randint(1, 99)
                ctx.set(dut.flight, {"chunk": chunk, "ticks": ticks})
                await tick(dut.append)
                flying.append((chunk, ticks))
            else:
                await tick()

    simulate(dut, script)


def test_a_request_gets_late_no_more():
    dut = Flying(CONFIG)

    async def script(ctx):
        for chunk in range(3):
            ctx.set(dut.flight, {"chunk": chunk, "late_at": 5, "silent_at": 7})
            await strobe(ctx, dut.append)
        ctx.set(dut.chunk, 1)
        await strobe(ctx, dut.extend)
        await settle(ctx, dut.busy)
        for index, late_at in enumerate([5, 1 << 32, 5]):
            ctx.set(dut.index, index)
            assert (ctx.get(dut.seen.late_at), ctx.get(dut.seen.silent_at)) == (late_at, 7)

    simulate(dut, script)


def test_a_link_request_is_withdrawn_or_given_up():
    dut = LinkPort(CONFIG)

    async def request(ctx, chunk):
        ctx.set(dut.i.payload.chunk, chunk)
        ctx.set(dut.i.valid, 1)
        while not ctx.get(dut.i.ready):
            await ctx.tick()
        await ctx.tick()
        ctx.set(dut.i.valid, 0)
        assert (ctx.get(dut.o_link.valid), ctx.get(dut.o_link.payload)) == (1, chunk)

    async def script(ctx):
        ctx.set(dut.expired, 1)
        await request(ctx, 3)
        ctx.set(dut.chunk, 3)
        await strobe(ctx, dut.withdraw)              # still on offer: falls, and that is all
        assert not ctx.get(dut.o_link.valid) and ctx.get(dut.is_clear)

        await request(ctx, 4)
        ctx.set(dut.chunk, 4)
        ctx.set(dut.o_link.ready, 1)
        await strobe(ctx, dut.withdraw)              # taken in the same cycle: given up
        assert (ctx.get(dut.o_cancel.valid), ctx.get(dut.o_cancel.payload)) == (1, 4)
        assert not ctx.get(dut.is_clear) and not ctx.get(dut.i.ready)
        await strobe(ctx, dut.o_cancel.ready)
        assert ctx.get(dut.is_clear) and ctx.get(dut.i.ready)

        ctx.set(dut.hold, 1)
        assert not ctx.get(dut.i.ready)
        ctx.set(dut.hold, 0)
        await request(ctx, 5)
        await ctx.tick()
        ctx.set(dut.expired, 0)
        ctx.set(dut.chunk, 5)
        await strobe(ctx, dut.withdraw)              # answered: nothing is to be given up
        assert ctx.get(dut.is_clear) and not ctx.get(dut.o_cancel.valid)

    simulate(dut, script)
