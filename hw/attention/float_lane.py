"""One element of a head's output: the sum times the reciprocal of the weights, as float32."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.arith.float32 import FloatPack
from hw.arith.leading import LeadingOne
from hw.arith.reciprocal import RECIPROCAL_BITS
from hw.arith.rounding import delay
from hw.checks import check_int

__all__ = ["SCALE_BITS", "FloatLane"]

SCALE_BITS = 11
MANTISSA_BITS = 26
PRODUCT_BITS = 52  # below the product of the largest mantissa and the largest reciprocal, 2**26
LOW_BITS = 14      # of the reciprocal, in a multiplier of their own


class FloatLane(wiring.Component):
    """``o`` = ``value`` * ``reciprocal`` * 2**``scale``, rounded to float32.

    The front cuts the value to 26 significant bits; the back multiplies and packs. They advance
    apart, so that values can wait between them for the reciprocal.

    **Latency**: 3 cycles (`FRONT_LATENCY`) in which ``front_enable`` is high, then 5
    (`BACK_LATENCY`) in which ``back_enable`` is high.

    **Throughput**: 1 per cycle.

    **Numerics**: ``golden.pipeline.normalise``, docs/numerics.md section 6.

    **Errors**: none.

    Parameters
    ----------
    value_bits : int
        Width of the value, signed.

    Members
    -------
    value : ``In(signed(value_bits))``
    reciprocal : ``In(27)``
        2**25 + 1 .. 2**26; goes with the value that leaves the front.
    scale : ``In(signed(11))``
        Likewise. The value's leading one counts as 2**25.
    is_zero : ``In(1)``
        Likewise. Makes the output +0.
    o : ``Out(32)``
    front_enable, back_enable : ``In(1)``
    """

    FRONT_LATENCY = 1 + LeadingOne.LATENCY
    BACK_LATENCY = 2 + FloatPack.LATENCY

    def __init__(self, *, value_bits):
        self._value_bits = check_int("FloatLane value_bits", value_bits, minimum=2, maximum=64)
        super().__init__({
            "value": In(signed(value_bits)),
            "reciprocal": In(RECIPROCAL_BITS),
            "scale": In(signed(SCALE_BITS)),
            "is_zero": In(1),
            "o": Out(32),
            "front_enable": In(1),
            "back_enable": In(1),
        })

    @property
    def value_bits(self):
        return self._value_bits

    def elaborate(self, platform):
        m = Module()
        m.submodules.leading = leading = LeadingOne(
            in_bits=self.value_bits, out_bits=MANTISSA_BITS)
        m.submodules.pack = pack = FloatPack(
            significand_bits=PRODUCT_BITS, exponent_bits=SCALE_BITS)

        # Front: sign and magnitude, then the leading one.
        is_negative = self.value < 0
        with m.If(self.front_enable):
            m.d.sync += leading.i.eq(Mux(is_negative, -self.value, self.value))
        sign = delay(m, is_negative, self.FRONT_LATENCY, name="front_sign",
                     enable=self.front_enable)
        m.d.comb += leading.enable.eq(self.front_enable)

        # Back: the product, in two parts that fit narrow multipliers.
        mantissa = Mux(self.is_zero, 0, leading.mantissa)
        low = Signal(MANTISSA_BITS + LOW_BITS)
        high = Signal(MANTISSA_BITS + RECIPROCAL_BITS - LOW_BITS)
        scale = Signal(signed(SCALE_BITS))
        with m.If(self.back_enable):
            m.d.sync += [
                low.eq(mantissa * self.reciprocal[:LOW_BITS]),
                high.eq(mantissa * self.reciprocal[LOW_BITS:]),
                scale.eq(self.scale + leading.octave),
                pack.significand.eq(low + (high << LOW_BITS)),
                pack.exponent.eq(scale),
            ]
        m.d.comb += [
            pack.sign.eq(delay(m, sign & ~self.is_zero, 2, name="back_sign",
                               enable=self.back_enable)),
            pack.enable.eq(self.back_enable),
            self.o.eq(pack.o),
        ]
        return m
