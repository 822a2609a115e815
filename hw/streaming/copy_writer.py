"""Writes bursts whose beats are all there, and tells when a command is done."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus.write_port import WritePort
from hw.config import StreamingConfig
from hw.sram import Sram
from hw.stream import BypassQueue, Queue
from hw.streaming.checks import check_config
from hw.streaming.copy_layouts import copy_item, lower_error
from hw.streaming.layouts import CopyError, copy_done

__all__ = ["CopyWriter"]

SMALLEST_BEATS = 16   # of the buffer: more than a beat's way through it takes


class CopyWriter(wiring.Component):
    """Collects the beats of a burst, and issues it when it is complete.

    So the beats of a burst that was issued never wait for anything but the bus, and a burst that
    is given up half way leaves no trace.

    A command is done when its last response has come. Room for that message is reserved before its
    last burst is issued, so ``bus.b`` is always ready, whether or not ``o_done`` is.

    **Latency**: from a burst's last beat to ``bus.aw`` 1 cycle, to its first beat on ``bus.w``
    2 cycles; from the last response, or the item of a command that writes nothing, to ``o_done``
    1 and 2 cycles.

    **Throughput**: 1 beat per cycle, in bursts of any length; ``config.bursts`` bursts, and as many
    commands, await their response.

    **Numerics**: ``golden.streaming.copy.run_copy``.

    **Errors**: WRITE if any response of the command was an error, unless a lower number is known.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(copy_item(config)))``
        Beats; ``is_dropped`` takes back those of its burst.
    bus : ``Out(WritePort(address_bits, bus_bytes))``
        The memory.
    o_done : ``Out(stream.Signature(copy_done(config)))``
        Once per command, in order.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("CopyWriter", config)
        super().__init__({
            "i": In(stream.Signature(copy_item(config))),
            "bus": Out(WritePort(config.address_bits, config.bus_bytes)),
            "o_done": Out(stream.Signature(copy_done(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def buffer_beats(self) -> int:
        """Beats that the buffer holds: one burst that goes, one that comes."""
        return max(SMALLEST_BEATS, 2 * self.config.burst_bytes // self.config.bus_bytes)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        record = data.StructLayout(
            {"is_burst": 1, "closes": 1, "tag": 16, "error": CopyError})
        m.submodules.requests = requests = Queue(self.bus.aw.payload.shape(), depth=2)
        m.submodules.records = records = Queue(record, depth=config.bursts)
        m.submodules.done = done = Queue(copy_done(config), depth=config.bursts)
        wiring.connect(m, requests.o, wiring.flipped(self.bus.aw))
        wiring.connect(m, done.o, wiring.flipped(self.o_done))

        item, entry = self.i.payload, records.i.payload
        has_room, ends, is_burst = Signal(), Signal(), Signal()
        owed = Signal(range(config.bursts + 1))   # messages for which room is reserved
        m.d.comb += [
            is_burst.eq(~item.is_dropped),
            self.i.ready.eq((has_room | item.is_dropped) & (~item.ends_burst | (
                requests.i.ready & records.i.ready & (owed != config.bursts)))),
            ends.eq(self.i.valid & self.i.ready & item.ends_burst),
            entry.is_burst.eq(is_burst),
            *(entry[name].eq(item[name]) for name in ("closes", "tag", "error")),
            records.i.valid.eq(ends & (is_burst | item.closes)),
            requests.i.payload.address.eq(item.address),
            requests.i.payload.length.eq(item.length),
            requests.i.valid.eq(ends & is_burst),
        ]
        m.d.sync += owed.eq(owed + (ends & item.closes)
                            - (self.o_done.valid & self.o_done.ready))
        self._store(m, has_room)
        self._answer(m, records, done)
        return m

    def _store(self, m, has_room):
        """Keep beats until their burst is complete, then give them to the bus."""
        depth, item = self.buffer_beats, self.i.payload
        m.submodules.buffer = buffer = Sram(self.bus.w.payload.shape(), depth=depth)
        # Addresses run twice around the buffer, so that full differs from empty.
        written, issued, read = (Signal(range(2 * depth), name=name)
                                 for name in ("written", "issued", "read"))
        takes, stores, fetch = Signal(), Signal(), Signal()
        m.d.comb += [
            takes.eq(self.i.valid & self.i.ready),
            stores.eq(takes & ~item.is_dropped),
            has_room.eq((written ^ read) != depth),
            buffer.write.en.eq(stores),
            buffer.write.addr.eq(written),
            buffer.write.data.data.eq(item.data),
            buffer.write.data.strobe.eq(item.strobe),
            buffer.write.data.last.eq(item.ends_burst),
            fetch.eq((issued != read) & (~self.bus.w.valid | self.bus.w.ready)),
            buffer.read.en.eq(fetch),
            buffer.read.addr.eq(read),
        ]
        with m.If(stores):
            m.d.sync += written.eq(written + 1)
            with m.If(item.ends_burst):
                m.d.sync += issued.eq(written + 1)
        with m.Elif(takes):
            m.d.sync += written.eq(issued)
        with m.If(fetch):
            m.d.sync += read.eq(read + 1)
        with m.If(~self.bus.w.valid | self.bus.w.ready):
            m.d.sync += self.bus.w.valid.eq(fetch)
        m.d.comb += self.bus.w.payload.eq(buffer.read.data)

    def _answer(self, m, records, done):
        """Match responses with bursts, and sum up those of a command."""
        # As many may come as there are records of bursts.
        m.submodules.answers = answers = BypassQueue(1, depth=self.config.bursts)
        oldest = records.o.payload
        has_failed, fails = Signal(), Signal()
        m.d.comb += [
            answers.i.payload.eq(self.bus.b.payload.response[1]),
            answers.i.valid.eq(self.bus.b.valid),
            self.bus.b.ready.eq(1),
            answers.o.ready.eq(records.o.valid & oldest.is_burst),
            records.o.ready.eq(~oldest.is_burst | answers.o.valid),
            fails.eq(has_failed | (oldest.is_burst & answers.o.payload)),
            done.i.payload.tag.eq(oldest.tag),
            done.i.payload.error.eq(lower_error(
                oldest.error.as_value(), Mux(fails, CopyError.WRITE.value, 0))),
            done.i.valid.eq(records.o.valid & records.o.ready & oldest.closes),
        ]
        with m.If(records.o.valid & records.o.ready):
            m.d.sync += has_failed.eq(fails & ~oldest.closes)
