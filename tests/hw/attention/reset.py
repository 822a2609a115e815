"""Resets a unit in the middle of its work, for tests that it then works as new."""

from amaranth.hdl import Module, ResetInserter, Signal, ValueCastable
from amaranth.lib import wiring
from amaranth.lib.wiring import Flow


def member_streams(signature):
    """Paths and flows of the streams in a signature."""
    for path, member, _ in signature.flatten(signature.create()):
        if len(path) > 1 and path[-1] == "valid":
            yield path[:-1], member.flow


def find(ports, path):
    for part in path:
        ports = ports[part] if isinstance(part, int) else getattr(ports, part)
    return ports


def bits(value):
    return value.as_value() if isinstance(value, ValueCastable) else value


class ResetMidway(wiring.Component):
    """A unit that starts with ``cycles`` cycles of the work in ``script``, a reset, and then is
    connected to the ports.

    In those cycles every output is ready, and each input stream is fed what the script has for it.

    Parameters
    ----------
    unit : wiring.Component
    script : dict of str to list
        Payloads (constants of the payload's layout, or integers) by the path of an input stream.
    cycles : int
    """

    def __init__(self, unit, *, script, cycles):
        self._unit = unit
        self._script = script
        self._cycles = cycles
        super().__init__(unit.signature)

    def elaborate(self, platform):
        m = Module()
        reset, is_open = Signal(), Signal()
        m.submodules.unit = ResetInserter(reset)(self._unit)
        cycle = Signal(range(self._cycles + 2))
        m.d.comb += reset.eq(~is_open & (cycle == self._cycles))
        with m.If(reset):
            m.d.sync += is_open.eq(1)
        with m.Elif(~is_open):
            m.d.sync += cycle.eq(cycle + 1)

        streams = dict(member_streams(self.signature))
        for path, flow in streams.items():
            inner, outer = find(self._unit, path), find(self, path)
            # The flow of ``valid``, seen from the unit.
            if flow == Flow.In:
                self._feed(m, inner, outer, is_open, self._script.get(".".join(map(str, path)), []))
            else:
                m.d.comb += [
                    bits(outer.payload).eq(bits(inner.payload)),
                    outer.valid.eq(inner.valid & is_open),
                    inner.ready.eq(outer.ready | ~is_open),
                ]
        for path, member, port in self.signature.flatten(self):
            if path[:-1] not in streams:
                inner = find(self._unit, path)
                m.d.comb += (inner.eq(port) if member.flow == Flow.In else port.eq(inner))
        return m

    def _feed(self, m, inner, outer, is_open, items):
        with m.If(is_open):
            m.d.comb += [
                bits(inner.payload).eq(bits(outer.payload)),
                inner.valid.eq(outer.valid),
                outer.ready.eq(inner.ready),
            ]
        with m.Else():
            place = Signal(range(len(items) + 1))
            m.d.comb += inner.valid.eq(place != len(items))
            with m.Switch(place):
                for number, item in enumerate(items):
                    with m.Case(number):
                        m.d.comb += bits(inner.payload).eq(item)
            with m.If(inner.valid & inner.ready):
                m.d.sync += place.eq(place + 1)
