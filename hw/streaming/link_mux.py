"""Packets from the link and from memory, one at a time."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import SkidBuffer
from hw.streaming.checks import check_config
from hw.streaming.layouts import link_beat

__all__ = ["LinkMux"]


class LinkMux(wiring.Component):
    """Passes whole packets of two sources, in turn when both have one.

    **Latency**: 1 cycle.

    **Throughput**: a beat per cycle, packets back to back.

    **Numerics**: none.

    **Errors**: none. A source that stops within a packet stops the other.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(link_beat(config))).array(2)``
    o : ``Out(stream.Signature(link_beat(config)))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("LinkMux", config)
        super().__init__({
            "i": In(stream.Signature(link_beat(config))).array(2),
            "o": Out(stream.Signature(link_beat(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.register = register = SkidBuffer(link_beat(self.config))
        wiring.connect(m, register.o, wiring.flipped(self.o))
        in_packet, owner, last_owner = Signal(), Signal(), Signal(init=1)
        # Between packets whoever did not have the last one goes first, if it has something.
        first = ~last_owner
        with m.If(in_packet):
            m.d.comb += owner.eq(last_owner)
        with m.Elif(first):
            m.d.comb += owner.eq(self.i[1].valid)
        with m.Else():
            m.d.comb += owner.eq(~self.i[0].valid)
        for number, source in enumerate(self.i):
            with m.If(owner == number):
                m.d.comb += [
                    register.i.payload.eq(source.payload),
                    register.i.valid.eq(source.valid),
                    source.ready.eq(register.i.ready),
                ]
        with m.If(register.i.valid & register.i.ready):
            m.d.sync += [in_packet.eq(~register.i.payload.last), last_owner.eq(owner)]
        return m
