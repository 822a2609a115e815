"""Decoder of the fixed-rate formats."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import StreamingConfig
from hw.stream import Queue
from hw.streaming.layouts import (
    chunk_begin,
    decode_fault,
    element_beat,
    payload_beat,
    stored_beat,
)
from hw.streaming.shaper import RowShaper
from hw.streaming.unpack import Unpack
from hw.streaming.walker import PageWalker, check_fixed, row_data

__all__ = ["FixedDecoder"]

# Elements of 4 bits wait here, two to a lane, while the side block of the next page passes.
DEPTH = 8


class FixedDecoder(wiring.Component):
    """Decodes payloads of the fixed-rate formats.

    Of a payload that is over too early whole rows come out, the last one perhaps filled up with
    anything.

    **Latency**: 4 cycles (`LATENCY`) from the payload beat that completes ``bus_bytes`` elements.

    **Throughput**: an element beat per cycle, as far as the payload brings them: of 16 bits, one
    for 2 payload beats; of 8 bits, one for each beat that is not of a side block; of 4 bits,
    always. Between frames one cycle passes in which neither payload is taken.

    **Numerics**: ``golden.streaming.payload.decode_payload``.

    **Errors**: ``NONFINITE``, in ``o_fault``.

    Parameters
    ----------
    config : StreamingConfig
        With at least one fixed-rate format.

    Members
    -------
    i_begin : ``In(stream.Signature(chunk_begin(config)))``
        A frame of a fixed-rate format.
    i_payload : ``In(stream.Signature(payload_beat(config)))``
        Its payload.
    o_element : ``Out(stream.Signature(element_beat(config)))``
        Rows of all formats but MXINT8.
    o_stored : ``Out(stream.Signature(stored_beat(config)))``
        Rows of MXINT8; a block of zeros may still have any exponent.
    o_fault : ``Out(stream.Signature(decode_fault(config)))``
        One for each frame, after its rows and before those of the next.
    """

    LATENCY = 2 + Unpack.LATENCY

    def __init__(self, config: StreamingConfig):
        self._config = check_fixed("FixedDecoder", config)
        super().__init__({
            "i_begin": In(stream.Signature(chunk_begin(config))),
            "i_payload": In(stream.Signature(payload_beat(config))),
            "o_element": Out(stream.Signature(element_beat(config))),
            "o_stored": Out(stream.Signature(stored_beat(config))),
            "o_fault": Out(stream.Signature(decode_fault(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker = walker = PageWalker(self.config)
        m.submodules.rows = rows = Queue(row_data(self.config), depth=DEPTH)
        m.submodules.shaper = shaper = RowShaper(self.config)
        m.submodules.unpack = unpack = Unpack(self.config)
        wiring.connect(m, wiring.flipped(self.i_begin), walker.i_begin)
        wiring.connect(m, wiring.flipped(self.i_payload), walker.i_payload)
        wiring.connect(m, walker.o, rows.i)
        wiring.connect(m, rows.o, shaper.i)
        wiring.connect(m, shaper.o, unpack.i)
        wiring.connect(m, unpack.o_element, wiring.flipped(self.o_element))
        wiring.connect(m, unpack.o_stored, wiring.flipped(self.o_stored))
        wiring.connect(m, unpack.o_fault, wiring.flipped(self.o_fault))
        return m
