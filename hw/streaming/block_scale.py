"""Shared exponents of blocks of elements."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.extremum import Extremum, extremum_latency
from hw.arith.rounding import delay
from hw.config import EXPONENT_BIAS, EXPONENT_BITS, EXPONENT_NAN, StreamingConfig
from hw.streaming.checks import check_config

__all__ = ["BlockScale", "E_BITS", "MAGNITUDE_BITS", "beat_blocks", "block_beats", "magnitudes"]

MAGNITUDE_BITS = 15  # of |p|: a product of -128 and 255 at most
E_BITS = 9           # signed: -133..121
SMALLEST_E = -133
OCTAVE_BITS = 9      # octave - SMALLEST_E + 1, with 0 for zero: 0..269


def block_beats(config: StreamingConfig) -> int:
    """Beats of elements of a block, at least 1."""
    return max(1, config.exponent_block // config.bus_bytes)


def beat_blocks(config: StreamingConfig) -> int:
    """Blocks that a beat of elements has a part in."""
    return max(1, config.bus_bytes // config.exponent_block)


def magnitudes(config: StreamingConfig) -> data.ArrayLayout:
    """A beat of elements as sign, magnitude and exponent."""
    return data.ArrayLayout(data.StructLayout({
        "sign": 1, "magnitude": MAGNITUDE_BITS, "e": signed(E_BITS)}), config.bus_bytes)


class BlockScale(wiring.Component):
    """Finds the shared exponent E of each block: that of its largest element.

    **Latency**: `latency` cycles from a block's last beat: leading ones, octaves, the tree of
    comparisons, the block's beats.

    **Throughput**: a beat per cycle; the pipeline never stops.

    **Numerics**: ``golden.streaming.convert.quantise_elements``: top and E of section 5 of
    docs/wire_format.md.

    **Errors**: none.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    elements : ``In(magnitudes(config))``
    enable : ``In(1)``
        There is a beat in this cycle.
    o : ``Out(stream.Signature(ArrayLayout(8, beat_blocks(config))))``
        Exponents of the blocks that end in a beat. Must be taken at once.
    """

    def __init__(self, config: StreamingConfig):
        self._config = check_config("BlockScale", config)
        super().__init__({
            "elements": In(magnitudes(config)),
            "enable": In(1),
            "o": Out(stream.Signature(data.ArrayLayout(EXPONENT_BITS, beat_blocks(config)))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def tree_lanes(self) -> int:
        """Elements compared in one cycle for a block."""
        return min(self.config.bus_bytes, self.config.exponent_block)

    @property
    def latency(self) -> int:
        return 3 + extremum_latency(self.tree_lanes)

    def elaborate(self, platform):
        m = Module()
        octaves = [self._octave(m, element, lane) for lane, element in enumerate(self.elements)]
        valid = delay(m, self.enable, self.latency - 1, name="valid")
        place = Signal(range(block_beats(self.config)))
        ends = valid & (place == block_beats(self.config) - 1)
        m.d.sync += [place.eq(place + valid), self.o.valid.eq(ends)]

        for block in range(beat_blocks(self.config)):
            m.submodules[f"tree_{block}"] = tree = Extremum(
                bits=OCTAVE_BITS, count=self.tree_lanes, largest=True)
            m.d.comb += tree.i.as_value().eq(
                Cat(octaves[block * self.tree_lanes:][:self.tree_lanes]))
            so_far = Signal(OCTAVE_BITS, name=f"so_far_{block}")
            top = Mux(tree.o > so_far, tree.o, so_far)
            with m.If(valid):
                m.d.sync += so_far.eq(Mux(ends, 0, top))
            m.d.sync += self.o.payload[block].eq(self._exponent(m, top, block))
        return m

    def _octave(self, m, element, lane):
        """Octave of an element, in the range of an unsigned number; 0 of zero."""
        leading = Signal(range(MAGNITUDE_BITS), name=f"leading_{lane}")
        is_zero = Signal(name=f"is_zero_{lane}")
        e = Signal(signed(E_BITS), name=f"e_{lane}")
        octave = Signal(OCTAVE_BITS, name=f"octave_{lane}")
        m.d.sync += [is_zero.eq(element.magnitude == 0), e.eq(element.e), leading.eq(0)]
        for bit in range(1, MAGNITUDE_BITS):  # the last assignment wins
            with m.If(element.magnitude[bit]):
                m.d.sync += leading.eq(bit)
        m.d.sync += octave.eq(Mux(is_zero, 0, leading + e - (SMALLEST_E - 1)))
        return octave

    def _exponent(self, m, top, block):
        offset = EXPONENT_BIAS + SMALLEST_E - 1
        shifted = Signal(signed(OCTAVE_BITS + 1), name=f"shifted_{block}")
        m.d.comb += shifted.eq(top + offset)
        largest = EXPONENT_NAN - 1
        return Mux(shifted < 0, 0, Mux(shifted > largest, largest, shifted.as_unsigned()))
