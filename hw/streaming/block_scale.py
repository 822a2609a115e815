"""Shared exponents of blocks of elements."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.extremum import Extremum, extremum_latency
from hw.arith.rounding import clip_unsigned, delay
from hw.config import EXPONENT_BITS, EXPONENT_NAN, StreamingConfig
from hw.streaming.checks import check_config

__all__ = ["BlockScale", "E_BITS", "MAGNITUDE_BITS", "beat_blocks", "block_beats", "magnitudes"]

MAGNITUDE_BITS = 15  # of |p|: a product of -128 and 255 at most
E_BITS = 9           # signed: of e + 127, -6..248


def block_beats(config: StreamingConfig) -> int:
    """Beats of elements of a block, at least 1."""
    return max(1, config.exponent_block // config.bus_bytes)


def beat_blocks(config: StreamingConfig) -> int:
    """Blocks that a beat of elements has a part in."""
    return max(1, config.bus_bytes // config.exponent_block)


def magnitudes(config: StreamingConfig) -> data.ArrayLayout:
    """A beat of elements as sign, magnitude and biased exponent, e + 127."""
    return data.ArrayLayout(data.StructLayout({
        "sign": 1, "magnitude": MAGNITUDE_BITS, "biased": signed(E_BITS)}), config.bus_bytes)


class BlockScale(wiring.Component):
    """Finds the shared exponent E of each block: that of its largest element.

    Each element is first given the exponent that it would have alone, clipped; the largest of them
    is the block's.

    **Latency**: `latency` cycles from a block's last beat: leading ones, exponents, the tree of
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
        own = [self._exponent(m, element, lane) for lane, element in enumerate(self.elements)]
        valid = delay(m, self.enable, self.latency - 1, name="valid")
        place = Signal(range(block_beats(self.config)))
        ends = valid & (place == block_beats(self.config) - 1)
        m.d.sync += [place.eq(place + valid), self.o.valid.eq(ends)]

        for block in range(beat_blocks(self.config)):
            m.submodules[f"tree_{block}"] = tree = Extremum(
                bits=EXPONENT_BITS, count=self.tree_lanes, largest=True)
            m.d.comb += tree.i.as_value().eq(
                Cat(own[block * self.tree_lanes:][:self.tree_lanes]))
            so_far = Signal(EXPONENT_BITS, name=f"so_far_{block}")
            largest = Mux(tree.o > so_far, tree.o, so_far)
            with m.If(valid):
                m.d.sync += so_far.eq(Mux(ends, 0, largest))
            m.d.sync += self.o.payload[block].eq(largest)
        return m

    def _exponent(self, m, element, lane):
        """Exponent of a block with this element alone."""
        leading = Signal(range(MAGNITUDE_BITS), name=f"leading_{lane}")
        is_zero = Signal(name=f"is_zero_{lane}")
        biased = Signal(signed(E_BITS), name=f"biased_{lane}")
        exponent = Signal(EXPONENT_BITS, name=f"exponent_{lane}")
        m.d.sync += [
            is_zero.eq(element.magnitude == 0),
            biased.eq(element.biased),
            leading.eq(0),
        ]
        for bit in range(1, MAGNITUDE_BITS):  # the last assignment wins
            with m.If(element.magnitude[bit]):
                m.d.sync += leading.eq(bit)
        own = leading + biased
        clipped = clip_unsigned(own.as_unsigned()[:E_BITS], EXPONENT_BITS)
        m.d.sync += exponent.eq(Mux(is_zero | (own < 0), 0, Mux(
            clipped == EXPONENT_NAN, EXPONENT_NAN - 1, clipped)))
        return exponent
