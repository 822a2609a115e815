"""Elements to MXINT8 mantissas and shared exponents."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.config import (
    ELEMENT_BITS,
    ELEMENT_FRACTION_BITS,
    EXPONENT_BIAS,
    EXPONENT_BITS,
    StreamingConfig,
)
from hw.stream import Queue
from hw.streaming.block_scale import (
    E_BITS,
    MAGNITUDE_BITS,
    BlockScale,
    beat_blocks,
    block_beats,
    magnitudes,
)
from hw.streaming.checks import check_config
from hw.streaming.layouts import element_beat

__all__ = ["Quantiser", "mantissa_beat"]

LARGEST = (1 << (ELEMENT_BITS - 1)) - 1
SHIFT_BITS = 5  # longer shifts leave nothing, not even half a unit
FINE_BITS = 3


def mantissa_beat(config: StreamingConfig) -> data.StructLayout:
    """``bus_bytes`` consecutive mantissas of a row, and the exponents of their blocks."""
    return data.StructLayout({
        "mantissas": data.ArrayLayout(signed(ELEMENT_BITS), config.bus_bytes),
        "exponents": data.ArrayLayout(EXPONENT_BITS, beat_blocks(config)),
        "last": 1,   # of the row
    })


class Quantiser(wiring.Component):
    """Quantises blocks of elements: a shared exponent, and mantissas rounded half to even.

    Elements wait in a queue until their block's exponent is known. No more blocks are under way
    than end in that queue, so the exponents' queue has room for all, and the way there never stops.

    **Latency**: `latency` cycles from a block's last beat to its first beat of mantissas.

    **Throughput**: a beat per cycle. ``i.ready`` comes from a register.

    **Numerics**: ``golden.streaming.convert.quantise_elements``.

    **Errors**: none. Of elements that are not finite, any mantissas come.

    Parameters
    ----------
    config : StreamingConfig

    Members
    -------
    i : ``In(stream.Signature(element_beat(config)))``
        |p| < 2**15, -133 <= e <= 121; whole rows.
    o : ``Out(stream.Signature(mantissa_beat(config)))``
    """

    LATENCY_OF_ROUNDING = 4

    def __init__(self, config: StreamingConfig):
        self._config = check_config("Quantiser", config)
        super().__init__({
            "i": In(stream.Signature(element_beat(config))),
            "o": Out(stream.Signature(mantissa_beat(config))),
        })

    @property
    def config(self) -> StreamingConfig:
        return self._config

    @property
    def latency(self) -> int:
        return BlockScale(self.config).latency + 1 + self.LATENCY_OF_ROUNDING

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.scale = scale = BlockScale(config)
        # A block waits for its own beats, for its exponent, and for the two queues. Two places
        # more, since `ready` is a cycle behind: from a register, for it reaches far.
        depth = block_beats(config) + scale.latency + 3
        m.submodules.held = held = Queue(
            data.StructLayout({"elements": magnitudes(config), "last": 1}), depth=depth)
        m.submodules.exponents = exponents = Queue(
            scale.o.payload.shape(), depth=depth // block_beats(config) + 1)

        for element, into in zip(
                self.i.payload.elements, held.i.payload.elements, strict=True):
            m.d.comb += [
                into.sign.eq(element.p < 0),
                into.magnitude.eq(Mux(into.sign, -element.p, element.p)),
                into.biased.eq(element.e + EXPONENT_BIAS),
            ]
        m.d.comb += [
            held.i.payload.last.eq(self.i.payload.last),
            held.i.valid.eq(self.i.valid & self.i.ready),
            scale.elements.eq(held.i.payload.elements),
            scale.enable.eq(self.i.valid & self.i.ready),
        ]
        m.d.sync += self.i.ready.eq(held.level < depth - 1)
        wiring.connect(m, scale.o, exponents.i)

        place = Signal(range(block_beats(config)))
        advance, moves = Signal(), Signal()
        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            moves.eq(held.o.valid & exponents.o.valid & advance),
            held.o.ready.eq(moves),
            exponents.o.ready.eq(moves & (place == block_beats(config) - 1)),
        ]
        m.d.sync += place.eq(place + moves)
        self._round(m, advance, moves, held.o.payload, exponents.o.payload)
        return m

    def _round(self, m, advance, moves, beat, exponents):
        """Shift, round, clip and sign: `LATENCY_OF_ROUNDING` stages."""
        stages = self.LATENCY_OF_ROUNDING
        lanes = self.config.bus_bytes // beat_blocks(self.config)  # of a block
        for lane, element in enumerate(beat.elements):
            mantissa = self._round_lane(m, advance, element, exponents[lane // lanes], lane)
            with m.If(advance):
                m.d.sync += self.o.payload.mantissas[lane].eq(mantissa)
        for name, value in (("exponents", exponents), ("last", beat.last)):
            before = delay(m, value, stages - 1, name=name, enable=advance)
            with m.If(advance):
                m.d.sync += self.o.payload[name].eq(before)
        valid = delay(m, moves, stages - 1, name="valid", enable=advance)
        with m.If(advance):
            m.d.sync += self.o.valid.eq(valid)

    def _round_lane(self, m, advance, element, exponent, lane):
        """All stages of an element but the last register.

        The magnitude is moved to the left as far as a shift may go that way, and by one bit more,
        so that all shifts are to the right and the bit behind the point stays.
        """
        spaced_bits = MAGNITUDE_BITS + ELEMENT_FRACTION_BITS + 1
        # More is beyond the largest mantissa, however far the fine shift goes.
        coarse_bits = ELEMENT_BITS + (1 << FINE_BITS)
        shift, coarse, fine = (Signal(bits, name=f"{name}_{lane}") for name, bits in (
            ("shift", E_BITS + 1), ("coarse", coarse_bits), ("fine", ELEMENT_BITS)))
        beyond, overflows = Signal(name=f"beyond_{lane}"), Signal(name=f"overflows_{lane}")
        sticky_1, sticky_2 = Signal(name=f"sticky_1_{lane}"), Signal(name=f"sticky_2_{lane}")
        magnitude = delay(m, element.magnitude, 1, name=f"magnitude_{lane}", enable=advance)
        sign = delay(m, element.sign, 3, name=f"sign_{lane}", enable=advance)
        rest = delay(m, shift[:FINE_BITS], 1, name=f"rest_{lane}", enable=advance)

        spaced = Cat(Const(0, ELEMENT_FRACTION_BITS + 1), magnitude)
        is_near = ~shift[SHIFT_BITS:].any()  # it is below zero only where p is zero
        bytes_off = shift[FINE_BITS:SHIFT_BITS] << FINE_BITS
        moved = (spaced >> bytes_off)[:spaced_bits]
        shifted = (coarse >> rest)[:coarse_bits]
        with m.If(advance):
            m.d.sync += [
                shift.eq(exponent - element.biased),
                coarse.eq(Mux(is_near, moved, 0)),
                beyond.eq(is_near & moved[coarse_bits:].any()),
                sticky_1.eq((spaced & ~(-1 << bytes_off)).any()),
                fine.eq(shifted),
                overflows.eq(beyond | shifted[ELEMENT_BITS:].any()),
                sticky_2.eq(sticky_1 | (coarse & ~(-1 << rest)).any()),
            ]
        # Bit 0 is the half, what fell off is sticky, bit 1 tells odd from even.
        kept, up = fine[1:], fine[0] & (sticky_2 | fine[1])
        rounded = Mux(overflows | kept.all(), LARGEST, kept + up)
        return Mux(sign, -rounded, rounded)
