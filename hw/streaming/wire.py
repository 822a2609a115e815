"""What docs/wire_format.md fixes, as the hardware needs it. No Amaranth import here.

Sizes are bytes, unless a name says otherwise.
"""

from dataclasses import dataclass

from hw.config import PAGE_TOKENS, WIRE_FORMATS

__all__ = [
    "UNIT_BYTES", "MAGIC", "VERSION", "HEADER_FIELDS", "CRC_POLYNOMIAL", "CRC_ONES",
    "ROWS_PER_PAGE", "SCALE_BYTES", "SMALLEST_PAGE_BYTES", "FLOATS", "FloatFields",
    "element_bits", "is_coded", "has_scales", "row_bytes", "side_bytes", "table_bytes",
    "largest_coded_page",
]

UNIT_BYTES = 64  # header, trailer, side blocks and pages are whole units
MAGIC = int.from_bytes(b"KVCF", "little")
VERSION = 1

HEADER_FIELDS = {  # name to size, in the order of the bytes
    "magic": 4, "version": 1, "format": 1, "flags": 2,
    "chunk_id": 4, "layer": 2, "kv_head": 2, "token_block": 4,
    "tokens": 2, "head_dim": 2, "exponent_block": 2, "ignored": 2,
    "payload_bytes": 4, "reserved": 28, "header_crc": 4,
}

CRC_POLYNOMIAL = 0xEDB88320  # 0x04C11DB7 reflected: the least significant bit goes first
CRC_ONES = 0xFFFFFFFF        # start of the register, and final inversion

ROWS_PER_PAGE = 2 * PAGE_TOKENS
SCALE_BYTES = 2
SMALLEST_PAGE_BYTES = 128

_DIRECTORY_BYTES = 16
_MOST_BITS_PER_CODE = 12


@dataclass(frozen=True)
class FloatFields:
    """Fields of a floating-point format. ``has_infinity``: all exponents of ones are not finite;
    without it, only the code of all ones is not."""

    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1


FLOATS = {
    "FP16": FloatFields(5, 10, True),
    "BF16": FloatFields(8, 7, True),
    "FP8_E4M3": FloatFields(4, 3, False),
    "FP8_E5M2": FloatFields(5, 2, True),
}


def is_coded(name: str) -> bool:
    """Whether elements are entropy-coded."""
    return name.startswith("HUFFMAN")


def element_bits(name: str) -> int:
    """Bits of an element as sent; of a symbol before coding, where it is coded."""
    if is_coded(name):
        return WIRE_FORMATS[name] & 15
    return FLOATS[name].bits if name in FLOATS else 4 if name == "INT4" else 8


def has_scales(name: str) -> bool:
    """Whether the side block holds a scale per row."""
    return is_coded(name) or name in ("INT8", "INT4")


def row_bytes(name: str, head_dim: int) -> int:
    """Size of a row of a fixed-rate format: a power of two."""
    return head_dim * element_bits(name) // 8


def side_bytes(name: str, blocks: int) -> int:
    """Size of a page's side block; ``blocks``: exponents of a stored row."""
    if has_scales(name):
        return ROWS_PER_PAGE * SCALE_BYTES
    return _padded(ROWS_PER_PAGE * blocks) if name == "MXINT8" else 0


def table_bytes(name: str) -> int:
    """Size of one of the two code tables of an entropy-coded format, 0 of others."""
    return _padded((1 << element_bits(name)) // 2) if is_coded(name) else 0


def largest_coded_page(head_dim: int) -> int:
    """Size of a page whose every symbol has the longest code."""
    codes = ROWS_PER_PAGE * head_dim * _MOST_BITS_PER_CODE // 8
    return _padded(ROWS_PER_PAGE * SCALE_BYTES + _DIRECTORY_BYTES + codes)


def _padded(size: int) -> int:
    return -(-size // UNIT_BYTES) * UNIT_BYTES
