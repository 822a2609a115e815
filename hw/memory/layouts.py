"""Payload layouts that cross between the sub-units of the memory controller."""

from amaranth.lib import data, enum

from hw.config.memory import LINE_BYTES, MemoryConfig

__all__ = [
    "MetaAction", "Operation", "Status", "line_request", "line_response", "m2s_data",
    "m2s_request", "s2m_data", "s2m_response", "stored_line",
]

LINE_BITS = LINE_BYTES * 8
CONTEXT_BITS = 8
QOS_BITS = 4


class Operation(enum.Enum, shape=2):
    """What a request does to a line."""

    READ = 0
    WRITE = 1  # the bytes enabled
    META = 2   # nothing but the meta bits


class MetaAction(enum.Enum, shape=2):
    """What a request does to the two meta bits of its line (docs/memory_link.md, section 2)."""

    KEEP = 0
    STORE = 1  # the request's
    RAISE = 2  # 0 becomes 2, as MemRdData does


class Status(enum.Enum, shape=2):
    """What became of a request."""

    DONE = 0
    MISSING = 1  # no HDM decoder covers the address
    REFUSED = 2  # the windows of its context do not allow it


def line_request(config: MemoryConfig) -> data.StructLayout:
    """A request of a source: ``line`` counts lines of the host's address space."""
    return data.StructLayout({
        "line": config.host_line_bits, "context": CONTEXT_BITS, "qos": QOS_BITS,
        "source": config.source_bits, "tag": config.tag_bits,
        "operation": Operation, "meta_action": MetaAction, "meta": 2, "poison": 1,
        "enables": LINE_BYTES, "data": LINE_BITS})


def line_response(config: MemoryConfig) -> data.StructLayout:
    """The answer, to ``source``: what a read returns, and the meta bits before the request."""
    return data.StructLayout({
        "source": config.source_bits, "tag": config.tag_bits, "status": Status,
        "poison": 1, "meta": 2, "data": LINE_BITS})


def stored_line() -> data.StructLayout:
    """What DRAM holds of a line: check bits of `golden.memory.ecc`, word 0 lowest."""
    return data.StructLayout({"data": LINE_BITS, "check": LINE_BITS // 8, "poison": 1, "meta": 2})


# Messages of CXL.mem without their valid bit and reserved bits, fields in the standard's order
# (docs/memory_link.md, section 1).
_M2S = {"opcode": 4, "snp_type": 3, "meta_field": 2, "meta_value": 2, "tag": 16}
_S2M = {"opcode": 3, "meta_field": 2, "meta_value": 2, "tag": 16}


def m2s_request() -> data.StructLayout:
    """M2S Req; ``address`` is bits 51:5."""
    return data.StructLayout({**_M2S, "address": 47, "tc": 2, "ld_id": 4})


def m2s_data() -> data.StructLayout:
    """M2S RwD; ``address`` is bits 51:6. ``enables`` are all ones but for a partial write."""
    return data.StructLayout({
        **_M2S, "address": 46, "poison": 1, "tc": 2, "ld_id": 4,
        "enables": LINE_BYTES, "data": LINE_BITS})


def s2m_response() -> data.StructLayout:
    """S2M NDR."""
    return data.StructLayout({**_S2M, "ld_id": 4, "dev_load": 2})


def s2m_data() -> data.StructLayout:
    """S2M DRS."""
    return data.StructLayout({
        **_S2M, "poison": 1, "ld_id": 4, "dev_load": 2, "data": LINE_BITS})
