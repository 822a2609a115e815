"""Two to the power of a binary fraction: table and linear interpolation."""

from itertools import pairwise
from math import isqrt

from amaranth.hdl import Cat, Const, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.config import EXP2_FRACTION_BITS, EXP2_INDEX_BITS, LOGIT_FRACTION_BITS

__all__ = ["Exp2", "exp2_table"]


def exp2_table():
    """Return floor(2**(i / 256) * 2**24 + 1/2) for i in 0..256, in exact integer arithmetic.

    With x the entry before rounding, (2 x)**256 is the integer 2**(25 * 256 + i). Its 256th root,
    rounded down, comes from eight integer square roots, and floor(x + 1/2) = (floor(2 x) + 1) // 2.
    """
    table = []
    for index in range((1 << EXP2_INDEX_BITS) + 1):
        root = 1 << (((EXP2_FRACTION_BITS + 1) << EXP2_INDEX_BITS) + index)
        for _ in range(EXP2_INDEX_BITS):
            root = isqrt(root)
        table.append((root + 1) // 2)
    return table


class Exp2(wiring.Component):
    """``mantissa`` = 2**(``fraction`` / 2**16) with 24 fraction bits.

    **Latency**: 2 cycles (`LATENCY`) in which ``enable`` is high.

    **Throughput**: 1 per cycle.

    **Numerics**: ``golden.exp2.exp2_mantissa``, docs/numerics.md section 4.

    **Errors**: none.

    Members
    -------
    fraction : ``In(16)``
        Fraction bits of a logit.
    mantissa : ``Out(25)``
        In 2**24 .. 2**25 - 1.
    enable : ``In(1)``
        Lets the pipeline advance.
    """

    LATENCY = 2

    def __init__(self):
        super().__init__({
            "fraction": In(LOGIT_FRACTION_BITS),
            "mantissa": Out(EXP2_FRACTION_BITS + 1),
            "enable": In(1),
        })

    def elaborate(self, platform):
        m = Module()

        table = exp2_table()
        steps = [above - base for base, above in pairwise(table)]
        entry = data.StructLayout({
            "base": EXP2_FRACTION_BITS + 1,
            "step": max(steps).bit_length(),
        })
        # The clip of section 4 has no hardware: the last line ends a 256th of its step below 2**25.
        assert table[-1] - (steps[-1] >> EXP2_INDEX_BITS) < 2 << EXP2_FRACTION_BITS
        # A block RAM would answer too late in its cycle to be followed by a multiplier.
        m.submodules.table = memory = Memory(
            shape=entry, depth=len(steps), attrs={"rom_style": "logic"},
            init=[{"base": base, "step": step} for base, step in zip(table, steps, strict=False)])
        lookup = memory.read_port(domain="comb")

        rest_bits = LOGIT_FRACTION_BITS - EXP2_INDEX_BITS
        found = Signal(entry)
        rest = Signal(rest_bits)
        raised = Signal(EXP2_FRACTION_BITS + 1 + rest_bits)
        half = Const(1 << (rest_bits - 1), unsigned(rest_bits))
        m.d.comb += [
            lookup.addr.eq(self.fraction[rest_bits:]),
            # base + round(step * rest / 256), with the base and the half laid side by side.
            raised.eq(Cat(half, found.base) + found.step * rest),
        ]
        with m.If(self.enable):
            m.d.sync += [
                found.eq(lookup.data),
                rest.eq(self.fraction[:rest_bits]),
                self.mantissa.eq(raised[rest_bits:]),
            ]
        return m
