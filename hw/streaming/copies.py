"""Plain copies and feeds, by command and by chain."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.read_port import ReadPort
from hw.bus.write_port import WritePort
from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.copy import CopyEngine
from hw.streaming.descriptors import Descriptors, chain
from hw.streaming.layouts import copy_command, copy_done, link_beat, windows

__all__ = ["Copies"]


class Copies(wiring.Component):
    """Wiring of `Descriptors` and `CopyEngine`.

    **Latency**: theirs, one after the other.

    **Throughput**: theirs.

    **Numerics**: ``golden.streaming.copy.run_copy``, ``golden.streaming.chain.walk``.

    **Errors**: ``o_done``.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_chain, i_command : see `Descriptors`
    o_feed, o_done, windows, read, write : see `CopyEngine`
    fetch : ``Out(ReadPort)``
        Descriptors.
    abort : ``In(1)``
        See both.
    busy : ``Out(1)``
        Commands or chains are under way.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Copies", config)
        read = ReadPort(config.address_bits, config.bus_bytes)
        super().__init__({
            "i_chain": In(stream.Signature(chain(config))),
            "i_command": In(stream.Signature(copy_command(config))),
            "o_feed": Out(stream.Signature(link_beat(config))),
            "o_done": Out(stream.Signature(copy_done(config))),
            "windows": In(windows(config)),
            "read": Out(read),
            "fetch": Out(read),
            "write": Out(WritePort(config.address_bits, config.bus_bytes)),
            "abort": In(1),
            "busy": Out(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.descriptors = descriptors = Descriptors(self.config)
        m.submodules.engine = engine = CopyEngine(self.config)
        flipped = wiring.flipped
        for source, sink in (
            (flipped(self.i_chain), descriptors.i_chain),
            (flipped(self.i_command), descriptors.i_command),
            (descriptors.bus, flipped(self.fetch)),
            (descriptors.o, engine.i),
            (engine.read, flipped(self.read)),
            (engine.write, flipped(self.write)),
            (engine.o_feed, flipped(self.o_feed)),
            (engine.o_done, flipped(self.o_done)),
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
