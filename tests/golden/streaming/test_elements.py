"""Element formats against ml_dtypes and NumPy, every code of them."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from golden.streaming.elements import BF16, FLOATS, pack_nibbles, quantise_rows, unpack_nibbles
from golden.streaming.layout import Format

DTYPES = {
    Format.FP16: np.float16,
    Format.BF16: ml_dtypes.bfloat16,
    Format.FP8_E4M3: ml_dtypes.float8_e4m3fn,
    Format.FP8_E5M2: ml_dtypes.float8_e5m2,
}

finite32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


def every_code(fmt):
    return np.arange(1 << fmt.element_bits).astype(FLOATS[fmt].dtype)


@pytest.mark.parametrize("fmt", DTYPES)
def test_every_code_unpacks_to_its_number(fmt):
    codes = every_code(fmt)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        want = codes.view(DTYPES[fmt]).astype(np.float64)
    finite = FLOATS[fmt].is_finite(codes)
    assert np.array_equal(finite, np.isfinite(want))
    significands, exponents = FLOATS[fmt].unpack(codes)
    assert np.array_equal(np.ldexp(significands[finite].astype(float), exponents[finite]),
                          want[finite])


@pytest.mark.parametrize("fmt", DTYPES)
def test_every_number_packs_to_its_code(fmt):
    codes = every_code(fmt)
    codes = codes[FLOATS[fmt].is_finite(codes)]
    assert np.array_equal(FLOATS[fmt].pack(codes.view(DTYPES[fmt]).astype(np.float64)), codes)


@pytest.mark.parametrize("fmt", DTYPES)
@given(x=arrays(np.float32, (16,), elements=finite32), exponent=st.integers(-30, 20))
def test_pack_rounds_as_ml_dtypes(fmt, x, exponent):
    largest = float(ml_dtypes.finfo(DTYPES[fmt]).max)
    for values in (x, np.ldexp(np.frexp(x)[0], exponent)):
        values = np.clip(values, np.float32(-largest), np.float32(largest))
        want = values.astype(DTYPES[fmt]).view(FLOATS[fmt].dtype)
        assert np.array_equal(FLOATS[fmt].pack(values), want)


@pytest.mark.parametrize("fmt, halfway", [
    (Format.FP16, 2049.0), (Format.FP16, 2051.0), (Format.FP16, 2.0**-25),
    (Format.FP16, 3 * 2.0**-25),
    (Format.BF16, 257.0), (Format.FP8_E4M3, 17.0), (Format.FP8_E4M3, 2.0**-10),
    (Format.FP8_E5M2, 9.0), (Format.FP8_E5M2, 2.0**-17),
])
def test_ties_go_to_even(fmt, halfway):
    want = np.float32(halfway).astype(DTYPES[fmt]).view(FLOATS[fmt].dtype)
    assert FLOATS[fmt].pack([halfway])[0] == want
    assert not want & 1


@pytest.mark.parametrize("fmt, largest", [
    (Format.FP16, 65504.0), (Format.BF16, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)),
    (Format.FP8_E4M3, 448.0), (Format.FP8_E5M2, 57344.0),
])
def test_beyond_the_largest_number_is_the_largest(fmt, largest):
    codes = FLOATS[fmt].pack([largest, 1e300, -1e300])
    assert codes.tolist() == [FLOATS[fmt].largest, FLOATS[fmt].largest,
                              FLOATS[fmt].largest | 1 << (fmt.element_bits - 1)]
    assert codes[:1].view(DTYPES[fmt]).astype(float) == largest


@pytest.mark.parametrize("bits", range(2, 9))
@given(x=arrays(np.float32, (3, 32), elements=finite32))
def test_quantised_rows_are_near(bits, x):
    scales, q = quantise_rows(x, bits)
    limit = (1 << (bits - 1)) - 1
    assert np.abs(q).max() <= limit
    assert BF16.is_finite(scales).all()
    assert not (scales >> 15).any()
    scale = scales.view(ml_dtypes.bfloat16).astype(np.float64)[:, None]
    # A scale rounded down clips the largest elements, by no more than its own rounding.
    largest = np.abs(x.astype(np.float64)).max(axis=-1, keepdims=True)
    slack = np.maximum(0, largest - limit * scale)
    assert (slack <= largest * 2.0**-8 + limit * 2.0**-134).all()
    assert (np.abs(q * scale - x) <= scale / 2 + slack).all()


def test_zero_rows_have_zero_scales():
    scales, q = quantise_rows(np.zeros((2, 32)), 4)
    assert not scales.any()
    assert not q.any()


@given(arrays(np.int64, (2, 6), elements=st.integers(-8, 7)))
def test_nibbles_round_trip(q):
    packed = pack_nibbles(q)
    assert packed.dtype == np.uint8
    assert packed[0, 0] == (q[0, 0] & 15) + 16 * (q[0, 1] & 15)
    assert np.array_equal(unpack_nibbles(packed), q)
