"""Copies as one unit with one AXI4 bus."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.bus import axi4
from hw.bus.axi4 import connect_channels
from hw.bus.read_mux import ReadMux
from hw.bus.write_mux import WriteMux
from hw.config import StreamingConfig
from hw.streaming.copies import Copies

__all__ = ["CopySystem"]


class CopySystem(wiring.Component):
    """`Copies` with the two bus multiplexers, as in the streaming engine.

    Parameters
    ----------
    config : StreamingConfig
    """

    def __init__(self, config: StreamingConfig):
        self._config = config
        copies = Copies(config).signature.members
        super().__init__({
            **{name: copies[name] for name in (
                "i_chain", "i_command", "o_feed", "o_done", "windows", "abort", "busy")},
            "m_axi": Out(axi4.Signature(config.address_bits, config.bus_bytes, 1)),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.copies = copies = Copies(config)
        m.submodules.reads = reads = ReadMux(
            address_bits=config.address_bits, data_bytes=config.bus_bytes, ports=2)
        m.submodules.writes = writes = WriteMux(
            address_bits=config.address_bits, data_bytes=config.bus_bytes, ports=1)
        for name in ("i_chain", "i_command"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(copies, name))
        for name in ("o_feed", "o_done"):
            wiring.connect(m, getattr(copies, name), wiring.flipped(getattr(self, name)))
        wiring.connect(m, copies.read, reads.port[0])
        wiring.connect(m, copies.fetch, reads.port[1])
        wiring.connect(m, copies.write, writes.port[0])
        connect_channels(m, reads.axi, self.m_axi, ("ar", "r"))
        connect_channels(m, writes.axi, self.m_axi, ("aw", "w", "b"))
        m.d.comb += [
            copies.windows.eq(self.windows),
            copies.abort.eq(self.abort),
            self.busy.eq(copies.busy),
        ]
        return m
