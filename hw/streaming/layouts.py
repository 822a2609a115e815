"""Payload layouts that cross between the sub-units of the streaming engine."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from hw.config import EXPONENT_BITS, StreamingConfig

__all__ = [
    "Reason", "Route", "Outcome",
    "link_beat", "expected_chunk", "chunk_begin", "payload_beat", "element_beat", "stored_beat",
    "decode_fault", "verdict", "placement",
]


class Reason(enum.Enum, shape=5):
    """Why a frame was refused (docs/wire_format.md, section 6). The lowest number found holds."""

    NONE = 0
    MAGIC = 1
    VERSION = 2
    FORMAT = 3
    HEADER_CRC = 4
    CHUNK = 5
    IDENTITY = 6
    SHAPE = 7
    LENGTH = 8
    TRUNCATED = 9
    OVERLONG = 10
    PAYLOAD_CRC = 11
    TABLE = 12
    DIRECTORY = 13
    OVERRUN = 14
    UNDERRUN = 15
    NONFINITE = 16


class Route(enum.Enum, shape=1):
    STREAM = 0
    COMPUTE = 1


class Outcome(enum.Enum, shape=3):
    """What became of a chunk on a route."""

    DONE = 0      # in memory, last write response received
    REFUSED = 1   # the frame was refused: see the reason
    LATE = 2      # its deadline passed first; what still comes is dropped
    FAILED = 3    # the compute side reported failure, or did not answer in time
    WINDOW = 4    # a row fell outside the windows granted; nothing was written there
    WRITE = 5     # AXI error response on a write


def link_beat(config: StreamingConfig) -> data.StructLayout:
    """A beat of the link (AXI-Stream with TKEEP)."""
    return data.StructLayout({
        "data": config.bus_bytes * 8, "keep": config.bus_bytes, "last": 1})


def expected_chunk(config: StreamingConfig) -> data.StructLayout:
    """The chunk awaited under a chunk id (answer to the receiver's lookup)."""
    return data.StructLayout({
        "awaited": 1,
        "index": config.chunk_bits,
        "layer": 16, "kv_head": 16, "token_block": 32,
        "tokens": config.token_bits,
    })


def chunk_begin(config: StreamingConfig) -> data.StructLayout:
    """A frame whose header was accepted: sent before its first payload beat."""
    return data.StructLayout({
        "index": config.chunk_bits,
        "format": 8,
        "tokens": config.token_bits,
        "payload_beats": 32,
    })


def payload_beat(config: StreamingConfig) -> data.StructLayout:
    """A payload beat of an accepted header. ``last``: the payload ends here (also when the packet
    was cut short, with ``cut`` high: the decoder then gives up the frame)."""
    return data.StructLayout({"data": config.bus_bytes * 8, "last": 1, "cut": 1})


def element_beat(config: StreamingConfig) -> data.StructLayout:
    """``bus_bytes`` elements of a row in turn, each p * 2^e (docs/wire_format.md, section 5)."""
    element = data.StructLayout({"p": signed(17), "e": signed(11)})
    return data.StructLayout({
        "elements": data.ArrayLayout(element, config.bus_bytes),
        "nonfinite": 1,
        "last": 1,   # of the row
    })


def stored_beat(config: StreamingConfig) -> data.StructLayout:
    """A beat of a stored row: upper plane, then lower plane; the exponents are the whole row's."""
    return data.StructLayout({
        "data": config.bus_bytes * 8,
        "exponents": data.ArrayLayout(EXPONENT_BITS, config.blocks),
        "last": 1,   # of the row
    })


def decode_fault(config: StreamingConfig) -> data.StructLayout:
    """Sent once per frame when the decoder is through with it: the lowest reason of 12..16."""
    return data.StructLayout({"reason": Reason})


def verdict(config: StreamingConfig) -> data.StructLayout:
    """The receiver's judgement of a frame, sent once per frame, when its last beat was there and
    the decoder is through. ``known``: ``index`` is that of an awaited chunk."""
    return data.StructLayout({
        "reason": Reason,
        "known": 1,
        "index": config.chunk_bits,
        "chunk_id": 32,
    })


def placement(config: StreamingConfig) -> data.StructLayout:
    """Where the rows of a chunk go. Token t lies in page ``block_table[table_index + t // 16]``,
    slot t % 16: ``key_base + page * page_stride + slot * row_stride`` (values likewise); the
    exponents of a page at ``exponent_base + page * exponent_stride``, 32 * blocks bytes in wire
    order, if ``has_exponents``. All bases and strides are multiples of ``bus_bytes``."""
    address = config.address_bits
    return data.StructLayout({
        "tokens": config.token_bits,
        "table_index": config.table_bits + 1,
        "key_base": address, "value_base": address, "exponent_base": address,
        "page_stride": 32, "row_stride": 16, "exponent_stride": 32,
        "has_exponents": 1,
        "window_mask": config.windows,   # the windows that this chunk's context was granted
    })
