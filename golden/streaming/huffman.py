"""Length-limited canonical Huffman codes, and sub-streams of their code words.

Source: section 4 of ``docs/wire_format.md``. Optimal lengths under a limit by package-merge
(Larmore and Hirschberg, 1990). Codes are complete, so that every bit pattern decodes.
"""

import numpy as np

from golden.checks import check_int, check_integers, check_shape
from golden.streaming.layout import MAX_CODE_BITS

__all__ = [
    "code_lengths", "is_complete", "code_words", "decode_table",
    "pack_table", "unpack_table", "write_codes", "read_codes",
]

_WINDOW = 1 << MAX_CODE_BITS


def code_lengths(counts, limit=MAX_CODE_BITS):
    """Lengths of an optimal code for symbols that occur ``counts`` times.

    Among codes of equal cost the choice is fixed: a symbol goes before a package of equal weight,
    and a lower symbol before a higher one.

    Parameters
    ----------
    counts : integer array [symbols]
        At least one is not zero.
    limit : int
        Longest length, 1..12; 2**limit has room for the symbols used.

    Returns
    -------
    uint8 [symbols]
        0 for a symbol that does not occur. Where one symbol s alone occurs, s and s ^ 1 get 1.

    Raises
    ------
    TypeError, ValueError
        No symbol occurs, or too many for ``limit``.
    """
    counts = check_integers("counts", counts, 0, 1 << 62)
    check_shape("counts", counts, (None,))
    check_int("limit", limit, 1, MAX_CODE_BITS)
    used = np.flatnonzero(counts)
    if not 0 < used.size <= 1 << limit:
        raise ValueError(f"counts must have 1..{1 << limit} symbols that occur, not {used.size}")
    lengths = np.zeros(counts.size, np.uint8)
    if used.size == 1:
        lengths[[used[0], used[0] ^ 1]] = 1
        return lengths
    leaves = sorted((int(counts[symbol]), (int(symbol),)) for symbol in used)
    level = leaves
    for _ in range(limit - 1):
        pairs = zip(level[0::2], level[1::2], strict=False)
        packages = [(left[0] + right[0], left[1] + right[1]) for left, right in pairs]
        level = sorted(leaves + packages, key=lambda item: item[0])
    for _, symbols in level[: 2 * used.size - 2]:
        np.add.at(lengths, list(symbols), 1)
    return lengths


def is_complete(lengths):
    """Whether lengths make a complete code: each 0..12, and the sum of 2**-length is 1."""
    lengths = np.asarray(lengths, np.int64)
    used = lengths[lengths > 0]
    return bool((used <= MAX_CODE_BITS).all() and (_WINDOW >> used).sum() == _WINDOW)


def _check_complete(lengths):
    lengths = check_integers("lengths", lengths, 0, MAX_CODE_BITS)
    check_shape("lengths", lengths, (None,))
    if not is_complete(lengths):
        raise ValueError("lengths must be those of a complete code")
    return lengths


def _canonical_order(lengths):
    """Symbols used, in the order of their code words."""
    order = np.lexsort((np.arange(lengths.size), lengths))
    return order[lengths[order] > 0]


def _reversed(windows):
    """Windows with their bits in opposite order."""
    bits = windows[..., np.newaxis] >> np.arange(MAX_CODE_BITS) & 1
    return (bits << np.arange(MAX_CODE_BITS)[::-1]).sum(axis=-1)


def code_words(lengths):
    """Canonical code words of a complete code.

    Returns
    -------
    int64 [symbols]
        As written into a sub-stream: the code's first (most significant) bit in bit 0.
    """
    lengths = _check_complete(lengths)
    order = _canonical_order(lengths)
    span = _WINDOW >> lengths[order]  # 12-bit windows that begin with each code word
    words = np.zeros(lengths.size, np.int64)
    words[order] = _reversed(np.cumsum(span) - span)
    return words


def decode_table(lengths):
    """What each 12-bit window of a sub-stream begins with.

    Returns
    -------
    symbols, lengths : uint8 [4096] each
        Indexed by the window, its first bit in bit 0.
    """
    lengths = _check_complete(lengths)
    order = _canonical_order(lengths)
    symbols = np.repeat(order, _WINDOW >> lengths[order])[_reversed(np.arange(_WINDOW))]
    return symbols.astype(np.uint8), lengths[symbols].astype(np.uint8)


def pack_table(lengths):
    """Lengths as sent, without padding: uint8 [symbols // 2], even symbols in bits 3:0."""
    lengths = check_integers("lengths", lengths, 0, 15)
    return (lengths[0::2] | lengths[1::2] << 4).astype(np.uint8)


def unpack_table(packed):
    """Inverse of :func:`pack_table`."""
    packed = check_integers("packed", packed, 0, 255)
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1).astype(np.uint8)


def write_codes(words, lengths, starts, size):
    """Code words laid into a buffer, each at its own bit.

    Parameters
    ----------
    words, lengths, starts : integer arrays of one shape
        First bit of each code word in bit 0; its bits; the bit of the buffer where it begins.
    size : int
        Bytes of the buffer.

    Returns
    -------
    uint8 [size]
    """
    bits = np.zeros(8 * size, np.uint8)
    for k in range(MAX_CODE_BITS):
        there = lengths > k
        bits[starts[there] + k] = words[there] >> k & 1
    return np.packbits(bits, bitorder="little")


def read_codes(data, starts, table_of_step, tables):
    """Decode sub-streams side by side, one symbol of each per step.

    Parameters
    ----------
    data : uint8 [size]
        Any bits may follow a sub-stream, the end of the data included: zeros are read there.
    starts : int64 [...]
        Bit of ``data`` where each sub-stream begins.
    table_of_step : sequence of int
        Which of ``tables`` each step uses.
    tables : list of (symbols, lengths)
        As of :func:`decode_table`.

    Returns
    -------
    symbols : uint8 [..., steps]
    bits : int64 [..., steps]
        Bits that each sub-stream has used after each step.
    """
    starts = np.asarray(starts, np.int64)
    steps = len(table_of_step)
    padded = np.concatenate([data, np.zeros(4, np.uint8)]).astype(np.int64)
    windows = padded[:-2] | padded[1:-1] << 8 | padded[2:] << 16  # 24 bits from each byte on
    symbols = np.empty((steps, *starts.shape), np.uint8)
    ends = np.empty((steps, *starts.shape), np.int64)
    position = starts
    for step, which in enumerate(table_of_step):
        at = np.minimum(position >> 3, windows.size - 1)
        window = windows[at] >> (position & 7) & (_WINDOW - 1)
        symbols[step] = tables[which][0][window]
        position = position + tables[which][1][window]
        ends[step] = position
    return np.moveaxis(symbols, 0, -1), np.moveaxis(ends - starts, 0, -1)
