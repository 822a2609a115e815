"""Encoders and distances against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import hashing
from golden.mxint import dequantise, quantise, quantise_query


def test_default_weights_are_scaled_rotations():
    weights = hashing.random_weights(160, 64, seed=3)
    assert weights.dtype == np.int8 and weights.shape == (160, 64)
    assert np.abs(weights.astype(int)).max() == 127
    first = weights[:64].astype(float)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    assert np.abs(first @ first.T - np.eye(64)).max() < 0.03  # orthogonal up to the rounding
    assert np.array_equal(weights, hashing.random_weights(160, 64, seed=3))
    assert not np.array_equal(weights, hashing.random_weights(160, 64, seed=4))


def slow_key_code(weights, mantissas, exponents):
    dim, blocks = len(mantissas), len(exponents)
    block = dim // blocks
    largest = max(int(e) for e in exponents)
    bits = []
    for row in weights.tolist():
        y = 0
        for b in range(blocks):
            span = range(b * block, (b + 1) * block)
            dot = sum(row[j] * int(mantissas[j]) for j in span)
            y += (dot << 8) >> min(largest - int(exponents[b]), 31)
        bits.append(int(y >= 0))
    return bits


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 4]))
def test_key_codes_equal_the_loop(seed, blocks):
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (7, 64))
    mantissas = rng.integers(-128, 128, (3, 64))
    exponents = rng.integers(0, 255, (3, blocks)) // rng.choice([1, 20, 60])
    got = hashing.encode_keys(weights, mantissas, exponents)
    want = [slow_key_code(weights, m, e) for m, e in zip(mantissas, exponents, strict=True)]
    assert got.tolist() == want


@given(st.integers(0, 2**32 - 1))
def test_query_codes_equal_the_loop(seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (5, 32))
    mantissas = rng.integers(-32768, 32768, (2, 32)) // rng.choice([1, 1000, 20000])
    want = [
        [int(sum(w * q for w, q in zip(row, vector, strict=True)) >= 0) for row in weights.tolist()]
        for vector in mantissas.tolist()
    ]
    assert hashing.encode_queries(weights, mantissas).tolist() == want


def test_zero_vectors_have_all_ones():
    weights = hashing.random_weights(32, 32, seed=0)
    assert hashing.encode_queries(weights, np.zeros(32, int)).all()
    assert hashing.encode_keys(weights, np.zeros(32, int), [0]).all()


def test_distance_follows_the_angle():
    """Random rotations are locality-sensitive: the distance is b * angle / pi on average."""
    rng = np.random.default_rng(8)
    weights = hashing.random_weights(256, 64, seed=8)
    q = rng.standard_normal(64)
    k = q + rng.standard_normal((400, 64)) * rng.uniform(0.1, 3, (400, 1))
    query, _ = quantise_query(q, 16)
    keys = quantise(k, 32)
    codes = hashing.encode_queries(weights, query[None])
    got = hashing.distance(codes, hashing.encode_keys(weights, *keys), 0)
    stored = dequantise(*keys)
    cosine = stored @ q / np.linalg.norm(stored, axis=1) / np.linalg.norm(q)
    assert np.abs(got - 256 * np.arccos(cosine) / np.pi).max() < 5 * 8  # 5 sigma of 256 coins


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(0, 3))
def test_distance_counts_bits_of_the_group(seed, group, shift):
    rng = np.random.default_rng(seed)
    queries, keys = rng.integers(0, 2, (group, 36)), rng.integers(0, 2, (9, 36))
    want = [sum(int((q != k).sum()) for q in queries) >> shift for k in keys]
    assert hashing.distance(queries, keys, shift).tolist() == want


@given(st.integers(0, 2**64 - 1))
def test_codes_as_integers_and_bytes(value):
    code = hashing.int_to_code(value, 64)
    assert [value >> i & 1 for i in range(64)] == code.tolist()
    assert hashing.code_to_int(code) == value
    stored = hashing.pack_codes(code[None])
    assert stored.tobytes() == value.to_bytes(8, "little")
    assert np.array_equal(hashing.unpack_codes(stored, 64)[0], code)


@pytest.mark.parametrize("call, error, text", [
    (lambda: hashing.random_weights(0, 32, 0), ValueError, "code_bits must be in 1..65536, not 0"),
    (lambda: hashing.encode_queries(np.ones((4, 3), int), np.ones(2, int)), ValueError,
     "weights must have shape (code_bits, 2)"),
    (lambda: hashing.encode_keys(np.ones((4, 4), int), np.ones(4, int), [0, 0, 0]), ValueError,
     "exponents must have a count that divides 4, not 3"),
    (lambda: hashing.distance(np.ones((1, 8), int), np.ones((2, 9), int), 0), ValueError,
     "equal lengths, not 8 and 9"),
    (lambda: hashing.distance(np.full((1, 8), 2), np.ones((2, 8), int), 0), ValueError,
     "query_codes must be in 0..1"),
])
def test_refusals(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)
