"""Keeps the rows of a frame in front of its end, and those of the next behind it."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.dispatch import FRAMES
from hw.streaming.layouts import decode_fault, stored_beat

__all__ = ["FrameBarrier"]

COUNT_BITS = 6  # more rows than fit between the decoders and the barrier


class FrameBarrier(wiring.Component):
    """Holds the fault of a frame until the frame's rows have left, then rows until it was taken.

    Rows are counted where they leave a decoder and here; a fault notes the first count.

    **Latency**: 0 cycles for rows; 1 cycle from a frame's last row to its fault, and 1 from
    ``i_fault`` to ``o_fault``.

    **Throughput**: a beat per cycle, but none in the cycles in which a fault waits.

    **Numerics**: none.

    **Errors**: passed on.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    enters : ``In(1)``
        The last beat of a row leaves a decoder.
    i_fault : ``In(stream.Signature(decode_fault(config)))``
        After the last beat of the frame's rows left the decoder, and not after the next frame's
        first. At most `FRAMES` are under way.
    i : ``In(stream.Signature(stored_beat(config)))``
        The rows.
    o : ``Out(stream.Signature(stored_beat(config)))``
    o_fault : ``Out(stream.Signature(decode_fault(config)))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("FrameBarrier", config)
        super().__init__({
            "enters": In(1),
            "i_fault": In(stream.Signature(decode_fault(config))),
            "i": In(stream.Signature(stored_beat(config))),
            "o": Out(stream.Signature(stored_beat(config))),
            "o_fault": Out(stream.Signature(decode_fault(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.faults = faults = Queue(data.StructLayout({
            "fault": decode_fault(self.config), "rows": COUNT_BITS}), depth=FRAMES)
        entered, left = Signal(COUNT_BITS), Signal(COUNT_BITS)
        closed = Signal()
        m.d.comb += [
            faults.i.payload.fault.eq(self.i_fault.payload),
            faults.i.payload.rows.eq(entered),
            faults.i.valid.eq(self.i_fault.valid),
            self.i_fault.ready.eq(faults.i.ready),
            closed.eq(faults.o.valid & (faults.o.payload.rows == left)),
            self.o_fault.payload.eq(faults.o.payload.fault),
            self.o_fault.valid.eq(closed),
            faults.o.ready.eq(closed & self.o_fault.ready),
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & ~closed),
            self.i.ready.eq(self.o.ready & ~closed),
        ]
        m.d.sync += [
            entered.eq(entered + self.enters),
            left.eq(left + (self.o.valid & self.o.ready & self.o.payload.last)),
        ]
        return m
