"""Reads the descriptors of a chain ahead."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.beat_queue import BeatQueue
from hw.bus.read_port import ReadPort
from hw.config import StreamingConfig
from hw.streaming.checks import check_config

__all__ = ["DESCRIPTOR_BYTES", "DescriptorFetch", "descriptor_line"]

DESCRIPTOR_BYTES = 64
AHEAD = 4   # descriptors on their way or in the buffer


def descriptor_line() -> data.StructLayout:
    """A descriptor as it lies in memory; ``failed``: some of it was read with an error."""
    return data.StructLayout({"bytes": 8 * DESCRIPTOR_BYTES, "failed": 1})


class DescriptorFetch(wiring.Component):
    """Reads one descriptor behind the other from an address on, until told to go elsewhere.

    Descriptors mostly follow each other in memory, so that the next one has been asked for when
    its address becomes known. When it lies elsewhere, what was asked for in vain is dropped.

    **Latency**: 1 cycle from ``start`` to ``bus.ar``; 3 cycles from a descriptor's last beat to
    ``o``.

    **Throughput**: a descriptor per n + 1 cycles, n being its beats, as far as 4 of them on their
    way bridge the latency.

    **Numerics**: none.

    **Errors**: in ``o.failed``.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    start : ``In(1)``
        Read from ``target`` on; nothing that was asked for before comes out any more, except what
        is on ``o`` in this cycle.
    stop : ``In(1)``
        The same, but ask for nothing.
    target : ``In(address_bits)``
        A multiple of 64.
    bus : ``Out(ReadPort(address_bits, bus_bytes))``
    o : ``Out(stream.Signature(descriptor_line()))``
        Dropped by ``start`` and ``stop``, taken or not.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("DescriptorFetch", config)
        super().__init__({
            "start": In(1),
            "stop": In(1),
            "target": In(config.address_bits),
            "bus": Out(ReadPort(config.address_bits, config.bus_bytes)),
            "o": Out(stream.Signature(descriptor_line())),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def beats(self) -> int:
        """Beats of a descriptor."""
        return DESCRIPTOR_BYTES // self.config.bus_bytes

    def elaborate(self, platform):
        m = Module()
        width = self.config.bus_bytes
        beat = data.StructLayout({"data": 8 * width, "failed": 1, "last": 1})
        m.submodules.queue = queue = BeatQueue(beat, depth=max(2, AHEAD * self.beats))
        m.d.comb += [
            self.bus.r.ready.eq(1),
            queue.i.valid.eq(self.bus.r.valid),
            queue.i.payload.data.eq(self.bus.r.payload.data),
            queue.i.payload.failed.eq(self.bus.r.payload.response[1]),
            queue.i.payload.last.eq(self.bus.r.payload.last),
        ]

        self._ask(m, asked := Signal(range(AHEAD + 1)), ends := Signal())
        self._gather(m, queue.o, asked, ends)
        return m

    def _ask(self, m, asked, ends):
        """Ask for one descriptor behind the other; ``asked`` of them are not yet out of the queue,
        and with ``ends`` one more is."""
        request = self.bus.ar
        is_running, asks = Signal(), Signal()
        following, address = Signal(self.config.address_bits), Signal(self.config.address_bits)
        m.d.comb += [
            address.eq(Mux(self.start, self.target, following)),
            asks.eq((self.start | (is_running & ~self.stop)) & (asked != AHEAD)
                    & (~request.valid | request.ready)),
            request.payload.length.eq(self.beats - 1),
        ]
        m.d.sync += [
            asked.eq(asked + asks - ends),
            is_running.eq(self.start | (is_running & ~self.stop)),
            following.eq(address + Mux(asks, DESCRIPTOR_BYTES, 0)),
        ]
        with m.If(~request.valid | request.ready):
            m.d.sync += [request.valid.eq(asks), request.payload.address.eq(address)]

    def _gather(self, m, beat, asked, ends):
        """Put beats together, and drop what was asked for in vain."""
        in_vain = Signal.like(asked)   # the first of those asked for
        leaves = Signal()
        has_failed, fails = Signal(), Signal()
        line = self.o.payload
        m.d.comb += [
            leaves.eq(self.start | self.stop),
            beat.ready.eq(~self.o.valid),
            ends.eq(beat.valid & beat.ready & beat.payload.last),
            fails.eq(has_failed | beat.payload.failed),
        ]
        with m.If(beat.valid & beat.ready):
            m.d.sync += [
                line.bytes.eq(Cat(line.bytes, beat.payload.data)[self.config.bus_bytes * 8:]),
                line.failed.eq(fails),
                has_failed.eq(fails & ~beat.payload.last),
            ]
        with m.If(leaves):
            m.d.sync += in_vain.eq(asked - ends)
        with m.Elif(ends & (in_vain != 0)):
            m.d.sync += in_vain.eq(in_vain - 1)
        with m.If(ends & ~leaves & (in_vain == 0)):
            m.d.sync += self.o.valid.eq(1)
        with m.Elif(self.o.ready | leaves):
            m.d.sync += self.o.valid.eq(0)
