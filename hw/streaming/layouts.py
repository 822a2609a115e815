"""Payload layouts that cross between the sub-units of the streaming engine."""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from hw.config import EXPONENT_BITS, StreamingConfig

__all__ = [
    "Reason", "Route", "Outcome",
    "link_beat", "expected_chunk", "chunk_begin", "payload_beat", "element_beat", "stored_beat",
    "decode_fault", "verdict", "placement", "windows", "write_outcome",
    "Decision", "schedule_entry", "schedule_policy", "route_answer", "compute_request", "record",
    "CopyKind", "CopyError", "copy_command", "copy_done",
]

TICK_BITS = 32          # absolute times and deadlines
PREDICTION_BITS = 24    # predicted times
STAGE_BITS = 8
NEVER = (1 << TICK_BITS) - 1    # a deadline that is none


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
    """What became of the rows of a chunk; the lowest number that applies."""

    DONE = 0      # in memory, last write response received
    REFUSED = 1   # the frame was refused: see the reason
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


def windows(config: StreamingConfig) -> data.ArrayLayout:
    """The address windows that may be written: bytes ``base``..``last``, both included."""
    return data.ArrayLayout(data.StructLayout({
        "valid": 1, "base": config.address_bits, "last": config.address_bits}), config.windows)


def write_outcome(config: StreamingConfig) -> data.StructLayout:
    """What became of a chunk's rows, sent when the last write response was there: ``outcome`` is
    DONE, REFUSED, WINDOW or WRITE; ``beats`` were written."""
    return data.StructLayout({"outcome": Outcome, "beats": 32})


# The route scheduler (docs/scheduling.md).


class Decision(enum.Enum, shape=5):
    """What the scheduler decides or reports about a chunk (``golden.streaming.policy``)."""

    REQUEST_STREAM = 0
    REQUEST_COMPUTE = 1
    REQUEST_STATE = 2
    PRESENT = 3
    STATE_DONE = 4
    LOST = 5
    STREAM_FAILED = 6
    STREAM_LATE = 7
    COMPUTE_FAILED = 8
    COMPUTE_BLOCKED = 9
    RETRY = 10
    RECOVER = 11
    FALL_BACK = 12
    MOVE_TO_STREAM = 13
    MOVE_TO_COMPUTE = 14
    EXTEND = 15
    DROP = 16
    STAGE = 17


def schedule_entry(config: StreamingConfig) -> data.StructLayout:
    """An entry of a schedule that is loaded: ``chunk`` is the next of the list of its ``route``."""
    return data.StructLayout({
        "chunk": config.chunk_bits,
        "route": Route,
        "stage": STAGE_BITS,
        "stream_ticks": PREDICTION_BITS,
        "compute_ticks": PREDICTION_BITS,
        "deadline": TICK_BITS,
    })


def schedule_policy(config: StreamingConfig) -> data.StructLayout:
    """Registers of the route scheduler (docs/scheduling.md, section 5), and the grid of chunks.
    They hold still while a job runs."""
    return data.StructLayout({
        "blocks": 16, "layers": 16, "heads": 16,   # their product: at most ``chunks``
        "stages": STAGE_BITS + 1,
        "rule": 1,
        "stream_outstanding": 5, "compute_outstanding": 5,
        "scan": 8,
        "stream_ahead": 8, "compute_ahead": 8,
        "retries": 2,
        "stream_timeout": TICK_BITS, "compute_timeout": TICK_BITS,
        "refine": 1, "guard": 1, "idle": 1,
        "window_log2": 3,
        "margin": 8,
        "cap": 8,
        "period": TICK_BITS,
    })


def route_answer(config: StreamingConfig) -> data.StructLayout:
    """The answer of a route to a request for a chunk."""
    return data.StructLayout({"chunk": config.chunk_bits, "good": 1})


def compute_request(config: StreamingConfig) -> data.StructLayout:
    """A chunk to be computed; ``state_only``: its hidden state, keys and values are present."""
    return data.StructLayout({"chunk": config.chunk_bits, "state_only": 1})


def record(config: StreamingConfig) -> data.StructLayout:
    """A line of the decision log. ``chunk`` of STAGE is the stage."""
    return data.StructLayout({"time": TICK_BITS, "decision": Decision, "chunk": 16})


# Plain copies.


class CopyKind(enum.Enum, shape=2):
    COPY = 0   # memory to memory
    FEED = 1   # memory to the frame receiver: one frame


class CopyError(enum.Enum, shape=4):
    """Why a DMA command failed. The lowest number that applies is told."""

    NONE = 0
    KIND = 1          # unknown descriptor
    ZERO = 2          # no bytes, or no rows
    OVERLAP = 3       # source and destination, or rows of the destination, share bytes
    ADDRESS = 4       # past the end of the address space; a descriptor that is not aligned
    WINDOW = 5        # a byte of the destination outside the windows granted
    READ = 6          # error response on a read
    WRITE = 7         # error response on a write
    FETCH = 8         # error response on the read of a descriptor
    CYCLE = 9         # a chain longer than allowed
    ABORTED = 10


def copy_command(config: StreamingConfig) -> data.StructLayout:
    """``rows`` pieces of ``row_bytes``, their starts ``source_stride`` and ``destination_stride``
    apart. Linear: one row. Any alignment."""
    address = config.address_bits
    return data.StructLayout({
        "kind": CopyKind,
        "tag": 16,
        "source": address, "destination": address,
        "row_bytes": 32,
        "rows": 16,
        "source_stride": 32, "destination_stride": 32,
        "window_mask": config.windows,
    })


def copy_done(config: StreamingConfig) -> data.StructLayout:
    """The end of a command, sent once, after its last write response."""
    return data.StructLayout({"tag": 16, "error": CopyError})
