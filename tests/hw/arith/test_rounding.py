import random

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from golden.fixed import rnd, sat, saturates
from hw.arith.rounding import clip_unsigned, delay, round_shift, round_shift_by, saturate
from tests.hw.arith.pipeline import run_pipeline


class Expressions(wiring.Component):
    """One output per helper."""

    value: In(signed(12))
    amount: In(4)
    rounded: Out(signed(12))
    rounded_by: Out(signed(12))
    clipped: Out(signed(7))
    overflow: Out(1)
    clipped_unsigned: Out(5)

    def elaborate(self, platform):
        m = Module()
        clipped, overflow = saturate(self.value, 7)
        m.d.comb += [
            self.rounded.eq(round_shift(self.value, 3)),
            self.rounded_by.eq(round_shift_by(self.value, self.amount)),
            self.clipped.eq(clipped),
            self.overflow.eq(overflow),
            self.clipped_unsigned.eq(clip_unsigned(self.value.as_unsigned(), 5)),
        ]
        return m


def test_expressions_equal_golden():
    dut = Expressions()
    names = ["rounded", "rounded_by", "clipped", "overflow", "clipped_unsigned"]

    async def drive(ctx):
        for value in range(-2048, 2048):
            amount = value % 16
            ctx.set(dut.value, value)
            ctx.set(dut.amount, amount)
            got = {name: ctx.get(getattr(dut, name)) for name in names}
            assert got == {
                "rounded": rnd(value, 3),
                "rounded_by": rnd(value, amount),
                "clipped": sat(value, 7),
                "overflow": saturates(value, 7),
                "clipped_unsigned": min(value % 4096, 31),
            }, (value, amount)

    simulator = Simulator(dut)
    simulator.add_testbench(drive)
    simulator.run()


def test_nothing_to_narrow():
    value = Expressions().value
    assert round_shift(value, 0) is value
    assert saturate(value, 12) == (value, 0)
    assert clip_unsigned(value, 12) is value


class Delayed(wiring.Component):
    i: In(8)
    o: Out(8)
    enable: In(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(delay(m, self.i, 3, name="late", enable=self.enable))
        return m


@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_delay(pause):
    inputs = [{"i": random.Random(5).randrange(256)} for _ in range(40)]
    outputs = run_pipeline(Delayed(), inputs, ["o"], latency=3, pause_probability=pause)
    assert [output["o"] for output in outputs] == [given["i"] for given in inputs]
