"""What contracts say of streams."""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Follower", "drive", "holds", "stall", "wrapped"]


def drive(m, port):
    """Feed a unit's input with anything, at any time, by the rules of streams."""
    m.d.comb += [
        port.valid.eq(AnySeq(1)),
        Value.cast(port.payload).eq(AnySeq(len(Value.cast(port.payload)))),
        Assume(holds(m, port)),
    ]


def stall(m, port):
    """Take from a unit's output at any time."""
    m.d.comb += port.ready.eq(AnySeq(1))


def holds(m, port):
    """Whether ``valid`` and ``payload`` have held since the last cycle, as they must."""
    waits = Signal()
    payload = Value.cast(port.payload)
    before = Signal(len(payload))
    m.d.sync += [waits.eq(port.valid & ~port.ready), before.eq(payload)]
    return ~waits | (port.valid & (payload == before))


class Follower(wiring.Component):
    """Follows one item, whichever the solver picks, through a buffer.

    It counts the items before it, asserts that it comes out unchanged as the last of these has
    gone, and that nothing comes out of an empty buffer. As any item may be the one, this says that
    all come out once each, in order.

    Parameters
    ----------
    bits : int
        Width of an item.
    capacity : int
        Items that the buffer holds at most.

    Members
    -------
    goes_in, comes_out : ``In(1)``
        A transfer in this cycle.
    entering, leaving : ``In(bits)``
        The item transferred.
    level : ``Out``
        Items in the buffer.
    is_inside : ``Out(1)``
        The item followed is in the buffer.
    ahead : ``Out``
        Items before it.
    item : ``Out(bits)``
        What it is.
    """

    def __init__(self, bits, *, capacity):
        self._capacity = capacity
        super().__init__({
            "goes_in": In(1),
            "entering": In(bits),
            "comes_out": In(1),
            "leaving": In(bits),
            "level": Out(range(capacity + 1)),
            "is_inside": Out(1),
            "ahead": Out(range(capacity + 1)),
            "item": Out(bits),
        })

    def elaborate(self, platform):
        m = Module()
        passes = Signal()  # within the cycle
        m.d.sync += self.level.eq(self.level + self.goes_in - self.comes_out)
        m.d.comb += passes.eq(self.goes_in & self.comes_out & (self.level == 0))

        with m.If(self.is_inside):
            m.d.sync += self.ahead.eq(self.ahead - self.comes_out)
            with m.If(self.comes_out & (self.ahead == 0)):
                m.d.sync += self.is_inside.eq(0)
        with m.Elif(self.goes_in & ~passes):
            m.d.sync += [
                self.is_inside.eq(AnySeq(1)),
                self.ahead.eq(self.level - self.comes_out),
                self.item.eq(self.entering),
            ]
        m.d.comb += [
            Assert(self.level <= self._capacity),
            Assert(~self.comes_out | (self.level != 0) | passes),
            Assert(~passes | (self.leaving == self.entering)),
            Assert(~self.is_inside | (self.ahead < self.level)),
            Assert(~(self.is_inside & self.comes_out & (self.ahead == 0))
                   | (self.leaving == self.item)),
        ]
        return m


def wrapped(address, depth):
    """An address that may have run past the end of a ring once."""
    return Mux(address >= depth, address - depth, address)
