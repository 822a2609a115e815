"""SEC-DED code of memory words: a Hsiao (72, 64) code, normative in ``docs/memory_dram.md``.

Each of 72 bits has a column of 8 check rows; all columns differ and have odd weight, so two errors
leave an even syndrome. Data columns: the 56 of weight 3 in rising order, then the 8 rotations of
``0b00011111``, which puts 26 ones into every row. Source of the construction: M. Y. Hsiao, IBM J.
Res. Dev. 14 (1970); the choice and order of columns are ours.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from golden.checks import check_integers
from hw.memory.ecc_code import CHECK_BITS, COLUMNS, DATA_BITS, ROWS

__all__ = [
    "CHECK_BITS", "COLUMNS", "DATA_BITS", "ROWS", "Decoded", "Status", "decode", "decode_line",
    "encode", "encode_line", "flip",
]


class Status(IntEnum):
    """What a decoder says of a word."""

    CLEAN = 0
    CORRECTED = 1  # one bit, of data or check
    UNCORRECTABLE = 2  # two bits, or more that look like none


class Decoded(NamedTuple):
    """Arrays of the words' shape.

    data : uint64, corrected where that is possible, as read otherwise
    status : int64, of :class:`Status`
    bit : int64, position 0..71 of the corrected bit, -1 if none
    """

    data: np.ndarray
    status: np.ndarray
    bit: np.ndarray


_ROWS = np.array(ROWS, np.uint64)
_BIT_OF = np.full(256, -1)
_BIT_OF[list(COLUMNS)] = np.arange(DATA_BITS + CHECK_BITS)


def _words(name, data):
    data = np.asarray(data)
    if data.dtype != np.uint64:
        raise TypeError(f"{name} must be a uint64 array, not of dtype {data.dtype}")
    return data


def encode(data):
    """Check bits of words: uint64 array of any shape to uint8 array of that shape.

    Bit r of the result is the parity of ``data & ROWS[r]``. TypeError for another dtype.
    """
    ones = np.bitwise_count(_words("data", data)[..., None] & _ROWS)
    return (((ones & 1) << np.arange(CHECK_BITS)).sum(axis=-1)).astype(np.uint8)


def decode(data, check):
    """Correct words as they were read.

    Parameters
    ----------
    data : uint64 array of any shape
    check : integer array of the same shape, 0..255

    Returns
    -------
    Decoded
        Syndrome 0 is clean; that of a column, corrected; any other, uncorrectable. Three errors may
        look like one (docs/memory_dram.md says how often).
    """
    data = _words("data", data)
    check = check_integers("check", check, 0, 255, data.shape)
    syndrome = encode(data) ^ check
    bit = _BIT_OF[syndrome]
    status = np.where(syndrome == 0, Status.CLEAN, np.where(
        bit >= 0, Status.CORRECTED, Status.UNCORRECTABLE))
    in_data = (bit >= 0) & (bit < DATA_BITS)
    fix = np.where(in_data, np.uint64(1) << np.where(in_data, bit, 0).astype(np.uint64),
                   np.uint64(0))
    return Decoded(data ^ fix, status, bit)


def flip(data, check, *positions):
    """``(data, check)`` of words with the bits at ``positions`` (0..71) inverted."""
    data, check = _words("data", data), np.asarray(check, np.uint8)
    for position in check_integers("positions", positions, 0, DATA_BITS + CHECK_BITS - 1):
        if position < DATA_BITS:
            data = data ^ np.uint64(1 << int(position))
        else:
            check = check ^ np.uint8(1 << int(position) - DATA_BITS)
    return data, check


def encode_line(line):
    """Check bits of lines: uint8 array [..., 64] to uint8 array [..., 8].

    A line is 8 words, lowest byte first; byte w of the result belongs to word w.
    """
    line = np.ascontiguousarray(line)
    if line.dtype != np.uint8 or line.ndim < 1 or line.shape[-1] != 64:
        raise TypeError(f"line must be a uint8 array [..., 64], not {line.dtype} {line.shape}")
    return encode(line.view("<u8").astype(np.uint64))


def decode_line(line, check):
    """Correct lines: uint8 arrays [..., 64] and [..., 8] to a :class:`Decoded`.

    ``data`` is uint8 [..., 64]; ``status`` and ``bit`` are by word, [..., 8]. A line with a word
    beyond correction is returned poisoned by the controller.
    """
    line = np.ascontiguousarray(line)
    if line.dtype != np.uint8 or line.ndim < 1 or line.shape[-1] != 64:
        raise TypeError(f"line must be a uint8 array [..., 64], not {line.dtype} {line.shape}")
    decoded = decode(line.view("<u8").astype(np.uint64), check)
    return decoded._replace(data=decoded.data.astype("<u8").view(np.uint8))
