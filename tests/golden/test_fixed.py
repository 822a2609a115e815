"""Rounding helpers against exact rational arithmetic."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.fixed import asr, bit_length, rnd, rnd_even, sat, saturates, shift_left_sat

words = st.integers(-(1 << 63), (1 << 63) - 1)
shifts = st.integers(0, 80)


@given(words, shifts)
def test_rnd_is_floor_of_the_exact_quotient_plus_a_half(x, shift):
    exact = floor(Fraction(x, 1 << shift) + (Fraction(1, 2) if shift else 0))
    assert rnd(x, shift) == exact
    assert rnd(np.array([x], np.int64), shift)[0] == exact
    assert rnd(np.array([x], object), shift)[0] == exact


@given(st.one_of(words, st.integers(-40, 40)), shifts)
def test_rnd_even_is_the_exact_quotient_rounded_half_to_even(x, shift):
    exact = round(Fraction(x, 1 << shift))
    assert rnd_even(x, shift) == exact
    assert rnd_even(np.array([x], np.int64), shift)[0] == exact
    assert rnd_even(np.array([x], object), shift)[0] == exact


@given(words, shifts)
def test_asr_is_floor(x, shift):
    assert asr(x, shift) == asr(np.int64(x), shift) == floor(Fraction(x, 1 << shift))


@given(words, st.integers(1, 63))
def test_sat_clips_and_reports(x, bits):
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    expected = sorted([low, x, high])[1]  # the median
    assert sat(x, bits) == sat(np.int64(x), bits) == expected
    assert saturates(x, bits) == saturates(np.int64(x), bits) == (x != expected)


@given(st.one_of(words, st.integers(-3, 3)), st.integers(0, 600), st.integers(1, 63))
def test_shift_left_sat_never_wraps(x, shift, bits):
    exact = x << shift
    value, clipped = shift_left_sat(np.array([x]), np.array([shift]), bits)
    assert (value[0], clipped[0]) == (sat(exact, bits), saturates(exact, bits))
    assert shift_left_sat(x, shift, bits) == (sat(exact, bits), saturates(exact, bits))


@given(st.integers(0, (1 << 64) - 1))
def test_bit_length_of_words(x):
    assert bit_length(x) == x.bit_length()
    assert bit_length(np.array([x], np.uint64))[0] == x.bit_length()
    assert bit_length(np.array([x << 40], object))[0] == (x << 40 if x else 0).bit_length()


@pytest.mark.parametrize("power", range(63))
def test_bit_length_at_powers_of_two(power):
    around = np.array([(1 << power) - 1, 1 << power])
    assert list(bit_length(around)) == [power, power + 1]


def test_ties_go_towards_plus_infinity():
    assert list(rnd(np.array([-3, -1, 1, 3]), 1)) == [-1, 0, 1, 2]


@pytest.mark.parametrize("call, error, text", [
    (lambda: rnd(1, -1), ValueError, "shift must be at least 0, not -1"),
    (lambda: asr(np.array([1]), np.array([-2])), ValueError, "shift must be at least 0, not "),
    (lambda: sat(1, 0), ValueError, "bits must be at least 1, not 0"),
    (lambda: sat(1, 1.5), TypeError, "bits must be an integer, not 1.5"),
    (lambda: rnd(np.array([0.5]), 1), TypeError, "x must be integers, not of dtype float64"),
    (lambda: bit_length(-1), ValueError, "x must be at least 0, not -1"),
])
def test_refusals(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
