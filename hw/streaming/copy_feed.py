"""Gives the bytes of FEED commands to the receiver, as frames."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.copy_layouts import copy_item
from hw.streaming.layouts import link_beat

__all__ = ["CopyFeed"]


class CopyFeed(wiring.Component):
    """Takes the beats to be fed out of the stream of beats; the others pass.

    A frame that is given up ends with a beat that has no bytes, or is not begun at all if none of
    its beats was given before.

    **Latency**: 0 cycles from ``i`` to ``o``, 1 cycle to ``o_feed``.

    **Throughput**: 1 beat per cycle.

    **Numerics**: ``golden.streaming.copy.run_copy``, its ``feed``.

    **Errors**: none of its own.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(copy_item(config)))``
    o : ``Out(stream.Signature(copy_item(config)))``
        Items of copies, and the last of each FEED, as one that writes nothing.
    o_feed : ``Out(stream.Signature(link_beat(config)))``
        Frames.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("CopyFeed", config)
        super().__init__({
            "i": In(stream.Signature(copy_item(config))),
            "o": Out(stream.Signature(copy_item(config))),
            "o_feed": Out(stream.Signature(link_beat(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.frames = frames = Queue(link_beat(self.config), depth=2)
        item, beat = self.i.payload, frames.i.payload
        is_begun, has_beat = Signal(), Signal()
        passes, is_fed = Signal(), Signal()
        wiring.connect(m, frames.o, wiring.flipped(self.o_feed))
        m.d.comb += [
            # Both outputs take the last item of a FEED at once.
            passes.eq(~item.is_feed | item.closes),
            has_beat.eq(item.is_feed & (is_begun | ~item.is_dropped)),
            self.o.payload.eq(item),
            self.o.payload.is_dropped.eq(item.is_feed | item.is_dropped),
            self.o.valid.eq(self.i.valid & passes & (~has_beat | frames.i.ready)),
            beat.data.eq(item.data),
            beat.keep.eq(Mux(item.is_dropped, 0, item.strobe)),
            beat.last.eq(item.closes),
            frames.i.valid.eq(self.i.valid & has_beat & (~passes | self.o.ready)),
            self.i.ready.eq((~passes | self.o.ready) & (~has_beat | frames.i.ready)),
            is_fed.eq(frames.i.valid & frames.i.ready),
        ]
        with m.If(is_fed):
            m.d.sync += is_begun.eq(~item.closes)
        return m
