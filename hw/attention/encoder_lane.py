"""One code bit: the sign of a row of weights times a vector."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.arith.rounding import delay
from hw.checks import check_int
from hw.config import KEY_ALIGN_BITS, WEIGHT_BITS

__all__ = ["EncoderLane", "SHIFT_BITS"]

SHIFT_BITS = 5
LEVELS_PER_STAGE = 3


def _add_pairs(terms):
    return [left + right for left, right in zip(terms[::2], terms[1::2], strict=True)]


class EncoderLane(wiring.Component):
    """Multiplies, sums each block, aligns the blocks' sums to the largest exponent and adds them.

    **Latency**: `latency` cycles from ``weights`` and ``vector`` to ``bit``; ``shifts`` come
    `dot_latency` cycles after these.

    **Throughput**: one row per cycle; the pipeline never stops.

    **Numerics**: ``golden.hashing.encode_keys``, and with all shifts 0 ``encode_queries``.

    **Errors**: none; no sum overflows.

    Parameters
    ----------
    elements : int
        Length of a vector, a power of two.
    element_bits : int
        Width of an element of the vector.
    blocks : int
        Blocks with an exponent each, a power of two.

    Members
    -------
    weights : ``In(ArrayLayout(signed(8), elements))``
    vector : ``In(ArrayLayout(signed(element_bits), elements))``
    shifts : ``In(ArrayLayout(5, blocks))``
        Right shift of each block's sum. Without meaning when there is one block.
    bit : ``Out(1)``
        The sum is not negative.
    """

    def __init__(self, *, elements, element_bits, blocks):
        self._elements = check_int("EncoderLane elements", elements, minimum=2)
        self._element_bits = check_int("EncoderLane element_bits", element_bits, minimum=2)
        self._blocks = check_int("EncoderLane blocks", blocks, minimum=1, maximum=elements // 2)
        for name, value in (("elements", elements), ("blocks", blocks)):
            if value & (value - 1):
                raise ValueError(f"EncoderLane {name} must be a power of two, not {value!r}")
        super().__init__({
            "weights": In(data.ArrayLayout(signed(WEIGHT_BITS), elements)),
            "vector": In(data.ArrayLayout(signed(element_bits), elements)),
            "shifts": In(data.ArrayLayout(SHIFT_BITS, blocks)),
            "bit": Out(1),
        })

    @property
    def elements(self):
        return self._elements

    @property
    def element_bits(self):
        return self._element_bits

    @property
    def blocks(self):
        return self._blocks

    @property
    def dot_latency(self):
        """Cycles to the sums of the blocks: the multipliers, then three additions per cycle."""
        levels = (self.elements // self.blocks - 1).bit_length()
        return 1 + -(-levels // LEVELS_PER_STAGE)

    @property
    def latency(self):
        return self.dot_latency + (2 if self.blocks > 1 else 0)

    def elaborate(self, platform):
        m = Module()
        sums = self._build_sums(m)
        if self.blocks > 1:
            aligned = []
            for block, total in enumerate(sums):
                shifted = Signal(signed(len(total) + KEY_ALIGN_BITS), name=f"aligned_{block}")
                m.d.sync += shifted.eq((total << KEY_ALIGN_BITS) >> self.shifts[block])
                aligned.append(shifted)
            sums = aligned
            while len(sums) > 1:
                sums = _add_pairs(sums)
            sums = [delay(m, sums[0], 1, name="total")]
        m.d.comb += self.bit.eq(~sums[0][-1])
        return m

    def _build_sums(self, m):
        """Sum of products of each block."""
        size = self.elements // self.blocks
        terms = [Signal(signed(WEIGHT_BITS + self.element_bits), name=f"product_{index}")
                 for index in range(self.elements)]
        m.d.sync += [term.eq(self.weights[index] * self.vector[index])
                     for index, term in enumerate(terms)]
        level = 0
        while size > 1:
            terms = _add_pairs(terms)
            size //= 2
            level += 1
            if level % LEVELS_PER_STAGE == 0 or size == 1:
                terms = [delay(m, term, 1, name=f"level_{level}_{place}")
                         for place, term in enumerate(terms)]
        return terms
