"""Register slice that cuts every combinational path of a stream."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out


class SkidBuffer(wiring.Component):
    """Register slice: ``valid``, ``payload`` and ``ready`` all leave from registers.

    A second register catches the item that is on its way when the output stalls, because ``i``
    learns about a stall one cycle late.

    **Latency**: 1 cycle.

    **Throughput**: 1 item per cycle.

    **Numerics**: none, the payload passes unchanged.

    **Errors**: none.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        Items in.
    o : ``Out(stream.Signature(shape))``
        The same items, a cycle later.
    """

    def __init__(self, shape):
        self._shape = shape
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
        })

    @property
    def shape(self):
        return self._shape

    def elaborate(self, platform):
        m = Module()

        spare = Signal(self.shape)
        spare_valid = Signal()

        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid | spare_valid),
                spare_valid.eq(0),
            ]
            with m.If(spare_valid):
                m.d.sync += self.o.payload.eq(spare)
            with m.Else():
                m.d.sync += self.o.payload.eq(self.i.payload)
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += [
                spare.eq(self.i.payload),
                spare_valid.eq(1),
            ]

        m.d.comb += self.i.ready.eq(~spare_valid)
        return m


def connect_sliced(m, name, source, target):
    """Connect a stream through a register slice: between parts that lie far apart on a chip, so
    that neither's ready reaches into the other."""
    m.submodules[name] = register = SkidBuffer(source.payload.shape())
    wiring.connect(m, source, register.i)
    wiring.connect(m, register.o, target)
