"""Writes bursts whose beats are all there, and tells when a command is done."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.bus import axi4
from hw.checks import check_int
from hw.config import StreamingConfig
from hw.sram import Sram
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.copy_layouts import copy_item, lower_error
from hw.streaming.layouts import CopyError, copy_done

__all__ = ["CopyWriter"]

SMALLEST_BEATS = 16   # of the buffer: more than a beat's way through it takes


class CopyWriter(wiring.Component):
    """Collects the beats of a burst, and issues it when it is complete.

    So the beats of a burst that was issued never wait for anything but the bus, and a burst that
    is given up half way leaves no trace. All bursts have the id 0: their responses come in order.

    A command is done when its last response has come. Room for that message is reserved before its
    last burst is issued, so responses are taken within a few cycles, whether or not ``o_done`` is.

    **Latency**: from a burst's last beat to ``axi.aw`` 1 cycle, to its first beat on ``axi.w``
    2 cycles; from the last response, or the item of a command that writes nothing, to ``o_done``
    1 and 2 cycles.

    **Throughput**: 1 beat per cycle, in bursts of any length; ``config.bursts`` bursts, and as many
    commands, await their response.

    **Numerics**: ``golden.streaming.copy.run_copy``.

    **Errors**: WRITE if any response of the command was an error, unless a lower number is known.

    Parameters
    ----------
    config : StreamingConfig
    id_bits : int
        Width of the bus's ids.

    Members
    -------
    i : ``In(stream.Signature(copy_item(config)))``
        Beats; ``is_dropped`` takes back those of its burst.
    axi : ``Out(axi4.WriteSignature(address_bits, bus_bytes, id_bits))``
        The bus.
    o_done : ``Out(stream.Signature(copy_done(config)))``
        Once per command, in order.
    """

    def __init__(self, config: StreamingConfig, *, id_bits=1):
        self._config = check_config("CopyWriter", config)
        self._id_bits = check_int("CopyWriter id_bits", id_bits, minimum=1)
        super().__init__({
            "i": In(stream.Signature(copy_item(config))),
            "axi": Out(axi4.WriteSignature(config.address_bits, config.bus_bytes, id_bits)),
            "o_done": Out(stream.Signature(copy_done(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def id_bits(self):
        return self._id_bits

    @property
    def buffer_beats(self) -> int:
        """Beats that the buffer holds: one burst that goes, one that comes."""
        return max(SMALLEST_BEATS, 2 * self.config.burst_bytes // self.config.bus_bytes)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        record = data.StructLayout(
            {"is_burst": 1, "closes": 1, "tag": 16, "error": CopyError})
        m.submodules.requests = requests = Queue(self.axi.aw.payload.shape(), depth=2)
        m.submodules.records = records = Queue(record, depth=config.bursts)
        m.submodules.done = done = Queue(copy_done(config), depth=config.bursts)
        wiring.connect(m, requests.o, wiring.flipped(self.axi.aw))
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
            requests.i.payload.addr.eq(item.address),
            requests.i.payload.len.eq(item.length),
            requests.i.payload.size.eq(axi4.beat_size(config.bus_bytes)),
            requests.i.payload.burst.eq(axi4.Burst.INCR),
            requests.i.payload.cache.eq(axi4.CACHE),
            requests.i.payload.prot.eq(axi4.PROTECTION),
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
        beat = data.StructLayout(
            {"data": 8 * self.config.bus_bytes, "strb": self.config.bus_bytes, "last": 1})
        m.submodules.buffer = buffer = Sram(beat, depth=depth)
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
            buffer.write.data.strb.eq(item.strobe),
            buffer.write.data.last.eq(item.ends_burst),
            fetch.eq((issued != read) & (~self.axi.w.valid | self.axi.w.ready)),
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
        with m.If(~self.axi.w.valid | self.axi.w.ready):
            m.d.sync += self.axi.w.valid.eq(fetch)
        m.d.comb += [self.axi.w.payload[name].eq(buffer.read.data[name])
                     for name in ("data", "strb", "last")]

    def _answer(self, m, records, done):
        """Match responses with bursts, and sum up those of a command."""
        oldest = records.o.payload
        has_failed, fails = Signal(), Signal()
        m.d.comb += [
            self.axi.b.ready.eq(records.o.valid & oldest.is_burst),
            records.o.ready.eq(~oldest.is_burst | self.axi.b.valid),
            fails.eq(has_failed | (oldest.is_burst & self.axi.b.payload.resp.as_value()[1])),
            done.i.payload.tag.eq(oldest.tag),
            done.i.payload.error.eq(lower_error(
                oldest.error.as_value(), Mux(fails, CopyError.WRITE.value, 0))),
            done.i.valid.eq(records.o.valid & records.o.ready & oldest.closes),
        ]
        with m.If(records.o.valid & records.o.ready):
            m.d.sync += has_failed.eq(fails & ~oldest.closes)
