"""From the payload of a frame to stored rows."""

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.streaming.barrier import FrameBarrier
from hw.streaming.block_scale import block_beats
from hw.streaming.checks import check_config
from hw.streaming.dispatch import Dispatch, Path
from hw.streaming.fixed import FixedDecoder
from hw.streaming.huffman.decoder import HuffmanDecoder
from hw.streaming.layouts import chunk_begin, decode_fault, payload_beat, stored_beat
from hw.streaming.planes import Planes
from hw.streaming.quantiser import Quantiser
from hw.streaming.walker import fixed_formats

__all__ = ["Decoder"]


class Decoder(wiring.Component):
    """Turns payloads into stored rows.

    Of each frame begun come its rows, in the order of the wire (K, V of token 0, K, V of token 1,
    ...), then its fault. Only when that is taken follow the rows of the next frame. Rows are always
    whole; of a payload that is cut, or that cannot be decoded, fewer may come, and the last of them
    may hold anything.

    **Latency**: of fixed-rate formats `latency` cycles from a row's last payload beat to its first
    stored beat (MXINT8: `FixedDecoder.LATENCY` + `Planes.LATENCY`), 1 cycle from the last stored
    beat to the fault. Of entropy-coded formats that of `HuffmanDecoder`, `Quantiser`, `Planes`.

    **Throughput**: that of `FixedDecoder` and `HuffmanDecoder`, a stored beat per cycle at most.
    Between frames pass the cycles that these say; where MXINT8, other fixed-rate formats and
    entropy-coded ones follow each other, the next begins when the last has ended.

    **Numerics**: ``golden.streaming.payload.decode_payload``, then
    ``golden.streaming.convert.stored_rows``.

    **Errors**: in ``o_fault``, the lowest of the reasons 12 to 16 that applies.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i_begin : ``In(stream.Signature(chunk_begin(config)))``
        A frame, of a format built in.
    i_payload : ``In(stream.Signature(payload_beat(config)))``
        Its payload.
    o_stored : ``Out(stream.Signature(stored_beat(config)))``
        Its rows.
    o_fault : ``Out(stream.Signature(decode_fault(config)))``
        One for each frame.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Decoder", config)
        super().__init__({
            "i_begin": In(stream.Signature(chunk_begin(config))),
            "i_payload": In(stream.Signature(payload_beat(config))),
            "o_stored": Out(stream.Signature(stored_beat(config))),
            "o_fault": Out(stream.Signature(decode_fault(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def latency(self) -> int:
        # A block's last beat leaves the quantiser behind its first.
        return (FixedDecoder.LATENCY + Quantiser(self.config).latency
                + block_beats(self.config) - 1 + Planes.LATENCY)

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.dispatch = dispatch = Dispatch(config)
        m.submodules.quantiser = quantiser = Quantiser(config)
        m.submodules.planes = planes = Planes(config)
        m.submodules.barrier = barrier = FrameBarrier(config)
        wiring.connect(m, wiring.flipped(self.i_begin), dispatch.i_begin)
        wiring.connect(m, wiring.flipped(self.i_payload), dispatch.i_payload)
        wiring.connect(m, quantiser.o, planes.i)
        wiring.connect(m, planes.o, barrier.i)
        wiring.connect(m, barrier.o, wiring.flipped(self.o_stored))
        wiring.connect(m, barrier.o_fault, wiring.flipped(self.o_fault))

        if fixed_formats(config):
            m.submodules.fixed = fixed = FixedDecoder(config)
            wiring.connect(m, fixed.o_stored, planes.i_stored)
            self._connect(m, fixed, dispatch, quantiser, barrier, paths=(Path.FIXED, Path.STORED))
        if config.huffman_bits:
            m.submodules.coded = coded = HuffmanDecoder(config)
            self._connect(m, coded, dispatch, quantiser, barrier, paths=(Path.CODED,))

        m.d.comb += [
            dispatch.ends.eq(self.o_fault.valid & self.o_fault.ready),
            barrier.enters.eq(Cat(port.valid & port.ready & port.payload.last
                                  for port in (quantiser.i, planes.i_stored)).any()),
        ]
        return m

    def _connect(self, m, decoder, dispatch, quantiser, barrier, *, paths):
        """Join a decoder to the rest while the frames under way are its own."""
        index = int(Path.CODED in paths)
        wiring.connect(m, dispatch.o_begin[index], decoder.i_begin)
        wiring.connect(m, dispatch.o_payload[index], decoder.i_payload)
        with m.If(Cat(dispatch.path == path for path in paths).any()):
            wiring.connect(m, decoder.o_element, quantiser.i)
            wiring.connect(m, decoder.o_fault, barrier.i_fault)
