"""From a row beat to what the multipliers take: shared by the scorer and the values."""

from amaranth.hdl import Cat, Const, Mux, unsigned

from hw.attention.layouts import Kind
from hw.config import ELEMENT_BITS, PLANE_BITS, AttentionConfig

__all__ = ["is_upper", "operand_bits", "operands"]


def operand_bits(config: AttentionConfig) -> int:
    """Width of a signed multiplier operand: a whole element, or a plane and one bit.

    With one plane per beat an element m = 16 u + l is multiplied as 8 * (2 u), then l; a coarse
    one, 16 u + 8, as 8 * (2 u + 1). Each factor fits in five bits.
    """
    return ELEMENT_BITS if config.planes_per_beat == 2 else PLANE_BITS + 1


def is_upper(config: AttentionConfig, beat):
    """Whether the operands of a beat are in units of 8; such a beat starts a row."""
    if config.planes_per_beat == 2:
        return Const(0, 1)
    return ~beat.last | (beat.kind == Kind.COARSE)


def operands(config: AttentionConfig, beat) -> list:
    """The signed operands of a beat, one per element."""
    coarse = beat.kind == Kind.COARSE
    first_plane = [beat.data.word_select(index, PLANE_BITS) for index in range(config.head_dim)]
    if config.planes_per_beat == 2:
        half = Const(1 << (PLANE_BITS - 1), unsigned(PLANE_BITS))
        lower_plane = [beat.data.word_select(config.head_dim + index, PLANE_BITS)
                       for index in range(config.head_dim)]
        return [
            Cat(Mux(coarse, half, lower), upper).as_signed()
            for upper, lower in zip(first_plane, lower_plane, strict=True)
        ]
    upper = is_upper(config, beat)
    return [
        Mux(upper, Cat(coarse, nibble), Cat(nibble, Const(0, 1))).as_signed()
        for nibble in first_plane
    ]
