"""A unit whose work waits until its memory is loaded."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring


class Loaded(wiring.Component):
    """Holds the stream ``i`` of a unit back until ``count`` items went in on another stream."""

    def __init__(self, unit, *, loads, count):
        self.unit = unit
        self.loads = loads
        self.count = count
        super().__init__(unit.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        done = Signal(range(self.count + 1))
        open_ = done == self.count
        for name, member in unit.signature.members.items():
            if member.is_port:
                m.d.comb += getattr(self, name).eq(getattr(unit, name))
            elif name != "i":
                wiring.connect(m, getattr(unit, name), wiring.flipped(getattr(self, name)))
        m.d.comb += [
            unit.i.payload.eq(self.i.payload),
            unit.i.valid.eq(self.i.valid & open_),
            self.i.ready.eq(unit.i.ready & open_),
        ]
        if self.count:
            load = getattr(self, self.loads)
            with m.If(load.valid & load.ready):
                m.d.sync += done.eq(done + 1)
        return m
