import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.arith.prefix import running_sums
from hw.arith.priority import highest_bit


class Priority(wiring.Component):
    def __init__(self, bits):
        super().__init__({"i": In(bits), "index": Out(8), "one_hot": Out(bits)})

    def elaborate(self, platform):
        m = Module()
        index, one_hot = highest_bit(self.i)
        m.d.comb += [self.index.eq(index), self.one_hot.eq(one_hot)]
        return m


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 11])
def test_highest_bit_of_every_value(bits):
    unit = Priority(bits)

    async def bench(ctx):
        for value in range(1 << bits):
            ctx.set(unit.i, value)
            await ctx.delay(1e-6)
            if value:
                assert ctx.get(unit.index) == value.bit_length() - 1
            assert ctx.get(unit.one_hot) == (1 << value.bit_length() >> 1)

    simulator = Simulator(unit)
    simulator.add_testbench(bench)
    simulator.run()


class Sums(wiring.Component):
    def __init__(self, terms, levels_per_stage):
        self.terms = terms
        self.levels_per_stage = levels_per_stage
        super().__init__({"i": In(4 * terms), "o": Out(6 * terms)})

    def elaborate(self, platform):
        m = Module()
        terms = [self.i.word_select(place, 4) for place in range(self.terms)]
        sums = running_sums(m, terms, bits=6, name="sum", levels_per_stage=self.levels_per_stage)
        m.d.comb += [self.o.word_select(place, 6).eq(value) for place, value in enumerate(sums)]
        return m


@pytest.mark.parametrize("terms, levels_per_stage, latency", [
    (1, None, 0), (1, 3, 1), (2, 1, 1), (8, 3, 1), (8, None, 0), (11, 3, 2), (16, 2, 2)])
def test_running_sums(terms, levels_per_stage, latency):
    unit = Sums(terms, levels_per_stage)
    values = [(k * 37 + 11) % 16 for k in range(terms)]

    async def bench(ctx):
        ctx.set(unit.i, sum(value << 4 * place for place, value in enumerate(values)))
        for _ in range(latency):
            assert ctx.get(unit.o) == 0
            await ctx.tick()
        await ctx.delay(1e-7)
        found = ctx.get(unit.o)
        assert [found >> 6 * place & 63 for place in range(terms)] == [
            sum(values[:place + 1]) % 64 for place in range(terms)]

    simulator = Simulator(unit)
    if latency:
        simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
