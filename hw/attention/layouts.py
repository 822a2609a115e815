"""Payload layouts that cross between the sub-units of the attention unit.

Fixed enums are classes; everything whose width follows from the configuration is a function of an
``AttentionConfig``.
"""

from amaranth.hdl import signed
from amaranth.lib import data, enum

from hw.config import (
    EXPONENT_BITS,
    LOGIT_BITS,
    PERCENT_FRACTION_BITS,
    STATE_BITS,
    AttentionConfig,
)

__all__ = [
    "Select", "Kind", "Error", "Opcode", "ResultKind",
    "context_entry", "query_job", "encode_request", "code_write", "token_item", "selection_counts",
    "row_beat", "fetch_status", "logit_item", "state_beat", "append_row", "exponents",
    "retrieval_job", "query_vector", "full_state_beat", "float_beat", "result_beat",
    "command", "data_beat", "issued_query", "command_status",
]


class Select(enum.Enum, shape=2):
    """How a query chooses its tokens (docs/numerics.md, section 10)."""

    DENSE = 0
    BUDGET = 1
    PERCENTILE = 2
    DISTANCE = 3


class Kind(enum.Enum, shape=2):
    """What an item in the token and row streams is."""

    FULL = 0      # a token, both planes
    COARSE = 1    # a token, upper plane only
    SUMMARY = 2   # a page summary row, both planes, with its weight
    END = 3       # closes a query; carries no row


class Error(enum.Enum, shape=4):
    """Error code of a command's status."""

    NONE = 0
    OPCODE = 1     # unknown opcode
    CONTEXT = 2    # context index out of range, or not valid
    EMPTY = 3      # query on a context without tokens
    VISIBLE = 4    # visible length above the context's length
    BUDGET = 5     # full + coarse above the visible count
    CAPACITY = 6   # append past the context's capacity
    WINDOW = 7     # block-table entry or row outside the context's window
    BUS = 8        # AXI error response on a read
    SHORT = 9      # AXI read burst shorter or longer than asked
    DATA = 10      # data stream ended early or late
    EXPONENT = 11  # NaN exponent (255) in an appended row
    WRITE = 12     # AXI error response on a write


class Opcode(enum.Enum, shape=3):
    QUERY = 0
    APPEND = 1
    WEIGHTS = 2


class ResultKind(enum.Enum, shape=2):
    """What a beat of the result stream is. A STATUS beat closes every command."""

    STATUS = 0
    OUTPUT = 1
    STATE = 2
    LOGIT = 3


def exponents(config: AttentionConfig) -> data.ArrayLayout:
    """E8M0 exponents of one row (K or V), one per block."""
    return data.ArrayLayout(EXPONENT_BITS, config.blocks)


def context_entry(config: AttentionConfig) -> data.StructLayout:
    """What the unit knows of a context: one (sequence, layer, KV head).

    ``page`` = block_table[table_base + position // 16]; the rows of position p lie at
    ``key_base + page * key_page_stride + (p % 16) * key_row_stride`` (values likewise) and the
    summary rows of a page at ``summary_base + page * summary_page_stride`` (K, then V
    ``row_bytes`` later). A row must end at or below its region's limit (exclusive byte address).
    All bases and strides are multiples of ``row_bytes``, so that no row crosses 4 KiB. A context
    with ``summary_limit`` 0 keeps no summaries: its queries must not ask for them.
    """
    address, stride = config.address_bits, 32
    return data.StructLayout({
        "length": config.token_bits,
        "capacity": config.token_bits,
        "code_line": 32,              # first line in the code memory (resident)
        "code_address": address,      # byte address of the first code line (streamed)
        "table_base": config.table_bits + 1,
        "key_base": address, "key_limit": address,
        "key_page_stride": stride, "key_row_stride": 16,
        "value_base": address, "value_limit": address,
        "value_page_stride": stride, "value_row_stride": 16,
        "summary_base": address, "summary_limit": address, "summary_page_stride": stride,
        "weight_set": 6,
    })


def query_job(config: AttentionConfig) -> data.StructLayout:
    """A checked query on its way through retrieval and fetch (1 <= visible <= length)."""
    return data.StructLayout({
        "tag": 16,
        "slot": config.slot_bits,
        "select": Select,
        "logits_only": 1,
        "summaries": 1,
        "visible": config.token_bits,
        "full": PERCENT_FRACTION_BITS + config.token_bits,    # count, fraction or limit
        "coarse": PERCENT_FRACTION_BITS + config.token_bits,
        "sink": config.token_bits,
        "recent": config.token_bits,
        "minimum": config.token_bits,
        "entry": context_entry(config),
    })


def encode_request(config: AttentionConfig) -> data.StructLayout:
    """A vector to encode: a query's mantissas, or a key's (sign-extended) with its exponents."""
    return data.StructLayout({
        "is_key": 1,
        "weight_set": 6,
        "vector": data.ArrayLayout(signed(config.query_bits), config.head_dim),
        "exponents": exponents(config),
    })


def code_write(config: AttentionConfig) -> data.StructLayout:
    """A new token's code and exponents, for the resident code memory.

    ``line`` counts lines of ``lanes`` tokens from the start of the code memory, ``lane`` is the
    token's place in it. ``page_keys``/``page_values`` are the largest exponents so far of the
    token's page, per block (the exponents of the page summary).
    """
    return data.StructLayout({
        "line": 32,
        "lane": (config.lanes - 1).bit_length(),
        "code": config.code_bits,
        "keys": exponents(config), "values": exponents(config),
        "page": 32,
        "page_keys": exponents(config), "page_values": exponents(config),
    })


def token_item(config: AttentionConfig) -> data.StructLayout:
    """One row pair to fetch, in the order of docs/numerics.md section 5; END closes the query.

    For a summary ``keys`` and ``values`` are the page's largest exponents.
    """
    return data.StructLayout({
        "kind": Kind,
        "position": config.position_bits,   # for a summary: the first position of its page
        "weight": 5,                        # 1, or the skipped tokens of a summary's page
        "keys": exponents(config), "values": exponents(config),
    })


def selection_counts(config: AttentionConfig) -> data.StructLayout:
    """What a query selected, sent once per query after its END item.

    ``error``: the codes could not be read (streamed codes only), the selection is not valid.
    ``beats``: bus beats of code lines read.
    """
    return data.StructLayout({
        "error": Error,
        "beats": 24,
        "full": config.token_bits,
        "coarse": config.token_bits,
        "summaries": config.page_bits + 1,
    })


def row_beat(config: AttentionConfig) -> data.StructLayout:
    """A datapath beat of a K or V row.

    With one plane per beat, a full row is two beats (upper plane, then lower) and a coarse row one.
    With two planes per beat, both are one beat. END is one beat whose data mean nothing. ``last``
    marks the last beat of a row. The part of a row that could not be read arrives as zeros; the
    fault is told in the fetch status.
    """
    return data.StructLayout({
        "data": config.beat_bytes * 8,
        "kind": Kind,
        "last": 1,
        "slot": config.slot_bits,
        "logits_only": 1,
        "weight": 5,
        "position": config.position_bits,
        "exponents": exponents(config),
    })


def fetch_status(config: AttentionConfig) -> data.StructLayout:
    """Sent once per query, after its last row arrived: first fault met, and the bus beats read."""
    return data.StructLayout({
        "error": Error,
        "beats": 32,
    })


def logit_item(config: AttentionConfig) -> data.StructLayout:
    """A logit with what softmax must know of its row. END carries no logit."""
    return data.StructLayout({
        "kind": Kind,
        "logit": signed(LOGIT_BITS),
        "weight": 5,
        "position": config.position_bits,
        "logits_only": 1,
        "saturated": 1,
    })


def state_beat(config: AttentionConfig) -> data.StructLayout:
    """``result_lanes`` elements of a head's final (m, l, ev, o); head_dim / result_lanes beats."""
    return data.StructLayout({
        "maximum": signed(32),
        "weight_sum": config.weight_sum_bits,
        "exponent": EXPONENT_BITS,
        "values": data.ArrayLayout(signed(config.value_sum_bits), config.result_lanes),
        "last": 1,
        "saturated": 1,
    })


def append_row(config: AttentionConfig) -> data.StructLayout:
    """A token to append: rows as stored (upper plane, then lower plane) and its exponents.

    ``last`` marks the last row of an APPEND command. With ``has_code`` the code comes ready-made;
    otherwise the unit encodes the key. A row with an ``error`` other than NONE is not written: it
    fails its command with that error.
    """
    return data.StructLayout({
        "error": Error,
        "context": config.context_bits,
        "position": config.position_bits,
        "last": 1,
        "has_code": 1,
        "code": config.code_bits,
        "key": config.row_bytes * 8, "value": config.row_bytes * 8,
        "keys": exponents(config), "values": exponents(config),
        "entry": context_entry(config),
    })


def retrieval_job(config: AttentionConfig) -> data.StructLayout:
    """A query with the code of each head of its group (ignored when DENSE)."""
    return data.StructLayout({
        "job": query_job(config),
        "codes": data.ArrayLayout(config.code_bits, config.group),
    })


def query_vector(config: AttentionConfig) -> data.StructLayout:
    """A query head's mantissas and exponent, to be held in a slot until the query is done."""
    return data.StructLayout({
        "slot": config.slot_bits,
        "vector": data.ArrayLayout(signed(config.query_bits), config.head_dim),
        "exponent": EXPONENT_BITS,
    })


def full_state_beat(config: AttentionConfig) -> data.StructLayout:
    """A state beat in 64-bit words: what leaves the unit and what merges (docs/numerics.md, 7)."""
    return data.StructLayout({
        "maximum": signed(32),
        "weight_sum": STATE_BITS,
        "exponent": EXPONENT_BITS,
        "values": data.ArrayLayout(signed(STATE_BITS), config.result_lanes),
        "last": 1,
    })


def command(config: AttentionConfig) -> data.StructLayout:
    """A command. The fields past ``context`` are those of the opcode, the others are ignored.

    QUERY: ``select`` to ``exponents``; ``visible`` 0 means the whole context. ``full`` and
    ``coarse`` are counts (BUDGET), 1/65536 of the visible tokens (PERCENTILE) or exclusive distance
    limits (DISTANCE). APPEND: ``count`` tokens, ``has_code``. WEIGHTS: ``count`` rows of the weight
    memory from ``index``.
    """
    amount = PERCENT_FRACTION_BITS + config.token_bits
    return data.StructLayout({
        "opcode": Opcode,
        "tag": 16,
        "context": 16,
        "count": 32,
        "index": 16,
        "has_code": 1,
        "select": Select,
        "logits_only": 1,
        "summaries": 1,
        "want_output": 1,
        "want_state": 1,
        "visible": 32,
        "full": amount,
        "coarse": amount,
        "sink": config.token_bits,
        "recent": config.token_bits,
        "minimum": config.token_bits,
        "exponents": data.ArrayLayout(EXPONENT_BITS, config.group),
    })


def data_beat(config: AttentionConfig) -> data.StructLayout:
    """A beat of a command's data; ``last`` on the command's final beat. Each record starts a beat.

    QUERY: a record per head: ``head_dim`` mantissas, little-endian; with ``has_code`` one more with
    the group's codes. APPEND: a record per token: K row, V row (both as stored: upper plane, lower
    plane), K exponents, V exponents, and the code with ``has_code``. WEIGHTS: a record per row:
    ``head_dim`` signed bytes.
    """
    return data.StructLayout({"data": config.memory_bytes * 8, "last": 1})


def issued_query(config: AttentionConfig) -> data.StructLayout:
    """A query on its way, as the results side must know it, in the order of issue."""
    return data.StructLayout({
        "tag": 16,
        "slot": config.slot_bits,
        "logits_only": 1,
        "want_output": 1,
        "want_state": 1,
    })


def command_status(config: AttentionConfig) -> data.StructLayout:
    """The outcome of a command that ends before retrieval: a refused query, an append, weights.

    ``length``: of the context after an APPEND; 0 for anything else, and without a valid context.
    """
    return data.StructLayout({"tag": 16, "error": Error, "length": config.token_bits})


def float_beat(config: AttentionConfig) -> data.StructLayout:
    """``result_lanes`` float32 bit patterns of a head's output."""
    return data.StructLayout({
        "values": data.ArrayLayout(32, config.result_lanes),
        "last": 1,
    })


def result_beat(config: AttentionConfig) -> data.StructLayout:
    """A beat of the result stream; ``last`` closes the run of one kind (and head).

    STATUS: word 0 = error in 3:0, saturated in 4, bus beats read in 31:8; words 1..3 = tokens full,
    tokens coarse, summaries (of an APPEND: word 1 = the context's length).
    OUTPUT: float32 elements. STATE: a header beat (word 0 = m, word 1 = ev, words 2..3 = l), then o
    in 64-bit words. LOGIT: word 0 = position in 29:0 and kind in 31:30, word 1 = logit, word 2 =
    weight.
    """
    return data.StructLayout({
        "kind": ResultKind,
        "tag": 16,
        "head": 3,
        "last": 1,
        "words": data.ArrayLayout(32, config.result_lanes),
    })
