"""Writes bursts to memory, and tells when a command's are all there."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.layouts import Error
from hw.bus import axi4
from hw.checks import check_int
from hw.config import AttentionConfig
from hw.stream import Queue

__all__ = ["RowWriter", "append_status", "write_beat"]


def write_beat(config: AttentionConfig) -> data.StructLayout:
    """A beat to write. ``address`` and ``length`` (beats - 1) are those of its burst."""
    return data.StructLayout({
        "address": config.address_bits,
        "length": 8,
        "data": config.memory_bytes * 8,
        "strobe": config.memory_bytes,
        "last": 1,
    })


def append_status(config: AttentionConfig) -> data.StructLayout:
    """The outcome of an APPEND command."""
    return data.StructLayout({"error": Error})


class RowWriter(wiring.Component):
    """AXI4 writes, and a mark after the last of each command.

    All bursts have one id, so their responses come in order.

    **Latency**: 1 cycle from a burst's first beat on ``i`` to ``aw`` and ``w``; 1 cycle from the
    last response of a command to ``o_done``.

    **Throughput**: 1 beat per cycle, without a bubble between bursts; up to ``outstanding`` bursts
    and marks are open.

    **Numerics**: none.

    **Errors**: the mark's error if it has one, otherwise WRITE if any response of the command was
    an error.

    Parameters
    ----------
    config : AttentionConfig
    id_bits : int
        Width of the bus's ids; the id is 0.
    outstanding : int
        Bursts and marks that may be open, at least 2.

    Members
    -------
    i : ``In(stream.Signature(write_beat(config)))``
        Whole bursts.
    i_close : ``In(stream.Signature(append_status(config)))``
        Ends a command; given only after the last beat of its bursts.
    axi : ``Out(axi4.WriteSignature(address_bits, memory_bytes, id_bits))``
        The bus.
    o_done : ``Out(stream.Signature(append_status(config)))``
        Once per command, after all of its responses.
    """

    def __init__(self, config: AttentionConfig, *, id_bits=1, outstanding=16):
        if not isinstance(config, AttentionConfig):
            raise TypeError(f"RowWriter config must be an AttentionConfig, not {config!r}")
        self._config = config
        self._id_bits = check_int("RowWriter id_bits", id_bits, minimum=1)
        self._outstanding = check_int("RowWriter outstanding", outstanding, minimum=2)
        super().__init__({
            "i": In(stream.Signature(write_beat(config))),
            "i_close": In(stream.Signature(append_status(config))),
            "axi": Out(axi4.WriteSignature(config.address_bits, config.memory_bytes, id_bits)),
            "o_done": Out(stream.Signature(append_status(config))),
        })

    @property
    def config(self) -> AttentionConfig:
        return self._config

    @property
    def id_bits(self):
        return self._id_bits

    @property
    def outstanding(self):
        return self._outstanding

    def elaborate(self, platform):
        m = Module()
        order = Queue(data.StructLayout({"is_mark": 1, "error": Error}), depth=self.outstanding)
        m.submodules.order = order
        m.submodules.requests = requests = Queue(self.axi.aw.payload.shape(), depth=2)
        m.submodules.beats = beats = Queue(self.axi.w.payload.shape(), depth=2)
        wiring.connect(m, requests.o, wiring.flipped(self.axi.aw))
        wiring.connect(m, beats.o, wiring.flipped(self.axi.w))

        self._issue(m, order, requests, beats)
        self._answer(m, order)
        return m

    def _issue(self, m, order, requests, beats):
        beat = self.i.payload
        is_first = Signal(init=1)
        transfer = Signal()
        begin = Signal()
        m.d.comb += [
            self.i.ready.eq(beats.i.ready & (~is_first | (requests.i.ready & order.i.ready))),
            transfer.eq(self.i.valid & self.i.ready),
            begin.eq(transfer & is_first),
            beats.i.valid.eq(transfer),
            beats.i.payload.data.eq(beat.data),
            beats.i.payload.strb.eq(beat.strobe),
            beats.i.payload.last.eq(beat.last),
            requests.i.valid.eq(begin),
            requests.i.payload.addr.eq(beat.address),
            requests.i.payload.len.eq(beat.length),
            requests.i.payload.size.eq(axi4.beat_size(self.config.memory_bytes)),
            requests.i.payload.burst.eq(axi4.Burst.INCR),
            requests.i.payload.cache.eq(axi4.CACHE),
            requests.i.payload.prot.eq(axi4.PROTECTION),
            order.i.valid.eq(begin | self.i_close.valid),
            order.i.payload.is_mark.eq(~begin),
            order.i.payload.error.eq(self.i_close.payload.error),
            self.i_close.ready.eq(order.i.ready & ~begin),
        ]
        with m.If(transfer):
            m.d.sync += is_first.eq(beat.last)

    def _answer(self, m, order):
        oldest = order.o.payload
        failed = Signal()
        m.d.comb += [
            self.axi.b.ready.eq(order.o.valid & ~oldest.is_mark),
            self.o_done.valid.eq(order.o.valid & oldest.is_mark),
            order.o.ready.eq(Mux(oldest.is_mark, self.o_done.ready, self.axi.b.valid)),
            self.o_done.payload.error.eq(Mux(
                failed & (oldest.error == Error.NONE), Error.WRITE.value,
                oldest.error.as_value())),
        ]
        with m.If(self.axi.b.valid & self.axi.b.ready):
            m.d.sync += failed.eq(failed | self.axi.b.payload.resp.as_value()[1])
        with m.If(self.o_done.valid & self.o_done.ready):
            m.d.sync += failed.eq(0)
