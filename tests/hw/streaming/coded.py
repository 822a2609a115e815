"""Payloads of the entropy-coded formats, right ones and others."""

import numpy as np

from golden.streaming.elements import BF16
from golden.streaming.huffman import pack_table
from golden.streaming.layout import DIRECTORY_BYTES, SIDE_OF_SCALES, Format, table_bytes
from golden.streaming.payload import encode_symbols

LONGEST = 12


def complete_lengths(bits, rng, *, used=None):
    """Lengths of a complete code: a random tree, whose leaves are random symbols."""
    used = int(rng.integers(2, (1 << bits) + 1)) if used is None else used
    leaves = [1, 1]
    while len(leaves) < used:
        short = [index for index, length in enumerate(leaves) if length < LONGEST]
        # The last leaf that may be split, often: deep trees are rare otherwise.
        index = short[-1] if rng.random() < 0.5 else int(rng.choice(short))
        leaves[index] += 1
        leaves.insert(index + 1, leaves[index])
    lengths = np.zeros(1 << bits, np.int64)
    lengths[rng.permutation(1 << bits)[:used]] = leaves
    return lengths


def make_coded(config, name, tokens, rng, *, lengths=None):
    """Symbols in about the shares that their codes are made for, and any scales."""
    fmt = Format[name]
    if lengths is None:
        lengths = [complete_lengths(fmt.element_bits, rng) for _ in range(2)]
    symbols = np.empty((tokens, 2, config.head_dim), np.int64)
    for side, table in enumerate(lengths):
        shares = np.where(table > 0, np.exp2(-table.astype(float)), 0)
        symbols[:, side] = rng.choice(len(table), symbols[:, side].shape, p=shares)
    scales = rng.integers(0, BF16.largest + 1, (tokens, 2)).astype(np.uint16)
    return encode_symbols(fmt, scales, symbols, lengths=lengths)


KINDS = ("table", "table_bytes", "directory", "scale", "bits", "garbage")


def damage(name, payload, rng, kind):
    """A payload with something about its tables, directory, scales or codes changed."""
    fmt, data = Format[name], bytearray(payload)
    page = 2 * table_bytes(fmt)
    if kind == "table":
        start = int(rng.integers(2)) * table_bytes(fmt)
        table = rng.integers(0, 16, 1 << fmt.element_bits)
        data[start:start + len(table) // 2] = pack_table(table).tobytes()
    elif kind == "table_bytes":
        at = int(rng.integers(page))
        data[at] = (data[at] + int(rng.choice([1, 255, 16, 240]))) % 256
    elif kind == "directory":
        at = page + SIDE_OF_SCALES + 2 * int(rng.integers(DIRECTORY_BYTES // 2))
        old = int.from_bytes(data[at:at + 2], "little")
        new = (old + int(rng.choice([-64, -1, 1, 64, 5000, 1 << 15]))) % (1 << 16)
        data[at:at + 2] = new.to_bytes(2, "little")
    elif kind == "scale":
        at = page + 2 * int(rng.integers(32))
        data[at:at + 2] = int(rng.choice([0x7F80, 0x8000, 0xFFFF, 0x7F7F])).to_bytes(2, "little")
    elif kind == "bits":
        for bit in rng.integers(8 * page, 8 * len(data), 3):
            data[bit >> 3] ^= 1 << (bit & 7)
    else:
        at = int(rng.integers(page, len(data)))
        data[at:] = rng.bytes(len(data) - at)
    return bytes(data)
