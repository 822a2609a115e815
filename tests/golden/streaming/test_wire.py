"""Frames: what is accepted, what is refused, and for which reason."""

import binascii
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from golden import mxint
from golden.streaming import wire
from golden.streaming.errors import Reason, Rejected
from golden.streaming.layout import Format

CHUNK = wire.Chunk(chunk_id=0x01020304, layer=5, kv_head=6, token_block=7, tokens=3, head_dim=32,
                   exponent_block=32)


def frame_of(fmt=Format.HUFFMAN5, chunk=CHUNK, seed=0):
    rng = np.random.default_rng(seed)
    return wire.encode_frame(chunk, fmt, *rng.standard_normal((2, chunk.tokens, chunk.head_dim)))


def reason_of(frame, expected=CHUNK, **options):
    result = wire.decode_frame(frame, expected, **options)
    assert isinstance(result, Rejected)
    return result.reason


def test_the_bytes_of_a_frame():
    frame = frame_of(Format.INT8)
    assert len(frame) == 64 + 256 + 64
    assert frame[:36] == b"KVCF\x01\x04\0\0" + bytes([
        4, 3, 2, 1, 5, 0, 6, 0, 7, 0, 0, 0, 3, 0, 32, 0, 32, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    assert struct.unpack("<I", frame[60:64])[0] == binascii.crc32(frame[:60])
    assert struct.unpack("<I", frame[-64:-60])[0] == binascii.crc32(frame[64:-64])
    assert not any(frame[-60:])


@pytest.mark.parametrize("tokens", [1, 16, 17, 1024])
@pytest.mark.parametrize("fmt", Format)
def test_every_format_is_accepted_and_near(fmt, tokens):
    chunk = replace(CHUNK, tokens=tokens, head_dim=64, exponent_block=64)
    rng = np.random.default_rng(tokens)
    k, v = rng.standard_normal((2, tokens, 64))
    got = wire.decode_frame(wire.encode_frame(chunk, fmt, k, v), chunk)
    assert (got.chunk, got.format) == (chunk, fmt)
    assert got.mantissas.dtype == np.int8
    assert got.exponents.dtype == np.uint8
    assert got.exponents.shape == (tokens, 2, 1)
    assert np.array_equal(mxint.unpack_row(got.rows), got.mantissas)
    error = np.abs(mxint.dequantise(got.mantissas, got.exponents) - np.stack([k, v], axis=1))
    steps = {Format.FP16: 2.0**-11, Format.BF16: 2.0**-8, Format.FP8_E4M3: 2.0**-4,
             Format.FP8_E5M2: 2.0**-3, Format.MXINT8: 0}
    step = steps[fmt] if fmt in steps else 0.55 / ((1 << (fmt.element_bits - 1)) - 1)
    largest = np.abs(np.stack([k, v], axis=1)).max(axis=-1, keepdims=True)
    # Half a step of the wire format and half a step of the stored rows, or a whole one at 127.
    assert (error <= largest * (step + 1 / 64)).all()


row_values = st.floats(-(2.0**127), 2.0**127, width=32)


@settings(max_examples=40)
@given(fmt=st.sampled_from(list(Format)), rows=arrays(np.float32, (2, 3, 32), elements=row_values))
def test_any_finite_rows_are_accepted(fmt, rows):
    result = wire.decode_frame(wire.encode_frame(CHUNK, fmt, *rows), CHUNK)
    assert isinstance(result, wire.Decoded)
    if fmt == Format.MXINT8:
        want = mxint.quantise(rows.swapaxes(0, 1), 32)
        assert np.array_equal(result.mantissas, want[0])
        assert np.array_equal(result.exponents, mxint.canonical(*want))


@pytest.mark.parametrize("fmt", Format)
def test_no_single_bit_error_is_accepted(fmt):
    frame = frame_of(fmt, replace(CHUNK, tokens=1))
    chunk = replace(CHUNK, tokens=1)
    for bit in range(0, 8 * len(frame), 1 if fmt == Format.HUFFMAN3 else 61):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        reason = reason_of(damaged, chunk)
        if bit < 8 * 64:
            assert reason <= Reason.HEADER_CRC
        else:
            assert reason == Reason.PAYLOAD_CRC


def test_truncation_at_every_byte():
    frame = frame_of()
    for size in range(len(frame)):
        assert wire.decode_frame(frame[:size], CHUNK) == Rejected(Reason.TRUNCATED, size)
    assert reason_of(frame + b"\0") == Reason.OVERLONG
    assert reason_of(frame + frame) == Reason.OVERLONG


@pytest.mark.parametrize("change, reason", [
    ({"magic": 0}, Reason.MAGIC), ({"version": 2}, Reason.VERSION),
    ({"version": 0}, Reason.VERSION),
    ({"format": 7}, Reason.FORMAT), ({"format": 0x11}, Reason.FORMAT),
    ({"format": 0x19}, Reason.FORMAT), ({"format": 0x95}, Reason.FORMAT),
    ({"flags": 1}, Reason.FORMAT), ({"flags": 0x8000}, Reason.FORMAT),
    ({"chunk_id": 0x01020305}, Reason.CHUNK), ({"layer": 4}, Reason.IDENTITY),
    ({"kv_head": 262}, Reason.IDENTITY), ({"token_block": 7 + (1 << 31)}, Reason.IDENTITY),
    ({"tokens": 4}, Reason.SHAPE), ({"tokens": 0}, Reason.SHAPE), ({"head_dim": 64}, Reason.SHAPE),
    ({"exponent_block": 64}, Reason.SHAPE),
    ({"payload_bytes": 0}, Reason.LENGTH), ({"payload_bytes": 0xFFFFFFC0}, Reason.LENGTH),
    ({"format": Format.INT4}, Reason.LENGTH), ({"format": Format.INT8}, Reason.LENGTH),
])
def test_header_fields(change, reason):
    frame = frame_of()
    header = replace(wire.Header.unpack(frame), **change)
    assert reason_of(header.pack() + frame[64:]) == reason
    # Whatever else is wrong behind the header, or if nothing is there.
    assert reason_of(header.pack()) == reason


@pytest.mark.parametrize("size, reason", [
    (-64, Reason.OVERLONG), (64, Reason.TRUNCATED), (1, Reason.LENGTH), (-32, Reason.LENGTH),
])
def test_payload_bytes_of_a_coded_frame(size, reason):
    frame = frame_of()
    header = wire.Header.unpack(frame)
    header = replace(header, payload_bytes=header.payload_bytes + size)
    assert reason_of(header.pack() + frame[64:]) == reason


@pytest.mark.parametrize("fmt, low, high", [
    (Format.HUFFMAN5, 128 + 128, 128 + 1664), (Format.HUFFMAN8, 256 + 128, 256 + 1664),
    (Format.FP16, 384, 384), (Format.MXINT8, 256, 256), (Format.INT4, 192, 192),
])
def test_bounds_of_the_payload(fmt, low, high):
    header = wire.Header.of(CHUNK, fmt, low)
    assert reason_of(header.pack()) == Reason.TRUNCATED
    assert reason_of(replace(header, payload_bytes=high).pack()) == Reason.TRUNCATED
    assert reason_of(replace(header, payload_bytes=low - 64).pack()) == Reason.LENGTH
    assert reason_of(replace(header, payload_bytes=high + 64).pack()) == Reason.LENGTH


def test_header_reasons_keep_their_order():
    """Each fault of the header hides those of higher number."""
    frame = bytearray(frame_of())
    expected = replace(CHUNK, chunk_id=0, layer=0, tokens=9)
    frame[60] ^= 1       # header CRC
    frame[28] ^= 1       # length
    seen = []
    for offset, bit in ((5, 0x80), (4, 2), (0, 1)):
        seen.append(reason_of(frame, expected))
        frame[offset] ^= bit
    seen.append(reason_of(frame, expected))
    assert seen == [Reason.HEADER_CRC, Reason.FORMAT, Reason.VERSION, Reason.MAGIC]
    good = wire.Header.unpack(frame_of())
    bad = replace(good, payload_bytes=1).pack()
    assert reason_of(bad, expected) == Reason.CHUNK
    assert reason_of(bad, replace(expected, chunk_id=CHUNK.chunk_id)) == Reason.IDENTITY
    assert reason_of(bad, replace(CHUNK, tokens=9)) == Reason.SHAPE
    assert reason_of(bad) == Reason.LENGTH


def test_chunks_not_awaited_and_formats_not_built_in():
    frame = frame_of()
    assert reason_of(frame, None) == Reason.CHUNK
    assert reason_of(frame, formats={Format.FP16}) == Reason.FORMAT
    assert isinstance(wire.decode_frame(frame, CHUNK, {Format.HUFFMAN5}), wire.Decoded)


def test_reserved_bytes_are_ignored():
    frame = bytearray(frame_of())
    frame[26:28] = b"\x12\x34"
    frame[32:60] = bytes(range(28))
    frame = wire.seal_header(bytes(frame[:64])) + bytes(frame[64:])
    assert isinstance(wire.decode_frame(frame, CHUNK), wire.Decoded)


def test_the_trailer_is_the_crc_and_zeros():
    frame = frame_of()
    for offset in (64, 63, 61, 60, 59, 1):
        damaged = bytearray(frame)
        damaged[-offset] ^= 0x10
        assert wire.decode_frame(damaged, CHUNK) == Rejected(Reason.PAYLOAD_CRC, len(frame) - 64)


def test_the_crc_outranks_what_the_damage_causes():
    frame = bytearray(frame_of())
    frame[64] ^= 0x0F  # a code length
    assert reason_of(frame) == Reason.PAYLOAD_CRC
    sealed = bytes(frame[:64]) + wire.seal_payload(bytes(frame[64:-64]))
    assert wire.decode_frame(sealed, CHUNK) == Rejected(Reason.TABLE, 64)


@pytest.mark.parametrize("change, error, text", [
    ({"chunk_id": 1 << 32}, ValueError, "chunk_id must be in 0..4294967295"),
    ({"tokens": 0}, ValueError, "tokens must be in 1..65535, not 0"),
    ({"layer": 1.5}, TypeError, "layer must be an integer, not 1.5"),
    ({"head_dim": 96}, ValueError, "head_dim must be one of (32, 64, 128, 256), not 96"),
    ({"head_dim": 128, "exponent_block": 64}, ValueError,
     "exponent_block must be 32 or head_dim (128), not 64"),
])
def test_refusals_of_a_chunk(change, error, text):
    with pytest.raises(error) as caught:
        replace(CHUNK, **change)
    assert text in str(caught.value)


def test_encode_frame_wants_the_chunk_s_shape():
    with pytest.raises(ValueError, match=r"k must have shape \(3, 32\), not \(4, 32\)"):
        wire.encode_frame(CHUNK, Format.INT8, np.ones((4, 32)), np.ones((4, 32)))
