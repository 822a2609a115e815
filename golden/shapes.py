"""Inputs that break fixed-point designs, and the error of the bit-true pipeline on them.

Each case is a function of a random generator that returns a real query, and the rows of K and V as
(mantissas, exponents). The bound, ``LIMIT`` of max |v|, is that of numerics section 12.
"""

from math import ceil, log2

import numpy as np

from golden import mxint, pipeline
from golden.reference import weighted_attention
from golden.summary import page_summaries

__all__ = ["CASES", "LIMIT", "error_of", "opposite_tokens", "random_rows"]

LIMIT = 5e-5
LONG = 32768
TILT = 0.98765  # so that no logit is a round number


def error_of(query, keys, values, classes=None, summaries=False, query_bits=16):
    """Largest error over max |v| of one head; ``query`` real, rows as (mantissas, exponents).

    With summaries max |v| covers the pages that they stand for.
    """
    keys = keys[0], mxint.canonical(*keys)
    values = values[0], mxint.canonical(*values)
    mantissas, exponent = mxint.quantise_query(query, query_bits)
    if classes is None:
        classes = np.full(len(keys[0]), 2)
    chosen = pipeline.items(classes, summaries)
    pages = (page_summaries(*keys), page_summaries(*values)) if summaries else (None, None)
    got = pipeline.attend(mantissas, int(exponent), keys, values, chosen, query_bits, *pages)
    assert not got.logits.saturated.any()
    k = mxint.dequantise(*pipeline.gather(chosen, keys, pages[0]))
    v = mxint.dequantise(*pipeline.gather(chosen, values, pages[1]))
    want, _ = weighted_attention(
        mxint.dequantise_query(mantissas, exponent, query_bits), k, v, chosen.weights)
    largest = np.abs(v).max()
    if summaries:
        largest = max(largest, np.abs(mxint.dequantise(*values)).max())
    return float(np.abs(got.output - want).max() / largest)


def random_rows(rng, count, dim, block=32):
    return mxint.quantise(rng.standard_normal((count, dim)), block)


def along(levels, dim):
    """A query and keys whose logits are ``levels`` (octaves), as nearly as rows can hold them."""
    levels = np.asarray(levels, float)
    scale = ceil(log2(max(np.abs(levels).max(), 1) / 127))
    # Element 0 holds the coarse part in steps of 2**scale, element 1 the rest in 64ths of a step.
    coarse = np.rint(levels / 2.0**scale)
    mantissas = np.zeros((len(levels), dim), np.int8)
    mantissas[:, 0] = coarse
    mantissas[:, 1] = np.rint((levels / 2.0**scale - coarse) * 64)
    query = np.zeros(dim)
    query[:2] = 64.0 * TILT, TILT
    exponents = np.full((len(levels), dim // 32), 127 + scale)
    return query, (mantissas, exponents)


def flat(rng):
    query, keys = along(np.full(LONG, 7.0), 128)
    return query, keys, mxint.quantise(rng.uniform(0, 1, (LONG, 128)), 32)


def one_hot(rng):
    levels = np.full(LONG, -60.0)
    levels[12345] = 60.0
    query, keys = along(levels, 128)
    return query, keys, random_rows(rng, LONG, 128)


def peak(rng, octaves, position):
    """One token above a long floor, and all of the floor points the other way."""
    levels = np.full(LONG, 1.0)
    levels[position] = 1.0 + octaves / TILT
    query, keys = along(levels, 64)
    values = rng.integers(64, 128, (LONG, 64))
    values[position] = -127
    return query, keys, (values, np.full((LONG, 2), 127))


def peak_read_first(rng):
    """32 K tokens 16 octaves down still weigh half as much as the peak."""
    return peak(rng, 16, LONG - 1)


def peak_read_last(rng):
    return peak(rng, 16, 0)


def floor_rounded_away(rng):
    """So low that no token of the floor is held: together they must not matter."""
    return peak(rng, 34.1, LONG - 1)


def rising(rng):
    """The oldest token is the largest: the maximum rises all the way."""
    query, keys = along(np.linspace(40.0, -40.0, LONG), 64)
    return query, keys, random_rows(rng, LONG, 64)


def narrow_range(rng):
    """Logits within one octave, values of one sign by logit: the exponential's own error counts."""
    levels = rng.uniform(-0.5, 0.5, LONG)
    query, keys = along(levels, 64)
    values = np.where(levels[:, None] > 0, 127, -127) * np.ones((1, 64), int)
    return query, keys, (values, np.full((LONG, 2), 130))


def wide_exponents(rng):
    """Scales of K and V differ by 2**30 within rows and from token to token."""
    scales = 2.0 ** rng.integers(-30, 3, (4096, 4)).repeat(32, axis=1)
    keys = mxint.quantise(rng.standard_normal((4096, 128)) * scales, 32)
    scales = 2.0 ** rng.integers(-30, 30, (4096, 4)).repeat(32, axis=1)
    values = mxint.quantise(rng.standard_normal((4096, 128)) * scales, 32)
    return rng.standard_normal(128), keys, values


def growing_values(rng):
    """The scale of V rises at each older token."""
    scales = 2.0 ** np.linspace(100, -100, 2048)[:, None]
    values = mxint.quantise(rng.standard_normal((2048, 64)) * scales, 32)
    return rng.standard_normal(64) / 8, random_rows(rng, 2048, 64), values


def extreme_exponents(rng):
    """The largest and the smallest scales that E8M0 has, in one context."""
    mantissas, exponents = random_rows(rng, 512, 64)
    exponents[:, 0], exponents[:, 1] = 254, 0
    keys = random_rows(rng, 512, 64)
    return rng.standard_normal(64), keys, (mantissas, exponents)


def single_token(rng):
    return rng.standard_normal(128), random_rows(rng, 1, 128), random_rows(rng, 1, 128)


def opposite_tokens(rng):
    """Two equal logits, opposite values: the output is exactly zero."""
    key, value = random_rows(rng, 1, 64), random_rows(rng, 1, 64)
    keys = np.repeat(key[0], 2, axis=0), np.repeat(key[1], 2, axis=0)
    return rng.standard_normal(64), keys, (np.concatenate([value[0], -value[0]]),
                                           np.repeat(value[1], 2, axis=0))


def nearly_opposite_tokens(rng):
    """Logits half a step of their resolution apart, opposite values."""
    query = np.zeros(32)
    query[:2] = 1.0, 2.0**-14
    rows = np.zeros((2, 32), np.int8)
    rows[:, 0], rows[0, 1] = 64, 8  # the second element adds 2**-17
    values = np.full((2, 32), 127)
    values[1] = -127
    return query, (rows, np.full((2, 1), 127)), (values, np.full((2, 1), 127))


def zero_rows(rng):
    zeros = np.zeros((64, 64), np.int8), np.full((64, 2), 200)
    values = random_rows(rng, 64, 64)
    values[0][::3] = 0
    return rng.standard_normal(64), zeros, values


CASES = [
    flat, one_hot, peak_read_first, peak_read_last, floor_rounded_away, rising, narrow_range,
    wide_exponents, growing_values, extreme_exponents, single_token, opposite_tokens,
    nearly_opposite_tokens, zero_rows,
]
