"""Packing of float32."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import clip_unsigned, delay
from hw.checks import check_int

__all__ = ["FloatPack"]

FRACTION_BITS = 23
EXPONENT_BIAS = 127
LARGEST = 0x7F7FFFFF
KEPT_BITS = 1 + FRACTION_BITS + 2  # with a rounding and a sticky bit
SHIFT_BITS = 5


class FloatPack(wiring.Component):
    """float32 nearest to ``significand`` * 2**``exponent``, negative if ``sign``.

    Rounds half to even, underflows gradually, and stops at the largest finite value.

    **Latency**: 3 cycles (`LATENCY`) in which ``enable`` is high: leading one; underflow; rounding.

    **Throughput**: 1 per cycle.

    **Numerics**: ``golden.pipeline.normalise``, docs/numerics.md section 6.

    **Errors**: none.

    Parameters
    ----------
    significand_bits : int
        Width of the significand, at least 27. Its leading one must be one of the two top bits;
        zero is allowed and gives a zero with the sign.
    exponent_bits : int
        Width of the exponent, signed.

    Members
    -------
    sign : ``In(1)``
    significand : ``In(significand_bits)``
    exponent : ``In(signed(exponent_bits))``
    o : ``Out(32)``
    enable : ``In(1)``
        Lets the pipeline advance.
    """

    LATENCY = 3

    def __init__(self, *, significand_bits, exponent_bits):
        self._significand_bits = check_int(
            "FloatPack significand_bits", significand_bits, minimum=KEPT_BITS + 1)
        self._exponent_bits = check_int("FloatPack exponent_bits", exponent_bits, minimum=2)
        super().__init__({
            "sign": In(1),
            "significand": In(significand_bits),
            "exponent": In(signed(exponent_bits)),
            "o": Out(32),
            "enable": In(1),
        })

    @property
    def significand_bits(self):
        return self._significand_bits

    @property
    def exponent_bits(self):
        return self._exponent_bits

    def elaborate(self, platform):
        m = Module()

        top = self.significand[-1]
        aligned = Mux(top, self.significand, self.significand << 1)[:self.significand_bits]
        below = aligned[:self.significand_bits - KEPT_BITS + 1].any()
        # One less than the exponent field, to which the leading one adds itself.
        field = self.exponent + (EXPONENT_BIAS + self.significand_bits - 3) + top
        is_low = field < 0
        kept = Signal(KEPT_BITS)
        kept_field = Signal(len(field))
        down = Signal(SHIFT_BITS)

        # Below the smallest normal number, the field stays 0 and the significand moves down.
        lost = Signal(1 << SHIFT_BITS)
        moved = Signal(KEPT_BITS)
        rounding = Signal(KEPT_BITS)
        rounding_field = Signal(len(field))
        m.d.comb += Cat(lost, moved).eq((kept << len(lost)) >> down)

        # A carry out of the fraction raises the field, as it should.
        half, sticky, odd = rounding[1], rounding[0], rounding[2]
        packed = (rounding_field << FRACTION_BITS) + rounding[2:] + (half & (sticky | odd))
        sign = delay(m, self.sign, self.LATENCY - 1, name="sign", enable=self.enable)
        with m.If(self.enable):
            m.d.sync += [
                kept.eq(Cat(below, aligned[self.significand_bits - KEPT_BITS + 1:])),
                kept_field.eq(Mux(is_low, 0, field)),
                down.eq(Mux(is_low, clip_unsigned((-field).as_unsigned(), SHIFT_BITS), 0)),
                rounding.eq(moved | lost.any()),
                rounding_field.eq(Mux(kept == 0, 0, kept_field)),
                self.o.eq(Cat(Mux(packed > LARGEST, LARGEST, packed)[:31], sign)),
            ]
        return m
