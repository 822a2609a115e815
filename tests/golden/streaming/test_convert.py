"""The integer conversion against the quantiser of stored rows, which works on real numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from golden import mxint
from golden.streaming.convert import quantise_elements, stored_rows
from golden.streaming.elements import FLOATS
from golden.streaming.layout import Format

FLOAT_FORMATS = list(FLOATS)


def check(significands, exponents, block):
    got = quantise_elements(significands, exponents, block)
    values = np.ldexp(significands.astype(np.float64), exponents)
    want = mxint.quantise(values, block)
    assert np.array_equal(got[0], want[0])
    assert np.array_equal(got[1], want[1])
    return got


@given(arrays(np.int64, (2, 32), elements=st.integers(-32767, 32767)), st.integers(-133, 120))
def test_scaled_rows(significands, exponent):
    check(significands, np.full((2, 32), exponent), 32)


@given(arrays(np.int64, (2, 8), elements=st.integers(-2047, 2047)),
       arrays(np.int64, (2, 8), elements=st.integers(-133, 120)))
def test_any_elements(significands, exponents):
    check(significands, exponents, 4)


@pytest.mark.parametrize("fmt", FLOAT_FORMATS)
def test_every_number_alone_and_beside_every_octave(fmt):
    codes = np.arange(1 << fmt.element_bits)
    codes = codes[FLOATS[fmt].is_finite(codes)]
    neighbours = codes[:: max(1, len(codes) // (8 if fmt.element_bits == 16 else 256))]
    pairs = np.stack(np.broadcast_arrays(codes[:, None], neighbours), axis=-1)
    check(*FLOATS[fmt].unpack(pairs.reshape(-1)), 1)
    check(*FLOATS[fmt].unpack(pairs), 2)


@pytest.mark.parametrize("block", [32, 128])
@pytest.mark.parametrize("fmt", FLOAT_FORMATS)
def test_random_codes_of_a_row(fmt, block):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 1 << fmt.element_bits, (200, 128))
    codes = np.where(FLOATS[fmt].is_finite(codes), codes, 0)
    check(*FLOATS[fmt].unpack(codes), block)


def test_extremes():
    mantissas, exponents = check(np.array([[32640, -32640]]), np.full((1, 2), 120), 2)
    assert mantissas.tolist() == [[127, -127]]
    assert exponents.tolist() == [[254]]
    mantissas, exponents = check(np.array([[1, -127]]), np.full((1, 2), -133), 2)
    assert mantissas.tolist() == [[1, -127]]
    assert exponents.tolist() == [[0]]
    mantissas, exponents = check(np.zeros((1, 2), int), np.array([[-133, 120]]), 2)
    assert not mantissas.any()
    assert not exponents.any()
    # Every tie, to even: 2**6 + 1/2 and 2**6 + 3/2 in units of the last place.
    mantissas, _ = check(np.array([[129, 131, -129, -131]]), np.zeros((1, 4), int), 4)
    assert mantissas.tolist() == [[64, 66, -64, -66]]
    # Rounding past the largest mantissa clips: the exponent stays.
    mantissas, exponents = check(np.array([[255]]), np.zeros((1, 1), int), 1)
    assert mantissas.tolist() == [[127]]
    assert exponents.tolist() == [[134]]


def test_mxint8_passes_through_but_for_the_zero_block():
    significands = np.zeros((1, 2, 64), np.int64)
    significands[0, 0, 3], significands[0, 1, 40] = -128, 1
    exponents = np.full((1, 2, 64), 200 - 133)
    mantissas, shared = stored_rows(Format.MXINT8, significands, exponents, 32)
    assert np.array_equal(mantissas, significands)
    assert shared.tolist() == [[[200, 0], [0, 200]]]


@pytest.mark.parametrize("significands, exponents, block, text", [
    ([[32768]], [[0]], 1, "significands must be in -32767..32767"),
    ([[1]], [[-134]], 1, "exponents must be in -133..127"),
    ([[1, 2, 3]], [[0, 0, 0]], 2, "block must divide the last dimension (3), not 2"),
])
def test_refusals(significands, exponents, block, text):
    with pytest.raises(ValueError) as caught:
        quantise_elements(np.array(significands), np.array(exponents), block)
    assert text in str(caught.value)
