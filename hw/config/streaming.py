"""Configuration of the KV chunk streaming engine."""

from dataclasses import dataclass, fields

from hw.config.checks import check_choice, check_int, check_range, is_power_of_two
from hw.config.constants import MX_BLOCK, PAGE_TOKENS

__all__ = ["WIRE_FORMATS", "StreamingConfig"]

WIRE_FORMATS = {
    "FP16": 0x00, "BF16": 0x01, "FP8_E4M3": 0x02, "FP8_E5M2": 0x03,
    "INT8": 0x04, "INT4": 0x05, "MXINT8": 0x06,
    **{f"HUFFMAN{bits}": 0x10 + bits for bits in range(2, 9)},
}


@dataclass(frozen=True, kw_only=True)
class StreamingConfig:
    """Parameters of the KV chunk streaming engine (SparKV, arXiv 2604.21231).

    The paper fixes the schedule's objective and rules, not the hardware: every default here is
    ours.

    Parameters
    ----------
    head_dim : int
        Elements of a row: 32, 64, 128 or 256.
    bus_bytes : int
        Width of the link and of the memory port: 8, 16, 32 or 64, at most ``head_dim``.
    exponent_block : int
        Elements that share a stored exponent: 32 or ``head_dim``.
    formats : tuple of str
        Wire formats built in: names of ``WIRE_FORMATS``, at least one, none twice.
    chunk_tokens : int
        Most tokens of a chunk: a multiple of 16 in 16..65520.
    chunks : int
        Entries of the chunk table: a power of two in 4..4096.
    table_pages : int
        Entries of the block table: 1..65536.
    windows : int
        Address windows that may be granted for writing: 1..16.
    bursts : int
        Read bursts, and write bursts, outstanding at the memory port: a power of two in 2..256.
    burst_bytes : int
        Longest burst of copies: a power of two from ``bus_bytes`` to 4096, at most 256 beats.
    outstanding : int
        Most chunks in flight on each route, the link and the compute port: 1..16.
    address_bits : int
        Width of a byte address: 16..64.

    Raises
    ------
    TypeError
        A field is not of its type.
    ValueError
        A field, or a combination of fields, is not allowed; the message names field, value and
        range.
    """

    head_dim: int
    bus_bytes: int
    exponent_block: int = MX_BLOCK
    formats: tuple[str, ...] = tuple(WIRE_FORMATS)
    chunk_tokens: int = 1024
    chunks: int = 256
    table_pages: int = 1024
    windows: int = 4
    bursts: int = 16
    burst_bytes: int = 1024
    outstanding: int = 8
    address_bits: int = 40

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if not isinstance(self.formats, tuple):
            raise TypeError(f"{owner}.formats must be a tuple of names, not {self.formats!r}")
        for name in self.formats:
            check_choice(owner, "formats", name, tuple(WIRE_FORMATS))
        if not self.formats or len(set(self.formats)) != len(self.formats):
            raise ValueError(
                f"{owner}.formats must be at least one name, none twice, not {self.formats!r}")
        for field in fields(self):
            if field.name != "formats":
                check_int(owner, field.name, getattr(self, field.name))
        check_choice(owner, "head_dim", self.head_dim, (32, 64, 128, 256))
        check_choice(owner, "bus_bytes", self.bus_bytes, (8, 16, 32, 64))
        if self.bus_bytes > self.head_dim:
            raise ValueError(f"{owner}.bus_bytes must be at most head_dim ({self.head_dim}), "
                             f"not {self.bus_bytes!r}")
        if self.exponent_block not in (MX_BLOCK, self.head_dim):
            raise ValueError(f"{owner}.exponent_block must be {MX_BLOCK} or head_dim "
                             f"({self.head_dim}), not {self.exponent_block!r}")
        for name, low, high in (
            ("chunk_tokens", PAGE_TOKENS, 65520), ("chunks", 4, 4096), ("table_pages", 1, 65536),
            ("windows", 1, 16), ("bursts", 2, 256), ("burst_bytes", self.bus_bytes, 4096),
            ("outstanding", 1, 16), ("address_bits", 16, 64),
        ):
            check_range(owner, name, getattr(self, name), low, high)
        if self.chunk_tokens % PAGE_TOKENS:
            raise ValueError(f"{owner}.chunk_tokens must be a multiple of {PAGE_TOKENS}, "
                             f"not {self.chunk_tokens!r}")
        for name in ("chunks", "bursts", "burst_bytes"):
            if not is_power_of_two(getattr(self, name)):
                raise ValueError(
                    f"{owner}.{name} must be a power of two, not {getattr(self, name)!r}")
        if self.burst_bytes > 256 * self.bus_bytes:
            raise ValueError(f"{owner}.burst_bytes must be at most 256 beats "
                             f"({256 * self.bus_bytes}), not {self.burst_bytes!r}")

    @property
    def blocks(self) -> int:
        """Exponent blocks of a row."""
        return self.head_dim // self.exponent_block

    @property
    def row_beats(self) -> int:
        """Bus beats of a stored row."""
        return self.head_dim // self.bus_bytes

    @property
    def chunk_bits(self) -> int:
        """Width of a chunk-table index."""
        return (self.chunks - 1).bit_length()

    @property
    def token_bits(self) -> int:
        """Width of a token count, 0..chunk_tokens inclusive."""
        return self.chunk_tokens.bit_length()

    @property
    def table_bits(self) -> int:
        return max(1, (self.table_pages - 1).bit_length())

    @property
    def huffman_bits(self) -> int:
        """Symbol width of the widest entropy-coded format built in; 0 without one."""
        return max((WIRE_FORMATS[name] - 0x10 for name in self.formats
                    if name.startswith("HUFFMAN")), default=0)
