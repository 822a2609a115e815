import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.arith.popcount import Popcount, count_ones


def follow(unit, values):
    """Outputs of a pipeline, one per input, from its latency on."""
    found = []

    async def bench(ctx):
        for cycle in range(len(values) + unit.latency):
            if cycle >= unit.latency:
                found.append(ctx.get(unit.o))
            if cycle < len(values):
                ctx.set(unit.i, values[cycle])
            await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.mark.parametrize("bits, latency", [
    (1, 1), (4, 1), (5, 2), (9, 2), (64, 2), (65, 3), (96, 3), (1024, 3), (1025, 4)])
def test_counts_one_word_per_cycle(bits, latency):
    rng = random.Random(bits)
    unit = Popcount(bits=bits)
    assert unit.latency == latency
    values = [0, (1 << bits) - 1, *(rng.getrandbits(bits) for _ in range(40))]
    assert follow(unit, values) == [value.bit_count() for value in values]


class Counter(wiring.Component):
    """`count_ones` as a unit."""

    latency = 0

    def __init__(self, bits):
        super().__init__({"i": In(bits), "o": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(count_ones(self.i))
        return m


@pytest.mark.parametrize("bits", range(1, 10))
def test_count_ones_of_every_value(bits):
    unit = Counter(bits)
    found = []

    async def bench(ctx):
        for value in range(1 << bits):
            ctx.set(unit.i, value)
            await ctx.delay(1e-6)
            found.append(ctx.get(unit.o))

    simulator = Simulator(unit)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == [value.bit_count() for value in range(1 << bits)]


def test_refuses_no_bits():
    with pytest.raises(ValueError, match="Popcount bits must be at least 1, not 0"):
        Popcount(bits=0)
