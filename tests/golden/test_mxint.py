"""MXINT8 against ml_dtypes, and against a formulation in exact rational arithmetic."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from golden import mxint

finite32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
rows8 = arrays(np.int8, (3, 32), elements=st.integers(-128, 127))


def exact_block(values):
    """OCP MX v1.0, section 6.3, in rationals: the shared exponent, then each element."""
    values = [Fraction(float(value)) for value in values]
    largest = max(abs(value) for value in values)
    if largest == 0:
        return [0] * len(values), 0
    exponent = -1200
    while Fraction(2) ** (exponent + 1) <= largest:
        exponent += 1
    exponent = min(max(exponent + 127, 0), 254)
    scale = Fraction(2) ** (exponent - 127 - 6)
    return [min(max(round(value / scale), -127), 127) for value in values], exponent


@given(arrays(np.float32, (4,), elements=finite32))
def test_quantise_equals_the_rational_formulation(x):
    mantissas, exponents = mxint.quantise(x, 4)
    assert (mantissas.tolist(), exponents[0]) == exact_block(x)
    assert mantissas.dtype == np.int8 and exponents.dtype == np.uint8


@given(arrays(np.float32, (2, 64), elements=finite32))
def test_blocks_are_independent_and_the_error_is_half_a_step(x):
    mantissas, exponents = mxint.quantise(x, 32)
    alone = mxint.quantise(x[1, 32:], 32)
    assert np.array_equal(mantissas[1, 32:], alone[0]) and exponents[1, 1] == alone[1][0]
    step = np.ldexp(1.0, exponents.astype(int) - 133).repeat(32, axis=-1)
    back = mxint.dequantise(mantissas, exponents)
    # Half a step from rounding; up to one where 127.x is clipped to 127.
    assert (np.abs(back - x) <= np.where(np.abs(mantissas) == 127, 1.0, 0.5) * step).all()


def test_exponents_are_those_of_float8_e8m0fnu():
    codes = np.arange(255, dtype=np.uint8)
    scales = codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    assert np.isnan(np.uint8(255).view(ml_dtypes.float8_e8m0fnu).astype(np.float64))
    ones = np.full((255, 1), 64, np.int8)  # 64 * 2**-6 = 1.0
    assert np.array_equal(mxint.dequantise(ones, codes[:, None])[:, 0], scales)


@pytest.mark.parametrize("dtype", [
    ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
])
def test_narrow_floats_quantise_as_their_float64_values(dtype):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((6, 64)).astype(dtype)
    got, want = mxint.quantise(x, 32), mxint.quantise(x.astype(np.float64), 32)
    assert np.array_equal(got[0], want[0]) and np.array_equal(got[1], want[1])


def test_values_of_seven_bits_survive():
    """What MXINT8 can hold comes back bit for bit."""
    rng = np.random.default_rng(6)
    mantissas = rng.integers(-127, 128, (50, 64)).astype(np.int8)
    mantissas[:, ::32] = 64  # keeps each block's largest magnitude at or above 64
    exponents = rng.integers(1, 255, (50, 2)).astype(np.uint8)
    again = mxint.quantise(mxint.dequantise(mantissas, exponents), 32)
    assert np.array_equal(again[0], mantissas) and np.array_equal(again[1], exponents)


def test_extremes():
    tiny, huge = np.float32(2.0 ** -149), np.float32(3.4028235e38)
    assert mxint.quantise(np.zeros(32), 32)[1][0] == 0
    assert not mxint.quantise(np.full(32, tiny), 32)[0].any()
    mantissas, exponents = mxint.quantise(np.array([huge, -huge]), 2)
    assert mantissas.tolist() == [127, -127] and exponents[0] == 254
    assert mxint.quantise(np.array([1e300]), 1)[0][0] == 127


@given(rows8)
def test_planes_round_trip(rows):
    stored = mxint.pack_row(rows)
    assert stored.shape == rows.shape and stored.dtype == np.uint8
    assert np.array_equal(mxint.unpack_row(stored), rows)
    for row, packed in zip(rows, stored, strict=True):
        for j, m in enumerate(row.tolist()):
            nibble = 4 * (j % 2)
            upper, lower = packed[j // 2] >> nibble & 15, packed[16 + j // 2] >> nibble & 15
            assert (upper, lower) == (m >> 4 & 15, m & 15)


def test_coarse_is_the_middle_of_what_shares_the_upper_nibble():
    every = np.arange(-128, 128).astype(np.int8)
    got = mxint.coarse(every).astype(int)
    assert np.array_equal(got, every.astype(int) // 16 * 16 + 8)
    assert np.abs(got - every).max() == 8


def test_canonical_touches_only_zero_blocks():
    mantissas = np.zeros((2, 64), np.int8)
    mantissas[0, 40] = -1
    exponents = np.full((2, 2), 9, np.uint8)
    assert mxint.canonical(mantissas, exponents).tolist() == [[0, 9], [0, 0]]


@pytest.mark.parametrize("query_bits", [8, 16])
@given(x=arrays(np.float32, (2, 8), elements=finite32))
def test_query_round_trip(query_bits, x):
    mantissas, exponents = mxint.quantise_query(x, query_bits)
    assert mantissas.dtype.itemsize * 8 == query_bits and exponents.shape == (2,)
    step = np.ldexp(1.0, exponents.astype(int) - 127 - (query_bits - 2))[:, None]
    error = np.abs(mxint.dequantise_query(mantissas, exponents, query_bits) - x)
    assert (error <= step).all()
    largest = (1 << (query_bits - 1)) - 1
    assert (error[np.abs(mantissas.astype(int)) < largest] <= (step / 2).max()).all()


def test_query_of_8_bits_is_mxint8_with_one_block():
    x = np.random.default_rng(7).standard_normal((5, 64))
    got, want = mxint.quantise_query(x, 8), mxint.quantise(x, 64)
    assert np.array_equal(got[0], want[0]) and np.array_equal(got[1], want[1][:, 0])


@pytest.mark.parametrize("call, error, text", [
    (lambda: mxint.quantise(np.array([np.nan]), 1), ValueError, "x must be finite"),
    (lambda: mxint.quantise(np.array(["a"]), 1), TypeError, "x must be a real array"),
    (lambda: mxint.quantise(np.ones(48), 32), ValueError,
     "block must divide the last dimension (48), not 32"),
    (lambda: mxint.dequantise(np.ones(32, np.int8), [255]), ValueError,
     "exponents must be in 0..254"),
    (lambda: mxint.quantise_query(np.ones(4), 12), ValueError,
     "query_bits must be 8 or 16, not 12"),
    (lambda: mxint.pack_row(np.ones(3, np.int8)), ValueError, "even last dimension"),
    (lambda: mxint.coarse(np.array([128])), ValueError, "mantissas must be in -128..127"),
])
def test_refusals(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
