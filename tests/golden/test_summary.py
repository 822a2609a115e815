"""Page summaries against a loop over elements, and against the true mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.mxint import dequantise
from golden.summary import page_summaries


def slow_page(mantissas, exponents):
    """One page, one block: numerics section 11 as written there."""
    e, acc = int(exponents[0]), [int(m) << 8 for m in mantissas[0]]
    for row, scale in zip(mantissas[1:], exponents[1:], strict=True):
        larger = max(e, int(scale))
        acc = [
            (a >> min(larger - e, 31)) + ((int(m) << 8) >> min(larger - int(scale), 31))
            for a, m in zip(acc, row, strict=True)
        ]
        e = larger
    return [(a + (1 << 11)) >> 12 for a in acc], e


@given(st.integers(0, 2**32 - 1), st.integers(0, 50), st.sampled_from([1, 3, 60]))
def test_equals_the_loop(seed, tokens, narrow):
    rng = np.random.default_rng(seed)
    mantissas = rng.integers(-128, 128, (tokens, 8))
    exponents = rng.integers(0, 255, (tokens, 2)) // narrow
    rows, scales = page_summaries(mantissas, exponents)
    assert rows.shape == (tokens // 16, 8) and scales.shape == (tokens // 16, 2)
    for page in range(tokens // 16):
        for block in range(2):
            span = slice(16 * page, 16 * page + 16), slice(4 * block, 4 * block + 4)
            want = slow_page(mantissas[span], exponents[span[0], block])
            assert (rows[page, span[1]].tolist(), scales[page, block]) == want


def test_close_to_the_mean():
    rng = np.random.default_rng(9)
    mantissas = rng.integers(-127, 128, (320, 64))
    exponents = rng.integers(120, 127, (320, 2))
    rows, scales = page_summaries(mantissas, exponents)
    mean = dequantise(mantissas, exponents).reshape(20, 16, 64).mean(axis=1)
    step = np.ldexp(1.0, scales.astype(int) - 133).repeat(32, axis=1)
    assert np.abs(dequantise(rows, scales) - mean).max() <= 0.52 * step.max()


@pytest.mark.parametrize("value", [-128, 127])
def test_full_range_does_not_overflow(value):
    rows, scales = page_summaries(np.full((16, 4), value), np.full((16, 1), 200))
    assert (rows == value).all() and scales.tolist() == [[200]]


def test_refusals():
    with pytest.raises(ValueError, match="exponents must have a count that divides 8, not 3"):
        page_summaries(np.zeros((16, 8), int), np.zeros((16, 3), int))
    with pytest.raises(ValueError, match="exponents must be in 0..254"):
        page_summaries(np.zeros((16, 8), int), np.full((16, 1), 255))
