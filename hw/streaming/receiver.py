"""Receives frames from the link, and accepts or refuses them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.checks import check_config
from hw.streaming.framer import Framer, packet_end
from hw.streaming.header import frame_head
from hw.streaming.layouts import (
    Reason,
    chunk_begin,
    decode_fault,
    expected_chunk,
    link_beat,
    payload_beat,
    verdict,
)

__all__ = ["FrameReceiver"]

PACKETS = 8  # under way at once


class FrameReceiver(wiring.Component):
    """Takes frames from the link, hands their payload on, and judges each packet once.

    A frame whose header passes goes on as ``o_begin``, then its payload. If the packet ends before
    the payload does, the last payload beat is marked ``cut`` and holds nothing. Of a frame whose
    header is refused nothing goes on. Every packet, whatever its bytes, gets one verdict, in order.

    A chunk id is looked up when checks 1 to 4 of its header pass. Each answer that says ``awaited``
    is followed by exactly one verdict that is ``known``; both are in the order of the packets. More
    packets may be looked up before that verdict, so the chunk table marks what it has answered.

    The fault of a frame is taken in the same cycle as its verdict is. So what the decoder holds
    back until a fault is taken comes after the verdict of that frame.

    **Latency**: with a lookup that is answered n cycles after it came out (0: at once), from the
    header's last beat to ``o_begin`` 6 + n cycles, to the first payload beat 7 + n; from the
    packet's last beat to the verdict 4 cycles, or 0 from the fault if that comes later.

    **Throughput**: a link beat per cycle, frames back to back, while lookups are answered within
    9 cycles and no more than 8 packets await their verdict.

    **Numerics**: ``golden.streaming.wire.decode_frame``.

    **Errors**: ``reason`` of the verdict: the lowest number that applies.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_link : ``In(stream.Signature(link_beat(config)))``
        The link.
    o_lookup : ``Out(stream.Signature(32))``
        Chunk id of a header.
    i_expected : ``In(stream.Signature(expected_chunk(config)))``
        One answer per lookup, in order.
    o_begin : ``Out(stream.Signature(chunk_begin(config)))``
        A frame whose header is accepted.
    o_payload : ``Out(stream.Signature(payload_beat(config)))``
        Its payload.
    i_fault : ``In(stream.Signature(decode_fault(config)))``
        One for each ``o_begin``, in order.
    o_verdict : ``Out(stream.Signature(verdict(config)))``
        One for each packet, in order. ``chunk_id`` means something if checks 1 to 4 passed.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("FrameReceiver", config)
        super().__init__({
            "i_link": In(stream.Signature(link_beat(config))),
            "o_lookup": Out(stream.Signature(32)),
            "i_expected": In(stream.Signature(expected_chunk(config))),
            "o_begin": Out(stream.Signature(chunk_begin(config))),
            "o_payload": Out(stream.Signature(payload_beat(config))),
            "i_fault": In(stream.Signature(decode_fault(config))),
            "o_verdict": Out(stream.Signature(verdict(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        # One place in each queue for every packet under way: none is ever found full.
        m.submodules.framer = framer = Framer(self.config)
        m.submodules.heads = heads = Queue(frame_head(self.config), depth=PACKETS)
        m.submodules.lookups = lookups = Queue(32, depth=PACKETS)
        m.submodules.ends = ends = Queue(packet_end(), depth=PACKETS)
        m.submodules.judged = judged = Queue(verdict(self.config), depth=PACKETS)

        wiring.connect(m, wiring.flipped(self.i_link), framer.i)
        wiring.connect(m, lookups.o, wiring.flipped(self.o_lookup))
        wiring.connect(m, framer.o_head, heads.i)
        wiring.connect(m, framer.o_end, ends.i)
        m.d.comb += [
            lookups.i.payload.eq(framer.o_head.payload.chunk_id),
            lookups.i.valid.eq(framer.o_head.valid
                               & (framer.o_head.payload.reason == Reason.NONE)),
        ]
        decision = self._decide(m, heads)
        self._pass(m, framer, decision, judged)
        self._judge(m, ends, judged)

        under_way = Signal(range(PACKETS + 1))
        m.d.sync += under_way.eq(
            under_way + framer.begins - (self.o_verdict.valid & self.o_verdict.ready))
        m.d.comb += framer.hold.eq(under_way == PACKETS)
        return m

    def _decide(self, m, heads):
        """Compare each head with the chunk awaited."""
        config, head, expected = self.config, heads.o.payload, self.i_expected.payload
        decision = stream.Signature(data.StructLayout({
            "begin": chunk_begin(config), "verdict": verdict(config)})).create()
        is_looked_up = head.reason == Reason.NONE
        advance = Signal()
        m.d.comb += [
            # Every other cycle is enough, and keeps the decoder's ready out of the comparison.
            advance.eq((~is_looked_up | self.i_expected.valid) & ~decision.valid),
            heads.o.ready.eq(advance),
            self.i_expected.ready.eq(advance & heads.o.valid & is_looked_up),
        ]
        with m.If(decision.ready):
            m.d.sync += decision.valid.eq(0)
        with m.If(heads.o.valid & advance):
            begin, judgement = decision.payload.begin, decision.payload.verdict
            m.d.sync += [
                decision.valid.eq(1),
                begin.index.eq(expected.index),
                begin.format.eq(head.format),
                begin.tokens.eq(head.tokens),
                begin.payload_beats.eq(head.payload_beats),
                judgement.reason.eq(head.reason),
                judgement.known.eq(is_looked_up & expected.awaited),
                judgement.index.eq(expected.index),
                judgement.chunk_id.eq(head.chunk_id),
            ]
            with m.If(is_looked_up):
                self._compare(m, head, expected, judgement.reason)
        return decision

    def _compare(self, m, head, expected, reason):
        """Checks 5 to 8; the last assignment wins."""
        is_place = ((head.layer == expected.layer) & (head.kv_head == expected.kv_head)
                    & (head.token_block == expected.token_block))
        is_shape = head.is_shape & (head.tokens == expected.tokens) & (head.tokens != 0)
        for passes, failed in (
            (head.is_length, Reason.LENGTH),
            (is_shape, Reason.SHAPE),
            (is_place, Reason.IDENTITY),
            (expected.awaited, Reason.CHUNK),
        ):
            with m.If(~passes):
                m.d.sync += reason.eq(failed)

    def _pass(self, m, framer, decision, judged):
        """Let the payload behind an accepted header pass, and drop it behind another."""
        is_open, is_refused, begins = Signal(), Signal(), Signal()
        payload = framer.o_payload
        passes = decision.payload.verdict.reason == Reason.NONE
        m.d.comb += [
            self.o_begin.payload.eq(decision.payload.begin),
            self.o_begin.valid.eq(decision.valid & ~is_open & passes),
            decision.ready.eq(~is_open & (self.o_begin.ready | ~passes)),
            begins.eq(decision.valid & decision.ready),
            judged.i.payload.eq(decision.payload.verdict),
            judged.i.valid.eq(begins),
            self.o_payload.payload.eq(payload.payload),
            self.o_payload.valid.eq(payload.valid & is_open & ~is_refused),
            payload.ready.eq(is_open & (self.o_payload.ready | is_refused)),
        ]
        with m.If(begins):
            m.d.sync += [is_open.eq(1), is_refused.eq(~passes)]
        with m.Elif(payload.valid & payload.ready & payload.payload.last):
            m.d.sync += is_open.eq(0)

    def _judge(self, m, ends, judged):
        """Join what is known of a packet; the last assignment wins."""
        end, fault = ends.o.payload, self.i_fault
        reason = self.o_verdict.payload.reason
        needs_fault = judged.o.payload.reason == Reason.NONE
        m.d.comb += [
            self.o_verdict.payload.eq(judged.o.payload),
            self.o_verdict.valid.eq(judged.o.valid & ends.o.valid & (fault.valid | ~needs_fault)),
            judged.o.ready.eq(self.o_verdict.valid & self.o_verdict.ready),
            ends.o.ready.eq(judged.o.ready),
            fault.ready.eq(judged.o.ready & needs_fault),
        ]
        with m.If(needs_fault):
            m.d.comb += reason.eq(fault.payload.reason)
            for fails, failed in (
                (~end.is_closed, Reason.PAYLOAD_CRC),
                (end.overlong, Reason.OVERLONG),
                (end.truncated, Reason.TRUNCATED),
            ):
                with m.If(fails):
                    m.d.comb += reason.eq(failed)
