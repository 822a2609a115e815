"""Many streams to one, fairly."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int


class Arbiter(wiring.Component):
    """Round-robin arbiter: whoever was served last has the lowest priority next.

    A grant holds until its item has been taken, even when another input turns valid meanwhile,
    so that the output keeps the rule that ``valid`` and ``payload`` are stable.

    **Latency**: 0 cycles, combinational.

    **Throughput**: 1 item per cycle, from one input or from several.

    **Numerics**: none, the payload passes unchanged.

    **Errors**: none.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    count : int
        Number of inputs, at least 1.

    Members
    -------
    i : ``In(stream.Signature(shape)).array(count)``
        The competing streams.
    o : ``Out(stream.Signature(shape))``
        The item of the input that was granted.
    grant : ``Out(range(count))``
        Index of the input that the item on ``o`` comes from; stable as ``o.payload`` is.
    """

    def __init__(self, shape, *, count):
        self._shape = shape
        self._count = check_int("Arbiter count", count, minimum=1)
        super().__init__({
            "i": In(stream.Signature(shape)).array(count),
            "o": Out(stream.Signature(shape)),
            "grant": Out(range(count)),
        })

    @property
    def shape(self):
        return self._shape

    @property
    def count(self):
        return self._count

    def elaborate(self, platform):
        m = Module()

        last = Signal(range(self.count), init=self.count - 1)
        held = Signal()

        with m.If(held):
            m.d.comb += self.grant.eq(last)
        with m.Else(), m.Switch(last):
            for served in range(self.count):
                with m.Case(served):
                    self._choose_after(m, served)

        with m.Switch(self.grant):
            for index, port in enumerate(self.i):
                with m.Case(index):
                    m.d.comb += [
                        self.o.payload.eq(port.payload),
                        self.o.valid.eq(port.valid),
                        port.ready.eq(self.o.ready),
                    ]

        with m.If(self.o.valid):
            m.d.sync += [
                last.eq(self.grant),
                held.eq(~self.o.ready),
            ]
        return m

    def _choose_after(self, m, served):
        """Grant the first valid input after ``served``; the last assignment wins."""
        for step in range(self.count, 0, -1):
            index = (served + step) % self.count
            with m.If(self.i[index].valid):
                m.d.comb += self.grant.eq(index)
