"""The receive path: from the link to stored rows and verdicts."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.checks import check_config
from hw.streaming.decoder import Decoder
from hw.streaming.layouts import expected_chunk, link_beat, stored_beat, verdict
from hw.streaming.receiver import FrameReceiver

__all__ = ["ReceivePath"]


class ReceivePath(wiring.Component):
    """Receives frames and decodes them.

    All rows of a frame are taken before its verdict, and all rows of later frames after it. With
    reason ``NONE`` all of its rows have come, with another any number of them, but none where the
    header was refused. The verdict of such a packet may come among rows of the next frame.

    **Latency**: that of `FrameReceiver` and `Decoder`, one after the other.

    **Throughput**: theirs.

    **Numerics**: ``golden.streaming.wire.decode_frame``.

    **Errors**: ``reason`` of the verdict.

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
    o_stored : ``Out(stream.Signature(stored_beat(config)))``
        Rows of the frames whose headers are accepted.
    o_verdict : ``Out(stream.Signature(verdict(config)))``
        One for each packet, in order.
    begun, begun_index : ``Out``
        A header has been accepted: rows of this chunk come, after those of the frames before. Later
        than the answer to its lookup is taken, and before that to the next is.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("ReceivePath", config)
        super().__init__({
            "i_link": In(stream.Signature(link_beat(config))),
            "o_lookup": Out(stream.Signature(32)),
            "i_expected": In(stream.Signature(expected_chunk(config))),
            "o_stored": Out(stream.Signature(stored_beat(config))),
            "o_verdict": Out(stream.Signature(verdict(config))),
            "begun": Out(1),
            "begun_index": Out(config.chunk_bits),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = FrameReceiver(self.config)
        m.submodules.decoder = decoder = Decoder(self.config)
        wiring.connect(m, wiring.flipped(self.i_link), receiver.i_link)
        wiring.connect(m, receiver.o_lookup, wiring.flipped(self.o_lookup))
        wiring.connect(m, wiring.flipped(self.i_expected), receiver.i_expected)
        wiring.connect(m, receiver.o_begin, decoder.i_begin)
        m.d.comb += [
            self.begun.eq(receiver.o_begin.valid & receiver.o_begin.ready),
            self.begun_index.eq(receiver.o_begin.payload.index),
        ]
        wiring.connect(m, receiver.o_payload, decoder.i_payload)
        wiring.connect(m, decoder.o_fault, receiver.i_fault)
        wiring.connect(m, decoder.o_stored, wiring.flipped(self.o_stored))
        wiring.connect(m, receiver.o_verdict, wiring.flipped(self.o_verdict))
        return m
