"""The copy engine with what it needs around it, as one unit with one AXI4 bus."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus import axi4
from hw.bus.read_mux import ReadMux
from hw.bus.write_mux import WriteMux
from hw.config import StreamingConfig
from hw.streaming.copy import CopyEngine
from hw.streaming.descriptors import Descriptors, chain
from hw.streaming.layouts import copy_command, copy_done, link_beat, windows

__all__ = ["CopySystem"]


class CopySystem(wiring.Component):
    """`Descriptors`, `CopyEngine` and the two bus multiplexers wired as in the streaming engine.

    Parameters
    ----------
    config : StreamingConfig
    """

    def __init__(self, config: StreamingConfig):
        self._config = config
        super().__init__({
            "i_chain": In(stream.Signature(chain(config))),
            "i_command": In(stream.Signature(copy_command(config))),
            "m_axi": Out(axi4.Signature(config.address_bits, config.bus_bytes, 1)),
            "o_feed": Out(stream.Signature(link_beat(config))),
            "o_done": Out(stream.Signature(copy_done(config))),
            "windows": In(windows(config)),
            "abort": In(1),
            "busy": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.descriptors = descriptors = Descriptors(config)
        m.submodules.engine = engine = CopyEngine(config)
        m.submodules.reads = reads = ReadMux(
            address_bits=config.address_bits, data_bytes=config.bus_bytes, ports=2)
        m.submodules.writes = writes = WriteMux(
            address_bits=config.address_bits, data_bytes=config.bus_bytes, ports=1)
        for source, sink in (
            (wiring.flipped(self.i_chain), descriptors.i_chain),
            (wiring.flipped(self.i_command), descriptors.i_command),
            (descriptors.o, engine.i),
            (engine.read, reads.port[0]),
            (descriptors.bus, reads.port[1]),
            (engine.write, writes.port[0]),
            (reads.axi.ar, wiring.flipped(self.m_axi.ar)),
            (wiring.flipped(self.m_axi.r), reads.axi.r),
            (writes.axi.aw, wiring.flipped(self.m_axi.aw)),
            (writes.axi.w, wiring.flipped(self.m_axi.w)),
            (wiring.flipped(self.m_axi.b), writes.axi.b),
            (engine.o_feed, wiring.flipped(self.o_feed)),
            (engine.o_done, wiring.flipped(self.o_done)),
        ):
            wiring.connect(m, source, sink)
        m.d.comb += [
            engine.windows.eq(self.windows),
            engine.abort.eq(self.abort),
            descriptors.abort.eq(self.abort),
            descriptors.engine_busy.eq(engine.busy),
            self.busy.eq(engine.busy | descriptors.busy),
        ]
        return m
