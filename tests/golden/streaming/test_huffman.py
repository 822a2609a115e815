"""Codes against brute force, and sub-streams against a decoder that goes bit by bit."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.streaming import huffman

STAIRS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 0, 0, 0])
"""Every length, the longest twice: a complete code."""

occurrences = st.lists(st.integers(0, 1000), min_size=4, max_size=64).filter(any)


@cache
def multisets(symbols, limit, room):
    """Sorted lengths of all complete codes of ``symbols`` symbols, in units of 2**-limit."""
    if symbols == 0:
        return [()] if room == 0 else []
    return [
        (length, *rest)
        for length in range(1, limit + 1) if 1 << (limit - length) <= room
        for rest in multisets(symbols - 1, limit, room - (1 << (limit - length)))
        if not rest or length <= rest[0]
    ]


def decode_bit_by_bit(lengths, bits, count):
    """Canonical decoding as DEFLATE describes it: (symbols, bits used)."""
    order = sorted((length, symbol) for symbol, length in enumerate(lengths) if length)
    codes, code, before = {}, 0, order[0][0]
    for length, symbol in order:
        code <<= length - before
        codes[length, code] = symbol
        code, before = code + 1, length
    symbols, position = [], 0
    for _ in range(count):
        value = length = 0
        while (length, value) not in codes:
            value = value << 1 | bits[position]
            position, length = position + 1, length + 1
        symbols.append(codes[length, value])
    return symbols, position


@given(st.lists(st.integers(1, 50), min_size=2, max_size=7), st.integers(3, 5))
def test_code_lengths_are_optimal_under_the_limit(counts, limit):
    got = huffman.code_lengths(np.array(counts), limit)
    assert huffman.is_complete(got)
    assert got.max() <= limit
    ranked = sorted(counts, reverse=True)
    best = min(
        sum(n * length for n, length in zip(ranked, lengths, strict=True))
        for lengths in multisets(len(counts), limit, 1 << limit)
    )
    assert (got * np.array(counts)).sum() == best


@given(occurrences)
def test_code_lengths_cover_what_occurs(counts):
    counts = np.array(counts + counts[:1])[: len(counts) // 2 * 2]
    if not counts.any():
        counts[0] = 1
    lengths = huffman.code_lengths(counts)
    assert huffman.is_complete(lengths)
    if np.count_nonzero(counts) > 1:
        assert np.array_equal(lengths > 0, counts > 0)


@pytest.mark.parametrize("symbol", [0, 1, 6, 7])
def test_one_symbol_brings_its_neighbour(symbol):
    counts = np.zeros(8, int)
    counts[symbol] = 5
    lengths = huffman.code_lengths(counts)
    assert np.flatnonzero(lengths).tolist() == sorted([symbol, symbol ^ 1])
    assert huffman.is_complete(lengths)
    assert lengths.max() == 1


def test_fibonacci_counts_reach_the_limit():
    counts = [1, 1]
    while len(counts) < 32:
        counts.append(counts[-1] + counts[-2])
    lengths = huffman.code_lengths(np.array(counts))
    assert lengths.max() == 12
    assert huffman.is_complete(lengths)


def test_an_even_alphabet_is_a_fixed_length_code():
    lengths = huffman.code_lengths(np.full(256, 3))
    assert (lengths == 8).all()
    words = huffman.code_words(lengths)
    assert [f"{word:08b}"[::-1] for word in words[:3]] == ["00000000", "00000001", "00000010"]


@pytest.mark.parametrize("lengths", [
    np.zeros(16, int), [1, 0], [1, 2], [1, 1, 12], [1, 1, 1], [1, 13, 13], np.full(256, 12),
    [1, 15],
])
def test_incomplete_and_over_full_codes(lengths):
    assert not huffman.is_complete(lengths)
    with pytest.raises(ValueError, match=r"complete|0\.\.12"):
        huffman.decode_table(lengths)


@given(st.sampled_from([
    STAIRS, np.array([1, 1]), np.full(16, 4), np.array([2, 0, 2, 3, 3, 0, 2, 0]),
    STAIRS[::-1],
]), st.integers(0, 2**32 - 1))
def test_decode_table_equals_decoding_bit_by_bit(lengths, seed):
    bits = np.random.default_rng(seed).integers(0, 2, 12 * 20)
    want, used = decode_bit_by_bit(lengths.tolist(), bits.tolist(), 20)
    data = np.packbits(bits.astype(np.uint8), bitorder="little")
    got, ends = huffman.read_codes(data, [0], [0] * 20, [huffman.decode_table(lengths)])
    assert got[0].tolist() == want
    assert ends[0, -1] == used


@given(occurrences, st.integers(0, 2**32 - 1))
def test_what_is_written_is_read(counts, seed):
    counts = counts[: len(counts) // 2 * 2]
    lengths = huffman.code_lengths(np.array(counts if any(counts) else [1, 1]))
    symbols = np.random.default_rng(seed).choice(np.flatnonzero(lengths), (3, 40))
    bits = lengths[symbols].astype(np.int64)
    starts = np.array([[5], [700], [1301]]) + np.cumsum(bits, axis=-1) - bits
    data = huffman.write_codes(huffman.code_words(lengths)[symbols], bits, starts, 300)
    tables = [huffman.decode_table(lengths)]
    got, ends = huffman.read_codes(data, [5, 700, 1301], [0] * 40, tables)
    assert np.array_equal(got, symbols)
    assert np.array_equal(ends, np.cumsum(bits, axis=-1))
    assert np.array_equal(huffman.unpack_table(huffman.pack_table(lengths)), lengths)


def test_reading_past_the_end_reads_zeros():
    tables = [huffman.decode_table(STAIRS)]
    symbols, ends = huffman.read_codes(np.zeros(1, np.uint8), [3], [0] * 30, tables)
    assert not symbols.any()
    assert ends[0, -1] == 30


@pytest.mark.parametrize("counts, limit", [(np.zeros(4, int), 12), (np.ones(5, int), 2)])
def test_code_lengths_refuses(counts, limit):
    with pytest.raises(ValueError, match="symbols that occur"):
        huffman.code_lengths(counts, limit)
