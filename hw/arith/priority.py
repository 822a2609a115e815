"""Highest bit that is set."""

from amaranth.hdl import Cat, Const, Mux

__all__ = ["highest_bit"]


def highest_bit(value):
    """Expressions for the highest bit of a value: a tree, as deep as the logarithm of its width.

    Returns
    -------
    (index, one_hot)
        Number of the bit, 0 if none is set; and the value with all other bits cleared.
    """
    width = len(value)
    if width == 1:
        return Const(0, 0), value
    half = 1 << ((width - 1).bit_length() - 1)
    lower, upper = value[:half], value[half:]
    lower_index, lower_hot = highest_bit(lower)
    upper_index, upper_hot = highest_bit(upper)
    in_upper = upper.any()
    index_bits = (half - 1).bit_length()
    index = Mux(in_upper, upper_index, lower_index)
    padding = Const(0, index_bits - len(index))
    return (Cat(index, padding, in_upper),
            Cat(lower_hot & ~in_upper.replicate(half), upper_hot))
