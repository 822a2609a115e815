"""Formats and the sizes of their parts: sections 1 to 4 of ``docs/wire_format.md``.

All sizes are bytes, unless a name says otherwise.
"""

from enum import IntEnum

from golden.checks import check_int
from hw.config import MX_BLOCK, PAGE_TOKENS

__all__ = [
    "UNIT_BYTES", "ROWS_PER_PAGE", "SUB_STREAMS", "MAX_CODE_BITS", "SMALLEST_PAGE_BYTES", "Format",
    "padded", "pages", "row_bytes", "side_bytes", "table_bytes", "page_bytes",
    "max_sub_stream_bits", "coded_page_bytes", "payload_bounds", "check_geometry",
]

UNIT_BYTES = 64
ROWS_PER_PAGE = 2 * PAGE_TOKENS
SCALE_BYTES = 2

SUB_STREAMS = 8
SUB_STREAM_ALIGN = 8
MAX_CODE_BITS = 12
DIRECTORY_BYTES = 2 * SUB_STREAMS
SIDE_OF_SCALES = ROWS_PER_PAGE * SCALE_BYTES
SMALLEST_PAGE_BYTES = 128  # a side block and a directory, padded

HEAD_DIMS = (32, 64, 128, 256)


class Format(IntEnum):
    """Format of a payload; the numbers are those of the header."""

    FP16 = 0x00
    BF16 = 0x01
    FP8_E4M3 = 0x02
    FP8_E5M2 = 0x03
    INT8 = 0x04
    INT4 = 0x05
    MXINT8 = 0x06
    HUFFMAN2 = 0x12
    HUFFMAN3 = 0x13
    HUFFMAN4 = 0x14
    HUFFMAN5 = 0x15
    HUFFMAN6 = 0x16
    HUFFMAN7 = 0x17
    HUFFMAN8 = 0x18

    @property
    def is_float(self) -> bool:
        return self <= Format.FP8_E5M2

    @property
    def is_coded(self) -> bool:
        """Whether symbols are entropy-coded, so that the payload's size depends on the data."""
        return self >= Format.HUFFMAN2

    @property
    def has_scales(self) -> bool:
        return self.is_coded or self in (Format.INT8, Format.INT4)

    @property
    def element_bits(self) -> int:
        """Bits of an element as sent; of a symbol before coding, where it is coded."""
        if self.is_coded:
            return self & 15
        return {Format.FP16: 16, Format.BF16: 16, Format.INT4: 4}.get(self, 8)


def padded(size, unit=UNIT_BYTES):
    """``size`` (an int, or an integer array) rounded up to a multiple of ``unit``."""
    return -(-size // unit) * unit


def pages(tokens):
    """Pages of a chunk, the last one perhaps incomplete."""
    return -(-tokens // PAGE_TOKENS)


def check_geometry(head_dim, exponent_block):
    """TypeError or ValueError unless rows may have this shape."""
    if check_int("head_dim", head_dim, HEAD_DIMS[0], HEAD_DIMS[-1]) not in HEAD_DIMS:
        raise ValueError(f"head_dim must be one of {HEAD_DIMS}, not {head_dim!r}")
    if check_int("exponent_block", exponent_block, MX_BLOCK, head_dim) not in (MX_BLOCK, head_dim):
        raise ValueError(
            f"exponent_block must be {MX_BLOCK} or head_dim ({head_dim}), not {exponent_block!r}"
        )


def row_bytes(fmt, head_dim):
    """Bytes of a row of a fixed-rate format."""
    return head_dim * fmt.element_bits // 8


def side_bytes(fmt, head_dim, exponent_block):
    """Bytes of a page's side block."""
    if fmt.has_scales:
        return SIDE_OF_SCALES
    if fmt == Format.MXINT8:
        return padded(ROWS_PER_PAGE * head_dim // exponent_block)
    return 0


def page_bytes(fmt, head_dim, exponent_block, tokens=PAGE_TOKENS):
    """Bytes of a page of a fixed-rate format that holds ``tokens`` tokens."""
    rows = 2 * tokens * row_bytes(fmt, head_dim)
    return padded(side_bytes(fmt, head_dim, exponent_block) + rows)


def table_bytes(fmt):
    """Bytes of one of the two tables of an entropy-coded format; 0 for the others."""
    return padded((1 << fmt.element_bits) // 2) if fmt.is_coded else 0


def max_sub_stream_bits(head_dim):
    """Bits of a full page's sub-stream whose every symbol has the longest code."""
    return MAX_CODE_BITS * ROWS_PER_PAGE * head_dim // SUB_STREAMS


def coded_page_bytes(sub_stream_bits):
    """Bytes of an entropy-coded page, from the lengths [..., 8] of its sub-streams in bits."""
    words = -(-sub_stream_bits // (8 * SUB_STREAM_ALIGN))
    return padded(SIDE_OF_SCALES + DIRECTORY_BYTES + SUB_STREAM_ALIGN * words.sum(axis=-1))


def payload_bounds(fmt, tokens, head_dim, exponent_block):
    """Smallest and largest payload of a chunk: equal for the fixed-rate formats."""
    if fmt.is_coded:
        largest = padded(
            SIDE_OF_SCALES + DIRECTORY_BYTES + SUB_STREAMS * max_sub_stream_bits(head_dim) // 8
        )
        tables, count = 2 * table_bytes(fmt), pages(tokens)
        return tables + count * SMALLEST_PAGE_BYTES, tables + count * largest
    full, rest = divmod(tokens, PAGE_TOKENS)
    size = full * page_bytes(fmt, head_dim, exponent_block)
    if rest:
        size += page_bytes(fmt, head_dim, exponent_block, rest)
    return size, size
