"""First-in first-out buffer of a stream."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.checks import check_int


class Queue(wiring.Component):
    """Shallow queue that keeps the shape of its payload.

    Items leave in the order in which they came. Storage is a small memory read combinationally
    (distributed RAM on an FPGA), so the queue is meant for up to a few KiB.

    **Latency**: 1 cycle from a transfer on ``i`` to ``valid`` on ``o``.

    **Throughput**: 1 item per cycle at any depth. From a depth of 2 up, ``i.ready`` comes from a
    register; at a depth of 1 it depends on ``o.ready`` within the cycle.

    **Numerics**: none, the payload passes unchanged.

    **Errors**: none.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    depth : int
        Number of items held, at least 1.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        Items to store.
    o : ``Out(stream.Signature(shape))``
        The oldest item.
    level : ``Out(range(depth + 1))``
        Number of items held.
    """

    def __init__(self, shape, *, depth):
        self._shape = shape
        self._depth = check_int("Queue depth", depth, minimum=1)
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)),
            "level": Out(range(depth + 1)),
        })

    @property
    def shape(self):
        return self._shape

    @property
    def depth(self):
        return self._depth

    def elaborate(self, platform):
        m = Module()
        if self.depth == 1:
            self._build_register(m)
        else:
            self._build_memory(m)
        return m

    def _build_register(self, m):
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | self.o.ready),
            self.level.eq(self.o.valid),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += self.o.payload.eq(self.i.payload)

    def _build_memory(self, m):
        m.submodules.memory = memory = Memory(shape=self.shape, depth=self.depth, init=[])
        write_port = memory.write_port()
        read_port = memory.read_port(domain="comb")

        level = Signal(range(self.depth + 1))
        push = Signal()
        pop = Signal()
        m.d.comb += [
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
            write_port.en.eq(push),
            write_port.data.eq(self.i.payload),
            self.o.payload.eq(read_port.data),
        ]
        with m.If(push):
            m.d.sync += write_port.addr.eq(self._next(write_port.addr))
        with m.If(pop):
            m.d.sync += read_port.addr.eq(self._next(read_port.addr))
        m.d.sync += level.eq(level + push - pop)

        m.d.comb += [
            self.i.ready.eq(level != self.depth),
            self.o.valid.eq(level != 0),
            self.level.eq(level),
        ]

    def _next(self, address):
        return Mux(address == self.depth - 1, 0, address + 1)
