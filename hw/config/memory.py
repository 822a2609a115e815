"""Configuration of the tiered memory controller."""

from dataclasses import dataclass, fields

from hw.config.checks import check_int, check_range, is_power_of_two

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
    tag_bits : int
        Of a source's tag: 1..16.
    ports : int
        AXI4 slave ports, beside the CXL endpoint: 0..8.
    cxl_requests, cxl_data : int
        Buffers, which are credits, for M2S requests and for requests with data: powers of two in
        2..64.
    windows : int
        Windows of contexts: 1..32.

    Raises
    ------
    TypeError
        A field is not of its type.
    ValueError
        A field, or a combination of fields, is not allowed; the message names field, value and
        range.
    """

    tag_bits: int = 8
    ports: int = 2
    cxl_requests: int = 32
    cxl_data: int = 16
    windows: int = 8

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for field in fields(self):
            check_int(owner, field.name, getattr(self, field.name))
        for name, low, high in (
            ("tag_bits", 1, 16), ("ports", 0, 8), ("cxl_requests", 2, 64), ("cxl_data", 2, 64),
            ("windows", 1, 32),
        ):
            check_range(owner, name, getattr(self, name), low, high)
        for name in ("cxl_requests", "cxl_data"):
            if not is_power_of_two(getattr(self, name)):
                raise ValueError(
                    f"{owner}.{name} must be a power of two, not {getattr(self, name)!r}")

    @property
    def host_line_bits(self) -> int:
        """Width of a line number of the host's address space."""
        return HOST_ADDRESS_BITS - 6

    @property
    def source_bits(self) -> int:
        """Width of a source: 0 the CXL endpoint, 1..ports AXI, the last one migration."""
        return (self.ports + SOURCES_BESIDE_PORTS - 1).bit_length()
