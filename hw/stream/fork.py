"""One stream to many, and many to one, in step."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.checks import check_int


class Fork(wiring.Component):
    """Gives each item to every output; an output may take it before the others do.

    **Latency**: 0 cycles, combinational.

    **Throughput**: 1 item per cycle when every output is ready. ``i.ready`` depends on the
    ``ready`` of each output within the cycle.

    **Numerics**: none, the payload passes unchanged.

    **Errors**: none.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.
    count : int
        Number of outputs, at least 1.

    Members
    -------
    i : ``In(stream.Signature(shape))``
        Items in.
    o : ``Out(stream.Signature(shape)).array(count)``
        Each item once per output.
    """

    def __init__(self, shape, *, count):
        self._shape = shape
        self._count = check_int("Fork count", count, minimum=1)
        super().__init__({
            "i": In(stream.Signature(shape)),
            "o": Out(stream.Signature(shape)).array(count),
        })

    @property
    def shape(self):
        return self._shape

    @property
    def count(self):
        return self._count

    def elaborate(self, platform):
        m = Module()

        # An output that has taken the current item must not see it again while others wait.
        taken = Signal(self.count)
        taken_now = Cat(output.ready for output in self.o) | taken

        for index, output in enumerate(self.o):
            m.d.comb += [
                output.payload.eq(self.i.payload),
                output.valid.eq(self.i.valid & ~taken[index]),
            ]
        m.d.comb += self.i.ready.eq(taken_now.all())

        with m.If(self.i.valid):
            with m.If(self.i.ready):
                m.d.sync += taken.eq(0)
            with m.Else():
                m.d.sync += taken.eq(taken_now)
        return m


class Join(wiring.Component):
    """Takes one item of every input at once and passes them on as one struct.

    **Latency**: 0 cycles, combinational.

    **Throughput**: 1 item per cycle. The ``ready`` of an input depends on the ``valid`` of the
    other inputs and on ``o.ready`` within the cycle.

    **Numerics**: none, the payloads pass unchanged.

    **Errors**: none.

    Parameters
    ----------
    shapes : dict of str to shape-like
        Shape of each input, in the order in which they lie in the output struct.

    Members
    -------
    i_<name> : ``In(stream.Signature(shapes[name]))``
        One input for each name.
    o : ``Out(stream.Signature(data.StructLayout(shapes)))``
        The items side by side.
    """

    def __init__(self, shapes):
        if not isinstance(shapes, dict):
            raise TypeError(f"Join shapes must be a dict of names to shapes, not {shapes!r}")
        if not shapes:
            raise ValueError(f"Join shapes must name at least one input, not {shapes!r}")
        self._shapes = dict(shapes)
        super().__init__({
            **{f"i_{name}": In(stream.Signature(shape)) for name, shape in shapes.items()},
            "o": Out(stream.Signature(data.StructLayout(shapes))),
        })

    @property
    def shapes(self):
        return dict(self._shapes)

    def elaborate(self, platform):
        m = Module()

        inputs = {name: getattr(self, f"i_{name}") for name in self._shapes}
        m.d.comb += self.o.valid.eq(Cat(port.valid for port in inputs.values()).all())
        for name, port in inputs.items():
            m.d.comb += [
                self.o.payload[name].eq(port.payload),
                port.ready.eq(self.o.valid & self.o.ready),
            ]
        return m
