"""Reads the rows of copies."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.axi4 import beat_size
from hw.bus.beat_queue import BeatQueue
from hw.bus.read_port import ReadPort
from hw.config import StreamingConfig
from hw.stream import BypassQueue, Queue, SkidBuffer
from hw.streaming.burst import BurstSplitter, run
from hw.streaming.checks import check_config
from hw.streaming.copy_layouts import read_beat

__all__ = ["CopyReader"]

LARGEST_BYTES = 1 << 14   # of the buffer, unless two bursts are larger


class CopyReader(wiring.Component):
    """Turns rows into bursts of reads, and gives their beats in order.

    A burst is asked for when there is room for the longest, so ``bus.r`` is always ready. The
    buffer holds ``config.bursts`` of the longest bursts, or 16 KiB if that is less and two bursts
    fit.

    **Latency**: 1 cycle from ``i`` to ``bus.ar``; 3 cycles from ``bus.r`` to ``o``, one of
    them a register slice: a large memory is slow, and much depends on what comes out of it.

    **Throughput**: 1 burst and 1 beat per cycle, with ``config.bursts`` bursts on their way or in
    the buffer. To read without a gap through a latency of n cycles, the buffer must hold n + 10
    beats and four bursts.

    **Numerics**: ``golden.streaming.copy.split``.

    **Errors**: beats that come with an error response are marked; the others of their row come all
    the same. The memory is trusted to give as many beats as were asked for.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(run(config)))``
        Rows. Of one of no bytes nothing is read; it leads to a beat marked ``is_empty``.
    bus : ``Out(ReadPort(address_bits, bus_bytes))``
        The memory.
    o : ``Out(stream.Signature(read_beat(config)))``
        Beats of the rows.
    abort : ``In(1)``
        Of the rows under way nothing more is asked for.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("CopyReader", config)
        super().__init__({
            "i": In(stream.Signature(run(config))),
            "bus": Out(ReadPort(config.address_bits, config.bus_bytes)),
            "o": Out(stream.Signature(read_beat(config))),
            "abort": In(1),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def buffer_beats(self) -> int:
        """Beats that the buffer holds."""
        burst_bytes = self.config.burst_bytes
        size = max(2 * burst_bytes, min(self.config.bursts * burst_bytes, LARGEST_BYTES))
        return size // self.config.bus_bytes

    def elaborate(self, platform):
        m = Module()
        config = self.config
        mark = data.StructLayout({"is_empty": 1, "last": 1})
        held = data.StructLayout({"data": 8 * config.bus_bytes, "failed": 1, "last": 1})
        m.submodules.splitter = splitter = BurstSplitter(config)
        m.submodules.order = order = Queue(mark, depth=config.bursts)
        m.submodules.beats = beats = BeatQueue(held, depth=self.buffer_beats)
        wiring.connect(m, wiring.flipped(self.i), splitter.i)
        m.d.comb += splitter.cut.eq(self.abort)

        # Ask. Whether the bus is ready for it is not known within the cycle.
        m.submodules.requests = requests = BypassQueue(self.bus.ar.payload.shape(), depth=2)
        wiring.connect(m, requests.o, wiring.flipped(self.bus.ar))
        piece, request = splitter.o.payload, requests.i
        room = Signal(range(self.buffer_beats + 1), init=self.buffer_beats)
        beat_bits = beat_size(config.bus_bytes)
        asks, is_roomy = Signal(), Signal(init=1)
        m.d.comb += [
            request.payload.address.eq(piece.address[beat_bits:] << beat_bits),
            request.payload.length.eq(piece.length),
            request.valid.eq(splitter.o.valid & ~piece.is_empty & order.i.ready & is_roomy),
            asks.eq(request.valid & request.ready),
            order.i.payload.is_empty.eq(piece.is_empty),
            order.i.payload.last.eq(piece.last),
            order.i.valid.eq(asks | (splitter.o.valid & piece.is_empty)),
            splitter.o.ready.eq(order.i.valid & order.i.ready),
        ]
        # Known before the burst is, and so without regard to its length.
        longest = config.burst_bytes // config.bus_bytes
        m.d.sync += [
            room.eq(room - Mux(asks, piece.length + 1, 0) + (beats.o.valid & beats.o.ready)),
            is_roomy.eq(room >= Mux(asks, 2 * longest, longest)),
        ]

        # Take.
        m.d.comb += [
            self.bus.r.ready.eq(1),
            beats.i.valid.eq(self.bus.r.valid),
            beats.i.payload.data.eq(self.bus.r.payload.data),
            beats.i.payload.failed.eq(self.bus.r.payload.response[1]),
            beats.i.payload.last.eq(self.bus.r.payload.last),
        ]

        # Give. What is empty takes the place of a burst.
        m.submodules.slice = output = SkidBuffer(read_beat(config))
        wiring.connect(m, output.o, wiring.flipped(self.o))
        is_empty, ends = order.o.payload.is_empty, Signal()
        m.d.comb += [
            ends.eq(is_empty | beats.o.payload.last),
            output.i.payload.data.eq(beats.o.payload.data),
            output.i.payload.failed.eq(beats.o.payload.failed & ~is_empty),
            output.i.payload.is_empty.eq(is_empty),
            output.i.payload.last.eq(order.o.payload.last & ends),
            output.i.valid.eq(order.o.valid & (is_empty | beats.o.valid)),
            order.o.ready.eq(output.i.valid & output.i.ready & ends),
            beats.o.ready.eq(order.o.valid & ~is_empty & output.i.ready),
        ]
        return m
