"""Queue that does not delay what needs not wait."""

from amaranth.hdl import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int
from hw.stream.queue import Queue


class BypassQueue(wiring.Component):
    """A `Queue` that an item passes within the cycle when nothing waits in it.

    **Latency**: 0 cycles when empty: ``o.valid`` and ``o.payload`` then depend on ``i`` within the
    cycle.

    **Throughput**: 1 item per cycle. ``i.ready`` comes from a register.

    **Numerics**: none, the payload passes unchanged.

    **Errors**: none.

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
        self._depth = check_int("BypassQueue depth", depth, minimum=2)
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
        m.submodules.queue = queue = Queue(self.shape, depth=self.depth)

        waiting = queue.o.valid
        m.d.comb += [
            self.o.valid.eq(waiting | self.i.valid),
            self.o.payload.eq(Mux(waiting, queue.o.payload, self.i.payload)),
            queue.o.ready.eq(self.o.ready),
            # What is not taken at once is stored, even when it is alone.
            queue.i.payload.eq(self.i.payload),
            queue.i.valid.eq(self.i.valid & (waiting | ~self.o.ready)),
            self.i.ready.eq(queue.i.ready),
        ]
        return m
