"""The slots that hold the vectors of the queries in flight."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int

__all__ = ["SlotPool"]


class SlotPool(wiring.Component):
    """Offers free slots one after the other; each is free again once it is given back.

    **Latency**: 1 cycle from reset, and 2 from a slot's return, until it is offered.

    **Throughput**: one slot per cycle, both ways.

    **Numerics**: none.

    **Errors**: none. Only a slot that was taken may be given back.

    Parameters
    ----------
    count : int
        Number of slots, at least 2.

    Members
    -------
    i : ``In(stream)`` of slot numbers given back, always ready
    o : ``Out(stream)`` of free slot numbers
    """

    def __init__(self, *, count):
        self._count = check_int("SlotPool count", count, minimum=2)
        super().__init__({
            "i": In(stream.Signature(range(count))),
            "o": Out(stream.Signature(range(count))),
        })

    @property
    def count(self):
        return self._count

    def elaborate(self, platform):
        m = Module()
        free = Signal(self.count, init=-1)  # but for the one on offer
        returned, offered = Signal(self.count), Signal(self.count)
        lowest = Signal(range(self.count))
        for number in reversed(range(self.count)):
            with m.If(free[number]):
                m.d.comb += lowest.eq(number)
        m.d.comb += [
            self.i.ready.eq(1),
            returned.bit_select(self.i.payload, 1).eq(self.i.valid),
        ]
        with m.If(~self.o.valid | self.o.ready):
            m.d.comb += offered.bit_select(lowest, 1).eq(free.any())
            m.d.sync += [self.o.valid.eq(free.any()), self.o.payload.eq(lowest)]
        m.d.sync += free.eq((free | returned) & ~offered)
        return m
