"""The Hsiao code: its matrix, and every error of one and of two bits."""

from itertools import combinations

import numpy as np
import pytest

from golden.memory import ecc
from golden.memory.ecc import COLUMNS, ROWS, Status

BITS = ecc.DATA_BITS + ecc.CHECK_BITS


def words(count, seed):
    return np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64)


def test_matrix():
    """All columns differ and are odd; rows are balanced; the fewest ones that allow 64 columns."""
    assert len(set(COLUMNS)) == BITS
    assert all(column.bit_count() % 2 == 1 for column in COLUMNS)
    assert sorted(column.bit_count() for column in COLUMNS) == [1] * 8 + [3] * 56 + [5] * 8
    assert [row.bit_count() for row in ROWS] == [26] * 8


def test_encode_is_linear_and_matches_the_definition():
    data = words(100, 1)
    for word, check in zip(data.tolist(), ecc.encode(data).tolist(), strict=True):
        expected = 0
        for bit in range(64):
            if word >> bit & 1:
                expected ^= COLUMNS[bit]
        assert check == expected
    assert (ecc.encode(data ^ data[::-1]) == ecc.encode(data) ^ ecc.encode(data[::-1])).all()
    assert ecc.encode(np.uint64(0)) == 0


def test_no_error():
    data = words(1000, 2)
    decoded = ecc.decode(data, ecc.encode(data))
    assert (decoded.data == data).all()
    assert (decoded.status == Status.CLEAN).all() and (decoded.bit == -1).all()


def test_every_single_error_is_corrected():
    data = words(64, 3)
    for position in range(BITS):
        decoded = ecc.decode(*ecc.flip(data, ecc.encode(data), position))
        assert (decoded.data == data).all()
        assert (decoded.status == Status.CORRECTED).all() and (decoded.bit == position).all()


def test_every_double_error_is_told():
    data = words(4, 4)
    for pair in combinations(range(BITS), 2):
        read, check = ecc.flip(data, ecc.encode(data), *pair)
        decoded = ecc.decode(read, check)
        assert (decoded.status == Status.UNCORRECTABLE).all() and (decoded.bit == -1).all()
        assert (decoded.data == read).all()


def test_triple_errors_are_never_taken_for_clean():
    """And the share that is taken for one error is the one in the documentation."""
    columns = np.array(COLUMNS)
    triples = np.array(list(combinations(range(BITS), 3)))
    syndromes = np.bitwise_xor.reduce(columns[triples], axis=1)
    assert syndromes.all()
    assert np.isin(syndromes, columns).mean() == pytest.approx(0.5628, abs=5e-5)


def test_lines():
    line = np.random.default_rng(5).integers(0, 256, (3, 64), np.uint8)
    check = ecc.encode_line(line)
    assert check.shape == (3, 8)
    assert check[1, 2] == ecc.encode(np.uint64(int.from_bytes(line[1, 16:24].tobytes(), "little")))
    damaged = line.copy()
    damaged[0, 9] ^= 0x20  # word 1, bit 13
    damaged[2, 63] ^= 0x81  # word 7, bits 56 and 63
    decoded = ecc.decode_line(damaged, check)
    assert (decoded.data[:2] == line[:2]).all() and (decoded.data[2] == damaged[2]).all()
    expected = np.zeros((3, 8), int)
    expected[0, 1], expected[2, 7] = Status.CORRECTED, Status.UNCORRECTABLE
    assert (decoded.status == expected).all()
    assert decoded.bit[0, 1] == 13


def test_wrong_arguments():
    with pytest.raises(TypeError, match="data must be a uint64 array, not of dtype int64"):
        ecc.encode(np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="check must have shape"):
        ecc.decode(np.zeros(3, np.uint64), np.zeros(2, np.uint8))
    with pytest.raises(TypeError, match="line must be a uint8 array"):
        ecc.encode_line(np.zeros(63, np.uint8))
    with pytest.raises(TypeError, match="line must be a uint8 array"):
        ecc.decode_line(np.zeros(64, np.int64), np.zeros(8, np.uint8))
    with pytest.raises(ValueError, match="positions must be in 0..71"):
        ecc.flip(np.zeros(1, np.uint64), np.zeros(1, np.uint8), 72)
