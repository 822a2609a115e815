"""Reciprocal of a positive integer."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.divider import Divider, divider_latency
from hw.arith.leading import LeadingOne
from hw.arith.rounding import delay
from hw.checks import check_int

__all__ = ["RECIPROCAL_BITS", "Reciprocal", "reciprocal", "reciprocal_latency"]

MANTISSA_BITS = 32
RECIPROCAL_BITS = 27


def reciprocal(in_bits) -> data.StructLayout:
    """1 / x as ``mantissa`` * 2**(-26 - ``octave``); ``is_zero`` tells that x was zero."""
    return data.StructLayout({
        "mantissa": RECIPROCAL_BITS,
        "octave": range(in_bits),
        "is_zero": 1,
    })


def reciprocal_latency(bits_per_cycle):
    """Latency of a `Reciprocal`."""
    return LeadingOne.LATENCY + divider_latency(RECIPROCAL_BITS, bits_per_cycle)


class Reciprocal(wiring.Component):
    """2**57 // x', where x' is x with its leading one moved to bit 31.

    **Latency**: `latency` cycles: 2 to find the leading one, and those of the divider; 17 with two
    bits per cycle.

    **Throughput**: one at a time; the next may start in the cycle after the result was taken.

    **Numerics**: kl, ln and r of docs/numerics.md section 6; ``golden.pipeline.normalise``.

    **Errors**: none. Zero is marked in the result.

    Parameters
    ----------
    in_bits : int
        Width of the input, unsigned.
    bits_per_cycle : int
        Quotient bits per cycle of the `Divider`.

    Members
    -------
    i : ``In(stream.Signature(in_bits))``
    o : ``Out(stream.Signature(reciprocal(in_bits)))``
    """

    def __init__(self, *, in_bits, bits_per_cycle=2):
        self._in_bits = check_int("Reciprocal in_bits", in_bits, minimum=2)
        self._bits_per_cycle = check_int("Reciprocal bits_per_cycle", bits_per_cycle, minimum=1,
                                         maximum=RECIPROCAL_BITS)
        super().__init__({
            "i": In(stream.Signature(in_bits)),
            "o": Out(stream.Signature(reciprocal(in_bits))),
        })

    @property
    def in_bits(self):
        return self._in_bits

    @property
    def bits_per_cycle(self):
        return self._bits_per_cycle

    @property
    def latency(self):
        return reciprocal_latency(self.bits_per_cycle)

    def elaborate(self, platform):
        m = Module()
        m.submodules.leading = leading = LeadingOne(in_bits=self.in_bits, out_bits=MANTISSA_BITS)
        m.submodules.divider = divider = Divider(
            divisor_bits=MANTISSA_BITS, quotient_bits=RECIPROCAL_BITS,
            bits_per_cycle=self.bits_per_cycle)

        busy = Signal()
        found = delay(m, self.i.valid & self.i.ready, leading.LATENCY, name="found")
        m.d.comb += [
            self.i.ready.eq(~busy),
            leading.i.eq(self.i.payload),
            leading.enable.eq(1),
            # The divider is idle by then.
            divider.i.valid.eq(found),
            divider.i.payload.numerator.eq(1 << (MANTISSA_BITS - 1)),
            divider.i.payload.divisor.eq(leading.mantissa),
            self.o.valid.eq(divider.o.valid),
            self.o.payload.mantissa.eq(divider.o.payload),
            divider.o.ready.eq(self.o.ready),
        ]
        with m.If(found):
            m.d.sync += [
                self.o.payload.octave.eq(leading.octave),
                self.o.payload.is_zero.eq(leading.mantissa == 0),
            ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += busy.eq(1)
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += busy.eq(0)
        return m
