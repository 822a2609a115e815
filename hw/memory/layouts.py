"""Payload layouts and ports that cross between the sub-units of the memory controller."""

from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from hw.config.memory import LINE_BYTES, MemoryConfig
from hw.memory.timings import Part

__all__ = [
    "MetaAction", "Operation", "PhySignature", "Status", "dram_command", "line_request",
    "line_response", "m2s_data", "m2s_request", "s2m_data", "s2m_response", "stored_line",
    "tier_request",
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


def _request(config: MemoryConfig) -> dict:
    return {
        "source": config.source_bits,
        "tag": config.tag_bits,
        "operation": Operation,
        "meta_action": MetaAction,
        "meta": 2,
        "poison": 1,
        "enables": LINE_BYTES,
        "data": LINE_BITS,
    }


def line_request(config: MemoryConfig) -> data.StructLayout:
    """A request of a source: ``line`` counts lines of the host's address space."""
    return data.StructLayout({
        "line": config.host_line_bits, "context": CONTEXT_BITS, "qos": QOS_BITS,
        **_request(config)})


def tier_request(config: MemoryConfig) -> data.StructLayout:
    """A request to a channel: ``line`` counts lines of its tier."""
    return data.StructLayout({"line": config.tier_line_bits, **_request(config)})


def line_response(config: MemoryConfig) -> data.StructLayout:
    """The answer, to ``source``: what a read returns, and the meta bits before the request."""
    return data.StructLayout({
        "source": config.source_bits, "tag": config.tag_bits, "status": Status,
        "poison": 1, "meta": 2, "data": LINE_BITS})


def stored_line() -> data.StructLayout:
    """What DRAM holds of a line: check bits of `golden.memory.ecc`, word 0 lowest."""
    return data.StructLayout({"data": LINE_BITS, "check": LINE_BITS // 8, "poison": 1, "meta": 2})


def dram_command(part: Part) -> data.StructLayout:
    """A command; ``code`` is a `hw.memory.timings.Command`. Fields it does not need are 0."""
    organisation = part.organisation
    return data.StructLayout({
        "code": 3,
        "group": (organisation.bank_groups - 1).bit_length(),
        "bank": (organisation.banks - 1).bit_length(),
        "row": (organisation.rows - 1).bit_length(),
        "column": (organisation.bursts - 1).bit_length(),
    })


class PhySignature(wiring.Signature):
    """Between a channel and the PHY of its DRAM. A clock cycle is ``step / 2`` nCK.

    A command stands for one cycle; commands start an even number of cycles apart, so that each
    stands at a multiple of ``step`` nCK. The line of WR and WRA stands beside it: the PHY keeps it
    until the data bus wants it. Lines of RD and RDA come back in order, ``cl + burst`` nCK after
    the command (rounded up to cycles), and cannot be held up.

    Parameters
    ----------
    part : Part

    Members
    -------
    valid : ``Out(1)``
    command : ``Out(dram_command(part))``
    write : ``Out(stored_line())``
    keep_meta : ``Out(1)``
        The meta bits in memory stay as they are (their data mask is set).
    read_valid : ``In(1)``
    read : ``In(stored_line())``
    """

    def __init__(self, part: Part):
        super().__init__({
            "valid": Out(1),
            "command": Out(dram_command(part)),
            "write": Out(stored_line()),
            "keep_meta": Out(1),
            "read_valid": In(1),
            "read": In(stored_line()),
        })


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
