"""Frames: header, payload, trailer, and whether a frame is accepted.

Source: sections 1 and 6 of ``docs/wire_format.md``.
"""

from dataclasses import astuple, dataclass
from struct import Struct

import numpy as np

from golden import mxint
from golden.checks import check_int
from golden.streaming.convert import stored_rows
from golden.streaming.crc import crc32
from golden.streaming.errors import FrameError, Reason, Rejected
from golden.streaming.layout import UNIT_BYTES, Format, check_geometry, payload_bounds
from golden.streaming.payload import decode_payload, encode_payload

__all__ = [
    "HEADER_BYTES", "TRAILER_BYTES", "MAGIC", "VERSION", "Chunk", "Header", "Decoded",
    "encode_frame", "seal_frame", "seal_header", "seal_payload", "decode_frame",
]

HEADER_BYTES = UNIT_BYTES
TRAILER_BYTES = UNIT_BYTES
MAGIC = int.from_bytes(b"KVCF", "little")
VERSION = 1
CRC_BYTES = 4

_FIELDS = Struct("<IBBHIHHIHHH2xI28x")


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """What a receiver awaits: the K and V rows of one token block, layer and KV head.

    Parameters
    ----------
    chunk_id : int
        0..2**32 - 1.
    layer, kv_head : int
        0..65535.
    token_block : int
        0..2**32 - 1.
    tokens : int
        1..65535.
    head_dim : int
        32, 64, 128 or 256.
    exponent_block : int
        Elements that share an exponent in the stored rows: 32 or ``head_dim``.
    """

    chunk_id: int
    layer: int
    kv_head: int
    token_block: int
    tokens: int
    head_dim: int
    exponent_block: int

    def __post_init__(self):
        check_int("chunk_id", self.chunk_id, 0, (1 << 32) - 1)
        check_int("layer", self.layer, 0, 65535)
        check_int("kv_head", self.kv_head, 0, 65535)
        check_int("token_block", self.token_block, 0, (1 << 32) - 1)
        check_int("tokens", self.tokens, 1, 65535)
        check_geometry(self.head_dim, self.exponent_block)

    @property
    def shape(self):
        """Of the chunk's rows, as keyword arguments."""
        return {"tokens": self.tokens, "head_dim": self.head_dim,
                "exponent_block": self.exponent_block}


@dataclass(frozen=True)
class Header:
    """Fields of a frame's header in their order, unchecked; reserved bytes and CRC left out."""

    magic: int
    version: int
    format: int
    flags: int
    chunk_id: int
    layer: int
    kv_head: int
    token_block: int
    tokens: int
    head_dim: int
    exponent_block: int
    payload_bytes: int

    @classmethod
    def of(cls, chunk, fmt, payload_bytes):
        """Header of a chunk sent as ``fmt``."""
        return cls(MAGIC, VERSION, fmt, 0, *astuple(chunk), payload_bytes)

    @classmethod
    def unpack(cls, data):
        """Fields of the first 64 bytes of ``data``."""
        return cls(*_FIELDS.unpack_from(data))

    def pack(self):
        """The 64 bytes, sealed."""
        return seal_header(_FIELDS.pack(*astuple(self)) + bytes(CRC_BYTES))


@dataclass(frozen=True, eq=False)
class Decoded:
    """An accepted frame, converted.

    Parameters
    ----------
    chunk : Chunk
    format : Format
    mantissas : int8 [tokens, 2, d]
        K, then V, of each token.
    exponents : uint8 [tokens, 2, d // exponent_block]
    """

    chunk: Chunk
    format: Format
    mantissas: np.ndarray
    exponents: np.ndarray

    @property
    def rows(self):
        """Rows as stored, in two planes: uint8 [tokens, 2, d]."""
        return mxint.pack_row(self.mantissas)


def _crc_bytes(data):
    return crc32(data).to_bytes(CRC_BYTES, "little")


def seal_header(header):
    """A header of 64 bytes with its CRC put right."""
    return header[:-CRC_BYTES] + _crc_bytes(header[:-CRC_BYTES])


def seal_payload(payload):
    """A payload and its trailer."""
    return payload + _crc_bytes(payload).ljust(TRAILER_BYTES, b"\0")


def seal_frame(chunk, fmt, payload):
    """A frame around a payload, whatever that holds."""
    return Header.of(chunk, fmt, len(payload)).pack() + seal_payload(payload)


def encode_frame(chunk, fmt, k, v, *, lengths=None):
    """Frame of a chunk: K and V [tokens, d] are finite reals.

    ``lengths`` are the code lengths of an entropy-coded format, as of
    :func:`golden.streaming.payload.encode_payload`.
    """
    k, v = np.asarray(k), np.asarray(v)
    if k.shape != (chunk.tokens, chunk.head_dim):
        raise ValueError(f"k must have shape ({chunk.tokens}, {chunk.head_dim}), not {k.shape}")
    fmt = Format(fmt)
    payload = encode_payload(fmt, k, v, exponent_block=chunk.exponent_block, lengths=lengths)
    return seal_frame(chunk, fmt, payload)


def decode_frame(frame, expected, formats=frozenset(Format)):
    """Accept a frame and convert it, or refuse it.

    Parameters
    ----------
    frame : bytes
        The packet up to its TLAST.
    expected : Chunk or None
        The chunk awaited under the frame's ``chunk_id``; None if none is.
    formats : collection of Format
        Formats that the receiver was built for.

    Returns
    -------
    Decoded or Rejected
    """
    frame = bytes(frame)
    try:
        return _decode(frame, expected, formats)
    except FrameError as error:
        return Rejected(error.reason, error.offset)


def _check_header(frame, expected, formats):
    """The header of a frame, all of whose header checks pass."""
    if len(frame) < HEADER_BYTES:
        raise FrameError(Reason.TRUNCATED, len(frame))
    header = Header.unpack(frame)
    crc = int.from_bytes(frame[HEADER_BYTES - CRC_BYTES : HEADER_BYTES], "little")
    checks = [
        (Reason.MAGIC, header.magic == MAGIC, 0),
        (Reason.VERSION, header.version == VERSION, 4),
        (Reason.FORMAT, header.format in set(formats) and header.flags == 0, 5),
        (Reason.HEADER_CRC, crc == crc32(frame[: HEADER_BYTES - CRC_BYTES]), 60),
    ]
    if expected is not None:
        place, shape = ("layer", "kv_head", "token_block"), ("tokens", "head_dim", "exponent_block")
        checks += [
            (Reason.CHUNK, header.chunk_id == expected.chunk_id, 8),
            (Reason.IDENTITY, _agree(header, expected, place), 12),
            (Reason.SHAPE, _agree(header, expected, shape), 20),
        ]
    else:
        checks.append((Reason.CHUNK, False, 8))
    for reason, passes, offset in checks:
        if not passes:
            raise FrameError(reason, offset)
    low, high = payload_bounds(Format(header.format), **expected.shape)
    if header.payload_bytes % UNIT_BYTES or not low <= header.payload_bytes <= high:
        raise FrameError(Reason.LENGTH, 28)
    return header


def _agree(header, expected, fields):
    return all(getattr(header, field) == getattr(expected, field) for field in fields)


def _decode(frame, expected, formats):
    header = _check_header(frame, expected, formats)
    end = HEADER_BYTES + header.payload_bytes
    if len(frame) < end + TRAILER_BYTES:
        raise FrameError(Reason.TRUNCATED, len(frame))
    if len(frame) > end + TRAILER_BYTES:
        raise FrameError(Reason.OVERLONG, end + TRAILER_BYTES)
    payload = frame[HEADER_BYTES:end]
    if frame[HEADER_BYTES:] != seal_payload(payload):
        raise FrameError(Reason.PAYLOAD_CRC, end)
    fmt = Format(header.format)
    try:
        elements = decode_payload(fmt, payload, **expected.shape)
    except FrameError as error:
        raise FrameError(error.reason, HEADER_BYTES + error.offset) from None
    return Decoded(expected, fmt, *stored_rows(fmt, *elements, expected.exponent_block))
