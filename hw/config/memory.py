"""Configuration of the tiered memory controller."""

from dataclasses import dataclass, fields

from hw.config.checks import check_choice, check_int, check_range, is_power_of_two
from hw.memory.timings import PARTS, Part

__all__ = ["LINE_BYTES", "MemoryConfig"]

LINE_BYTES = 64
HOST_ADDRESS_BITS = 52
SOURCES_BESIDE_PORTS = 2  # the CXL endpoint, and migration


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """Parameters of the tiered memory controller (HybridGen, arXiv 2604.18529).

    The paper fixes the placement (keys near, values far), not the hardware: every default here is
    ours.

    Parameters
    ----------
    part : str
        DRAM of both tiers: a name of `hw.memory.timings.PARTS`.
    step : int
        nCK per scheduling decision: 1 or 2.
    read_queue, write_queue : int
        Requests that each scheduler can choose from: powers of two in 2..64.
    lines : int
        Requests in each channel, queued or on their way: a power of two in 4..256.
    tag_bits : int
        Of a source's tag: 1..16.
    ports : int
        AXI4 slave ports: 0..8.
    port_bytes : int
        Their width: 8, 16, 32 or 64.
    port_id_bits : int
        Of their ids: 1..16.
    port_lines : int
        Lines that a port has outstanding in each direction: a power of two in 2..256.
    cxl_requests, cxl_data : int
        Buffers, which are credits, for M2S requests and for requests with data: powers of two in
        2..64.
    retry_depth : int
        Flits of the link's retry buffer: 22..255.
    decoders : int
        HDM decoders: 1..10.
    windows : int
        Windows of contexts: 1..32.
    page_log2 : int
        Log2 of a page's bytes: 12..21.
    pages : int
        Pages of device memory: a power of two in 2..65536.
    near_frames, far_frames : int
        Pages that each tier can hold; more than ``pages`` together, since a move needs a free one.
    heat_bits : int
        Of a page's counter: 2..16.

    Raises
    ------
    TypeError
        A field is not of its type.
    ValueError
        A field, or a combination of fields, is not allowed; the message names field, value and
        range.
    """

    part: str = "ddr5-4800"
    step: int = 2
    read_queue: int = 32
    write_queue: int = 32
    lines: int = 64
    tag_bits: int = 8
    ports: int = 2
    port_bytes: int = 16
    port_id_bits: int = 4
    port_lines: int = 32
    cxl_requests: int = 32
    cxl_data: int = 16
    retry_depth: int = 64
    decoders: int = 4
    windows: int = 8
    page_log2: int = 12
    pages: int = 1024
    near_frames: int = 512
    far_frames: int = 1024
    heat_bits: int = 8

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_choice(owner, "part", self.part, tuple(PARTS))
        for field in fields(self):
            if field.name != "part":
                check_int(owner, field.name, getattr(self, field.name))
        check_choice(owner, "port_bytes", self.port_bytes, (8, 16, 32, 64))
        capacity = self.dram.organisation.capacity_bytes >> self.page_log2
        for name, low, high in (
            ("step", 1, 2), ("read_queue", 2, 64), ("write_queue", 2, 64), ("lines", 4, 256),
            ("tag_bits", 1, 16), ("ports", 0, 8), ("port_id_bits", 1, 16), ("port_lines", 2, 256),
            ("cxl_requests", 2, 64), ("cxl_data", 2, 64), ("retry_depth", 22, 255),
            ("decoders", 1, 10), ("windows", 1, 32), ("page_log2", 12, 21), ("pages", 2, 65536),
            ("near_frames", 1, capacity), ("far_frames", 1, capacity), ("heat_bits", 2, 16),
        ):
            check_range(owner, name, getattr(self, name), low, high)
        for name in ("read_queue", "write_queue", "lines", "port_lines", "cxl_requests",
                     "cxl_data", "pages"):
            if not is_power_of_two(getattr(self, name)):
                raise ValueError(
                    f"{owner}.{name} must be a power of two, not {getattr(self, name)!r}")
        if self.port_lines > 1 << self.tag_bits - 1:
            raise ValueError(f"{owner}.port_lines must be at most 2^(tag_bits - 1) "
                             f"({1 << self.tag_bits - 1}), not {self.port_lines!r}")
        if self.near_frames + self.far_frames <= self.pages:
            raise ValueError(f"{owner}.far_frames must be more than pages - near_frames "
                             f"({self.pages - self.near_frames}), not {self.far_frames!r}")

    @property
    def dram(self) -> Part:
        """Timings and organisation of the part."""
        return PARTS[self.part]

    @property
    def tier_line_bits(self) -> int:
        """Width of a line number within a tier."""
        organisation = self.dram.organisation
        return (organisation.capacity_bytes // LINE_BYTES - 1).bit_length()

    @property
    def host_line_bits(self) -> int:
        """Width of a line number of the host's address space."""
        return HOST_ADDRESS_BITS - 6

    @property
    def device_line_bits(self) -> int:
        """Width of a line number in the device: in its pages, tiers not yet considered."""
        return (self.pages - 1).bit_length() + self.page_log2 - 6

    @property
    def sources(self) -> int:
        """Where requests come from: 0 the CXL endpoint, 1..ports AXI, the last one migration."""
        return self.ports + SOURCES_BESIDE_PORTS

    @property
    def source_bits(self) -> int:
        return (self.sources - 1).bit_length()

    @property
    def line_slot_bits(self) -> int:
        """Width of an index of a channel's requests."""
        return (self.lines - 1).bit_length()
