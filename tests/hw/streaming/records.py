"""Records of chunks, good and bad, for the tests of requests and of the units around them."""

import struct

from hw.config import PAGE_TOKENS, StreamingConfig

FORMAT = struct.Struct("<QQQIIIIHHHHHH12s")
NAMES = ("key_base", "value_base", "exponent_base", "page_stride", "exponent_stride",
         "table_index", "token_block", "layer", "kv_head", "tokens", "row_stride", "window_mask",
         "flags", "reserved")


def make_record(config: StreamingConfig, rng, **fields):
    """The fields of a record that is good, unless ``fields`` say otherwise."""
    bus = config.bus_bytes
    tokens = fields.get("tokens", rng.choice([1, 16, 17, config.chunk_tokens,
                                              rng.randint(1, config.chunk_tokens)]))
    pages = -(-min(tokens, config.chunk_tokens) // PAGE_TOKENS)
    last_address = (1 << config.address_bits) - bus
    return {
        **{name: rng.choice([0, last_address, bus * rng.randrange(last_address // bus)])
           for name in ("key_base", "value_base", "exponent_base")},
        **{name: bus * rng.randrange(1 << 16) for name in ("page_stride", "exponent_stride")},
        "table_index": rng.choice([0, config.table_pages - pages,
                                   rng.randint(0, config.table_pages - pages)]),
        "token_block": rng.getrandbits(32), "layer": rng.getrandbits(16),
        "kv_head": rng.getrandbits(16), "tokens": tokens,
        "row_stride": bus * rng.randrange(1 << 16 >> bus.bit_length()),
        "window_mask": rng.getrandbits(config.windows), "flags": rng.getrandbits(1),
        "reserved": bytes(12), **fields,
    }


def bad_fields(config: StreamingConfig):
    """Each way in which a record can be no good: fields that make it so."""
    bus, address = config.bus_bytes, config.address_bits
    pages = config.chunk_tokens // PAGE_TOKENS
    cases = [{"tokens": 0}, {"tokens": config.chunk_tokens + 1}, {"tokens": 0xFFFF},
             {"tokens": 16, "table_index": config.table_pages},
             {"tokens": 17, "table_index": config.table_pages - 1},
             {"tokens": 1, "table_index": 0xFFFFFFFF},
             {"tokens": config.chunk_tokens, "table_index": config.table_pages - pages + 1},
             {"flags": 2}, {"flags": 0x8001}, {"window_mask": 1 << config.windows},
             {"window_mask": 0x8000}]
    for name in ("key_base", "value_base", "exponent_base"):
        cases += [{name: bus // 2}, {name: 1}, {name: 1 << address}, {name: 1 << 63}]
    for name in ("page_stride", "exponent_stride", "row_stride"):
        cases += [{name: bus // 2}, {name: 3 * bus + 1}]
    return cases + [{"reserved": (1 << bit).to_bytes(12, "little")} for bit in (0, 50, 95)]


def pack_record(record):
    return FORMAT.pack(*(record[name] for name in NAMES))
