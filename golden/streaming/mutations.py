"""Damaged frames, for fuzzing: the same seed gives the same frames.

*Sealed* damage has its CRCs put right, so that it reaches the checks behind them.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np

from golden.checks import check_int
from golden.streaming.layout import (
    DIRECTORY_BYTES,
    SIDE_OF_SCALES,
    Format,
    coded_page_bytes,
    page_bytes,
    side_bytes,
    table_bytes,
)
from golden.streaming.wire import HEADER_BYTES, TRAILER_BYTES, Header, seal_header, seal_payload

__all__ = ["Mutation", "KINDS", "mutate", "truncations"]


@dataclass(frozen=True)
class Mutation:
    """A damaged frame, and the kind of damage: a key of ``KINDS``."""

    kind: str
    frame: bytes


def _flipped(rng, data, low, high, most=4):
    """``data`` with 1..most bits in bytes ``low..high - 1`` flipped."""
    data = bytearray(data)
    for bit in rng.integers(8 * low, 8 * high, rng.integers(1, most + 1)):
        data[bit >> 3] ^= 1 << (bit & 7)
    return bytes(data)


def _resealed(frame):
    """The frame with the payload's CRC put right; its header says where that ends."""
    end = HEADER_BYTES + Header.unpack(frame).payload_bytes
    return frame[:HEADER_BYTES] + seal_payload(frame[HEADER_BYTES:end])


def _flip(rng, frame, beat_bytes):
    return _flipped(rng, frame, 0, len(frame))


def _flip_header(rng, frame, beat_bytes):
    return _flipped(rng, frame, 0, HEADER_BYTES)


def _flip_trailer(rng, frame, beat_bytes):
    return _flipped(rng, frame, len(frame) - TRAILER_BYTES, len(frame), 1)


def _truncate(rng, frame, beat_bytes):
    return frame[: rng.integers(0, len(frame))]


def _extend(rng, frame, beat_bytes):
    return frame + rng.bytes(rng.integers(1, 4 * beat_bytes + 1))


def _garbage(rng, frame, beat_bytes):
    return rng.bytes(rng.integers(1, len(frame) + 1))


def _garbage_header(rng, frame, beat_bytes):
    return rng.bytes(HEADER_BYTES) + frame[HEADER_BYTES:]


def _beats(frame, beat_bytes):
    return [frame[at : at + beat_bytes] for at in range(0, len(frame), beat_bytes)]


def _drop_beat(rng, frame, beat_bytes):
    beats = _beats(frame, beat_bytes)
    del beats[rng.integers(len(beats))]
    return b"".join(beats)


def _repeat_beat(rng, frame, beat_bytes):
    beats = _beats(frame, beat_bytes)
    at = rng.integers(len(beats))
    return b"".join(beats[: at + 1] + beats[at:])


def _swap_beats(rng, frame, beat_bytes):
    beats = _beats(frame, beat_bytes)
    first, second = rng.integers(len(beats), size=2)
    beats[first], beats[second] = beats[second], beats[first]
    return b"".join(beats)


def _sealed_field(rng, frame, beat_bytes):
    """A header field set to another value, header sealed."""
    header = Header.unpack(frame)
    name = rng.choice(list(asdict(header)))
    old = getattr(header, name)
    width = {"magic": 32, "version": 8, "format": 8, "chunk_id": 32, "token_block": 32,
             "payload_bytes": 32}.get(name, 16)
    near = [old + 1, old - 1, old + 64, old - 64, old ^ 1 << int(rng.integers(width)), 0, -1]
    known = {"format": list(Format), "head_dim": [32, 64, 128, 256], "exponent_block": [32, 64]}
    value = rng.choice(near + known.get(name, [])) % (1 << width)
    return replace(header, **{name: int(value)}).pack() + frame[HEADER_BYTES:]


def _sealed_reserved(rng, frame, beat_bytes):
    """Reserved bytes of the header set, header sealed: to be ignored."""
    header = bytearray(frame[:HEADER_BYTES])
    header[32:60] = rng.bytes(28)
    return seal_header(bytes(header)) + frame[HEADER_BYTES:]


def _sealed_payload(rng, frame, beat_bytes):
    return _resealed(_flipped(rng, frame, HEADER_BYTES, len(frame) - TRAILER_BYTES))


def _sealed_region(rng, frame, start, size):
    """One of: bits flipped, a byte set to its largest value, all garbage."""
    choice = rng.integers(3)
    if choice == 0:
        return _resealed(_flipped(rng, frame, start, start + size))
    data = bytearray(frame)
    if choice == 1:
        data[start + rng.integers(size)] = 0xFF
    else:
        data[start : start + size] = rng.bytes(size)
    return _resealed(bytes(data))


def _page_starts(frame):
    header = Header.unpack(frame)
    fmt = Format(header.format)
    end, at, starts = HEADER_BYTES + header.payload_bytes, HEADER_BYTES + 2 * table_bytes(fmt), []
    while at < end:
        starts.append(at)
        if fmt.is_coded:
            directory = frame[at + SIDE_OF_SCALES : at + SIDE_OF_SCALES + DIRECTORY_BYTES]
            at += int(coded_page_bytes(np.frombuffer(directory, "<u2").astype(np.int64)))
        else:
            at += page_bytes(fmt, header.head_dim, header.exponent_block)
    return starts


def _sealed_table(rng, frame, beat_bytes):
    """A Huffman table damaged, or two of its bytes exchanged, which keeps the code complete."""
    fmt = Format(Header.unpack(frame).format)
    if not fmt.is_coded:
        return _sealed_payload(rng, frame, beat_bytes)
    start = HEADER_BYTES + int(rng.integers(2)) * table_bytes(fmt)
    used = (1 << fmt.element_bits) // 2
    if rng.integers(2):
        return _sealed_region(rng, frame, start, used)
    data = bytearray(frame)
    first, second = start + rng.integers(used, size=2)
    data[first], data[second] = data[second], data[first]
    return _resealed(bytes(data))


def _sealed_side(rng, frame, beat_bytes):
    """A scale or exponent damaged; without a side block, the first bytes of a page."""
    header = Header.unpack(frame)
    size = side_bytes(Format(header.format), header.head_dim, header.exponent_block)
    return _sealed_region(rng, frame, int(rng.choice(_page_starts(frame))), size or 16)


def _sealed_directory(rng, frame, beat_bytes):
    """A sub-stream's length changed by a little or a lot."""
    if not Format(Header.unpack(frame).format).is_coded:
        return _sealed_payload(rng, frame, beat_bytes)
    at = int(rng.choice(_page_starts(frame))) + SIDE_OF_SCALES + 2 * int(rng.integers(8))
    data = bytearray(frame)
    old = int.from_bytes(data[at : at + 2], "little")
    new = (old + rng.choice([-64, -8, -1, 1, 8, 64, int(rng.integers(1 << 16))])) % (1 << 16)
    data[at : at + 2] = int(new).to_bytes(2, "little")
    return _resealed(bytes(data))


KINDS = {
    "flip": _flip, "flip_header": _flip_header, "flip_trailer": _flip_trailer,
    "truncate": _truncate, "extend": _extend, "garbage": _garbage,
    "garbage_header": _garbage_header,
    "drop_beat": _drop_beat, "repeat_beat": _repeat_beat, "swap_beats": _swap_beats,
    "sealed_field": _sealed_field, "sealed_reserved": _sealed_reserved,
    "sealed_payload": _sealed_payload, "sealed_table": _sealed_table, "sealed_side": _sealed_side,
    "sealed_directory": _sealed_directory,
}


def mutate(frame, count, seed, *, beat_bytes=8) -> Iterator[Mutation]:
    """``count`` damaged versions of a frame, every kind in turn.

    Some come out as they went in, or as another frame that is right: the decoder is to say.

    Parameters
    ----------
    frame : bytes
        A frame that is accepted.
    count : int
    seed : int or sequence of int
    beat_bytes : int
        Width of the bus whose beats are dropped, repeated and swapped.
    """
    check_int("count", count, 0, 1 << 32)
    rng = np.random.default_rng(seed)
    kinds = list(KINDS.items())
    for index in range(count):
        kind, damage = kinds[index % len(kinds)]
        yield Mutation(kind, damage(rng, frame, beat_bytes))


def truncations(frame) -> Iterator[Mutation]:
    """The frame cut short at every byte: 0 bytes, 1 byte, ... all but the last."""
    for size in range(len(frame)):
        yield Mutation("truncate", frame[:size])
