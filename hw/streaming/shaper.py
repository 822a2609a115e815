"""Row data of any element size into pieces of the same number of elements."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.config import EXPONENT_BITS, StreamingConfig
from hw.stream import SkidBuffer
from hw.streaming.walker import FORMAT_BITS, check_fixed, fixed_formats, row_data
from hw.streaming.wire import SCALE_BYTES, element_bits

__all__ = ["RowShaper", "row_piece"]


def row_piece(config: StreamingConfig) -> data.StructLayout:
    """``bus_bytes`` elements of a row as sent, each in the low bits of its lane; or, marked
    ``is_end``, no elements but the end of a frame."""
    lane_bits = max(8, *(element_bits(name) for name in fixed_formats(config)))
    return data.StructLayout({
        "raw": data.ArrayLayout(lane_bits, config.bus_bytes),
        "format": FORMAT_BITS,
        "scale": 8 * SCALE_BYTES,
        "exponents": data.ArrayLayout(EXPONENT_BITS, config.blocks),
        "last": 1,     # of the row
        "is_end": 1,
    })


class RowShaper(wiring.Component):
    """Joins beats of 16-bit elements, and splits beats of 4-bit ones.

    Where a frame ends within a row, the row is filled up with anything.

    **Latency**: 1 cycle from the beat that completes a piece.

    **Throughput**: a beat per cycle of elements of 8 and 16 bits, a piece per cycle of 4 and 8.
    A register slice follows, so that ``i.ready`` does not depend on ``o.ready`` within the cycle.

    **Numerics**: none, bits pass unchanged.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig
        With at least one fixed-rate format.

    Members
    -------
    i : ``In(stream.Signature(row_data(config)))``
    o : ``Out(stream.Signature(row_piece(config)))``
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_fixed("RowShaper", config)
        super().__init__({
            "i": In(stream.Signature(row_data(config))),
            "o": Out(stream.Signature(row_piece(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    def elaborate(self, platform):
        m = Module()
        m.submodules.slice = edge = SkidBuffer(row_piece(self.config))
        beat, piece = self.i.payload, edge.i.payload
        is_double, is_half = beat.is_double, beat.is_half
        second = Signal()  # half of a beat, or beat of a piece
        place, is_value = Signal(range(self.config.row_beats)), Signal()
        fills, consumes, gives, takes = (Signal() for _ in range(4))
        m.d.comb += [
            fills.eq(beat.is_end & (place != 0)),
            consumes.eq(Mux(beat.is_end, ~fills, is_double | second | ~is_half)),
            # The first beat of two waits here, not in the slice.
            edge.i.valid.eq(self.i.valid & (beat.is_end | second | ~is_double)),
            self.i.ready.eq(consumes & edge.i.ready),
            gives.eq(edge.i.valid & edge.i.ready),
            takes.eq(self.i.valid & self.i.ready),
            piece.format.eq(beat.format),
            piece.scale.eq(beat.side.scales[is_value]),
            piece.exponents.eq(beat.side.exponents),
            piece.last.eq(place == self.config.row_beats - 1),
            piece.is_end.eq(beat.is_end & ~fills),
        ]
        self._shape(m, piece.raw, takes, second)
        with m.If(gives & ~piece.is_end):
            m.d.sync += [place.eq(place + 1), is_value.eq(is_value ^ piece.last)]
        with m.If(takes & beat.is_end):
            m.d.sync += [second.eq(0), is_value.eq(0)]
        with m.Elif(Mux(is_double, takes, gives & is_half)):
            m.d.sync += second.eq(~second)
        wiring.connect(m, edge.o, wiring.flipped(self.o))
        return m

    def _shape(self, m, raw, takes, second):
        """Elements into lanes; the last assignment wins."""
        row, beat = self.i.payload, self.i.payload.data
        held = Signal(len(beat))
        half = beat.word_select(second, len(beat) // 2)
        with m.If(takes):
            m.d.sync += held.eq(beat)
        for lane, element in enumerate(raw):
            m.d.comb += element.eq(beat.word_select(lane, 8))
        with m.If(row.is_half):
            for lane, element in enumerate(raw):
                m.d.comb += element.eq(half.word_select(lane, 4))
        with m.If(row.is_double):
            for lane, element in enumerate(raw):
                m.d.comb += element.eq(Cat(held, beat).word_select(lane, 16))
