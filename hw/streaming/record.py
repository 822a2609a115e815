"""The record of a chunk in memory: what it is, and where its rows go."""

from amaranth.hdl import Cat
from amaranth.lib import data

from hw.config import PAGE_TOKENS, StreamingConfig

__all__ = ["RECORD_BYTES", "SCHEDULE_BYTES", "chunk_record", "is_record_good", "schedule_item"]

RECORD_BYTES = 64
SCHEDULE_BYTES = 16


def chunk_record() -> data.StructLayout:
    """A record, little-endian, in the order of its fields. ``flags`` bit 0: ``has_exponents``."""
    return data.StructLayout({
        "key_base": 64, "value_base": 64, "exponent_base": 64,
        "page_stride": 32, "exponent_stride": 32,
        "table_index": 32,
        "token_block": 32, "layer": 16, "kv_head": 16, "tokens": 16,
        "row_stride": 16,
        "window_mask": 16,
        "flags": 16,
        "reserved": 96,
    })


def schedule_item() -> data.StructLayout:
    """An entry of the schedule in memory: lists, in their order, with the times of each chunk.
    ``route`` bit 0: 0 streamed, 1 computed."""
    return data.StructLayout({
        "chunk": 16, "stage": 8, "route": 8,
        "stream_ticks": 32, "compute_ticks": 32, "deadline": 32,
    })


def is_record_good(config: StreamingConfig, record):
    """Whether a record can be used as it is: every field fits and is aligned, the tokens and their
    pages exist, and what is reserved is zero."""
    aligned = config.bus_bytes - 1
    addresses = [record.key_base, record.value_base, record.exponent_base]
    strides = [record.page_stride, record.exponent_stride, record.row_stride]
    pages = (record.tokens + (PAGE_TOKENS - 1)) >> (PAGE_TOKENS.bit_length() - 1)
    return (
        ~Cat(address[config.address_bits:] for address in addresses).any()
        & ~Cat(value & aligned for value in [*addresses, *strides]).any()
        & record.tokens.any() & (record.tokens <= config.chunk_tokens)
        & ((record.table_index + pages) <= config.table_pages)
        & ~Cat(record.window_mask[config.windows:], record.flags[1:], record.reserved).any()
    )
