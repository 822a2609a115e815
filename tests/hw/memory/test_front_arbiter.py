import random

import pytest
from amaranth.hdl import ResetInserter, Signal

from hw.config.memory import MemoryConfig
from hw.memory.front_arbiter import FrontArbiter
from tests.hw.harness import find_port, run_testbench

CONFIG = MemoryConfig()


class Model:
    """Which source comes next, from what is offered in a cycle."""

    def __init__(self, count, bound):
        self.bound = bound
        self.order = list(range(count))
        self.passed = [0] * count
        self.most = 0

    def choose(self, offered):
        def urgency(source):
            overdue = self.passed[source] >= self.bound
            return (overdue, 0 if overdue else offered[source])

        best = max(map(urgency, offered))
        chosen = next(source for source in self.order
                      if source in offered and urgency(source) == best)
        self.order.remove(chosen)
        self.order.append(chosen)
        for source in offered:
            self.passed[source] = 0 if source == chosen else self.passed[source] + 1
        self.most = max(self.most, *self.passed)
        return chosen


def run(count, bound, *, seed, cycles, offer=1.0, take=1.0, qos=None):
    """Requests at random against the model. Returns the sources in order, and the model."""
    rng, model = random.Random(seed), Model(count, bound)
    dut = FrontArbiter(CONFIG, count=count, bound=bound)
    ports = [find_port(dut, f"i.{index}") for index in range(count)]
    waiting, order, held = {}, [], []
    number = 0

    async def testbench(ctx):
        nonlocal number
        pending, got = [], 0
        for _ in range(cycles):
            for source, port in enumerate(ports):
                if source not in waiting and rng.random() < offer:
                    level = qos[source] if qos else rng.randrange(3)
                    waiting[source] = {
                        "line": number, "qos": level, "source": 0, "tag": number % 256,
                        "context": number % 251, "data": rng.getrandbits(512)}
                    number += 1
                    ctx.set(port.payload, waiting[source])
                ctx.set(port.valid, source in waiting)
            is_willing = rng.random() < take
            ctx.set(dut.o.ready, is_willing)
            ready = [source for source, port in enumerate(ports) if ctx.get(port.ready)]
            # A register slice of two: 1 cycle behind, and full only when it holds two.
            assert ctx.get(dut.o.valid) == bool(pending)
            assert ready == [] if len(pending) == 2 else len(ready) == bool(waiting)
            if pending:
                item = ctx.get(dut.o.payload)
                assert {name: getattr(item, name) for name in pending[0]} == pending[0]
            if pending and is_willing:
                pending.pop(0)
                got += 1
            if ready:
                chosen = model.choose({source: waiting[source]["qos"] for source in waiting})
                assert ready == [chosen]
                order.append(chosen)
                pending.append(waiting.pop(chosen))
            await ctx.tick()
        held.append(got)

    run_testbench(dut, testbench, timeout_cycles=cycles + 10)
    return order, model, held[0]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_at_random(count):
    _, model, got = run(count, 3, seed=count, cycles=300, offer=0.6, take=0.7)
    assert got > 100
    assert model.most <= 3 + max(count - 2, 0)


@pytest.mark.regress
@pytest.mark.parametrize("seed", range(8))
def test_more_at_random(seed):
    _, model, _ = run(5, 2, seed=seed, cycles=2000, offer=0.8, take=0.8)
    assert 2 <= model.most <= 2 + 3


def test_full_rate_and_equal_shares():
    order, _, got = run(3, 16, seed=1, cycles=60, qos=[2, 2, 2])
    assert order == [0, 1, 2] * 20
    assert got == 59  # all but the cycle of latency


def test_one_source_at_full_rate():
    order, _, got = run(1, 16, seed=1, cycles=30)
    assert (len(order), got) == (30, 29)


def test_the_lowest_goes_after_bound_others():
    order, model, _ = run(2, 4, seed=1, cycles=50, qos=[15, 0])
    assert order == [0, 0, 0, 0, 1] * 10
    assert model.most == 4


def test_several_overdue():
    order, model, _ = run(4, 3, seed=1, cycles=80, qos=[15, 0, 1, 2])
    assert set(order) == {0, 1, 2, 3}
    assert model.most <= 3 + 2


def test_reset_in_mid_stream_leaves_nothing():
    """Neither requests, nor who was served, nor how often one was passed over."""
    dut, reset = FrontArbiter(CONFIG, count=2, bound=3), Signal()
    ports = [find_port(dut, f"i.{index}") for index in range(2)]
    order = []

    async def bench(ctx):
        for index, port in enumerate(ports):
            ctx.set(port.payload, {"qos": 1 - index, "tag": index})
            ctx.set(port.valid, 1)
        ctx.set(dut.o.ready, 1)
        await ctx.tick().repeat(2)
        ctx.set(dut.o.ready, 0)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.o.valid)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        assert not ctx.get(dut.o.valid)
        ctx.set(dut.o.ready, 1)
        for _ in range(9):
            _, _, valid, tag = await ctx.tick().sample(dut.o.valid, dut.o.payload.tag)
            order.append(tag if valid else None)

    run_testbench(ResetInserter(reset)(dut), bench)
    assert order == [None, 0, 0, 0, 1, 0, 0, 0, 1]


@pytest.mark.parametrize(("fields", "error", "text"), [
    ({"count": 0}, ValueError, "FrontArbiter count must be at least 1, not 0"),
    ({"count": 2, "bound": 0}, ValueError, "FrontArbiter bound must be at least 1, not 0"),
    ({"count": 2, "bound": 256}, ValueError, "FrontArbiter bound must be at most 255, not 256"),
    ({"count": 1.5}, TypeError, "FrontArbiter count must be an integer, not 1.5"),
])
def test_bad_parameters(fields, error, text):
    with pytest.raises(error, match=text):
        FrontArbiter(CONFIG, **fields)


def test_bad_config():
    with pytest.raises(TypeError, match="config must be a MemoryConfig"):
        FrontArbiter(None, count=2)
