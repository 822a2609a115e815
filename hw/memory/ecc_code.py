"""Columns and rows of the SEC-DED code of memory words (``docs/memory_dram.md``, section 5)."""

__all__ = ["CHECK_BITS", "COLUMNS", "DATA_BITS", "ROWS"]

DATA_BITS = 64
CHECK_BITS = 8

#: Column of each bit: data bits 0..63, then check bits 0..7.
COLUMNS = (
    *(value for value in range(256) if value.bit_count() == 3),
    *((0b00011111 << shift | 0b00011111 >> CHECK_BITS - shift) & 255
      for shift in range(CHECK_BITS)),
    *(1 << row for row in range(CHECK_BITS)),
)

#: Mask of the data bits whose parity is each check bit.
ROWS = tuple(
    sum(1 << bit for bit in range(DATA_BITS) if COLUMNS[bit] >> row & 1)
    for row in range(CHECK_BITS)
)
