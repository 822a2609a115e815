"""Payloads against a second decoder, written from the page alone: one element at a time."""

import struct
from math import ceil

import ml_dtypes
import numpy as np
import pytest

from golden import mxint
from golden.streaming import huffman, payload
from golden.streaming.elements import quantise_rows
from golden.streaming.errors import FrameError, Reason
from golden.streaming.layout import (
    Format,
    coded_page_bytes,
    max_sub_stream_bits,
    page_bytes,
    payload_bounds,
    table_bytes,
)
from sim.trace import SHIPPED_TRACE, load_trace

STAIRS = np.array([12, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0])
CODED = [fmt for fmt in Format if fmt.is_coded]
FIXED = [fmt for fmt in Format if not fmt.is_coded]
DTYPES = {
    Format.FP16: np.float16, Format.BF16: ml_dtypes.bfloat16,
    Format.FP8_E4M3: ml_dtypes.float8_e4m3fn, Format.FP8_E5M2: ml_dtypes.float8_e5m2,
}


def real_rows(tokens, head_dim, seed=0):
    """K and V whose elements span several octaves, with zero rows and a zero block."""
    rng = np.random.default_rng(seed)
    k, v = rng.standard_normal((2, tokens, head_dim)) * 2.0 ** rng.integers(-4, 4, (2, tokens, 1))
    k[tokens // 2] = 0
    v[0, :32] = 0
    return k, v


def bf16(data, at):
    return float(np.frombuffer(data[at : at + 2], ml_dtypes.bfloat16)[0])


def slow_fixed(fmt, data, tokens, d, block):
    """Values [tokens, 2, d] of a fixed-rate payload."""
    values, at = np.zeros((tokens, 2, d)), 0
    for first in range(0, tokens, 16):
        here = min(16, tokens - first)
        blocks = d // block
        side = {Format.MXINT8: ceil(32 * blocks / 64) * 64, Format.INT8: 64, Format.INT4: 64}
        row_at = at + side.get(fmt, 0)
        for row in range(2 * here):
            out = values[first + row // 2, row % 2]
            for j in range(d):
                if fmt in DTYPES:
                    size = np.dtype(DTYPES[fmt]).itemsize
                    where = row_at + j * size
                    out[j] = np.frombuffer(data[where : where + size], DTYPES[fmt])[0]
                elif fmt == Format.INT8:
                    out[j] = struct.unpack_from("b", data, row_at + j)[0] * bf16(data, at + 2 * row)
                elif fmt == Format.INT4:
                    nibble = data[row_at + j // 2] >> 4 * (j % 2) & 15
                    out[j] = (nibble - 16 * (nibble > 7)) * bf16(data, at + 2 * row)
                else:
                    upper = data[row_at + j // 2] >> 4 * (j % 2) & 15
                    lower = data[row_at + d // 2 + j // 2] >> 4 * (j % 2) & 15
                    m = 16 * (upper - 16 * (upper > 7)) + lower
                    out[j] = m * 2.0 ** (data[at + row * blocks + j // block] - 133)
            row_at += {Format.FP16: 2 * d, Format.BF16: 2 * d, Format.INT4: d // 2}.get(fmt, d)
        at = ceil(row_at / 64) * 64
    assert at == len(data)
    return values


def slow_code(lengths):
    """Symbols by their code words as text."""
    code, before, words = 0, 0, {}
    for length, symbol in sorted((n, s) for s, n in enumerate(lengths) if n):
        code <<= length - before
        words[f"{code:0{length}b}"] = symbol
        code, before = code + 1, length
    return words


def slow_coded(fmt, data, tokens, d):
    """Values [tokens, 2, d] of an entropy-coded payload."""
    bits, values = fmt & 15, np.zeros((tokens, 2, d))
    table = max(64, 2**bits // 2)
    codes = [
        slow_code([data[side * table + s // 2] >> 4 * (s % 2) & 15 for s in range(2**bits)])
        for side in (0, 1)
    ]
    at = 2 * table
    for first in range(0, tokens, 16):
        here = min(16, tokens - first)
        lengths = struct.unpack_from("<8H", data, at + 64)
        stream_at = at + 80
        for stream, length in enumerate(lengths):
            size = ceil(length / 64) * 8
            text = "".join(f"{byte:08b}"[::-1] for byte in data[stream_at : stream_at + size])
            position = 0
            for row in range(2 * here):
                for j in range(stream, d, 8):
                    end = position + 1
                    while text[position:end] not in codes[row % 2]:
                        end += 1
                    q = codes[row % 2][text[position:end]] - 2 ** (bits - 1)
                    values[first + row // 2, row % 2, j] = q * bf16(data, at + 2 * row)
                    position = end
            assert position == length
            stream_at += size
        at = ceil(stream_at / 64) * 64
    assert at == len(data)
    return values


def decode(fmt, data, tokens, d, block):
    significands, exponents = payload.decode_payload(
        fmt, data, tokens=tokens, head_dim=d, exponent_block=block)
    assert significands.shape == exponents.shape == (tokens, 2, d)
    return np.ldexp(significands.astype(np.float64), exponents)


@pytest.mark.parametrize("tokens, d, block", [
    (1, 32, 32), (16, 64, 64), (17, 64, 32), (35, 128, 32), (3, 256, 32), (2, 256, 256),
])
@pytest.mark.parametrize("fmt", Format)
def test_decoder_reads_what_the_page_says(fmt, tokens, d, block):
    k, v = real_rows(tokens, d)
    data = payload.encode_payload(fmt, k, v, exponent_block=block)
    low, high = payload_bounds(fmt, tokens, d, block)
    assert low <= len(data) <= high
    assert len(data) % 64 == 0
    if fmt.is_coded:
        want = slow_coded(fmt, data, tokens, d)
    else:
        want = slow_fixed(fmt, data, tokens, d, block)
    assert np.array_equal(decode(fmt, data, tokens, d, block), want)


@pytest.mark.parametrize("tokens", [1, 16, 17, 1024])
@pytest.mark.parametrize("fmt", Format)
def test_round_trip_is_the_format_s_own_rounding(fmt, tokens):
    k, v = real_rows(tokens, 64, seed=tokens)
    x = np.stack([k, v], axis=1)
    got = decode(fmt, payload.encode_payload(fmt, k, v, exponent_block=32), tokens, 64, 32)
    if fmt in DTYPES:
        assert np.array_equal(got, x.astype(DTYPES[fmt]).astype(np.float64))
    elif fmt == Format.MXINT8:
        assert np.array_equal(got, mxint.dequantise(*mxint.quantise(x, 32)))
    else:
        scales, q = quantise_rows(x, fmt.element_bits)
        assert np.array_equal(got, q * scales.view(ml_dtypes.bfloat16).astype(float)[..., None])


@pytest.mark.parametrize("d, sizes", [
    (32, [2048, 2048, 1024, 1024, 1088, 576, 1088]),
    (128, [8192, 8192, 4096, 4096, 4160, 2112, 4224]),
    (256, [16384, 16384, 8192, 8192, 8256, 4160, 8448]),
])
def test_page_sizes_of_the_table(d, sizes):
    assert [page_bytes(fmt, d, 32) for fmt in FIXED] == sizes
    assert payload_bounds(Format.INT4, 17, 128, 32) == (2112 + 64 + 128,) * 2


@pytest.mark.parametrize("d, largest", [(32, 1664), (64, 3200), (128, 6272), (256, 12416)])
def test_the_largest_coded_page_is_reached(d, largest):
    assert payload_bounds(Format.HUFFMAN4, 1, d, 32)[1] == 128 + largest
    assert payload_bounds(Format.HUFFMAN8, 17, d, 32) == (256 + 256, 256 + 2 * largest)
    longest = np.zeros((16, 2, d), int)  # symbol 0 has 12 bits in STAIRS
    data = payload.encode_symbols(
        Format.HUFFMAN4, np.ones((16, 2), np.uint16), longest, lengths=[STAIRS, STAIRS])
    assert len(data) == 128 + largest
    assert struct.unpack_from("<8H", data, 128 + 64) == (max_sub_stream_bits(d),) * 8
    assert np.array_equal(decode(Format.HUFFMAN4, data, 16, d, 32),
                          np.full((16, 2, d), -8 * 2.0**-133))


@pytest.mark.parametrize("fmt", CODED)
def test_a_single_symbol_costs_one_bit(fmt):
    zero = np.zeros((17, 32))
    data = payload.encode_payload(fmt, zero, zero, exponent_block=32)
    assert len(data) == 2 * table_bytes(fmt) + 256 + 192
    assert not decode(fmt, data, 17, 32, 32).any()


def test_symbols_without_a_code_are_refused_by_the_encoder():
    with pytest.raises(ValueError, match="each symbol that occurs"):
        payload.encode_symbols(Format.HUFFMAN4, np.zeros((1, 2), np.uint16),
                               np.full((1, 2, 32), 15), lengths=[STAIRS, STAIRS])


def test_the_encoder_is_pinned_by_the_shipped_trace():
    trace = load_trace(SHIPPED_TRACE)
    sizes = {
        fmt: sum(
            len(payload.encode_payload(fmt, trace.k[:, head], trace.v[:, head], exponent_block=32))
            for head in range(18)
        ) for fmt in (Format.HUFFMAN2, Format.HUFFMAN5)
    }
    assert sizes == {Format.HUFFMAN2: 186624, Format.HUFFMAN5: 438976}


def coded_example(tokens=33, fmt=Format.HUFFMAN5):
    """A payload, and where its pages begin."""
    data = payload.encode_payload(fmt, *real_rows(tokens, 32), exponent_block=32)
    starts, at = [], 2 * table_bytes(fmt)
    while at < len(data):
        starts.append(at)
        lengths = np.frombuffer(data[at + 64 : at + 80], "<u2").astype(int)
        at += coded_page_bytes(lengths)
    return fmt, bytearray(data), starts


def refusal(fmt, data, tokens=33, d=32):
    with pytest.raises(FrameError) as caught:
        payload.decode_payload(fmt, bytes(data), tokens=tokens, head_dim=d, exponent_block=32)
    return caught.value.reason, caught.value.offset


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("lengths", [
    np.zeros(32, int), np.full(32, 6), np.full(32, 4), np.full(32, 13), [1, 1, *[12] * 30],
    np.full(32, 12),
])
def test_tables_that_are_not_complete(side, lengths):
    fmt, data, _ = coded_example()
    data[64 * side : 64 * side + 16] = huffman.pack_table(np.array(lengths)).tobytes()
    assert refusal(fmt, data) == (Reason.TABLE, 64 * side)


def test_the_padding_of_tables_and_pages_is_ignored():
    fmt, data, starts = coded_example()
    want = decode(fmt, bytes(data), 33, 32, 32)
    data[16:64] = data[80:128] = bytes(range(1, 49))
    data[starts[-1] + 4 : starts[-1] + 64] = b"\xff" * 60  # scales of absent rows: NaN
    data[-1] ^= 0xFF
    assert np.array_equal(decode(fmt, bytes(data), 33, 32, 32), want)


def directory(data, start, lane, change):
    at = start + 64 + 2 * lane
    struct.pack_into("<H", data, at, struct.unpack_from("<H", data, at)[0] + change)


@pytest.mark.parametrize("page", [0, 1, 2])
def test_a_directory_that_leaves_the_payload(page):
    fmt, data, starts = coded_example()
    directory(data, starts[page], 3, 20000)
    assert refusal(fmt, data) == (Reason.DIRECTORY, starts[page] + 64)


def test_a_directory_longer_than_the_longest_codes():
    """Within the payload, yet more than the lane's buffer holds."""
    fmt, data, starts = coded_example(tokens=256, fmt=Format.HUFFMAN8)
    struct.pack_into("<H", data, starts[0] + 64, max_sub_stream_bits(32) + 1)
    assert refusal(fmt, data, 256) == (Reason.DIRECTORY, starts[0] + 64)
    struct.pack_into("<H", data, starts[0] + 64, max_sub_stream_bits(32))
    assert refusal(fmt, data, 256)[1] != starts[0] + 64


def test_a_payload_longer_or_shorter_than_its_pages():
    fmt, data, starts = coded_example()
    assert refusal(fmt, data + bytes(64)) == (Reason.DIRECTORY, starts[2] + 64)
    # The last page is gone: the one before must leave room for it.
    assert refusal(fmt, data[: starts[2] + 64]) == (Reason.DIRECTORY, starts[1] + 64)
    assert refusal(fmt, data[: starts[2] + 128]) == (Reason.DIRECTORY, starts[2] + 64)


@pytest.mark.parametrize("page", [0, 1, 2])
@pytest.mark.parametrize("lane", [0, 7])
@pytest.mark.parametrize("change, reason", [(-1, Reason.OVERRUN), (1, Reason.UNDERRUN)])
def test_a_sub_stream_one_bit_off(page, lane, change, reason):
    fmt, data, starts = coded_example()
    lengths = struct.unpack_from("<8H", data, starts[page] + 64)
    if lengths[lane] % 64 == (1 if change < 0 else 0):
        change *= 2  # so that the sub-stream keeps its number of words
    directory(data, starts[page], lane, change)
    where = starts[page] + 80 + sum(ceil(n / 64) * 8 for n in lengths[:lane])
    assert refusal(fmt, data) == (reason, where)


def test_overrun_outranks_underrun_and_both_outrank_scales():
    fmt, data, starts = coded_example()
    directory(data, starts[0], 0, 1)
    data[starts[1] : starts[1] + 2] = b"\x80\x7f"
    assert refusal(fmt, data)[0] == Reason.UNDERRUN
    directory(data, starts[2], 5, -1)
    assert refusal(fmt, data)[0] == Reason.OVERRUN


@pytest.mark.parametrize("fmt", [Format.INT8, Format.INT4, Format.HUFFMAN2, Format.HUFFMAN8])
@pytest.mark.parametrize("scale, accepted", [
    (0x7F7F, True), (0x0001, True), (0x0000, True),
    (0x7F80, False), (0x7FFF, False), (0x8000, False), (0xBF80, False),
])
def test_scales(fmt, scale, accepted):
    tokens = 17
    data = bytearray(payload.encode_payload(fmt, *real_rows(tokens, 32), exponent_block=32))
    first = 2 * table_bytes(fmt)
    at = first + 2 * 31  # the last row of the first page
    data[at : at + 2] = scale.to_bytes(2, "little")
    if accepted:
        values = decode(fmt, bytes(data), tokens, 32, 32)[15, 1]
        unit = float(np.uint16(scale).view(ml_dtypes.bfloat16))
        ratio = values / (unit or 1)
        assert np.array_equal(ratio, np.rint(ratio))
        assert np.abs(ratio).max() < 129
    else:
        assert refusal(fmt, data, tokens) == (Reason.NONFINITE, at)


@pytest.mark.parametrize("fmt, code", [
    (Format.FP16, 0x7C00), (Format.FP16, 0xFC01), (Format.BF16, 0xFF80), (Format.BF16, 0x7FC0),
    (Format.FP8_E4M3, 0x7F), (Format.FP8_E4M3, 0xFF), (Format.FP8_E5M2, 0x7C),
    (Format.FP8_E5M2, 0xFD),
])
def test_numbers_that_are_none(fmt, code):
    size, row = fmt.element_bits // 8, 32 * fmt.element_bits // 8
    data = bytearray(payload.encode_payload(fmt, *real_rows(17, 32), exponent_block=32))
    at = page_bytes(fmt, 32, 32) + row + 5 * size  # V of the last token
    data[at : at + size] = code.to_bytes(size, "little")
    assert refusal(fmt, data, 17) == (Reason.NONFINITE, page_bytes(fmt, 32, 32) + row)


def test_exponents_that_are_nan():
    fmt = Format.MXINT8
    data = bytearray(payload.encode_payload(fmt, *real_rows(1, 64), exponent_block=32))
    want = decode(fmt, bytes(data), 1, 64, 32)
    data[4] = 255  # of a row that does not exist
    assert np.array_equal(decode(fmt, bytes(data), 1, 64, 32), want)
    data[3] = 255
    assert refusal(fmt, data, 1, 64) == (Reason.NONFINITE, 2)


@pytest.mark.parametrize("change, error, text", [
    ({"k": np.ones((2, 48)), "v": np.ones((2, 48))}, ValueError, "head_dim must be one of"),
    ({"v": np.ones((3, 32))}, ValueError, "v must have shape (2, 32), not (3, 32)"),
    ({"k": np.full((2, 32), np.inf)}, ValueError, "k must be finite"),
    ({"k": np.ones((0, 32)), "v": np.ones((0, 32))}, ValueError, "at least one token"),
    ({"fmt": 7}, ValueError, "7 is not a valid Format"),
    ({"exponent_block": 33}, ValueError, "exponent_block must be in 32..32, not 33"),
])
def test_refusals_of_the_encoder(change, error, text):
    call = {"fmt": Format.INT8, "k": np.ones((2, 32)), "v": np.ones((2, 32)), "exponent_block": 32}
    call |= change
    with pytest.raises(error) as caught:
        payload.encode_payload(call.pop("fmt"), call.pop("k"), call.pop("v"), **call)
    assert text in str(caught.value)
