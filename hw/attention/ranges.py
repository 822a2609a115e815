"""Ranges of positions as one bit per lane."""

from amaranth.hdl import Cat, Mux

__all__ = ["lanes_below"]


def lanes_below(block, bound, lanes):
    """Expression with bit k set when position ``block * lanes + k`` lies below ``bound``.

    ``lanes`` is a power of two. Nothing is added: the block decides, and within the block of the
    bound its low bits.
    """
    slot_bits = (lanes - 1).bit_length()
    rest = bound[:slot_bits]
    partial = Cat(rest > lane for lane in range(lanes))
    whole = bound[slot_bits:]
    return Mux(block == whole, partial, (block < whole).replicate(lanes))
