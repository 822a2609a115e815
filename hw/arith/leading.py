"""Mantissa and octave of a number."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int

__all__ = ["LeadingOne"]

FINE_BITS = 3


class LeadingOne(wiring.Component):
    """Shifts a number so that its leading one becomes the top bit, cutting what falls off below.

    ``mantissa`` = floor(``i`` * 2**(out_bits - 1 - octave)), ``octave`` = floor(log2(``i``)). For
    zero both are zero.

    **Latency**: 2 cycles (`LATENCY`) in which ``enable`` is high: find the byte; find the bit.

    **Throughput**: 1 per cycle.

    **Numerics**: the kl, ln and ko, an of docs/numerics.md section 6.

    **Errors**: none.

    Parameters
    ----------
    in_bits : int
        Width of ``i``, unsigned.
    out_bits : int
        Width of the mantissa.

    Members
    -------
    i : ``In(in_bits)``
    mantissa : ``Out(out_bits)``
    octave : ``Out(range(in_bits))``
    enable : ``In(1)``
        Lets the pipeline advance.
    """

    LATENCY = 2

    def __init__(self, *, in_bits, out_bits):
        self._in_bits = check_int("LeadingOne in_bits", in_bits, minimum=2)
        self._out_bits = check_int("LeadingOne out_bits", out_bits, minimum=1)
        super().__init__({
            "i": In(in_bits),
            "mantissa": Out(out_bits),
            "octave": Out(range(in_bits)),
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

        # Room below, so that every mantissa is reached by a shift to the right.
        spaced = self.i << (self.out_bits - 1)
        part = 1 << FINE_BITS
        coarse = Signal(range((self.in_bits - 1) // part + 1))
        window = Signal(self.out_bits - 1 + part)
        fine = Signal(FINE_BITS)

        # The last assignment wins: the highest part, and the highest bit in it.
        with m.If(self.enable):
            m.d.sync += [coarse.eq(0), window.eq(spaced)]
            for place in range(1, (self.in_bits - 1) // part + 1):
                with m.If(self.i[place * part:(place + 1) * part].any()):
                    m.d.sync += [coarse.eq(place), window.eq(spaced[place * part:])]
        for bit in range(1, part):
            with m.If(window[self.out_bits - 1 + bit]):
                m.d.comb += fine.eq(bit)
        with m.If(self.enable):
            m.d.sync += [
                self.mantissa.eq(window >> fine),
                self.octave.eq((coarse << FINE_BITS) | fine),
            ]
        return m
