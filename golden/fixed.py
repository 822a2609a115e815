"""Fixed-point helpers: the only places where the golden models narrow a number.

Each function takes Python integers (any size; a Python integer comes back), integer arrays (int64
comes back) or object arrays of Python integers (an object array comes back). Source: the notation
of ``docs/numerics.md``.
"""

import numpy as np

__all__ = ["asr", "bit_length", "rnd", "sat", "saturates", "shift_left_sat"]

WORD = 63  # the widest shift that an int64 can take


def _is_python(*values):
    return all(isinstance(value, int) for value in values)


def _operand(name, value):
    array = np.asarray(value)
    if array.dtype == object:
        return array
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, not of dtype {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() >= np.uint64(1 << 63):
        raise ValueError(f"{name} must fit in 64 signed bits, not {array.max()!r}")
    return array.astype(np.int64)


def _shift(name, value):
    shift = _operand(name, value)
    if shift.size and shift.min() < 0:
        raise ValueError(f"{name} must be at least 0, not {shift.min()!r}")
    return shift


def _check_width(bits):
    if not isinstance(bits, int) or isinstance(bits, bool):
        raise TypeError(f"bits must be an integer, not {bits!r}")
    if bits < 1:
        raise ValueError(f"bits must be at least 1, not {bits!r}")


def asr(x, shift):
    """Arithmetic shift right, ``floor(x / 2**shift)``, for any ``shift`` >= 0."""
    if _is_python(x, shift):
        if shift < 0:
            raise ValueError(f"shift must be at least 0, not {shift!r}")
        return x >> shift
    x, shift = _operand("x", x), _shift("shift", shift)
    return x >> (shift if x.dtype == object else np.minimum(shift, WORD))


def rnd(x, shift):
    """``x / 2**shift`` rounded to nearest, ties towards plus infinity; ``x`` itself for shift 0.

    Written as the floor plus the last bit shifted out, so that no intermediate sum can overflow.
    """
    if _is_python(x, shift):
        if shift < 0:
            raise ValueError(f"shift must be at least 0, not {shift!r}")
        return x if shift == 0 else (x + (1 << (shift - 1))) >> shift
    shift = _shift("shift", shift)
    half = asr(x, np.maximum(shift - 1, 0)) & 1
    return asr(x, shift) + half * (shift > 0)


def rnd_even(x, shift):
    """``x / 2**shift`` rounded to nearest, ties to the even result; ``x`` itself for shift 0."""
    up = rnd(x, shift)
    # Off a tie, rounding x and -x gives opposites; on a tie both go up, and their sum is 1.
    return up - (up & (up + rnd(-x, shift)) & 1)


def sat(x, bits):
    """``x`` clipped to ``bits``-bit signed, ``-2**(bits-1) .. 2**(bits-1) - 1``."""
    _check_width(bits)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if _is_python(x):
        return min(max(x, low), high)
    x = _operand("x", x)
    if x.dtype != object and bits > WORD:
        return x
    return np.clip(x, low, high)


def saturates(x, bits):
    """Whether :func:`sat` changes ``x``: bool, or a bool array."""
    return sat(x, bits) != (x if _is_python(x) else _operand("x", x))


def shift_left_sat(x, shift, bits):
    """``sat(x << shift, bits)``, exact for any ``shift`` >= 0, and whether it clipped.

    Returns
    -------
    (value, saturated)
        As wide as ``x``; int64 and bool for arrays. ``bits`` is at most 63 for arrays.
    """
    _check_width(bits)
    if _is_python(x, shift):
        if shift < 0:
            raise ValueError(f"shift must be at least 0, not {shift!r}")
        exact = x << shift
        return sat(exact, bits), saturates(exact, bits)
    if bits > WORD:
        raise ValueError(f"bits must be at most {WORD} for arrays, not {bits!r}")
    x, shift = _operand("x", x), np.minimum(_shift("shift", shift), WORD)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    # x << shift leaves the range exactly when x lies outside the range shifted right (floor is
    # exact for both ends: high + 1 and low are powers of two).
    over, under = x > (high >> shift), x < -((-low) >> shift)
    fits = np.where(over | under, 0, x) << np.where(over | under, 0, shift)
    return np.where(over, high, np.where(under, low, fits)), over | under


def bit_length(x):
    """Bits of ``x`` >= 0 without leading zeros: 0 for 0, 1 for 1, 2 for 2 and 3."""
    if _is_python(x):
        if x < 0:
            raise ValueError(f"x must be at least 0, not {x!r}")
        return x.bit_length()
    array = np.asarray(x)
    if array.dtype != np.uint64:
        array = _operand("x", x)
        if array.size and array.min() < 0:
            raise ValueError(f"x must be at least 0, not {array.min()!r}")
    if array.dtype == object:
        return np.vectorize(int.bit_length, otypes=[np.int64])(array)
    rest, length = array.astype(np.uint64), np.zeros(array.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        large = rest >= np.uint64(1 << step)
        length += step * large
        rest = np.where(large, rest >> np.uint64(step), rest)
    return length + (rest > 0)
