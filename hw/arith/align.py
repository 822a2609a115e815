"""A sum of any scale to fixed point: shift either way, round, saturate."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import saturate
from hw.checks import check_int

__all__ = ["Align"]

DROP_BITS = 7
FINE_BITS = 4


class Align(wiring.Component):
    """``o`` + ``carry`` = ``i`` * 2**(out_bits - drop), rounded to nearest (ties up) and saturated.

    The rounding is left as a carry, so that whoever adds the result up needs no adder for it.

    A left shift by more than ``out_bits`` saturates anything but zero, so ``drop`` starts at 0; and
    a right shift past the width of ``i`` gives zero. One right shifter serves all: the value enters
    it at its largest scale, with one fraction bit below for the rounding.

    **Latency**: 2 cycles (`LATENCY`) in which ``enable`` is high: coarse shift; fine shift with
    saturation.

    **Throughput**: 1 per cycle.

    **Numerics**: ``golden.fixed``: ``sat(i << (out_bits - drop))`` or ``sat(rnd(i, drop -
    out_bits))``.

    **Errors**: none. ``clipped`` tells that the value was saturated.

    Parameters
    ----------
    in_bits : int
        Width of ``i``. Below ``out_bits``, so that rounding can not overflow.
    out_bits : int
        Width of ``o``.

    Members
    -------
    i : ``In(signed(in_bits))``
    drop : ``In(7)``
    o : ``Out(signed(out_bits))``
    carry : ``Out(1)``
    clipped : ``Out(1)``
    enable : ``In(1)``
        Lets the pipeline advance.
    """

    LATENCY = 2

    def __init__(self, *, in_bits, out_bits):
        self._in_bits = check_int("Align in_bits", in_bits, minimum=2)
        self._out_bits = check_int("Align out_bits", out_bits, minimum=in_bits + 1)
        check_int("Align in_bits + out_bits", in_bits + out_bits, maximum=(1 << DROP_BITS) - 2)
        super().__init__({
            "i": In(signed(in_bits)),
            "drop": In(DROP_BITS),
            "o": Out(signed(out_bits)),
            "carry": Out(1),
            "clipped": Out(1),
            "enable": In(1),
        })

    @property
    def in_bits(self):
        return self._in_bits

    @property
    def out_bits(self):
        return self._out_bits

    def elaborate(self, platform):
        m = Module()

        coarse = Signal(signed(self.in_bits + self.out_bits + 1))
        fine = Signal(FINE_BITS)
        doubled = Signal(signed(self.in_bits + self.out_bits + 1))
        # Only a left shift can overflow, and it leaves no fraction: a limit is not rounded.
        fits, clipped = saturate(doubled, self.out_bits + 1)
        m.d.comb += doubled.eq(coarse >> fine)
        with m.If(self.enable):
            m.d.sync += [
                coarse.eq((self.i << (self.out_bits + 1))
                          >> (self.drop[FINE_BITS:] << FINE_BITS)),
                fine.eq(self.drop[:FINE_BITS]),
                self.o.eq(fits >> 1),
                self.carry.eq(doubled[0] & ~clipped),
                self.clipped.eq(clipped),
            ]
        return m
