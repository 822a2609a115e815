"""First-in first-out buffer for the beats of bursts that were asked for."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int
from hw.sram import Sram

__all__ = ["BeatQueue"]


class BeatQueue(wiring.Component):
    """Deep queue in an `Sram`, for what has room reserved before it comes.

    **Latency**: 2 cycles from ``i`` to ``valid`` on ``o``.

    **Throughput**: 1 item per cycle in, and 1 out.

    **Numerics**: none, the payload passes unchanged.

    **Errors**: ``i.ready`` is always high; more than ``depth`` items held overwrite each other, so
    the owner must reserve.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    depth : int
        Number of items held, at least 2.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        Items to store.
    o : ``Out(stream.Signature(shape))``
        The oldest item.
    """

    def __init__(self, shape, *, depth):
        self._shape = shape
        self._depth = check_int("BeatQueue depth", depth, minimum=2)
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
        })

    @property
    def shape(self):
        return self._shape

    @property
    def depth(self):
        return self._depth

    def elaborate(self, platform):
        m = Module()
        m.submodules.sram = memory = Sram(self.shape, depth=self.depth)

        # Items in the memory; one more waits in its read register.
        stored = Signal(range(self.depth + 1))
        write_address = Signal(range(self.depth))
        read_address = Signal(range(self.depth))
        fetch = Signal()
        m.d.comb += [
            fetch.eq((stored != 0) & (~self.o.valid | self.o.ready)),
            memory.write.en.eq(self.i.valid),
            memory.write.addr.eq(write_address),
            memory.write.data.eq(self.i.payload),
            memory.read.en.eq(fetch),
            memory.read.addr.eq(read_address),
            self.i.ready.eq(1),
            self.o.payload.eq(memory.read.data),
        ]
        m.d.sync += stored.eq(stored + self.i.valid - fetch)
        with m.If(self.i.valid):
            m.d.sync += write_address.eq(self._next(write_address))
        with m.If(fetch):
            m.d.sync += read_address.eq(self._next(read_address))
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(fetch)
        return m

    def _next(self, address):
        return Mux(address == self.depth - 1, 0, address + 1)
