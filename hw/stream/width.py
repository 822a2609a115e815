"""Width converters between streams of narrow and of wide beats."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int


def narrow_layout(bits):
    """Layout of a narrow beat: ``data``, and ``last`` on the final beat of a packet."""
    return data.StructLayout({"data": bits, "last": 1})


def wide_layout(bits, ratio):
    """Layout of a wide beat: ``ratio`` narrow ones, the first in the low bits.

    ``keep`` has one bit for each narrow beat that is present; they fill up from bit 0.
    """
    return data.StructLayout({"data": bits * ratio, "keep": ratio, "last": 1})


class Upsizer(wiring.Component):
    """Gathers ``ratio`` narrow beats into a wide one.

    A packet may end early: its final wide beat then has fewer ``keep`` bits, and zeros in place
    of the beats that are missing. The next packet starts a new wide beat.

    **Latency**: 1 cycle from the beat that completes a wide beat to ``o.valid``.

    **Throughput**: 1 narrow beat per cycle. ``i.ready`` depends on ``o.ready`` within the cycle.

    **Numerics**: none, the data passes unchanged.

    **Errors**: none.

    Parameters
    ----------
    in_bits : int
        Width of the data of a narrow beat, at least 1.
    ratio : int
        Narrow beats per wide beat, at least 1.

    Members
    -------
    i : ``In(stream.Signature(narrow_layout(in_bits)))``
        Narrow beats.
    o : ``Out(stream.Signature(wide_layout(in_bits, ratio)))``
        Wide beats.
    """

    def __init__(self, *, in_bits, ratio):
        self._in_bits = check_int("Upsizer in_bits", in_bits, minimum=1)
        self._ratio = check_int("Upsizer ratio", ratio, minimum=1)
        super().__init__({
            "i": In(stream.Signature(narrow_layout(in_bits))),
            "o": Out(stream.Signature(wide_layout(in_bits, ratio))),
        })

    @property
    def in_bits(self):
        return self._in_bits

    @property
    def ratio(self):
        return self._ratio

    def elaborate(self, platform):
        m = Module()

        gathered = self.o.payload
        index = Signal(range(self.ratio))

        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        with m.If(self.i.valid & self.i.ready):
            with m.If(index == 0):
                m.d.sync += [gathered.data.eq(0), gathered.keep.eq(0)]
            m.d.sync += [
                gathered.data.word_select(index, self.in_bits).eq(self.i.payload.data),
                gathered.keep.bit_select(index, 1).eq(1),
                gathered.last.eq(self.i.payload.last),
            ]
            with m.If(self.i.payload.last | (index == self.ratio - 1)):
                m.d.sync += [self.o.valid.eq(1), index.eq(0)]
            with m.Else():
                m.d.sync += index.eq(index + 1)
        return m


class Downsizer(wiring.Component):
    """Splits a wide beat into the narrow beats that its ``keep`` names: undoes an `Upsizer`.

    **Latency**: 0 cycles, combinational.

    **Throughput**: 1 narrow beat per cycle. ``i.ready`` depends on ``o.ready`` within the cycle.

    **Numerics**: none, the data passes unchanged.

    **Errors**: none. ``keep`` must fill up from bit 0; bit 0 itself is taken as set.

    Parameters
    ----------
    out_bits : int
        Width of the data of a narrow beat, at least 1.
    ratio : int
        Narrow beats per wide beat, at least 1.

    Members
    -------
    i : ``In(stream.Signature(wide_layout(out_bits, ratio)))``
        Wide beats.
    o : ``Out(stream.Signature(narrow_layout(out_bits)))``
        Narrow beats.
    """

    def __init__(self, *, out_bits, ratio):
        self._out_bits = check_int("Downsizer out_bits", out_bits, minimum=1)
        self._ratio = check_int("Downsizer ratio", ratio, minimum=1)
        super().__init__({
            "i": In(stream.Signature(wide_layout(out_bits, ratio))),
            "o": Out(stream.Signature(narrow_layout(out_bits))),
        })

    @property
    def out_bits(self):
        return self._out_bits

    @property
    def ratio(self):
        return self._ratio

    def elaborate(self, platform):
        m = Module()

        index = Signal(range(self.ratio))
        final = Signal()
        # Past the top of `keep` a shift brings in zeros, so the top beat needs no case of its own.
        m.d.comb += [
            final.eq(~(self.i.payload.keep >> 1).bit_select(index, 1)),
            self.o.payload.data.eq(self.i.payload.data.word_select(index, self.out_bits)),
            self.o.payload.last.eq(self.i.payload.last & final),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & final),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += index.eq(index + 1)
            with m.If(final):
                m.d.sync += index.eq(0)
        return m
