"""Base-2 exponential of a logit, and its weight as a floating item: numerics section 4."""

import numpy as np

from golden.checks import check_integers
from golden.fixed import bit_length, rnd
from hw.config import (
    EXP2_FRACTION_BITS,
    EXP2_INDEX_BITS,
    LOGIT_BITS,
    LOGIT_FRACTION_BITS,
    PAGE_TOKENS,
    PROBABILITY_FRACTION_BITS,
)

__all__ = ["exp2_mantissa", "exp2_table", "probability", "weigh"]

REST_BITS = LOGIT_FRACTION_BITS - EXP2_INDEX_BITS
LOGIT_MIN, LOGIT_MAX = -(1 << (LOGIT_BITS - 1)), (1 << (LOGIT_BITS - 1)) - 1


def exp2_table():
    """T[i] = floor(2**(i/256) * 2**24 + 1/2) for i = 0..256, int64 [257]."""
    points = np.exp2(np.arange((1 << EXP2_INDEX_BITS) + 1) / (1 << EXP2_INDEX_BITS))
    return np.floor(points * (1 << EXP2_FRACTION_BITS) + 0.5).astype(np.int64)


def exp2_mantissa(fraction):
    """2**(fraction / 2**16) with 24 fraction bits, linear between 257 points.

    Parameters
    ----------
    fraction : integer array or int, 0..65535

    Returns
    -------
    int64, 2**24 .. 2**25 - 1
    """
    fraction = check_integers("fraction", fraction, 0, (1 << LOGIT_FRACTION_BITS) - 1)
    table = exp2_table()
    index, rest = fraction >> REST_BITS, fraction & ((1 << REST_BITS) - 1)
    low = table[index]
    line = low + rnd((table[index + 1] - low) * rest, REST_BITS)
    return np.minimum(line, (2 << EXP2_FRACTION_BITS) - 1)


def weigh(logits, weights=1):
    """n * 2**x of each item as mantissa * 2**(octave - 24), 2**24 <= mantissa < 2**25.

    Parameters
    ----------
    logits : integer array, 32-bit signed with 16 fraction bits
    weights : integer array or int, 1..16
        1 for a token; the skipped tokens of its page for a summary.

    Returns
    -------
    octaves : int64, e of the numerics page
    mantissas : int64, a' of the numerics page
    """
    logits = check_integers("logits", logits, LOGIT_MIN, LOGIT_MAX)
    weights = check_integers("weights", weights, 1, PAGE_TOKENS)
    weighted = exp2_mantissa(logits & ((1 << LOGIT_FRACTION_BITS) - 1)) * weights
    extra = bit_length(weighted) - (EXP2_FRACTION_BITS + 1)
    return (logits >> LOGIT_FRACTION_BITS) + extra, weighted >> extra


def probability(mantissas, shift):
    """p(shift) = rnd(a' << 8, shift): 1.32 fixed point, zero from 34 octaves down."""
    return rnd(mantissas << (PROBABILITY_FRACTION_BITS - EXP2_FRACTION_BITS), shift)
