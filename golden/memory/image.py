"""What memory holds, line by line, and what a read must return.

Sparse: only lines that were written take host memory, so the address space may be GiBs. Tiers do
not appear: moving a line between them must not change what is read. Normative text:
``docs/memory_dram.md`` section 6.
"""

from typing import NamedTuple

import numpy as np

from golden.checks import check_int, check_integers

__all__ = ["ALL_BYTES", "LINE_BYTES", "Image", "Read", "agrees", "byte_mask", "pieces"]

LINE_BYTES = 64
ALL_BYTES = (1 << LINE_BYTES) - 1


class Read(NamedTuple):
    """What a read returns: ``data`` uint8 [64], ``poison`` bool, ``meta`` 0..3."""

    data: np.ndarray
    poison: bool
    meta: int


def byte_mask(enables):
    """Byte enables as an integer, bit i for byte i, to a bool array [64]."""
    enables = check_int("enables", enables, 0, ALL_BYTES)
    return np.unpackbits(
        np.frombuffer(enables.to_bytes(8, "little"), np.uint8), bitorder="little"
    ).astype(bool)


def agrees(seen, expected):
    """Whether a read returned what it must. The data of a poisoned line is not compared."""
    if seen.poison != expected.poison or seen.meta != expected.meta:
        return False
    return expected.poison or np.array_equal(seen.data, expected.data)


def pieces(address, data):
    """Cut bytes at a byte address into line writes: yields ``(line, data [64], enables)``.

    ``data`` is a uint8 array [n] or bytes-like; bytes that are not enabled are 0.
    """
    address = check_int("address", address, 0, (1 << 64) - 1)
    data = np.frombuffer(bytes(data), np.uint8)
    taken = 0
    while taken < len(data):
        line, offset = divmod(address + taken, LINE_BYTES)
        size = min(LINE_BYTES - offset, len(data) - taken)
        content = np.zeros(LINE_BYTES, np.uint8)
        content[offset:offset + size] = data[taken:taken + size]
        yield line, content, ((1 << size) - 1) << offset
        taken += size


class Image:
    """Lines of 64 bytes, each with a poison flag and a 2-bit MetaValue.

    Parameters
    ----------
    lines : int
        Size of the address space in lines.
    meta : int
        MetaValue of lines that were never written, 0..3. Their bytes are 0, without poison.
    """

    def __init__(self, lines, meta=0):
        self.lines = check_int("lines", lines, 1, 1 << 58)
        self._fresh = Read(np.zeros(LINE_BYTES, np.uint8), False, check_int("meta", meta, 0, 3))
        self._fresh.data.flags.writeable = False
        self._held = {}

    def __len__(self):
        """Lines that take host memory."""
        return len(self._held)

    def read(self, line, meta=None):
        """The line as a :class:`Read`; then its MetaValue becomes ``meta``, unless ``None``.

        The MetaValue returned is the one before. ValueError outside the image.
        """
        line = check_int("line", line, 0, self.lines - 1)
        held = self._held.get(line, self._fresh)
        self._store(line, held, meta)
        return held

    def write(self, line, data, enables=ALL_BYTES, poison=False, meta=None):
        """Write the enabled bytes of ``data``, an integer array [64] of 0..255.

        A write of all bytes sets the poison flag to ``poison``; one of some bytes can only add
        poison, as the bytes that remain are as bad as before; one of no bytes changes neither data
        nor flag. The MetaValue becomes ``meta``, unless ``None``. Returns the MetaValue before.
        """
        line = check_int("line", line, 0, self.lines - 1)
        mask = byte_mask(enables)
        data = check_integers("data", data, 0, 255, (LINE_BYTES,)).astype(np.uint8)
        held = self._held.get(line, self._fresh)
        if enables:
            poison = bool(poison) or (held.poison and enables != ALL_BYTES)
            merged = np.where(mask, data, held.data)
            merged.flags.writeable = False
            self._held[line] = Read(merged, poison, held.meta)
        self._store(line, self._held.get(line, self._fresh), meta)
        return held.meta

    def spoil(self, line):
        """Poison a line, as a word beyond correction does."""
        line = check_int("line", line, 0, self.lines - 1)
        self._held[line] = self._held.get(line, self._fresh)._replace(poison=True)

    def _store(self, line, held, meta):
        if meta is not None:
            self._held[line] = held._replace(meta=check_int("meta", meta, 0, 3))
